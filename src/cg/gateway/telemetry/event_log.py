"""The log of what the gateway did: one line a turn, an ask, a fault; counts and words of closed sets only."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from cg.gateway.events import (
    OURS,
    AskEnded,
    ExpandAnswered,
    Fault,
    GatewayEvent,
    OriginalResent,
    Refusal,
    Timer,
    TurnProjected,
    TurnSent,
)
from cg.gateway.telemetry.json_logs import log_event
from cg.sweep.ledger import TurnReport

turns = logging.getLogger("cg.gateway.turn")
asks = logging.getLogger("cg.gateway.ask")
faults = logging.getLogger("cg.gateway.fault")
access = logging.getLogger("cg.gateway.http.access")

QUIET = frozenset({Timer.ARMED, Timer.CANCELLED})  # each turn makes one of each


class EventLog:
    """Writes the lines; an `Events`. A thread's name is no part of them: it would follow a conversation through."""

    def tell(self, event: GatewayEvent) -> None:
        """Write the event's line, if it has one."""
        if (line := _LINES.get(type(event))) is not None:
            line(event)


def _log_sent(event: TurnSent) -> None:
    _log_turn("turn", event.report)


def _log_projected(event: TurnProjected) -> None:
    _log_turn("projected", event.report)


def _log_turn(event: str, report: TurnReport) -> None:
    savings = report.savings
    log_event(
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


def _log_ask(event: AskEnded) -> None:
    row = event.row
    log_event(
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


def _log_timer(event: Timer) -> None:
    log_event(asks, "timer", what=event, level=logging.DEBUG if event in QUIET else logging.INFO)


def _log_expanded(event: ExpandAnswered) -> None:
    log_event(turns, "recovered", mode=event.mode, outcome=event.outcome, rounds=event.rounds)


def _log_resent(event: OriginalResent) -> None:
    log_event(turns, "original_sent", status=event.status, level=logging.WARNING)


def _log_refused(event: Refusal) -> None:
    log_event(access, "refused", why=event, level=logging.WARNING)


def _log_fault(event: Fault) -> None:
    log_event(faults, "fault", what=event, level=logging.ERROR if event in OURS else logging.WARNING)


_LINES: Mapping[type, Callable[[Any], None]] = {
    TurnSent: _log_sent,
    TurnProjected: _log_projected,
    AskEnded: _log_ask,
    Timer: _log_timer,
    ExpandAnswered: _log_expanded,
    OriginalResent: _log_resent,
    Refusal: _log_refused,
    Fault: _log_fault,
}
