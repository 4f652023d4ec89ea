"""The log of what the gateway did: one line a turn, an ask, a fault; counts and words of closed sets only."""

import logging

from cg.gateway.events import OURS, Fault, Mode, Outcome, Refusal, Silent, Timer
from cg.gateway.telemetry.json_logs import tell
from cg.sweep.ledger import AskRow, TurnReport

turns = logging.getLogger("cg.gateway.turn")
asks = logging.getLogger("cg.gateway.ask")
faults = logging.getLogger("cg.gateway.fault")
access = logging.getLogger("cg.gateway.http.access")

QUIET = frozenset({Timer.ARMED, Timer.CANCELLED})  # each turn makes one of each


class Journal(Silent):
    """Writes the lines; an `Events`. A thread's name is no part of them: it would follow a conversation through."""

    def turn(self, report: TurnReport, at: float) -> None:
        self._turn("turn", report)

    def projected(self, report: TurnReport, at: float) -> None:
        self._turn("projected", report)

    def _turn(self, event: str, report: TurnReport) -> None:
        savings = report.savings
        tell(
            turns,
            event,
            reason=report.reason,
            phase=report.phase,
            removed=len(report.removed),
            replayed=report.replayed,
            saved_bytes=savings.unique_bytes + savings.repeat_bytes if savings else 0,
            charged_bytes=savings.charged_bytes if savings else 0,
            net_usd=savings.net_usd if savings else None,
        )

    def asked(self, row: AskRow) -> None:
        tell(
            asks,
            "asked",
            outcome=row.outcome,
            offered=row.offered,
            judged_spent=row.judged_spent,
            dropped=row.dropped,
            legs=len(row.legs),
            fresh=row.usage.fresh,
            read=row.usage.read,
            write=row.usage.write_5m + row.usage.write_1h,
            output=row.usage.output,
            cost_usd=row.cost_usd,
            milliseconds=round(row.milliseconds),
        )

    def timer(self, what: Timer) -> None:
        tell(asks, "timer", what=what, level=logging.DEBUG if what in QUIET else logging.INFO)

    def recovered(self, mode: Mode, outcome: Outcome, rounds: int = 0) -> None:
        tell(turns, "recovered", mode=mode, outcome=outcome, rounds=rounds)

    def resent(self, status: int) -> None:
        tell(turns, "original_sent", status=status, level=logging.WARNING)

    def refused(self, why: Refusal) -> None:
        tell(access, "refused", why=why, level=logging.WARNING)

    def fault(self, what: Fault) -> None:
        tell(faults, "fault", what=what, level=logging.ERROR if what in OURS else logging.WARNING)
