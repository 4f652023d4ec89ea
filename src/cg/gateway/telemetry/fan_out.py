"""Several listeners told as one: figures and the log hear the same events."""

from cg.gateway.events import Events, Fault, Mode, Outcome, Refusal, Route, Spend, Stage, Timer
from cg.sweep.ledger import AskRow, TurnReport
from cg.sweep.values import Usage


class Fan:
    """Tells each listener, in order."""

    def __init__(self, *listeners: Events) -> None:
        self._listeners = listeners

    def request(self, route: Route, status: int) -> None:
        for one in self._listeners:
            one.request(route, status)

    def refused(self, why: Refusal) -> None:
        for one in self._listeners:
            one.refused(why)

    def upstream(self, status: int) -> None:
        for one in self._listeners:
            one.upstream(status)

    def turn(self, report: TurnReport, at: float) -> None:
        for one in self._listeners:
            one.turn(report, at)

    def projected(self, report: TurnReport, at: float) -> None:
        for one in self._listeners:
            one.projected(report, at)

    def spent(self, why: Spend, model: str, usage: Usage | None, at: float) -> None:
        for one in self._listeners:
            one.spent(why, model, usage, at)

    def asked(self, row: AskRow) -> None:
        for one in self._listeners:
            one.asked(row)

    def recovered(self, mode: Mode, outcome: Outcome, rounds: int = 0) -> None:
        for one in self._listeners:
            one.recovered(mode, outcome, rounds)

    def resent(self, status: int) -> None:
        for one in self._listeners:
            one.resent(status)

    def timer(self, what: Timer) -> None:
        for one in self._listeners:
            one.timer(what)

    def fault(self, what: Fault) -> None:
        for one in self._listeners:
            one.fault(what)

    def took(self, stage: Stage, seconds: float) -> None:
        for one in self._listeners:
            one.took(stage, seconds)

    def opened(self) -> None:
        for one in self._listeners:
            one.opened()

    def closed(self) -> None:
        for one in self._listeners:
            one.closed()
