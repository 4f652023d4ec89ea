"""Alternation: nothing is lost or repeated, and a bad hint list costs at most a factor of two."""

from itertools import combinations, permutations
from math import comb, factorial

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from
from hypothesis.strategies import permutations as shuffles

from cg.hints.combine import interleave, interleave_with_source


def bound(first: str, n: int, r: int) -> int:
    return min(n, 2 * r if first == "hints" else 2 * r - 1)


def oracle(hints: list[int], baseline: list[int], first: str) -> list[int]:
    """The rule, word by word: a round emits the next unvisited hint, then the next unvisited baseline entry."""
    out: list[int] = []
    lists_in_turn = [hints, baseline] if first == "hints" else [baseline, hints]
    while len(out) < len(baseline):
        for entries in lists_in_turn:
            out += [entry for entry in entries if entry not in out][:1]
    return out


@pytest.mark.parametrize("first", ["hints", "baseline"])
@pytest.mark.parametrize("n", range(1, 8))
def test_every_permutation_of_every_partial_hint_list_keeps_the_bound(n: int, first: str) -> None:
    """Every ordered choice of hints among up to seven candidates: each candidate once, each within its bound.

    A fixed baseline order is enough: relabelling the candidates turns any other into it.
    """
    baseline = list(range(n))
    bounds = [bound(first, n, r) for r in range(1, n + 1)]
    seen = 0
    for size in range(n + 1):
        for chosen in combinations(baseline, size):
            for hints in permutations(chosen):
                order = interleave(hints, baseline, first)
                assert sorted(order) == baseline
                assert all(order.index(target) < limit for target, limit in enumerate(bounds)), hints
                seen += 1
    assert seen == sum(comb(n, size) * factorial(size) for size in range(n + 1))


@pytest.mark.parametrize("first", ["hints", "baseline"])
def test_the_bound_is_met_with_equality(first: str) -> None:
    """No smaller bound holds: for every rank some hint list makes the target wait exactly that long."""
    n = 6
    baseline = list(range(n))
    worst = [0] * n
    for size in range(n + 1):
        for hints in permutations(baseline, size):
            for place, target in enumerate(interleave(hints, baseline, first), start=1):
                worst[target] = max(worst[target], place)
    assert worst == [bound(first, n, r) for r in range(1, n + 1)]


@given(
    baseline=integers(1, 60).flatmap(lambda n: shuffles(range(n))),
    first=sampled_from(["hints", "baseline"]),
    draw=lists(integers(0, 59), unique=True),
)
def test_the_order_is_the_rules_own(baseline: list[int], first: str, draw: list[int]) -> None:
    """The combined order is the one that the rule, followed word by word, gives."""
    hints = [hint for hint in draw if hint < len(baseline)]
    order = interleave(hints, baseline, first)
    assert order == oracle(hints, baseline, first)
    assert all(order.index(target) + 1 <= bound(first, len(baseline), r) for r, target in enumerate(baseline, 1))


@given(hints=lists(sampled_from(range(20)), unique=True), first=sampled_from(["hints", "baseline"]))
def test_a_good_hint_is_reached_within_twice_its_own_rank(hints: list[int], first: str) -> None:
    """The bound holds for the hint list too: a target that it ranks h-th is out within 2h places."""
    order = interleave(hints, range(20), first)
    assert all(order.index(target) + 1 <= 2 * h for h, target in enumerate(hints, 1))


def test_without_hints_the_baseline_stands() -> None:
    """No hints, no change."""
    assert interleave_with_source([], ["b", "a"]) == [("b", "bm25"), ("a", "bm25")]


def test_the_source_is_the_list_that_put_it_there() -> None:
    """An item that both lists name counts for the list that emitted it."""
    assert interleave_with_source(["c", "a"], ["a", "b", "c"]) == [("c", "hint"), ("a", "bm25"), ("b", "bm25")]
    assert interleave_with_source(["a"], ["a", "b"], "baseline") == [("a", "bm25"), ("b", "bm25")]
