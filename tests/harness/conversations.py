"""Conversations in the wire's form, written in a few words.

A conversation is a list of turns: `user(text)`, `say(text)`, `call(id, tool, arguments)`, `result(id, content)`.
Neighbours of one role become one message, as on the wire.
"""

import json
from typing import Any

from cg.sweep.body.transcript import Transcript, read

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


def transcript(*turns: Turn, system: str = "") -> Transcript:
    """The transcript of a conversation."""
    return read(json.dumps(body(*turns, system=system)).encode())
