"""A reply's message, from its JSON or put together from its events, and the usage in it."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cg.gateway.http import bounded_json, sse
from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.values import Usage, usage_of

Block = dict[str, Any]
USAGE_EVENTS = (b"message_start", b"message_delta")
_NAMED = b"message_"  # in the name of each event that holds usage, and of one that does not
MAX_MESSAGE_BYTES = 24 * 1024 * 1024  # in memory, of a message that is put together from its events
MAX_USAGE_EVENT_BYTES = 256 * 1024  # an event that holds usage has some hundred bytes
MAX_USAGE_KEYS = 64  # of one call's usage; a dozen are known
_TEXTS = {  # kinds of deltas that go on with a text: the member of the block, and where the text stands in the delta
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}
_STARTS = ("message_start", "content_block_start")
_SUMMED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


@dataclass(slots=True)
class ReplyMessage:
    """One reply. `is_complete` is False when something in it was not understood: it must not be sent back then."""

    model: str = ""
    blocks: list[Block] = field(default_factory=list)
    stop_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    is_complete: bool = True

    @property
    def tiers(self) -> Usage | None:
        """The usage by tier; None when the provider did not say."""
        return usage_of(self.usage) if self.usage else None

    def calls(self) -> list[Block]:
        """The calls of our tool if the reply calls nothing else and waits for their answers; else none.

        Whatever is not plainly so passes through: the client answers with an error, which later copies replace.
        """
        if not self.is_complete or self.stop_reason != "tool_use":
            return []
        uses = [block for block in self.blocks if block.get("type") == "tool_use"]
        names = [use.get("id") for use in uses]
        ours = all(use.get("name") == EXPAND_TOOL and isinstance(use.get("input"), dict) for use in uses)
        return uses if ours and all(isinstance(n, str) for n in names) and len(set(names)) == len(names) else []


def of_json(raw: bytes | bytearray) -> ReplyMessage | None:
    """The message in a JSON reply; None if it is none, or takes too much memory. One with a number that could not be
    written again is not whole."""
    beyond: list[str] = []

    def number(text: str) -> float:
        number_read = float(text)
        if not math.isfinite(number_read):
            beyond.append(text)
        return number_read

    try:
        value = bounded_json.loads(raw, number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("type") != "message":
        return None
    blocks, usage = value.get("content"), value.get("usage")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        blocks = None
    return ReplyMessage(
        model=_string(value.get("model")),
        blocks=blocks or [],
        stop_reason=_string(value.get("stop_reason")) or None,
        usage=usage if isinstance(usage, dict) else {},
        is_complete=blocks is not None and not beyond,
    )


def of_events(events: Iterable[sse.SseEvent]) -> ReplyMessage:
    """The message that a stream's events tell of, as far as they go."""
    assembly = MessageAssembly()
    for event in events:
        assembly.take(event)
    return assembly.message


class MessageAssembly:
    """Puts a message together, event by event, as long as it takes a bounded amount of memory."""

    def __init__(self) -> None:
        self.message = ReplyMessage()
        self._pieces: dict[tuple[int, str], list[str]] = {}  # of a block that is not complete, by its member
        self._characters, self._is_wide = 0, False  # of all texts
        self._others = 0  # bytes of all else, in memory

    def take(self, event: sse.SseEvent) -> None:
        """Take in one event; what is not known here, or would be too much, makes the message not whole."""
        data = event.data()
        try:
            kind = data.get("type")
            if kind in _STARTS or (kind == "content_block_delta" and data["delta"].get("type") not in _TEXTS):
                self._others += bounded_json.size_in_memory(event.raw)
                self._check_size()
            self._take(data)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError):
            self.message.is_complete = False

    def _take(self, data: Mapping[str, Any]) -> None:
        message = self.message
        match data.get("type"):
            case "message_start":
                take_usage(message, data)
                message.blocks += data["message"].get("content") or []
            case "content_block_start":
                if data["index"] != len(message.blocks):
                    raise IndexError
                message.blocks.append(dict(data["content_block"]))
            case "content_block_delta":
                self._delta(data["index"], data["delta"])
            case "content_block_stop":
                self._complete(data["index"])
            case "message_delta":
                take_usage(message, data)
            case "error":
                message.is_complete = False
            case _:  # ping, message_stop, and whatever else brings no content
                pass

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self.message.blocks[index]
        match delta.get("type"):
            case str(kind) if kind in _TEXTS:
                member, key = _TEXTS[kind]
                self._add(index, member, delta[key])
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case _:
                self.message.is_complete = False

    def _add(self, index: int, member: str, text: str) -> None:
        self._characters += len(text)
        self._is_wide = self._is_wide or not text.isascii()
        self._check_size()
        self._pieces.setdefault((index, member), []).append(text)

    def _check_size(self) -> None:
        size = self._characters * (bounded_json.WIDE if self._is_wide else 1) + self._others
        if size > MAX_MESSAGE_BYTES:
            self._pieces.clear()
            self.message.blocks.clear()
            raise ValueError(f"more than {MAX_MESSAGE_BYTES} bytes in memory")

    def _complete(self, index: int) -> None:
        block = self.message.blocks[index]
        for key in ("text", "thinking", "signature", "input"):
            text = "".join(self._pieces.pop((index, key), ()))
            if key == "input" and text:
                block[key] = bounded_json.loads(text.encode("utf-8", "surrogatepass"))
            elif text:
                block[key] = block.get(key, "") + text


class StreamUsage:
    """Reads the usage out of a stream that passes by; two events of a stream hold it."""

    def __init__(self) -> None:
        self._parser = sse.Parser()
        self._is_given_up = False
        self._end = b""  # of the piece before: a name may lie across two
        self.message = ReplyMessage()  # without any content

    def feed(self, piece: bytes) -> None:
        """Look at decoded bytes; what cannot be followed is given up in silence."""
        if self._is_given_up:
            return
        is_named = _NAMED in piece or _NAMED in self._end + piece[: len(_NAMED)]
        self._end = (self._end + piece)[-len(_NAMED) :]
        try:
            if not is_named and not self._parser.holds(_NAMED):
                self._parser.skip(piece)
                return
            for event in self._parser.feed(piece):
                self.take(event)
        except sse.EventTooLong:
            self._is_given_up, self._parser = True, sse.Parser()

    def take(self, event: sse.SseEvent) -> None:
        """Look at one event."""
        if sse.type_of(event.raw) in USAGE_EVENTS and len(event.raw) <= MAX_USAGE_EVENT_BYTES:
            take_usage(self.message, event.data())


def take_usage(message: ReplyMessage, data: Mapping[str, Any]) -> None:
    """Take in what the data of one event says of a message as a whole."""
    started, ended = data.get("message"), data.get("delta")
    match data.get("type"):
        case "message_start" if isinstance(started, dict):
            message.model = _string(started.get("model"))
            merge_usage(message.usage, started.get("usage"))
        case "message_delta":
            if isinstance(ended, dict):
                message.stop_reason = _string(ended.get("stop_reason")) or message.stop_reason
            merge_usage(message.usage, data.get("usage"))


def merge_usage(into: dict[str, Any], more: object) -> None:
    """Take over what a later report of the same call says; figures in it are totals, not increments."""
    for key, value in more.items() if isinstance(more, dict) else ():
        if value is not None and (key in into or len(into) < MAX_USAGE_KEYS):
            into[key] = value


def add_usage(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of two calls that the client sees as one: tokens added up, everything else the later one's."""
    total: dict[str, Any] = {**one, **other}
    for key in _SUMMED:
        if key in one or key in other:
            total[key] = _count(one.get(key)) + _count(other.get(key))
    first, second = one.get("cache_creation"), other.get("cache_creation")
    if isinstance(first, dict) or isinstance(second, dict):
        parts = [part for part in (first, second) if isinstance(part, dict)]
        total["cache_creation"] = {key: sum(_count(part.get(key)) for part in parts) for part in parts for key in part}
    return total


def without_calls(blocks: Iterable[Block]) -> list[Block]:
    """What a client sees of a reply whose calls were answered inside: everything but them."""
    return [block for block in blocks if block.get("type") != "tool_use"]


def assistant_message(blocks: Iterable[Block]) -> bytes:
    """The reply as the assistant's message of a next request; an empty text, which none may hold, is left out. Raises
    ValueError for what JSON cannot hold."""
    content = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    return json.dumps({"role": "assistant", "content": content}, allow_nan=False).encode()


def merged_reply(first: bytes, last: bytes, blocks: list[Block], usage: Mapping[str, Any]) -> bytes:
    """The JSON reply that stands for several: under the first one's id, and ended as the last one was. Raises ValueError
    for what JSON cannot hold."""
    first_reply = json.loads(first)
    merged = {**first_reply, **json.loads(last), "content": blocks, "usage": usage}
    if "id" in first_reply:
        merged["id"] = first_reply["id"]
    return json.dumps(merged, allow_nan=False).encode()


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
