"""Recency and the index as judges: free, counted, and blind in known ways."""

from collections import Counter

import pytest
from conversations import call, result, say, transcript, user
from presets import paid

from cg.sweep.counters import Decline, Event
from cg.sweep.judging import coreference as index
from cg.sweep.judging import free_judges as judge
from cg.sweep.judging.coreference import Index, Record, Standing
from cg.sweep.judging.inventory import eligible
from cg.sweep.values import Thread


def outputs(n: int):
    turns = [t for i in range(n) for t in (call(f"t{i}", path=f"{i}"), result(f"t{i}", f"own_name_{i}"))]
    return transcript(user("look"), *turns, say("done"))


def candidates(read):
    return eligible(read, Thread(), paid(min_tokens=0), 2.0)[0]


@pytest.mark.parametrize(("n", "dropped"), [(0, 0), (9, 0), (10, 0), (11, 1), (30, 20)])
def test_recency_drops_all_but_the_newest(n: int, dropped: int) -> None:
    """Ten newest candidates stay, whatever they hold."""
    found = candidates(outputs(n))
    made = judge.recency(found, 10)
    assert made.drops == found[:dropped]
    assert made.events == +Counter({Event.DROPPED: dropped})
    assert made.declines == +Counter({Decline.NEWEST_KEPT: n - dropped})


def test_keeping_none_drops_all() -> None:
    """`keep_newest` 0 is no limit."""
    found = candidates(outputs(3))
    assert judge.recency(found, 0).drops == found


def test_the_index_drops_unreferenced_outputs_only() -> None:
    """Every other class stays and is counted under its own name."""
    found = candidates(outputs(4))
    kinds = [Standing.UNREFERENCED, Standing.OPAQUE, Standing.OPEN, Standing.CLOSED]
    records = {one.text.identity: Record(1, 0, 0, None, None, 9, kind) for one, kind in zip(found, kinds, strict=True)}
    made = judge.by_index(found, Index(records))
    assert made.drops == found[:1] and made.spent_judged == 1
    assert made.declines == Counter([Decline.INDEX_OPAQUE, Decline.INDEX_OPEN, Decline.INDEX_CLOSED])


def test_the_index_waits_for_min_later_turns() -> None:
    """Twelve outputs, a turn each: those with eight turns behind them go."""
    read = outputs(12)
    made = judge.by_index(candidates(read), index.build(read, min_later_turns=8))
    assert [one.text.tool_use_id for one in made.drops] == ["t0", "t1", "t2", "t3", "t4"]
