"""A prompt as a prompt cache sees it: blocks in order, a digest of every prefix, and its tokens.

A provider caches exact prefixes of tools, system and messages, block by block. So a prompt is two columns, one row a
block: a digest of everything up to and with the block, and the tokens up to there. Both are running values, which
makes a new turn cost its own blocks and no more, however long the history.

Two blocks are the same if their JSON is, once white space, the spelling of escapes and cache_control are set aside; the
order of keys and the spelling of numbers count. Content given as a string is one text block.
"""

import json
import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from cg.replay.media import media_of
from cg.sweep.body.transcript import Unreadable

DIGEST_BYTES = 16
TTL_S = {"5m": 300, "1h": 3600}

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SECTIONS = {"tools": b"t", "system": b"s"}
_ROLES = {"user": b"u", "assistant": b"a"}


class Breakpoint(NamedTuple):
    """A block at which the client asks for a cache entry, and for how long."""

    block: int
    ttl_s: int


class Part(NamedTuple):
    """One block by itself, read once and added to as many prompts as hold it."""

    key: bytes  # where it stands and a digest of what it says
    size_bytes: int  # of its compact JSON; none for an image, less the data of those inside it
    media_tokens: int = 0  # of images and documents, which are billed by pixels and pages

    def tokens(self, bytes_per_token: float) -> int:
        """What it counts for in a prompt, at least one token."""
        return max(1, math.ceil(self.size_bytes / bytes_per_token) + self.media_tokens)


def parts_of(message: bytes) -> list[Part]:
    """The blocks of a message, given as the JSON text that a client sends. Raises Unreadable."""
    return _message_parts(_read(message))


class Prompt:
    """A prompt that grows at its end: tools, then system, then messages.

    `scope` separates caches that share nothing (a credential). `bytes_per_token` turns the bytes of a block's compact
    JSON into tokens, rounded up block by block. `settings` are what else the key of every message prefix hangs on: a
    change of thinking keeps the entries of tools and system alone.
    """

    __slots__ = ("_digests", "_frame", "_messages", "_settings", "_totals", "bytes_per_token")

    def __init__(
        self, model: str, *, scope: str = "", settings: dict[str, Any] | None = None, bytes_per_token: float = 4.0
    ) -> None:
        if not 0.1 <= bytes_per_token <= 1000:
            raise ValueError(f"bytes_per_token {bytes_per_token} is outside 0.1 to 1000")
        self.bytes_per_token = bytes_per_token
        self._digests = [_digest(_compact([scope, model]))]  # one ahead of the blocks: the empty prefix
        self._totals = [0]
        self._messages: list[int] = []  # first block of each message
        self._frame = 0  # blocks of tools and system; the settings count from there on
        self._settings = _digest(_compact({key: value for key, value in (settings or {}).items() if value is not None}))

    def __len__(self) -> int:
        """Blocks in the prompt."""
        return len(self._digests) - 1

    @property
    def n_messages(self) -> int:
        return len(self._messages)

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt."""
        return self._totals[-1]

    def tokens_to(self, block: int) -> int:
        """Tokens of the prefix that ends with `block`; 0 for block -1."""
        return self._totals[block + 1]

    def digest_at(self, block: int) -> bytes:
        """What names the prefix that ends with `block`: equal prefixes of one scope and model have equal digests."""
        return self._digests[block + 1]

    def last_block(self, message: int = -1) -> int:
        """Position of the last block of a message, of the newest by default: where clients set their breakpoint.

        Raises IndexError if there is no such message.
        """
        following = range(len(self._messages))[message] + 1
        return (self._messages[following] if following < len(self._messages) else len(self)) - 1

    def add_tools(self, tools: bytes) -> None:
        """Append tool definitions, a JSON array. Raises Unreadable, or ValueError behind a message."""
        self.add_frame("tools", _read(tools))

    def add_system(self, system: bytes) -> None:
        """Append the system prompt, a JSON array of blocks or a string. Raises Unreadable, or ValueError."""
        self.add_frame("system", _read(system))

    def add_frame(self, section: str, content: Any) -> None:
        """Append decoded tools or system."""
        if self._messages:
            raise ValueError(f"{section} cannot stand behind {len(self._messages)} messages")
        self._append(_parts(_SECTIONS[section], content))
        self._frame = len(self)

    def add_message(self, message: bytes) -> None:
        """Append a message, the JSON text that a client sends. Raises Unreadable."""
        self.add_parts(parts_of(message))

    def add_parts(self, parts: Sequence[Part]) -> None:
        """Append a message whose blocks were read before; costs a short digest a block."""
        self._messages.append(len(self))
        self._append(parts)

    def cut(self, n_messages: int) -> None:
        """Go back to the first `n_messages` messages. Raises ValueError if there are fewer."""
        if not 0 <= n_messages <= len(self._messages):
            raise ValueError(f"{n_messages} messages asked for, {len(self._messages)} there")
        if n_messages < len(self._messages):
            first = self._messages[n_messages]
            del self._messages[n_messages:]
            del self._digests[first + 1 :]
            del self._totals[first + 1 :]

    def copy(self) -> "Prompt":
        """An equal prompt that goes on from here alone, for a request on the side; linear in its blocks."""
        twin = Prompt.__new__(Prompt)
        twin.bytes_per_token = self.bytes_per_token
        twin._digests, twin._totals = self._digests.copy(), self._totals.copy()
        twin._messages, twin._frame, twin._settings = self._messages.copy(), self._frame, self._settings
        return twin

    def _append(self, parts: Sequence[Part]) -> None:
        digest, total = self._digests[-1], self._totals[-1]
        if parts and len(self) == self._frame and self._messages:
            digest = _digest(digest + self._settings)
        for part in parts:
            digest = _digest(digest + part.key)
            total += part.tokens(self.bytes_per_token)
            self._digests.append(digest)
            self._totals.append(total)


def prompt_of(
    body: bytes, *, scope: str = "", bytes_per_token: float = 4.0, tool_choice_in_key: bool = False
) -> tuple[Prompt, list[Breakpoint]]:
    """The prompt of a whole request body, and its breakpoints in prompt order.

    `tool_choice_in_key`: a changed tool_choice misses the messages' entries, as the public documentation lists it (what
    is seen live differs). Raises Unreadable for a body that is no Messages request.
    """
    request = _read(body)
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        raise Unreadable("body is no object with messages")
    settings = {"thinking": request.get("thinking")}
    if tool_choice_in_key:
        settings["tool_choice"] = request.get("tool_choice")
    model = str(request.get("model"))
    prompt = Prompt(model, scope=scope, settings=settings, bytes_per_token=bytes_per_token)
    prompt.add_frame("tools", request.get("tools"))
    prompt.add_frame("system", request.get("system"))
    for message in request["messages"]:
        prompt.add_parts(_message_parts(message))
    return prompt, _breakpoints(request)


def _breakpoints(request: dict[str, Any]) -> list[Breakpoint]:
    blocks = [*_blocks(request.get("tools")), *_blocks(request.get("system"))]
    for message in request["messages"]:
        blocks += _blocks(message.get("content"))
    marks = [(position, _marks(block)) for position, block in enumerate(blocks)]
    top = request.get("cache_control")
    cacheable = [n for n, block in enumerate(blocks) if not _is_thinking(block)]
    if top and cacheable and not marks[cacheable[-1]][1]:  # automatic caching: a mark on the last block that takes one
        marks[cacheable[-1]] = (cacheable[-1], [top])
    return [Breakpoint(n, _lifetime(found)) for n, found in marks if found]


def _lifetime(marks: list[Any]) -> int:
    return TTL_S["1h" if any(isinstance(mark, dict) and mark.get("ttl") == "1h" for mark in marks) else "5m"]


def _marks(block: Any) -> list[Any]:
    """What cache_control says on a block and on the blocks inside it."""
    inner = block.get("content") if isinstance(block, dict) else None
    inside = [part.get("cache_control") for part in inner if isinstance(part, dict)] if isinstance(inner, list) else []
    own = block.get("cache_control") if isinstance(block, dict) else None
    return [mark for mark in (own, *inside) if mark]


def _is_thinking(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking")


def _without_marks(block: Any) -> Any:
    """The block less its cache_control; inside a call's arguments that word is data and stays."""
    if not isinstance(block, dict):
        return block
    inner = block.get("content")
    nested = isinstance(inner, list) and any(isinstance(part, dict) and "cache_control" in part for part in inner)
    if not nested and "cache_control" not in block:
        return block
    clean = {key: value for key, value in block.items() if key != "cache_control"}
    if nested:
        clean["content"] = [_without_marks(part) for part in inner or ()]
    return clean


def _blocks(content: Any) -> list[Any]:
    """The API's shorthand: a string is one text block, nothing is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if content is None:
        return []
    if not isinstance(content, list):
        raise Unreadable("content is neither a string nor a list")
    return content


def _message_parts(message: Any) -> list[Part]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise Unreadable("message is no object with a role")
    # Other roles occur in the middle of histories (system), and any string can stand there.
    section = _ROLES.get(message["role"]) or b"r" + _digest(_compact(message["role"]))
    return _parts(section, message.get("content"))


def _parts(section: bytes, content: Any) -> list[Part]:
    found = []
    for block in _blocks(content):
        text = _compact(_without_marks(block))
        media, tokens = media_of(block)
        is_image = isinstance(block, dict) and block.get("type") == "image"
        found.append(Part(section + _digest(text), 0 if is_image else max(0, len(text) - media), tokens))
    return found


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=DIGEST_BYTES).digest()


def _compact(value: Any) -> bytes:
    try:
        return _ENCODER.encode(value).encode("utf-8", "surrogatepass")
    except RecursionError:
        raise Unreadable("nested too deep") from None


def _read(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {type(error).__name__}") from None
