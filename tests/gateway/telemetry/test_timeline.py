"""Amounts by minute: bounded, in order, whatever the clock does."""

from cg.gateway.telemetry.timeline import Timeline


def test_amounts_of_one_minute_add_up() -> None:
    """A minute is one row."""
    timeline = Timeline()
    timeline.add(125.0, {"turns": 1, "usd_read": 0.25})
    timeline.add(179.9, {"turns": 1})
    timeline.add(60.0, {"turns": 1})
    assert timeline.rows() == [{"at": 60, "turns": 1}, {"at": 120, "turns": 2, "usd_read": 0.25}]


def test_the_oldest_minutes_go_first() -> None:
    """A gateway that runs for months keeps a day."""
    timeline = Timeline(minutes=3)
    for minute in (5, 1, 9, 7):
        timeline.add(minute * 60.0, {"turns": minute})
    assert [row["at"] // 60 for row in timeline.rows()] == [5, 7, 9]


def test_a_clock_that_goes_back_costs_only_its_own_minute() -> None:
    """A minute older than all that are kept is not kept, and pushes nothing out."""
    timeline = Timeline(minutes=2)
    for minute in (8, 9, 1):
        timeline.add(minute * 60.0, {"turns": 1})
    assert [row["at"] // 60 for row in timeline.rows()] == [8, 9]
