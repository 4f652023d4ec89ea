"""Server-sent events: cut out of a stream without changing a byte, and written."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cg.gateway.http import bounded_json

MAX_EVENT_BYTES = 16 * 1024 * 1024  # a tool's arguments come in small deltas; one event is seldom over 100 KB
_END = re.compile(rb"\r\n\r\n|\n\n|\r\r|\r\n\n|\n\r\n")
_ENDS = (b"\r\n\r\n", b"\n\n", b"\r\r", b"\r\n\n", b"\n\r\n")
_NAME = re.compile(rb"(?:\A|[\r\n])event:([^\r\n]*)")
_TYPE = re.compile(rb'(?:\A|[\r\n])data: ?\{\s*"type"\s*:\s*"([a-z_]+)"')
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')
_BEYOND = {"Infinity": "1e999", "-Infinity": "-1e999", "NaN": "null"}  # strings are found too, and stay
_MARK = b"\xef\xbb\xbf"  # of the byte order; a stream may begin with one, and it belongs to no field


class EventTooLong(Exception):
    """One event has more bytes than anybody sends."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event; `raw` is all of its bytes, the blank line behind it included."""

    raw: bytes

    @property
    def name(self) -> str:
        """The `event:` field; empty if there is none."""
        return next((v.decode("utf-8", "replace") for k, v in self._fields() if k == b"event"), "")

    def data(self) -> dict[str, Any]:
        """The JSON object in its data; empty if it holds none, or one that takes too much memory."""
        text = b"\n".join(value for key, value in self._fields() if key == b"data")
        try:
            value = bounded_json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def _fields(self) -> Iterator[tuple[bytes, bytes]]:
        for line in self.raw.removeprefix(_MARK).splitlines():
            key, _, value = line.partition(b":")
            yield key, value.removeprefix(b" ")


class Parser:
    """Cuts a stream into events. What it gives back, put together, is what it was fed."""

    def __init__(self) -> None:
        self._held = bytearray()

    def is_whole(self, piece: bytes) -> bool:
        """Whether a piece begins and ends where events do, as nearly all do: it can be looked through as it is."""
        return not self._held and piece.endswith(b"\n\n")

    def feed(self, piece: bytes) -> Iterator[SseEvent]:
        """The events that are complete now. Raises EventTooLong; `rest` then still holds the bytes."""
        start = max(0, len(self._held) - 3)  # an end may lie across two pieces
        self._held += piece
        at = 0
        while end := _END.search(self._held, max(start, at)):
            yield SseEvent(bytes(self._held[at : end.end()]))
            at = end.end()
        del self._held[:at]
        if len(self._held) > MAX_EVENT_BYTES:
            raise EventTooLong

    def skip(self, piece: bytes) -> None:
        """Take a piece whose complete events nobody wants: only what begins the next one is held. Raises EventTooLong."""
        start = max(0, len(self._held) - 3)
        self._held += piece
        found = ((self._held.rfind(end, start), len(end)) for end in _ENDS)
        del self._held[: max((at + size for at, size in found if at >= 0), default=0)]
        if len(self._held) > MAX_EVENT_BYTES:
            raise EventTooLong

    def holds(self, word: bytes) -> bool:
        """Whether a word stands in what belongs to no complete event."""
        return word in self._held

    def rest(self) -> bytes:
        """What was fed and belongs to no complete event."""
        return bytes(self._held)


def write(name: str, data: dict[str, Any]) -> bytes:
    """The bytes of one event."""
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII: half a pair stays an escape
    except ValueError:
        text = _WORD.sub(_as_number, json.dumps(data, separators=(",", ":")))
    return b"event: %b\ndata: %b\n\n" % (name.encode(), text.encode())


def _as_number(word: re.Match[str]) -> str:
    """JSON has no word for what is beyond its reader's numbers, but such a number itself is JSON."""
    return _BEYOND.get(word[0], word[0])


def type_of(raw: bytes) -> bytes:
    """The event's name, wherever its field stands; as a rule without reading the rest: the cheap look at every event."""
    if raw.startswith(b"event:"):
        return raw[6 : _line_end(raw)].strip()
    raw = raw.removeprefix(_MARK)
    if named := _NAME.search(raw):
        return named[1].strip()
    if typed := _TYPE.search(raw):  # a sender may leave the field out; the type in the data says the same
        return typed[1]
    kind = SseEvent(raw).data().get("type")  # not the first in its object, or of something inside it
    return kind.encode("utf-8", "replace") if isinstance(kind, str) else b""


def _line_end(raw: bytes) -> int:
    ends = [at for at in (raw.find(b"\n"), raw.find(b"\r")) if at >= 0]
    return min(ends, default=len(raw))
