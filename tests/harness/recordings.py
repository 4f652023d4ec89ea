"""The recorded sessions, histories rebuilt from them the slow way, and the API's own checks of a request."""

import importlib.util
import json
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
RECORDINGS = sorted(
    path
    for path in (TESTS / "data" / "transcripts").glob("*.json")
    if not path.name.endswith(".labels.json") and path.name != "manifest.json"
)


def checked() -> Any:
    """The stand-in upstream's validator, told to take no two neighbours of one role and no request that ends in an answer."""
    spec = importlib.util.spec_from_file_location("fake_upstream_for_replay", TESTS / "harness" / "fake_upstream.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Validator({"strict_alternation": True, "no_prefill": True})


def histories(session: dict[str, Any], chosen: Any = lambda request: True) -> dict[int, list[dict[str, Any]]]:
    """The messages of chosen requests of an agent session by its README: all events since the last compaction, merged."""
    found: dict[int, list[dict[str, Any]]] = {}
    since: list[dict[str, Any]] = []
    request = 0
    for event in session["events"]:
        if event["role"] == "system":
            since = []
            continue
        if event["role"] == "assistant":
            if chosen(request):
                found[request] = merged(since)
            request += 1
        since.append(event)
    return found


def merged(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role as one message, of blocks that can be sent; a request cannot end in an answer."""
    messages: list[dict[str, Any]] = []
    for event in events:
        blocks = [sent(block) for block in event["content"] if can_be_sent(block)]
        if messages and messages[-1]["role"] == event["role"]:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": event["role"], "content": blocks})
    if messages[-1]["role"] == "assistant":
        messages.pop()
    for message in messages:  # the API takes results at the head of a message only
        message["content"].sort(key=lambda block: block["type"] != "tool_result")
    return [message for message in messages if message["content"]]


def can_be_sent(block: dict[str, Any]) -> bool:
    return block["type"] != "thinking_omitted" and not (block["type"] == "text" and not block["text"].strip())


def sent(block: dict[str, Any]) -> dict[str, Any]:
    """The block as the API knows it."""
    block = {key: value for key, value in block.items() if key in BLOCK_MEMBERS[block["type"]]}
    if block.get("is_error") is False:
        del block["is_error"]
    return block


BLOCK_MEMBERS = {
    "text": {"type", "text"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content", "is_error"},
}


def whole_histories(steps: Any) -> Any:
    """(step, all messages of its request) for each step of a session."""
    messages: list[bytes] = []
    for step in steps:
        messages = [*step.messages] if step.opens else [*messages, *step.messages]
        yield step, messages


def decoded(messages: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(message) for message in messages]
