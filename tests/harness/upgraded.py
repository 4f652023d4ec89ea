"""The conversation of the stored states of earlier releases: what was removed in it is replayed by every later one.

`python tests/harness/upgraded.py FOLDER` with an earlier release on the path makes such a state, by its own pipe, and
prints the digest of the last body that it sent.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

N_OUTPUTS = 210
START = 1_800_000_000.0
COLD = START + 4000.0
CONFIG = "[sweep]\nmin_tokens = 60\nkeep_newest = 10\nmin_inventory = 1\n"


def output(n: int) -> str:
    """A text that no other has a word in common with, in more than one alphabet."""
    return "".join(f"entry_{n}_{line} größe {n * 7919 + line} \U0001f600\n" for line in range(12))


def request(n: int, *words: str) -> bytes:
    """The body after `n` outputs, and behind them the user's words one by one."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read them all."}]
    for i in range(n):
        call = {"type": "tool_use", "id": f"toolu_{i:03}", "name": "Read", "input": {"file_path": f"/repo/{i}.py"}}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": output(i)}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    for word in words:
        messages += [
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": [{"type": "text", "text": word}]},
        ]
    if isinstance(messages[-1]["content"], str):
        messages[-1]["content"] = [{"type": "text", "text": messages[-1]["content"]}]
    messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    tools = [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "tools": tools, "messages": messages}
    return json.dumps(body, ensure_ascii=False).encode()


def run(state: Path | str, body: bytes, now: float, folder: Path) -> tuple[bytes, dict[str, Any]]:
    """One request through the pipe: (what it sends, its report)."""
    (folder / "config.toml").write_text(CONFIG)
    command = [sys.executable, "-m", "cg.sweep.cli", "run", "--preset", "cold", "--config", str(folder / "config.toml")]
    command += ["--state", str(state), "--session", "s", "--now", str(now), "--report", str(folder / "report")]
    sent = subprocess.run(command, input=body, capture_output=True, check=True).stdout
    return sent, json.loads((folder / "report").read_text())


def made(state: Path | str, folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The conversation up to the cold request that removes all but the newest ten."""
    run(state, request(0), START, folder)
    run(state, request(N_OUTPUTS), START + 10, folder)
    return run(state, request(N_OUTPUTS, "And now?"), COLD, folder)


if __name__ == "__main__":
    where = Path(sys.argv[1])
    last, report = made(sys.argv[2] if len(sys.argv) > 2 else where / "s" / "state.db", where)
    print(len(report["removed"]), hashlib.sha256(last).hexdigest())
