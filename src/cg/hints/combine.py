"""Two ways to mix an outside ordering into a baseline so that a bad one costs at most a known factor.

`merge` lets hints pass as long as every baseline entry keeps its bound: the entry at rank r (from 1) stands within the
first floor(c * r) places. `interleave` alternates strictly between the two lists; its bound is 2r. Both give every item
of the baseline once, in O(N) time; the proofs are in docs/hints.md.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator
    from typing import Literal, Protocol, TypeVar

    class Rational(Protocol):
        """An int or a fractions.Fraction."""

        @property
        def numerator(self) -> int: ...
        @property
        def denominator(self) -> int: ...

    Bound = float | Rational
    Item = TypeVar("Item", bound=Hashable)
    Source = Literal["hint", "bm25"]
    First = Literal["hints", "baseline"]

MIN_BOUND, MAX_BOUND = 1, 8  # 1 is the baseline itself; past 8 a bound is worth little
DEFAULT_BOUND = 2.0


def ratio(bound: Bound) -> tuple[int, int]:
    """The bound as numerator and denominator; a float is the decimal number as which it is written.

    So floor(c * r) is a division of integers, exact for every rank: 1.7 is 17/10, and not the binary number beside it,
    by which rank 10 would have to stand within 16 places. Raises ValueError unless 1 <= bound <= 8.
    """
    if not MIN_BOUND <= bound <= MAX_BOUND:  # type: ignore[operator]
        raise ValueError(f"bound = {bound} is not in {MIN_BOUND}..{MAX_BOUND}")
    if not isinstance(bound, float):
        return bound.numerator, bound.denominator
    whole, _, decimals = float.__repr__(bound).partition(".")  # between 1 and 8 there is no exponent
    return int(whole + decimals), 10 ** len(decimals)


def _unseen(items: Iterable[Item], seen: set[Item]) -> Iterator[Item]:
    """The items that are not in `seen` at the moment they are asked for."""
    return (item for item in items if item not in seen)


def merged(
    hints: Iterable[Item], baseline: Iterable[Item], bound: Bound = DEFAULT_BOUND
) -> Iterator[tuple[Item, Source]]:
    """`merge` one place at a time, each item with the list that put it there."""
    numerator, denominator = ratio(bound)
    seen: set[Item] = set()
    unseen = _unseen(hints, seen)
    for rank, item in enumerate(baseline, start=1):
        latest = numerator * rank // denominator  # place of this entry at the latest
        while item not in seen and len(seen) + 1 < latest:
            hint = next(unseen, None)
            if hint is None:
                break
            seen.add(hint)
            yield hint, "hint"
        if item not in seen:
            seen.add(item)
            yield item, "bm25"


def merge(hints: Iterable[Item], baseline: Iterable[Item], bound: Bound = DEFAULT_BOUND) -> list[Item]:
    """The combined order: place p goes to the next unvisited hint, unless an entry of the baseline can wait no longer.

    `baseline` lists every item once; `hints` is any list of some of them. The item at baseline rank r (from 1) stands
    within the first min(N, floor(bound * r)) places, and at bound 2 a hint at its own rank h within the first 2h - 1.
    """
    return [item for item, _ in merged(hints, baseline, bound)]


def alternated(
    hints: Iterable[Item], baseline: Iterable[Item], first: First = "hints"
) -> Iterator[tuple[Item, Source]]:
    """`interleave` one place at a time, each item with the list that put it there."""
    seen: set[Item] = set()
    turns: list[tuple[Iterator[Item], Source]] = [(_unseen(hints, seen), "hint"), (_unseen(baseline, seen), "bm25")]
    if first == "baseline":
        turns.reverse()
    emitted = True
    while emitted:
        emitted = False
        for unseen, source in turns:
            for item in unseen:
                seen.add(item)
                emitted = True
                yield item, source
                break


def interleave(hints: Iterable[Item], baseline: Iterable[Item], first: First = "hints") -> list[Item]:
    """The combined order: each round emits the next unvisited hint, if any, then the next unvisited baseline entry.

    The item at baseline rank r (from 1) stands within the first min(N, 2r) places, or min(N, 2r - 1) with
    `first="baseline"`: after r rounds the baseline's pointer is past its first r entries, and a round emits at most two.
    """
    return [item for item, _ in alternated(hints, baseline, first)]
