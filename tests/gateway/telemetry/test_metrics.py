"""What the rooms tell becomes figures: each once, money apart by what it was for, unknown never zero."""

from typing import get_args

import pytest
from figures_sample import MODEL, START, busy, removal

from cg.gateway.events import (
    AskEnded,
    GatewayEvent,
    ModelCalled,
    RequestClosed,
    RequestOpened,
    Route,
    Spend,
    Stage,
    StageTimed,
    TurnProjected,
    TurnSent,
)
from cg.gateway.telemetry import metric_families
from cg.gateway.telemetry.metrics import _COUNTED, LAST_ASKS, Metrics
from cg.sweep.ledger import AskLeg, Reason, Savings, TurnReport, ask_row
from cg.sweep.prices import PriceTable, cost_usd
from cg.sweep.values import Usage

PRICE = PriceTable.default().price(MODEL)


def test_reasons_sum_to_turns() -> None:
    """Every turn has exactly one reason."""
    snapshot = busy().figures.snapshot()
    assert snapshot.total(metric_families.TURNS) == 3 == snapshot.total(metric_families.PHASES)
    assert snapshot.values[metric_families.TURNS]["removed",] == 2


def test_a_turn_counts_its_events_declines_sizes_and_bytes() -> None:
    """The two families of the sweep stay apart."""
    snapshot = busy().figures.snapshot()
    assert (
        snapshot.values[metric_families.EVENTS][
            "sweep",
            "sweep_applied",
        ]
        == 4
    )
    assert (
        snapshot.values[metric_families.GATES][
            "sweep",
            "sweep_kept",
        ]
        == 6
    )
    assert snapshot.values[metric_families.OUTPUTS]["le_2900",] == 8
    assert snapshot.total(metric_families.REMOVED) == 4
    assert snapshot.by_label(metric_families.BYTES) == {"unique": 20_000, "repeat": 20_000, "charged": 600}


def test_cost_is_told_by_purpose_and_tier_and_sums_to_the_price_of_the_usage() -> None:
    """The client's own bill and what the gateway adds to it are never one figure."""
    snapshot = busy().figures.snapshot()
    request = Usage(fresh=100, read=50_000, write_5m=2_000, output=400)
    cost = snapshot.values[metric_families.COST]
    whole = cost_usd(request, PRICE)
    assert whole is not None
    assert sum(usd for (why, _), usd in cost.items() if why == "request") == pytest.approx(3 * whole)
    assert cost["ask", "read"] == pytest.approx(48_000 * 0.2e-6)
    assert cost["ping", "read"] == 0
    assert (
        snapshot.values[metric_families.TOKENS][
            "request",
            "read",
        ]
        == 150_000
    )


def test_the_headline_is_what_was_saved_less_all_that_the_gateway_added() -> None:
    """Asks and inner rounds are charged; the net may be negative and then says so."""
    metrics = busy()
    money = metrics.money(metrics.figures.snapshot())
    ask = cost_usd(Usage(fresh=900, read=48_000, output=200), PRICE)
    inner = cost_usd(Usage(fresh=1900, read=50_000, output=100), PRICE)
    assert ask is not None
    assert inner is not None
    assert money.saved_usd == pytest.approx(0.1)
    assert money.charged_usd == pytest.approx(0.02 + ask + inner)
    assert money.net_usd == pytest.approx(0.1 - 0.02 - ask - inner)


def test_an_ask_within_a_request_is_charged_once() -> None:
    """Where asks are made in requests, a turn's savings carry their price already."""
    asking, idle = busy(Metrics(asks_in_request=True)), busy()
    ask = cost_usd(Usage(fresh=900, read=48_000, output=200), PRICE)
    inside = asking.money(asking.figures.snapshot()).charged_usd
    outside = idle.money(idle.figures.snapshot()).charged_usd
    assert inside is not None
    assert outside is not None
    assert outside - inside == pytest.approx(ask)


def test_an_unknown_price_reads_as_unknown() -> None:
    """Never as zero: neither for a call, nor for a turn, nor for the headline."""
    metrics = Metrics()
    metrics.tell(ModelCalled(Spend.REQUEST, "somebody-elses-model", Usage(fresh=1000), START))
    metrics.tell(ModelCalled(Spend.ASK, MODEL, None, START))
    metrics.tell(TurnSent(removal(1, Savings(5000, 0, 300)), START))
    snapshot = metrics.figures.snapshot()
    money = metrics.money(snapshot)
    assert (money.client_usd, money.saved_usd, money.net_usd) == (None, None, None)
    assert (money.unpriced_turns, money.unpriced_calls) == (1, 2)
    assert (
        snapshot.values[metric_families.TOKENS][
            "request",
            "fresh",
        ]
        == 1000
    )
    assert snapshot.by_label(metric_families.UNPRICED_CALLS) == {"request": 1, "ask": 1, "ping": 0, "recovery": 0}


def test_what_is_projected_is_in_no_real_figure() -> None:
    """An observing gateway has removed nothing and saved nothing."""
    metrics = Metrics()
    metrics.tell(TurnSent(TurnReport(Reason.OBSERVED), START))
    metrics.tell(TurnProjected(removal(2), START))
    snapshot = metrics.figures.snapshot()
    assert (
        snapshot.total(metric_families.REMOVED)
        == 0
        == snapshot.total(metric_families.BYTES)
        == snapshot.total(metric_families.SAVED)
    )
    assert snapshot.by_label(metric_families.TURNS) == {**dict.fromkeys((r.value for r in Reason), 0), "observed": 1}
    assert snapshot.total(metric_families.PROJECTED_REMOVED) == 2
    assert snapshot.values[metric_families.PROJECTED_BYTES]["unique",] == 10_000
    assert snapshot.total(metric_families.PROJECTED_SAVED) == pytest.approx(0.05)
    assert metrics.money(snapshot).net_usd is None
    assert all("removed" not in row or row["removed"] == 0 for row in metrics.timeline.rows())


def test_the_day_is_told_by_minute() -> None:
    """What the page draws: dollars by tier for the client, by purpose for what the gateway added."""
    rows = busy().timeline.rows()
    assert [row["at"] - START for row in rows] == [0, 60, 120, 240, 300]
    assert rows[0]["turns"] == 1
    assert rows[0]["usd_read"] == pytest.approx(50_000 * 0.2e-6)
    assert rows[1]["removed"] == 3
    assert rows[2]["usd_recovery"] > 0
    assert rows[3]["asks"] == 1
    assert rows[3]["usd_ask"] > 0


def test_the_newest_asks_stand_first_and_are_bounded() -> None:
    """The page shows a few; the ledger has them all."""
    metrics = Metrics()
    for n in range(LAST_ASKS + 5):
        leg = AskLeg("prefix_ask", Usage(read=n), 1.0)
        metrics.tell(AskEnded(ask_row("t", float(n), MODEL, [leg], PRICE, offered=1)))
    assert len(metrics.last_asks) == LAST_ASKS
    assert metrics.last_asks[0].asked_at == LAST_ASKS + 4


def test_requests_being_served_go_up_and_down() -> None:
    """The gauge returns to zero."""
    metrics = Metrics()
    metrics.tell(RequestOpened())
    metrics.tell(RequestOpened())
    metrics.tell(RequestClosed(Route.MESSAGES, 200))
    assert metrics.figures.snapshot().total(metric_families.IN_FLIGHT) == 1
    metrics.tell(RequestClosed(Route.MESSAGES, 0))
    assert metrics.figures.snapshot().total(metric_families.IN_FLIGHT) == 0


def test_every_event_is_counted() -> None:
    """An event that nobody counts would be a figure that stands still."""
    assert set(_COUNTED) == set(get_args(GatewayEvent))


def test_a_status_that_nobody_registered_makes_no_series() -> None:
    """Two strange statuses of one class are one series."""
    metrics = Metrics()
    metrics.tell(RequestClosed(Route.MESSAGES, 298))
    metrics.tell(RequestClosed(Route.MESSAGES, 297))
    assert (
        metrics.figures.snapshot().values[metric_families.REQUESTS][
            "messages",
            "2xx",
        ]
        == 2
    )


def test_times_are_kept_by_stage() -> None:
    """Our own work and the upstream's are told apart."""
    metrics = Metrics()
    metrics.tell(StageTimed(Stage.SWEEP, 0.002))
    histogram = metrics.figures.snapshot().histograms[metric_families.STAGES]["sweep",]
    assert (histogram.n, histogram.total) == (1, 0.002)
