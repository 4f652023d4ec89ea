"""The store of figures: exact sums, bounded, consistent snapshots, safe between threads."""

import threading

import pytest

from cg.gateway.telemetry import metric_families
from cg.gateway.telemetry.registry import Histogram, MetricRegistry

SOME = metric_families.CALLS


def test_counts_add_up_and_start_at_zero() -> None:
    """A series exists before its first count, so a rate over it is right."""
    figures = MetricRegistry()
    assert figures.snapshot().values[SOME]["ask",] == 0
    figures.add(SOME, "ask")
    figures.add(SOME, "ask", amount=2.5)
    assert figures.snapshot().values[SOME]["ask",] == 3.5
    assert figures.snapshot().total(SOME) == 3.5


def test_a_snapshot_does_not_change() -> None:
    """What is shown is one moment."""
    figures = MetricRegistry()
    before = figures.snapshot()
    figures.add(SOME, "ask")
    figures.observe(metric_families.STAGES, "sweep", value=1.0)
    assert before.values[SOME]["ask",] == 0
    assert before.histograms[metric_families.STAGES]["sweep",].n == 0


def test_an_unknown_family_or_label_is_an_error() -> None:
    """Series are not made by spelling mistakes."""
    figures = MetricRegistry()
    with pytest.raises(KeyError):
        figures.add(metric_families.Family("cg_other_total", "Other."))
    with pytest.raises(KeyError):
        figures.observe(metric_families.STAGES, "elsewhere", value=1.0)


@pytest.mark.parametrize(("value", "bucket"), [(0.0, 0), (0.0005, 0), (0.00051, 1), (300.0, 16), (301.0, 17)])
def test_an_observation_falls_below_or_on_its_bound(value: float, bucket: int) -> None:
    """Bounds are inclusive, as the text format says."""
    figures = MetricRegistry()
    figures.observe(metric_families.STAGES, "sweep", value=value)
    counts = figures.snapshot().histograms[metric_families.STAGES]["sweep",].counts
    assert counts[bucket] == 1 == sum(counts)


@pytest.mark.parametrize(("q", "expected"), [(0.0, 1.0), (0.5, 1.0), (0.75, 2.0), (0.99, float("inf"))])
def test_a_quantile_is_an_upper_bound(q: float, expected: float) -> None:
    """It is the bound of the bucket that holds it."""
    assert Histogram((1.0, 2.0), (2, 1, 1), 5.0).quantile(q) == expected


def test_a_quantile_of_nothing_is_nothing() -> None:
    """No observation, no figure."""
    assert Histogram((1.0,), (0, 0), 0.0).quantile(0.5) is None


def test_no_count_is_lost_between_threads() -> None:
    """Requests are counted from many threads at once."""
    figures = MetricRegistry()

    def work() -> None:
        for _ in range(2000):
            figures.add(SOME, "ask")
            figures.observe(metric_families.STAGES, "sweep", value=0.01)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    snapshot = figures.snapshot()
    assert snapshot.values[SOME]["ask",] == 16_000
    assert snapshot.histograms[metric_families.STAGES]["sweep",].n == 16_000
