"""Conversations in the wire's form, written in a few words, and read by a slow and obvious reader.

A conversation is a list of turns: `user(text)`, `say(text)`, `call(id, tool, arguments)`, `result(id, content)`.
Neighbours of one role become one message, as on the wire.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cg.sweep.values import Identity

Turn = tuple[str, dict[str, Any]]


def user(text: str) -> Turn:
    return "user", {"type": "text", "text": text}


def say(text: str) -> Turn:
    return "assistant", {"type": "text", "text": text}


def call(tool_use_id: str, tool: str = "Read", **arguments: Any) -> Turn:
    return "assistant", {"type": "tool_use", "id": tool_use_id, "name": tool, "input": arguments}


def result(tool_use_id: str, *parts: str) -> Turn:
    """A result with string content, or with a list of text blocks where there are several parts."""
    content: Any = parts[0] if len(parts) == 1 else [{"type": "text", "text": part} for part in parts]
    return "user", {"type": "tool_result", "tool_use_id": tool_use_id, "content": content}


def body(*turns: Turn, system: str = "") -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for role, block in turns:
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].append(block)
        else:
            messages.append({"role": role, "content": [block]})
    return {"model": "m", "max_tokens": 100, "system": system, "messages": messages}


@dataclass(frozen=True)
class Text:
    message: int
    tool_use_id: str
    block: int
    text: str
    is_error: bool = False

    @property
    def content(self) -> bytes:
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    @property
    def has_marker(self) -> bool:
        return "<<cg:" in self.text

    @property
    def identity(self) -> Identity:
        return Identity(self.tool_use_id, self.block, hashlib.sha256(self.content).hexdigest())


@dataclass(frozen=True)
class Use:
    id: str
    name: str
    arguments: bytes
    message: int


@dataclass(frozen=True)
class Read:
    roles: tuple[str, ...]
    tool_uses: dict[str, Use]
    tool_texts: tuple[Text, ...]
    spoken: tuple[tuple[str, int, str], ...] = field(default=())

    @property
    def n_messages(self) -> int:
        return len(self.roles)

    def texts(self) -> Iterator[tuple[str, int, str]]:
        return iter(self.spoken)


def read(request: dict[str, Any]) -> Read:
    """The parts of a request body that judging looks at."""
    uses: dict[str, Use] = {}
    results: list[Text] = []
    spoken: list[tuple[str, int, str]] = [("system", -1, request["system"])]
    for m, message in enumerate(request["messages"]):
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                spoken.append((message["role"], m, block["text"]))
            elif block["type"] == "tool_use":
                arguments = json.dumps(block["input"])
                uses[block["id"]] = Use(block["id"], block["name"], arguments.encode(), m)
                spoken.append(("tool_use", m, arguments))
            elif block["type"] == "tool_result":
                parts = block["content"]
                texts = [parts] if isinstance(parts, str) else [part["text"] for part in parts]
                for b, text in enumerate(texts):
                    results.append(Text(m, block["tool_use_id"], b, text))
                    spoken.append(("tool_result", m, text))
    return Read(tuple(message["role"] for message in request["messages"]), uses, tuple(results), tuple(spoken))


def transcript(*turns: Turn, system: str = "") -> Any:
    """The transcript of a conversation."""
    return read(body(*turns, system=system))
