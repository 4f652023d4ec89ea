"""Which lines of a Claude Code log are parts of one answer: an id joins them only where nothing speaks against it.

The API's id of the message is no proof: relays give every answer the same one, or none. Clients write an answer line by
line, write it again under other uuids, and write snapshots while it streams.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from cg.replay.recordings.claude_entries import message_of, text_or_none, time_in

INPUT_SIDE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(slots=True, eq=False)
class Piece:
    """One line of an answer."""

    number: int  # of the line, in the order of the log
    uuid: str
    parent: str | None
    message: str | None  # the API's id of the message
    request: str | None
    content: Any
    model: str
    usage: object
    is_stopped: bool  # the line says how the answer ended
    at: float | None
    digest: int  # of its content
    opening: int  # digest of its first block

    @classmethod
    def of(cls, number: int, uuid: str, entry: dict[str, Any]) -> "Piece":
        """The line's own words."""
        said = message_of(entry)
        model, content = said.get("model"), said.get("content")
        digest = digest_of(json.dumps(content))
        opening = digest_of(json.dumps(content[:1])) if isinstance(content, list) and len(content) > 1 else digest
        return cls(
            number,
            uuid,
            text_or_none(entry.get("parentUuid")),
            text_or_none(said.get("id")),
            text_or_none(entry.get("requestId")),
            content,
            model if isinstance(model, str) else "",
            said.get("usage"),
            said.get("stop_reason") is not None,
            time_in(entry),
            digest,
            opening,
        )

    @property
    def calls(self) -> list[str]:
        """The ids of its calls, as recorded."""
        blocks = (block for block in self.content if isinstance(block, dict)) if isinstance(self.content, list) else ()
        return [i for block in blocks if block.get("type") == "tool_use" and (i := text_or_none(block.get("id")))]


def digest_of(*words: object) -> int:
    """Eight bytes that these words give."""
    return int.from_bytes(blake2b("\0".join(map(str, words)).encode("utf-8", "surrogatepass"), digest_size=8).digest())


@dataclass(slots=True, eq=False)
class Answer:
    """The lines of one answer, parents before their children."""

    pieces: list[Piece] = field(default_factory=list)

    @property
    def parent(self) -> str | None:
        """The line that the answer hangs at."""
        return self.pieces[0].parent


def joined(pieces: Sequence[Piece], above: dict[Piece, tuple[Piece | None, str]]) -> list[Answer]:
    """The answers, in the order of their first lines.

    `above` tells for each piece the nearest piece on its way back, and what stands between: "" nothing that is said,
    "results" tool results alone, "said" a user's words, "lost" a line that the log does not have.
    """
    sets = _Sets(pieces)
    beside: dict[tuple[str, str | None], Piece] = {}
    copies: dict[tuple[str, int], Piece] = {}
    for piece in pieces:
        before, between = above[piece]
        if before is not None and _continues(before, piece, between):
            sets.join(before, piece)
        if piece.message is None:
            continue
        other = beside.setdefault((piece.message, piece.parent), piece) if piece.parent is not None else piece
        if other is not piece and _agrees(other, piece) and _is_snapshot(other, piece):
            sets.join(other, piece)
        original = copies.setdefault((piece.message, piece.digest), piece)
        if original is not piece and _agrees(original, piece) and _is_copy(original, piece):
            sets.join(original, piece)
    return [Answer(_ordered(found, above)) for found in sets.found()]


def _agrees(one: Piece, other: Piece) -> bool:
    """No id says that these are parts of different answers."""
    if one.message != other.message:
        return False
    return one.request is None or other.request is None or one.request == other.request


def _continues(before: Piece, piece: Piece, between: str) -> bool:
    """Whether a piece is a further part of the answer that it hangs at."""
    if not _agrees(before, piece):
        return False
    if between == "lost":
        is_named = piece.message is not None and piece.request is not None and piece.request == before.request
        return piece.message is not None and (is_named or _prompt(before) == _prompt(piece) != ())
    if between:  # a tool starts while its answer still streams; any other result is followed by another answer
        is_named = piece.message is not None and piece.request is not None and piece.request == before.request
        return between == "results" and is_named and not before.is_stopped and _prompt(before) == _prompt(piece) != ()
    return piece.message is not None or _is_same_prompt(before, piece)


def _is_same_prompt(one: Piece, other: Piece) -> bool:
    """Nothing in their usage says that these answer different requests."""
    a, b = _prompt(one), _prompt(other)
    return a == b or not a or not b


def _is_snapshot(one: Piece, other: Piece) -> bool:
    """Whether two lines under one id that hang at one line are one answer; a request sent again is billed differently."""
    if one.request is not None and one.request == other.request:
        return True
    return one.opening == other.opening or _prompt(one) == _prompt(other) != ()


def _is_copy(original: Piece, piece: Piece) -> bool:
    """Whether equal words under one id are one answer: a call's id, the time or the request is no coincidence."""
    is_same_request = piece.request is not None and piece.request == original.request
    return bool(piece.calls) or is_same_request or (piece.at is not None and piece.at == original.at)


def _prompt(piece: Piece) -> tuple[int, ...]:
    """The tokens of the prompt by tier; empty where none are counted."""
    usage = piece.usage if isinstance(piece.usage, dict) else {}
    counts = tuple(count if isinstance(count := usage.get(key), int) else 0 for key in INPUT_SIDE)
    return counts if any(counts) else ()


def _ordered(pieces: Iterable[Piece], above: dict[Piece, tuple[Piece | None, str]]) -> list[Piece]:
    """Parents first, else in the order of the log."""
    inside = dict.fromkeys(pieces)
    found: dict[Piece, None] = {}
    for piece in inside:
        way = [piece]
        while (before := above[way[-1]][0]) is not None and before in inside and before not in found:
            if before in way:
                break
            way.append(before)
        found.update(dict.fromkeys(reversed(way)))
    return [*found]


class _Sets:
    """Disjoint sets of pieces."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._root = {piece: piece for piece in pieces}

    def _find(self, piece: Piece) -> Piece:
        while (root := self._root[piece]) is not piece:
            self._root[piece] = piece = self._root[root]
        return piece

    def join(self, one: Piece, other: Piece) -> None:
        first, second = sorted((self._find(one), self._find(other)), key=lambda piece: piece.number)
        self._root[second] = first

    def found(self) -> Iterable[list[Piece]]:
        """The sets in the order of their first pieces, each in the order of the log."""
        sets: dict[Piece, list[Piece]] = {}
        for piece in self._root:
            sets.setdefault(self._find(piece), []).append(piece)
        return sets.values()
