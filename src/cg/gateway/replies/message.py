"""A reply's message, from its JSON or put together from its events, and the usage in it."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cg.gateway.http import sse
from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.values import Usage, usage_of

Block = dict[str, Any]
_NAMED = b"message_"  # in the name of each event that holds usage, and of one that does not
_SUMMED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


@dataclass(slots=True)
class Message:
    """One reply. `is_whole` is False when something in it was not understood: it must not be sent back then."""

    model: str = ""
    blocks: list[Block] = field(default_factory=list)
    stop_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def tiers(self) -> Usage | None:
        """The usage by tier; None when the provider did not say."""
        return usage_of(self.usage) if self.usage else None

    def calls(self) -> list[Block]:
        """The calls of our tool if the reply calls nothing else and waits for their answers; else none.

        Whatever is not plainly so passes through: the client answers with an error, which later copies replace.
        """
        if not self.is_whole or self.stop_reason != "tool_use":
            return []
        uses = [block for block in self.blocks if block.get("type") == "tool_use"]
        names = [use.get("id") for use in uses]
        ours = all(use.get("name") == EXPAND_TOOL and isinstance(use.get("input"), dict) for use in uses)
        return uses if ours and all(isinstance(n, str) for n in names) and len(set(names)) == len(names) else []


def of_json(raw: bytes) -> Message | None:
    """The message in a JSON reply; None if it is none. One with a number that could not be written again is not whole."""
    beyond: list[str] = []

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            beyond.append(text)
        return value

    try:
        found = json.loads(raw, parse_float=number, parse_constant=number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("type") != "message":
        return None
    blocks, usage = found.get("content"), found.get("usage")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        blocks = None
    return Message(
        model=_text(found.get("model")),
        blocks=blocks or [],
        stop_reason=_text(found.get("stop_reason")) or None,
        usage=usage if isinstance(usage, dict) else {},
        is_whole=blocks is not None and not beyond,
    )


def of_events(events: Iterable[sse.SseEvent]) -> Message:
    """The message that a stream's events tell of, as far as they go."""
    assembly = Assembly()
    for event in events:
        assembly.take(event.data())
    return assembly.message


class Assembly:
    """Puts a message together, event by event."""

    def __init__(self) -> None:
        self.message = Message()
        self._pieces: dict[tuple[int, str], list[str]] = {}  # of a block that is not complete, by its member

    def take(self, data: Mapping[str, Any]) -> None:
        """Take in one event's data; what is not known here makes the message not whole."""
        try:
            self._take(data)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError):
            self.message.is_whole = False

    def _take(self, data: Mapping[str, Any]) -> None:
        message = self.message
        match data.get("type"):
            case "message_start":
                message.model = _text(data["message"].get("model"))
                merge_usage(message.usage, data["message"].get("usage"))
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
                message.stop_reason = _text(data["delta"].get("stop_reason")) or message.stop_reason
                merge_usage(message.usage, data.get("usage"))
            case "error":
                message.is_whole = False
            case _:  # ping, message_stop, and whatever else brings no content
                pass

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self.message.blocks[index]
        match delta.get("type"):
            case "text_delta":
                self._pieces.setdefault((index, "text"), []).append(delta["text"])
            case "thinking_delta":
                self._pieces.setdefault((index, "thinking"), []).append(delta["thinking"])
            case "signature_delta":
                self._pieces.setdefault((index, "signature"), []).append(delta["signature"])
            case "input_json_delta":
                self._pieces.setdefault((index, "input"), []).append(delta["partial_json"])
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case _:
                self.message.is_whole = False

    def _complete(self, index: int) -> None:
        block = self.message.blocks[index]
        for key in ("text", "thinking", "signature", "input"):
            text = "".join(self._pieces.pop((index, key), ()))
            if key == "input" and text:
                block[key] = json.loads(text)
            elif text:
                block[key] = block.get(key, "") + text


class UsageWatch:
    """Reads the usage out of a stream that passes by; two events of a stream hold it."""

    def __init__(self) -> None:
        self._parser = sse.Parser()
        self._assembly = Assembly()
        self._is_lost = False

    def feed(self, piece: bytes) -> None:
        """Look at decoded bytes; what cannot be followed is given up in silence."""
        if self._is_lost or (_NAMED not in piece and self._parser.is_whole(piece)):
            return
        try:
            for event in self._parser.feed(piece):
                if sse.type_of(event.raw) in (b"message_start", b"message_delta"):
                    self._assembly.take(event.data())
        except sse.EventTooLong:
            self._is_lost, self._parser = True, sse.Parser()

    @property
    def seen(self) -> Message:
        return self._assembly.message


def merge_usage(into: dict[str, Any], more: object) -> None:
    """Take over what a later report of the same call says; figures in it are totals, not increments."""
    if isinstance(more, dict):
        into.update({key: value for key, value in more.items() if value is not None})


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


def visible(blocks: Iterable[Block]) -> list[Block]:
    """What a client sees of a reply whose calls were answered inside: everything but them."""
    return [block for block in blocks if block.get("type") != "tool_use"]


def as_turn(blocks: Iterable[Block]) -> bytes:
    """The reply as the assistant's message of a next request; an empty text, which none may hold, is left out. Raises
    ValueError for what JSON cannot hold."""
    content = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    return json.dumps({"role": "assistant", "content": content}, allow_nan=False).encode()


def as_one(first: bytes, last: bytes, blocks: list[Block], usage: Mapping[str, Any]) -> bytes:
    """The JSON reply that stands for several: under the first one's id, and ended as the last one was. Raises ValueError
    for what JSON cannot hold."""
    begun = json.loads(first)
    whole = {**begun, **json.loads(last), "content": blocks, "usage": usage}
    if "id" in begun:
        whole["id"] = begun["id"]
    return json.dumps(whole, allow_nan=False).encode()


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
