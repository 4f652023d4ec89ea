"""Both merges: nothing is lost or repeated, and a bad hint list costs at most the bound."""

import os
import random
from fractions import Fraction
from itertools import combinations, permutations
from math import comb, factorial, floor

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from
from hypothesis.strategies import permutations as shuffles

from cg.hints.combine import alternated, interleave, merge, merged, ratio

LONG = os.environ.get("CG_LONG") == "1"


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
    assert list(alternated([], ["b", "a"])) == [("b", "bm25"), ("a", "bm25")]


def test_the_source_is_the_list_that_put_it_there() -> None:
    """An item that both lists name counts for the list that emitted it."""
    assert list(alternated(["c", "a"], ["a", "b", "c"])) == [("c", "hint"), ("a", "bm25"), ("b", "bm25")]
    assert list(alternated(["a"], ["a", "b"], "baseline")) == [("a", "bm25"), ("b", "bm25")]


# The lazy merge


def lazy_oracle(hints: list[int], baseline: list[int], bound: Fraction) -> list[int]:
    """The rule, word by word: the next unvisited hint, unless this place is the last one of the baseline's next entry."""
    out: list[int] = []
    while len(out) < len(baseline):
        rank, entry = next((r, e) for r, e in enumerate(baseline, 1) if e not in out)
        hint = next((h for h in hints if h not in out), None)
        out.append(entry if hint is None or len(out) + 1 == floor(bound * rank) else hint)
    return out


def partial_lists(n: int) -> list[tuple[int, ...]]:
    """Every ordered choice of hints among n candidates."""
    return [hints for size in range(n + 1) for hints in permutations(range(n), size)]


@pytest.mark.parametrize("bound", [1, 1.5, 2, 3], ids=str)
@pytest.mark.parametrize("n", range(1, 8))
def test_every_partial_hint_list_keeps_the_lazy_bound(n: int, bound: float) -> None:
    """Each candidate once and the entry at rank r within floor(bound * r), met with equality where there is room."""
    baseline = list(range(n))
    limits = [min(n, floor(Fraction(bound) * r)) for r in range(1, n + 1)]
    worst = [0] * n
    for hints in partial_lists(n):
        order = merge(hints, baseline, bound)
        assert sorted(order) == baseline
        places = [order.index(target) + 1 for target in baseline]
        assert all(place <= limit for place, limit in zip(places, limits, strict=True)), hints
        worst = list(map(max, worst, places))
        if bound == 2:
            assert all(order.index(hint) + 1 <= 2 * h - 1 for h, hint in enumerate(hints, 1)), hints
    assert worst == limits


@pytest.mark.parametrize("bound", [1, 1.5, 2, 3], ids=str)
def test_the_lazy_order_is_the_rules_own(bound: float) -> None:
    for n in range(1, 6):
        for hints in partial_lists(n):
            assert merge(hints, range(n), bound) == lazy_oracle(list(hints), list(range(n)), Fraction(bound))


def test_larger_lists_keep_the_lazy_bound_too() -> None:
    """100,000 random hint lists with CG_LONG, at random bounds, against the rule where the list is short."""
    rng = random.Random(1)
    for _ in range(100_000 if LONG else 1500):
        n = rng.choice([1, 8, 20, 64, 300] if rng.random() < 0.98 else [4096])
        bound = rng.choice([1.0, 1.1, 1.7, 2.0, 2.5, 3.0, 8.0, rng.uniform(1, 8)])
        exact = Fraction(str(bound))
        baseline = rng.sample(range(n), n)
        hints = rng.sample(range(n), rng.choice([0, 1, n // 2, n]))
        order = merge(hints, baseline, bound)
        place = {item: at for at, item in enumerate(order, 1)}
        assert len(order) == len(place) == n
        assert all(place[item] <= min(n, floor(exact * r)) for r, item in enumerate(baseline, 1))
        if n <= 20:
            assert order == lazy_oracle(hints, baseline, exact)


def test_a_place_is_computed_exactly() -> None:
    """floor(c * r) is that of the number as written, for every rank that a catalog can have."""
    for bound in (1.1, 1.7, 2.3, 4.35, 1.0000000000000002, 7.999999999999999):
        numerator, denominator = ratio(bound)
        assert all(numerator * r // denominator == floor(Fraction(str(bound)) * r) for r in range(1, 4097))
    assert 17 * 10 // 10 == 17 and ratio(1.7) == (17, 10)  # by the binary number nearest to 1.7 it would be 16
    assert ratio(2) == (2, 1) and ratio(Fraction(4, 3)) == (4, 3)


@pytest.mark.parametrize("bound", [0.999, 8.001, 0, -1, float("nan"), float("inf")])
def test_a_bound_out_of_range_is_refused(bound: float) -> None:
    with pytest.raises(ValueError, match=r"is not in 1\.\.8"):
        merge([], [], bound)


def test_the_lazy_merge_names_the_list_that_put_an_item_there() -> None:
    assert list(merged([], ["b", "a"])) == [("b", "bm25"), ("a", "bm25")]
    assert list(merged(["c", "a"], ["a", "b", "c"])) == [("c", "hint"), ("a", "bm25"), ("b", "bm25")]
    assert list(merged(["a"], ["a", "b"])) == [("a", "hint"), ("b", "bm25")]
    assert list(merged(["c", "b"], ["a", "b", "c"], 1)) == [("a", "bm25"), ("b", "bm25"), ("c", "bm25")]
