"""JSON that an upstream sent, read only if what it stands for takes a bounded amount of memory."""

import json
import re
from collections.abc import Callable
from typing import Any

# Of a value in memory, and the text that it is read from; a message has some megabytes at most.
MAX_READ_BYTES = 24 * 1024 * 1024
ALWAYS_READ_BYTES = 256 * 1024  # so little is not looked at first
# `[],[],[]` takes twenty times its length. Bytes for each bracket and comma, whether it stands in a string or not.
MEMBER_BYTES = 150
FRAME_BYTES = 4096  # whatever it is
WIDE = 4  # bytes a character of a text that has one outside of Unicode's first plane
_OUTSIDE = re.compile(rb"[\xf0-\xf4]")  # what such a character begins with
_HALF = re.compile(rb"\\u[dD][89aAbB]")  # or its escape


class TooMuchJson(ValueError):
    """What it stands for would take more memory than any message does."""


def loads(raw: bytes | bytearray, number: Callable[[str], Any] | None = None) -> Any:
    """As `json.loads`; `number` reads the numbers that are no integers. Raises ValueError, also for what would take too
    much memory, or RecursionError."""
    if len(raw) > ALWAYS_READ_BYTES and size_in_memory(raw) > MAX_READ_BYTES:
        raise TooMuchJson(f"more than {MAX_READ_BYTES} bytes in memory")
    return json.loads(raw, parse_float=number, parse_constant=number)


def size_in_memory(raw: bytes | bytearray) -> int:
    """Bytes that reading it may take, and more rather than less."""
    members = raw.count(b"[") + raw.count(b"{") + raw.count(b",")
    text = 1 if raw.isascii() else WIDE if _OUTSIDE.search(raw) else 2
    strings = text
    if b"\\" in raw:  # what stands around an escape is read in parts, and put together
        named = 1 if b"\\u" not in raw else WIDE if _HALF.search(raw) else 2
        strings = 1 + max(text, named)
    return FRAME_BYTES + len(raw) * (text + strings) + members * MEMBER_BYTES
