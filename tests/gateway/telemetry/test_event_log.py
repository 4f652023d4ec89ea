"""The log of what was done: one line an event, closed words and counts, no thread."""

import logging

import pytest
from figures_sample import SECRET, START, busy, removal

from cg.gateway.events import Fault, Timer, TurnProjected, TurnSent
from cg.gateway.telemetry.event_log import EventLog
from cg.gateway.telemetry.json_logs import FIELDS, JsonLines
from cg.gateway.telemetry.listeners import Listeners
from cg.gateway.telemetry.metrics import Metrics
from cg.sweep.ledger import Reason, TurnReport


def test_a_turn_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Its reason, its phase, what was removed and what that saved."""
    with caplog.at_level(logging.INFO, "cg"):
        EventLog().tell(TurnSent(removal(3), START))
    (record,) = caplog.records
    assert record.name == "cg.gateway.turn"
    assert getattr(record, FIELDS) == {
        "reason": Reason.REMOVED,
        "phase": "cold",
        "removed": 3,
        "replayed": 2,
        "saved_bytes": 25_000,
        "charged_bytes": 300,
        "net_usd": 0.04,
    }


def test_a_projection_is_no_turn(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever counts lines counts real ones."""
    with caplog.at_level(logging.INFO, "cg"):
        EventLog().tell(TurnProjected(TurnReport(Reason.COLD), START))
    assert [r.getMessage() for r in caplog.records] == ["projected"]


def test_levels_follow_whose_fault_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """Ours is an error, the world's a warning; what happens at every turn is for debugging."""
    with caplog.at_level(logging.DEBUG, "cg"):
        log = EventLog()
        log.tell(Fault.STORE)
        log.tell(Fault.CLIENT_GONE)
        log.tell(Timer.ARMED)
        log.tell(Timer.FIRED)
    assert [r.levelname for r in caplog.records] == ["ERROR", "WARNING", "DEBUG", "INFO"]


def test_no_line_names_a_thread_or_an_output(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing in the log follows a conversation."""
    with caplog.at_level(logging.DEBUG, "cg"):
        busy(Listeners(Metrics(), EventLog()))  # type: ignore[arg-type]
    text = "\n".join(JsonLines().format(record) for record in caplog.records)
    assert len(caplog.records) > 8
    for name in ("toolu_", "0123456789abcdef", '"thread"', SECRET):
        assert name not in text
