"""Names and labels of all metrics: bounded, spelled once, and free of anything that a caller could choose."""

import re
from pathlib import Path

import pytest

from cg.gateway.telemetry import metric_families
from cg.gateway.telemetry.metric_families import ALL_FAMILIES, Family, status_label

MAX_SERIES = 600  # of all families together at the start; a scrape of so many is some 50 KB


def test_names_are_unique_and_spelled_as_the_format_asks() -> None:
    """Counters end in `_total`, and every family has its help."""
    assert len({f.name for f in ALL_FAMILIES}) == len(ALL_FAMILIES) > 25
    for family in ALL_FAMILIES:
        assert re.fullmatch(r"cg_[a-z0-9_]+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert family.help.endswith(".")
        assert all(re.fullmatch(r"[a-z]+", label) for label in family.label_names)


def test_the_number_of_series_is_bounded() -> None:
    """Whatever passes through the gateway, the number of series stays what the closed sets make it."""
    assert sum(len(list(f.series())) for f in ALL_FAMILIES) < MAX_SERIES
    assert [f.name for f in ALL_FAMILIES if any(values is None for _, values in f.labels)] == [
        "cg_requests_total",
        "cg_upstream_responses_total",
        "cg_resent_originals_total",
    ]


@pytest.mark.parametrize(
    ("status", "label"),
    [(200, "200"), (429, "429"), (529, "529"), (0, "none"), (299, "2xx"), (599, "5xx"), (999, "other"), (-1, "other")],
)
def test_a_status_is_a_bounded_label(status: int, label: str) -> None:
    """An upstream cannot make series by inventing statuses."""
    assert status_label(status) == label


def test_all_statuses_make_few_labels() -> None:
    """Every integer ends in one of some seventy labels."""
    assert len({status_label(n) for n in range(-10, 2000)}) < 80


def test_the_names_of_the_earlier_system_stand() -> None:
    """Alert rules over declines and events go on working."""
    assert metric_families.GATES.name == "cg_component_gate_declines_total"
    assert metric_families.GATES.label_names == ("component", "gate")
    assert metric_families.EVENTS.name == "cg_component_events_total"
    assert metric_families.EVENTS.label_names == ("component", "event")


def test_a_family_without_labels_has_one_series() -> None:
    """It stands at zero from the start."""
    assert list(Family("cg_x_total", "X.").series()) == [()]


def test_the_reference_names_every_family() -> None:
    """What an operator can read of is what there is."""
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text("utf-8")
    missing = [f.name for f in ALL_FAMILIES if f"`{f.name}`" not in page and not f.name.startswith("cg_projected_")]
    assert missing == []
