"""Alternation: mix an outside ordering into a baseline so that a bad one costs at most a factor of two."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence
    from typing import Literal, TypeVar

    Item = TypeVar("Item", bound=Hashable)
    Source = Literal["hint", "bm25"]
    First = Literal["hints", "baseline"]


def _unseen(items: Iterable[Item], seen: set[Item]) -> Iterator[Item]:
    """The items that are not in `seen` at the moment they are asked for."""
    return (item for item in items if item not in seen)


def _alternate(hints: Sequence[Item], baseline: Sequence[Item], first: First) -> Iterator[tuple[Item, Source]]:
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


def interleave_with_source(
    hints: Sequence[Item], baseline: Sequence[Item], first: First = "hints"
) -> list[tuple[Item, Source]]:
    """Every item once, in combined order, each with the list that put it there; see `interleave`."""
    return list(_alternate(hints, baseline, first))


def interleave(hints: Sequence[Item], baseline: Sequence[Item], first: First = "hints") -> list[Item]:
    """The combined order: each round emits the next unvisited hint, if any, then the next unvisited baseline entry.

    `baseline` lists every item once; `hints` is any list of some of them. The item at baseline rank r (from 1) stands
    within the first min(N, 2r) places, or min(N, 2r - 1) with `first="baseline"`: after r rounds the baseline's pointer
    is past its first r entries, and a round emits at most two. O(N) time and memory.
    """
    return [item for item, _ in _alternate(hints, baseline, first)]
