"""What a model answered about which outputs are spent.

The policy and its reason stand in docs/verdicts.md: a wrong keep costs one turn's tokens, a wrong drop loses content.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from cg import _verdict_parser
from cg._verdict_parser import MAX_LABEL, MAX_LABELS

__all__ = [
    "MAX_LABEL",
    "MAX_LABELS",
    "Action",
    "Counter",
    "Decoded",
    "Decoder",
    "Reason",
    "Status",
    "Verdict",
    "decode",
]


class Status(StrEnum):
    """Whether there is an answer, and whether it is whole."""

    OK = "ok"
    TRUNCATED = "truncated"
    UNPARSEABLE = "unparseable"


class Reason(StrEnum):
    """Why an answer is not whole, or why there is none."""

    CUT = "cut"
    MALFORMED = "malformed"
    EMPTY = "empty"
    NO_JSON = "no_json"
    NO_VERDICT = "no_verdict"
    LONE_OBJECT = "lone_object"
    LIMIT = "limit"


class Action(StrEnum):
    """What becomes of one label; everything but a drop keeps."""

    KEEP = "keep"
    DROP = "drop"
    REFUSED = "refused"
    UNUSABLE = "unusable"
    CONFLICT = "conflict"


class Counter(StrEnum):
    """What is counted over one reply: labels by action, then oddities."""

    KEEP = "keep"
    DROP = "drop"
    REFUSED = "refused"
    UNUSABLE = "unusable"
    CONFLICT = "conflict"
    NO_LABEL = "no_label"
    UNKNOWN_LABEL = "unknown_label"
    STRAY = "stray"
    DUPLICATE_LABEL = "duplicate_label"
    CRITERION_MISSING = "criterion_missing"
    LABEL_SHIFT = "label_shift"
    MISSING = "missing"


class Verdict(NamedTuple):
    """One offered label that the answer names: its first mention as written, and what became of it."""

    i: int
    needed_by: str | None
    quote: str | None
    verdict: str | None
    action: Action


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a reply says; `drops` ascending, `counters` without zeros, verdicts in order of first mention."""

    status: Status
    reason: Reason | None
    verdicts: tuple[Verdict, ...]
    drops: tuple[int, ...]
    counters: dict[Counter, int]

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the field names, ready for JSON."""
        return {
            "status": self.status.value,
            "reason": None if self.reason is None else self.reason.value,
            "verdicts": [
                {"i": i, "needed_by": needed_by, "quote": quote, "verdict": verdict, "action": action._value_}
                for i, needed_by, quote, verdict, action in self.verdicts
            ],
            "drops": list(self.drops),
            "counters": {name._value_: number for name, number in self.counters.items()},
        }


_STATUSES = tuple(Status(name) for name in _verdict_parser.STATUSES)
_REASONS = tuple(None if name is None else Reason(name) for name in _verdict_parser.REASONS)
_ACTIONS = tuple(Action(name) if name else Action.UNUSABLE for name in _verdict_parser.ACTIONS)
_COUNTERS = tuple(Counter(name) for name in _verdict_parser.COUNTERS)

_verdict = Verdict._make
_Row = tuple[int, str | None, str | None, str | None, int]  # label, needed_by, quote, verdict, action's code
_Codes = tuple[int, int, list[_Row], list[int], tuple[int, ...]]


def _decoded(codes: _Codes) -> Decoded:
    status, reason, verdicts, drops, counters = codes
    return Decoded(
        _STATUSES[status],
        _REASONS[reason],
        tuple([_verdict((i, need, quote, said, _ACTIONS[action])) for i, need, quote, said, action in verdicts]),
        tuple(drops),
        {name: number for name, number in zip(_COUNTERS, counters, strict=True) if number},
    )


def decode(reply: str | bytes, labels: Iterable[int]) -> Decoded:
    """What a whole reply says about the offered labels.

    No content raises. TypeError: a reply that is neither str nor bytes, a label that is no int (a bool is none).
    ValueError: a label below 0 or above MAX_LABEL, one offered twice, more than MAX_LABELS.
    """
    return _decoded(_verdict_parser.decode_codes(reply, labels))


class Decoder(_verdict_parser.Parser):
    """The same for a reply that arrives in pieces, cut anywhere: `feed` each, then `finish` once.

    The result does not depend on the cuts. ValueError after `finish`, and after a MemoryError, which loses a piece;
    RuntimeError if another thread is in a call.
    """

    def finish(self) -> Decoded:
        """What the reply says, now that no more of it comes."""
        return _decoded(self.finish_codes())
