"""Made conversations for the sweep's core: growing histories of one agent, and a store and judges that can be told to fail."""

import json
import random
import re
from typing import Any

from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.config import load
from cg.sweep.drivers import Sweep
from cg.sweep.effects import Answer, Failure
from cg.sweep.store_memory import MemoryStore

START = 1_800_000_000.0
TOOLS = [{"name": "Read", "description": "r", "input_schema": {"type": "object"}}]
MARK = {"type": "ephemeral"}


def output(n: int, size: int = 4000) -> str:
    """Text of a tool output that no other has a word in common with."""
    rng = random.Random(n)
    lines, length = [], 0
    while length < size:
        lines.append(f"entry_{n}_{rng.randrange(10**9):09} = {rng.randrange(10**6)}")
        length += len(lines[-1]) + 1
    return "\n".join(lines)


def history(n: int, *, outputs: dict[int, str] | None = None, last: str = "", size: int = 4000, **top: Any) -> dict:
    """A request after `n` calls with their results, marked as Claude Code marks; `last` is a word of the user's then."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look at every file, then write the notes."}]
    for i in range(n):
        call = {"type": "tool_use", "id": f"toolu_{i:03}", "name": "Read", "input": {"file_path": f"/repo/f{i}.py"}}
        text = (outputs or {}).get(i, output(i, size))
        messages.append({"role": "assistant", "content": [call]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": text}]}
        )
    if last:
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": "Done with that."}]},
            {"role": "user", "content": [{"type": "text", "text": last}]},
        ]
    if isinstance(messages[-1]["content"], str):
        messages[-1]["content"] = [{"type": "text", "text": messages[-1]["content"]}]
    messages[-1]["content"][-1]["cache_control"] = MARK
    body = {"model": "claude-sonnet-5", "max_tokens": 32000, "system": "s", "tools": TOOLS, "messages": messages}
    return {**body, **top}


def encoded(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


class Judge:
    """An asker that is told what to say; without words it drops all, but the labels in `keep`. Remembers what it read."""

    def __init__(self, text: str | None = None, *, keep: set[int] | None = None, usage=None) -> None:
        self.text, self.keep, self.usage, self.bodies = text, keep or set(), usage, []

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        self.bodies.append(body)
        question = json.loads(body)["messages"][-1]["content"]
        if self.text is not None:
            return Answer(self.text, self.usage)
        said = []
        for label in map(int, re.findall(r"^\[(\d+)\]", question, re.M)):
            kept = {"i": label, "needed_by": "b", "quote": "write the notes", "verdict": "keep"}
            said.append(kept if label in self.keep else {"i": label, "needed_by": "none", "verdict": "drop"})
        return Answer(json.dumps(said), self.usage)


def sweep_of(store=None, preset: str = "paid", **flags: Any) -> Sweep:
    """A sweep over a store (in memory if none is given)."""
    config = load(None, {}, flags, preset)
    return Sweep(config, MemoryStore() if store is None else store)


def settled(sweep: Sweep, thread: str, now: float, judge) -> Any:
    """The idle ask of the thread's newest branch, as of `now`."""
    branch = max(sweep.state(thread).branches, key=lambda b: b.clock)
    return sweep.settle(thread, branch, now, asker=judge)


def removed_at_cold(sweep: Sweep, judge=None, *, n: int = 20, thread: str = "t", **form: Any):
    """Three turns: the history, an idle ask, the cold request that applies its drops. Returns (body, Swept) of it."""
    first = encoded(history(n, **form))
    sweep.process(encoded(history(0)), thread, START)
    sweep.process(first, thread, START + 10)
    settled(sweep, thread, START + 250, judge or Judge(keep={11}))
    later = encoded(history(n, last="And now?", **form))
    return later, sweep.process(later, thread, START + 1000)


def expanding(n: int, key: Any) -> dict:
    """A history whose model called our tool, with the client's error for a tool it does not know."""
    form = history(n, last="And now?")
    call = {"type": "tool_use", "id": "toolu_expand", "name": EXPAND_TOOL, "input": {"id": key}}
    error = {
        "type": "tool_result",
        "tool_use_id": "toolu_expand",
        "content": "Error: No such tool available: cg_expand",
        "is_error": True,
    }
    form["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [error]}]
    return form
