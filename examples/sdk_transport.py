"""The sweep under the Python SDK, offline: `python3 examples/sdk_transport.py`.

An agent looks up eight record sets; its user comes back after twenty minutes, when the provider's cache is cold. The
transport takes out what the preset `cold` lets go, the model asks for one of the outputs again, and the SDK's caller sees
none of this. The upstream is the scripted stand-in of this repository's tests, so no key and no network are needed.
Needs `pip install '.[transport]' anthropic` in a clone.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

try:
    import anthropic

    from cg.gateway.transport import Transport
except ImportError as missing:
    sys.exit(
        f"this example needs the SDK and an HTTP client: pip install 'cg-context[transport]' anthropic ({missing})"
    )

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))
from fake_upstream import FakeUpstream

from cg.gateway.embedded.client_library import library_of
from cg.sweep.config import load

SETS, BREAK_S = 8, 1200
TOOL: Any = {
    "name": "lookup",
    "description": "Look up one record set.",
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


def script() -> list[dict[str, Any]]:
    """What the model says: eight look-ups, a break, a call of `cg_expand`, and the last word."""
    marker = {"$find": "<<cg:([0-9a-f]{16})>>", "in": "messages"}
    turns: list[dict[str, Any]] = [{"tool": "lookup", "input": {"n": n}} for n in range(1, SETS + 1)]
    turns.append({"text": "All sets are in.", "advance_s": BREAK_S})
    turns.append({"text": "One moment.", "tool": "cg_expand", "input": {"id": marker}})
    return [*turns, {"text": "The third record of the first set is 01:002."}]


class ScriptedClock:
    """The upstream's clock, so that twenty minutes pass at once."""

    def __init__(self, upstream: FakeUpstream) -> None:
        self._clock = upstream.clock

    def now(self) -> float:
        return float(self._clock.now())

    async def sleep_until(self, moment: float) -> None:
        while self.now() < moment:
            await asyncio.sleep(0.01)


def answered(block: Any) -> dict[str, Any]:
    """The agent's own tool: 120 lines."""
    n = block.input["n"]
    text = "\n".join(f"{n:02d}:{k:03d} record value={k * n}" for k in range(120))
    return {"type": "tool_result", "tool_use_id": block.id, "content": text}


def turn(client: anthropic.Anthropic, messages: list[Any], upstream: FakeUpstream) -> str:
    """Ask until the model has said its last word; prints what the client wrote, and what left."""
    while True:
        reply = client.messages.create(
            model="claude-sonnet-5",
            max_tokens=1000,
            tools=[TOOL],
            messages=messages,
            cache_control={"type": "ephemeral"},
        )
        last = upstream.requests[-1]
        written, left = len(json.dumps(messages)), len(json.dumps(json.loads(last["body"])["messages"]))
        print(f"{len(messages):9} {written:16,} {left:13,}   {', '.join(block.type for block in reply.content)}")
        messages.append(
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]}
        )
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        messages.append({"role": "user", "content": [answered(block) for block in calls]})


def main() -> None:
    library = library_of(anthropic.DefaultHttpxClient())  # httpx2, or httpx in older SDKs
    with FakeUpstream(script(), clock="manual") as upstream:
        transport = Transport(config=load(preset="cold", flags={"keep_newest": 2}), clock=ScriptedClock(upstream))
        http_client = library.Client(transport=transport)
        with anthropic.Anthropic(api_key="none", base_url=upstream.base_url, http_client=http_client) as client:
            print(" messages  client's bytes  bytes that left   reply")
            messages: list[Any] = [{"role": "user", "content": "Look at all eight record sets."}]
            print("model:", turn(client, messages, upstream))
            print(f"-- {BREAK_S // 60} minutes pass --")
            messages.append({"role": "user", "content": "What was the third record of the first set?"})
            print("model:", turn(client, messages, upstream))
        stats = transport.stats()
    removed, back = stats["removed"], stats["recoveries"]["hidden"]
    print(f"removed: {removed['outputs']} outputs, {removed['unique']:,} bytes; brought back unseen: {back}")


if __name__ == "__main__":
    main()
