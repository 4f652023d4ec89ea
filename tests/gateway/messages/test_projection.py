"""Projections: what would have been done to traffic that is only watched, in a memory of its own."""

import pytest
from event_recorder import EventRecorder
from outputs_session import body

from cg.gateway.events import Fault, GatewayEvent, TurnProjected
from cg.gateway.messages.projection import AGE_EVERY, Projection, projected_config
from cg.sweep.config import load
from cg.sweep.ledger import Reason
from cg.sweep.values import Usage

START = 1_800_000_000.0


def watched(projection: Projection, steps: int = 14, wait_before_last: float = 700) -> None:
    for n in range(steps):
        now = START + 10 * n + (wait_before_last if n == steps - 1 else 0)
        projection.look(body(n), "thread", now)
        projection.learn("thread", Usage(read=10_000, output=100), len(body(n)))


def test_a_cold_request_is_projected_as_a_removal() -> None:
    """With what it would have saved, and nothing of it among the real turns."""
    recorder = EventRecorder()
    watched(Projection(load(preset="cold"), recorder))
    assert len(recorder.projections) == 14
    last = recorder.projections[-1]
    assert last.reason is Reason.REMOVED
    assert len(last.removed) == 3  # 13 outputs, the ten newest are kept
    assert last.savings is not None
    assert last.savings.net_usd is not None
    assert last.savings.net_usd > 0
    assert recorder.turns == []
    assert not recorder.faults


@pytest.mark.parametrize("preset", ["paid", "classic"])
def test_a_judge_that_would_ask_is_projected_as_the_rule_that_asks_nobody(preset: str) -> None:
    """Observing spends nothing and renews no entry."""
    config = projected_config(load(preset=preset))
    assert (config.judge, config.ask, config.pings) == ("recency", "off", 0)
    recorder = EventRecorder()
    watched(Projection(load(preset=preset), recorder))
    assert recorder.projections[-1].reason is Reason.REMOVED


def test_the_users_own_limits_stay_where_nobody_is_asked() -> None:
    """What is projected is the configuration in force."""
    config = load(preset="cold", flags={"keep_newest": 3})
    assert projected_config(config).keep_newest == 3
    assert projected_config(load(preset="cold", flags={"judge": "index"})).judge == "index"


def test_hostile_bodies_are_projected_as_unreadable() -> None:
    """They are sent as they are, and so they are counted."""
    recorder = EventRecorder()
    projection = Projection(load(preset="cold"), recorder)
    for raw in (b"", b"{", b"\xff\xfe", b"[" * 100_000):
        projection.look(raw, "thread", START)
    assert [p.reason for p in recorder.projections] == [Reason.UNREADABLE] * 4


def test_what_is_past_its_time_is_let_go_of() -> None:
    """A gateway that observes for months does not grow."""
    recorder = EventRecorder()
    projection = Projection(load(preset="cold", flags={"payload_ttl_h": 1.0}), recorder)
    watched(projection)
    assert projection._store.status()["payloads"] == 3
    for n in range(AGE_EVERY):
        projection.look(body(1), f"other-{n % 3}", START + 40 * 3600)
    assert projection._store.status()["payloads"] == 0


def test_a_failure_is_counted_and_reaches_nobody() -> None:
    """Projecting is never a reason for a request to fail."""

    class Failing(EventRecorder):
        def tell(self, event: GatewayEvent) -> None:
            if isinstance(event, TurnProjected):
                raise RuntimeError
            super().tell(event)

    recorder = Failing()
    Projection(load(preset="cold"), recorder).look(body(1), "thread", START)
    assert recorder.events == [Fault.SWEEP]
