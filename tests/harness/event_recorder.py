"""A listener for tests: it keeps the events, and gives those of one kind."""

from collections import Counter
from typing import TypeVar

from cg.gateway.events import (
    AskEnded,
    ExpandAnswered,
    Fault,
    GatewayEvent,
    Mode,
    ModelCalled,
    OriginalResent,
    Outcome,
    Spend,
    Timer,
    TurnProjected,
    TurnSent,
)
from cg.sweep.ledger import AskRow, TurnReport
from cg.sweep.values import Usage

T = TypeVar("T")


class EventRecorder:
    """Keeps what it is told, in order."""

    def __init__(self) -> None:
        self.events: list[GatewayEvent] = []
        self.timers: Counter[Timer] = Counter()
        self.faults: Counter[Fault] = Counter()

    def tell(self, event: GatewayEvent) -> None:
        self.events.append(event)
        if isinstance(event, Timer):
            self.timers[event] += 1
        elif isinstance(event, Fault):
            self.faults[event] += 1

    def of(self, kind: type[T]) -> list[T]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def turns(self) -> list[TurnReport]:
        return [event.report for event in self.of(TurnSent)]

    @property
    def projections(self) -> list[TurnReport]:
        return [event.report for event in self.of(TurnProjected)]

    @property
    def rows(self) -> list[AskRow]:
        return [event.row for event in self.of(AskEnded)]

    @property
    def usages(self) -> list[tuple[Spend, Usage | None]]:
        return [(event.spend, event.usage) for event in self.of(ModelCalled)]

    @property
    def recoveries(self) -> list[tuple[Mode, Outcome, int]]:
        return [(event.mode, event.outcome, event.rounds) for event in self.of(ExpandAnswered)]

    @property
    def resents(self) -> list[int]:
        return [event.status for event in self.of(OriginalResent)]
