"""The cyclic collector of a process that serves."""

import gc

import pytest

from cg.gateway.serve import garbage_collection


def test_it_looks_less_often_and_not_at_what_stands_and_is_as_before_afterwards() -> None:
    """Also when what was served failed; cycles that are made meanwhile still go."""
    before = gc.get_threshold()
    with pytest.raises(RuntimeError), garbage_collection.relaxed():
        assert gc.get_threshold()[0] == garbage_collection.YOUNG and gc.isenabled()
        assert gc.get_freeze_count() > 0
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        assert gc.collect() >= 1
        raise RuntimeError
    assert gc.get_threshold() == before and gc.get_freeze_count() == 0


def test_a_turn_of_a_large_body_is_looked_through_by_nobody() -> None:
    """What one body makes stays below the threshold, so no collection falls into its turn."""
    from sweeping import sweep_of
    from wired import Talk

    sweep, body = sweep_of(), Talk().calls(400).body()
    with garbage_collection.relaxed():
        before = gc.get_stats()[0]["collections"]
        sweep.process(body, "t", 1_800_000_000.0)
        assert gc.get_stats()[0]["collections"] - before <= 1
