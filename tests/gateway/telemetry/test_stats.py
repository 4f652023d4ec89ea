"""All figures as JSON: complete, consistent, and free of names that lead to a person or a conversation."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from figures_sample import MODEL, START, busy

from cg.gateway.events import TurnProjected
from cg.gateway.telemetry.metrics import Metrics
from cg.gateway.telemetry.stats import GatewayInfo, Stats
from cg.sweep.ledger import Reason, TurnReport


def broken() -> Mapping[str, Any]:
    raise OSError("the disk says: secret")


def stats(metrics: Metrics, **more: Any) -> Stats:
    return Stats(metrics, GatewayInfo(started_at=START), lambda: START + 600, **more)


def test_the_figures_are_values_that_json_can_hold() -> None:
    """No NaN and no infinity, which JSON does not have."""
    text = json.dumps(stats(busy()).collect(), allow_nan=False)
    assert json.loads(text)["uptime_s"] == 600


def test_reasons_sum_to_the_turns() -> None:
    """What the page shows adds up."""
    found = stats(busy()).collect()
    assert sum(found["reasons"].values()) == found["turns"] == 3


def test_declines_and_events_stand_under_the_names_of_the_earlier_system() -> None:
    """components.<name>.gates and .events."""
    found = stats(busy()).collect()["components"]["sweep"]
    assert found["events"] == {"reapplied_same_session": 4, "sweep_applied": 4}
    assert found["gates"] == {"sweep_kept": 6}


def test_an_ask_is_told_without_thread_and_model() -> None:
    """A thread's name follows a conversation, and a model's name is the client's own words."""
    text = json.dumps(stats(busy()).collect())
    assert MODEL not in text
    assert '"thread"' not in text
    newest, before = stats(busy()).collect()["last_asks"]
    assert newest["outcome"] == "failed"
    assert before["dropped"] == 4
    assert before["cost_usd"] == pytest.approx(900 * 2e-6 + 48_000 * 0.2e-6 + 200 * 10e-6)


def test_recoveries_faults_and_refusals_are_told() -> None:
    """By mode and outcome, ours apart from the world's."""
    found = stats(busy()).collect()
    assert found["recoveries"] == {"hidden": {"original": 1}, "shown": {"expired": 1}, "rounds": 1}
    assert found["faults"] == {"ours": {"store": 1}, "outside": {"upstream_cut": 1}}
    assert found["refused"] == {"host": 1}
    assert found["resent"] == {"400": 1}
    assert found["requests"] == {"messages": {"200": 3, "529": 1}, "own": {"200": 1}}
    assert found["in_flight"] == 1


def test_times_are_told_as_upper_bounds() -> None:
    """A bucket's bound is what is known."""
    found = stats(busy()).collect()["stages"]
    assert found["sweep"] == {"n": 3, "mean_s": pytest.approx(0.0008), "p50_at_most_s": 0.001, "p99_at_most_s": 0.001}
    assert set(found) == {"sweep", "total"}


def test_projections_are_told_only_while_observing_and_apart() -> None:
    """A gateway that works has none, and one that observes has no others."""
    metrics = busy()
    metrics.tell(TurnProjected(TurnReport(Reason.COLD), START))
    assert stats(metrics).collect()["projected"] is None
    observing = Stats(metrics, GatewayInfo(START, observing=True), lambda: START)
    assert observing.collect()["projected"]["reasons"] == {"cold": 1}
    assert "cold" not in observing.collect()["reasons"]


def test_a_store_that_cannot_be_read_leaves_the_other_figures() -> None:
    """Its part is null, and its message, which names a path, goes nowhere."""
    found = stats(busy(), store_status=broken, store_totals=broken).collect()
    assert found["store"] is None
    assert found["lifetime"] is None
    assert found["turns"] == 3
    assert "secret" not in json.dumps(found)


def test_waits_are_left_out_of_a_states_totals() -> None:
    """A store has each twice, for its conversation and for its user: a sum of them says nothing."""
    totals = {"events": {"sweep_dropped": 2.0}, "gaps": {"from_300": 4.0}}
    assert stats(busy(), store_totals=lambda: totals).collect()["lifetime"] == {"events": {"sweep_dropped": 2.0}}


def test_what_the_store_holds_is_a_gauge_each() -> None:
    """Read at the scrape."""
    gauges = stats(busy(), store_status=lambda: {"payloads": 7}).gauges()
    assert gauges["cg_store_payloads"][1] == 7
    assert gauges["process_start_time_seconds"][1] == START
    assert "cg_store_payloads" not in stats(busy(), store_status=broken).gauges()
