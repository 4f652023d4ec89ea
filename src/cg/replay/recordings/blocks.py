"""Content blocks of a log as the JSON text of blocks that the API takes: known kinds, known members, nothing empty."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

NO_TEXT = "(nothing was said)"  # an answer of hidden reasoning alone: histories have to alternate
NO_MESSAGE = "(what stood here was not recorded)"  # a history that begins in the middle
NO_RESULT = "[no result was recorded]"
ID = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
MAX_NAME = 128
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

TEXT_OPENS, TEXT_ENDS = b'{"type":"text","text":"', b'"}'

# Members that a block of a user message or of a tool result may have; text and tool_result are written out below.
MEMBERS = {
    "image": ("source",),
    "document": ("source", "title", "context"),
    "search_result": ("source", "title", "content"),
    "tool_reference": ("tool_name",),
}


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """What a tool call brought back."""

    content: bytes  # JSON text: a string or a list of blocks
    is_error: bool
    at: float | None  # when it was in
    place: int = 0  # among the results of the session, as logged: the order in which they are sent


def encoded(value: object) -> bytes:
    """Compact JSON text in UTF-8; a lone surrogate is spelled as its escape. Raises ValueError for infinite numbers."""
    return ENCODER.encode(value).encode(
        "utf-8", "backslashreplace"
    )  # inside a JSON string, \udXXX is the escape that is meant


def text_block(text: str) -> bytes:
    """A text block."""
    return b'{"type":"text","text":%s}' % encoded(text)


def message(role: str, blocks: Iterable[bytes]) -> bytes:
    """A message of these blocks, never none."""
    return b'{"role":"%s","content":[%s]}' % (role.encode(), b",".join(blocks))


def user_blocks(content: object) -> list[bytes]:
    """What a user message says besides tool results."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    kept = (_sent(block, ("image", "document")) for block in content) if isinstance(content, list) else ()
    return [encoded(block) for block in kept if block is not None]


def results_of(content: object, at: float | None, place: int) -> dict[str, ResultBlock]:
    """The tool results of a user message by the call that they answer, in places from `place` on."""
    found: dict[str, ResultBlock] = {}
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str):
            result = _result_content(block.get("content"))
            found[block["tool_use_id"]] = ResultBlock(result, block.get("is_error") is True, at, place + len(found))
    return found


def result_block(call: str, result: ResultBlock | None) -> bytes:
    """The tool_result block that answers a call; an error is made up where none was recorded."""
    if result is None:
        result = ResultBlock(encoded(NO_RESULT), True, None)
    error = b',"is_error":true' if result.is_error else b""
    return b'{"type":"tool_result","tool_use_id":"%s","content":%s%s}' % (call.encode(), result.content, error)


def call_block(call: str, block: dict[str, Any]) -> bytes:
    """The tool_use block of a call under the id given."""
    name, arguments = block.get("name"), block.get("input")
    name = NOT_IN_A_NAME.sub("_", name)[:MAX_NAME] if isinstance(name, str) and name else "unknown"
    arguments = arguments if isinstance(arguments, dict) else {"value": arguments}
    return b'%s"name":"%s","input":%s}' % (call_opening(call), name.encode(), encoded(arguments))


def call_opening(call: str) -> bytes:
    """How the tool_use block of a call begins."""
    return b'{"type":"tool_use","id":"%s",' % call.encode()


def call_id(recorded: str, taken: set[str]) -> str:
    """An id that the API takes and that no other call has: the recorded one where possible."""
    sent = recorded if ID.match(recorded) else "call_" + hashlib.sha256(encoded(recorded)).hexdigest()[:24]
    base, n = sent[:100], 1
    while sent in taken:
        n += 1
        sent = f"{base}_{n}"
    taken.add(sent)
    return sent


def is_said(text: object) -> bool:
    """A text that the API takes: not blank."""
    return isinstance(text, str) and bool(text.strip())


def _sent(block: object, kinds: tuple[str, ...]) -> dict[str, Any] | None:
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": block["text"]} if is_said(block.get("text")) else None
    if kind not in kinds:
        return None
    return {"type": kind, **{key: block[key] for key in MEMBERS[kind] if block.get(key) is not None}}


def _result_content(content: object) -> bytes:
    if content is None or isinstance(content, str):
        return encoded(content or "")
    if not isinstance(content, list):
        return encoded(encoded(content).decode())
    kept = [_sent(block, tuple(MEMBERS)) for block in content]
    return encoded([block for block in kept if block is not None] or "")
