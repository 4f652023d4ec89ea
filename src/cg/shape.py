"""What a tool output was, without a byte of it: its kind, its size, and a key under which the original is kept."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from cg._shape import facts, utf8_of

KEY_DIGITS = 16  # hex digits of the key that a marker carries; a store compares the bytes when two contents share them


class Kind(StrEnum):
    """Every kind there is, in the order in which the compiled rules number them."""

    NUMBERED_FILE_READ = "numbered_file_read"
    GREP_HITS = "grep_hits"
    DIRECTORY_LISTING = "directory_listing"
    TEST_LOG = "test_log"
    DIFF = "diff"
    JSON_ARRAY = "json_array"
    JSON_OBJECT = "json_object"
    JSON_LINES = "json_lines"
    CSV = "csv"
    TSV = "tsv"
    YAML = "yaml"
    MARKDOWN = "markdown"
    SOURCE_CODE = "source_code"
    STACK_TRACE = "stack_trace"
    COLOURED_TERMINAL = "coloured_terminal"
    BASE64 = "base64"
    BINARY = "binary"
    PROSE = "prose"
    OTHER = "other"


_KINDS = tuple(Kind)


@dataclass(frozen=True, slots=True)
class Shape:
    """Kind and sizes of one text; `records`: elements of a JSON array that is valid throughout, lines of JSON lines."""

    kind: Kind
    records: int | None
    lines: int
    size_bytes: int

    def descriptor(self) -> str:
        """The line that stands in for a removed output; the kind's name and numbers are all that varies."""
        records = "" if self.records is None else f" records={self.records}"
        return f"[tool output removed: kind={self.kind.value}{records} lines={self.lines} bytes={self.size_bytes}]"


def describe(content: str | bytes) -> Shape:
    """The shape of `content`; a str is taken as its UTF-8 bytes, and equal bytes have equal shapes.

    `lines` counts newlines, and the last line if no newline ends it. Linear in the content. Raises TypeError for
    anything but str or bytes; no content is an error. The rules of each kind are in docs/shape.md.
    """
    kind, records, lines, size_bytes = facts(content)
    return Shape(_KINDS[kind], None if records < 0 else records, lines, size_bytes)


def content_key(content: str | bytes) -> str:
    """SHA-256 of the exact UTF-8 bytes in hex; lone surrogates are encoded by `surrogatepass`."""
    return hashlib.sha256(utf8_of(content), usedforsecurity=False).hexdigest()


def marker(key: str) -> str:
    """The marker `<<cg:K>>` of a content key, K being its first 16 hex digits."""
    return f"<<cg:{key[:KEY_DIGITS]}>>"
