"""A session whose tool outputs grow request by request, for tests that need removals and nothing else."""

import json
from typing import Any

MODEL = "claude-sonnet-5"


def output(n: int) -> str:
    """A tool output of about 6 KB that no other equals."""
    return "\n".join(f"{n:02d}:{k:03d} record value={k * n}" for k in range(240))


def body(outputs: int, **more: Any) -> bytes:
    """The request after so many outputs, with a breakpoint on its last block."""
    mark = {"cache_control": {"type": "ephemeral"}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Look at all of them."}]}]
    for n in range(outputs):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "look", "input": {"n": n}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": output(n)}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    messages[-1]["content"][-1] |= mark
    tool = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
    request = {"model": MODEL, "max_tokens": 100, "tools": [tool], "messages": messages, **more}
    return json.dumps(request).encode()
