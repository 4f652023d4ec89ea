from collections.abc import Iterable
from typing import Final

from typing_extensions import disjoint_base

MAX_LABELS: Final[int]
MAX_LABEL: Final[int]
STATUSES: Final[tuple[str, ...]]
REASONS: Final[tuple[str | None, ...]]
ACTIONS: Final[tuple[str, ...]]
COUNTERS: Final[tuple[str, ...]]

_Row = tuple[int, str | None, str | None, str | None, int]  # label, needed_by, quote, verdict, action

def force_scan(level: int) -> None: ...
def checked_labels(labels: Iterable[int]) -> list[int]: ...
def decode_codes(
    reply: str | bytes, labels: Iterable[int]
) -> tuple[int, int, list[_Row], list[int], tuple[int, ...]]: ...

# Subclassed by cg.verdicts.Decoder.
@disjoint_base
class Parser:
    def __new__(cls, labels: Iterable[int]) -> Parser: ...
    def feed(self, chunk: str | bytes) -> None: ...
    def finish_codes(self) -> tuple[int, int, list[_Row], list[int], tuple[int, ...]]: ...
