"""Real clients as child processes, and what of their runs can be compared.

`CG_CLAUDE_BIN` names the Claude Code binary (npm package @anthropic-ai/claude-code), `CG_CLIENTS_PYTHON` the
interpreter of an environment with the Python clients. Nothing here is needed to use the package.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIMIT_S = 300  # of one run; a session of 18 requests takes some 4 s, and ten times as long on a machine that is busy
# Names that are new in each run: of calls, messages, requests and sessions.
NAMES = re.compile(r"(toolu|msg|req)_[A-Za-z0-9_]+|()[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
KEY = re.compile(r"(\"id\": \")[0-9a-f]{16}\"")  # what a call of our tool names: an upstream without markers names none
# Of a tool result as the client keeps it: what depends on the moment and not on the conversation.
MOMENTARY = frozenset(
    {"durationMs", "durationSeconds", "totalDurationMs", "usage", "totalTokens", "timestamp", "agentId"}
)


def claude_binary() -> str | None:
    """The Claude Code binary, if there is one."""
    return os.environ.get("CG_CLAUDE_BIN") or shutil.which("claude")


def clients_python() -> str | None:
    """An interpreter that has the Python clients, if one was named."""
    return os.environ.get("CG_CLIENTS_PYTHON")


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit code, what was said last, whether it was an error, and the client's own transcript."""

    exit_code: int
    said: str | None
    is_error: bool
    transcript: list[Any] = field(default_factory=list)
    stderr: str = ""
    session: str = ""


def run_claude(
    home: Path,
    repo: Path,
    base_url: str,
    *arguments: str,
    prompts: list[str] | None = None,
    env: dict[str, str] | None = None,
) -> Ended:
    """One process of Claude Code without a screen; several `prompts` are given one after another.

    Needs no login and no network: the key is a dummy, everything goes to `base_url`.
    """
    binary = claude_binary()
    assert binary is not None
    home.mkdir(parents=True, exist_ok=True)
    command = [binary, *arguments, "--allowedTools", "Bash,Read,Grep,Glob,Agent,Task"]
    streaming = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    command += ["--output-format", "json"] if prompts is None else streaming
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **(env or {}),
    }
    exit_code, output, errors = _conversed(command, repo, environment, prompts or [])
    result = _last_result(output)
    session = str(result.get("session_id", ""))
    return Ended(
        exit_code=exit_code,
        said=result.get("result"),
        is_error=bool(result.get("is_error", exit_code != 0)),
        transcript=claude_transcript(home),
        stderr=errors[-2000:],
        session=session,
    )


def _conversed(command: list[str], folder: Path, env: dict[str, str], prompts: list[str]) -> tuple[int, str, str]:
    """(exit code, output, errors) of a process that is given each prompt once the one before it has its result."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        alarm = threading.Timer(LIMIT_S, process.kill)
        alarm.start()
        lines: list[str] = []
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            for prompt in prompts:
                message = {"type": "user", "message": {"role": "user", "content": prompt}}
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    lines.append(line)
                    if _last_result(line):
                        break
            process.stdin.close()
            lines += process.stdout
        alarm.cancel()
        errors.seek(0)
        return process.returncode, "".join(lines), errors.read()


def _last_result(output: str) -> dict[str, Any]:
    """The last object of type `result`, whether the output is one object or one a line."""
    for line in reversed(output.strip().splitlines()):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.get("type") == "result":
            return row
    return {}


def claude_transcript(home: Path) -> list[Any]:
    """The client's own record of its conversations, with names that change from run to run set aside.

    First what was said, in order: each block of the model's and each prompt. Then the results of tools by the order of
    their calls: those of parallel calls are written as they come in, which differs from run to run.
    """
    said: list[Any] = []
    results: list[Any] = []
    for path in sorted((home / ".claude" / "projects").rglob("*.jsonl"), key=_kind_then_size):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            message = row.get("message")
            if not isinstance(message, dict):
                continue
            content = message.get("content")
            kept = {"role": message.get("role"), "content": content, "side": row.get("isSidechain")}
            is_result = isinstance(content, list) and any(b.get("type") == "tool_result" for b in content)
            if is_result:
                results.append({**kept, "result": without(row.get("toolUseResult"), MOMENTARY)})
            else:
                said.append(kept)
    said, results = ordered_ids([said, results])
    return [*said, *sorted(results, key=_call_number)]


def _call_number(row: dict[str, Any]) -> int:
    name = next(block["tool_use_id"] for block in row["content"] if block.get("type") == "tool_result")
    return int(name.partition("-")[2])


def _kind_then_size(path: Path) -> tuple[bool, int]:
    """The conversation itself before those of its sub-agents."""
    return path.name.startswith("agent-"), path.stat().st_size


def without(value: Any, names: frozenset[str]) -> Any:
    """A value without some of its keys, at any depth."""
    if isinstance(value, dict):
        return {k: without(v, names) for k, v in value.items() if k not in names}
    if isinstance(value, list):
        return [without(v, names) for v in value]
    return value


def ordered_ids(value: Any) -> Any:
    """A value with each name that is new in a run replaced by the order in which it first appears."""
    seen: dict[str, str] = {}
    numbers: Counter[str] = Counter()

    def number(match: re.Match[str]) -> str:
        if match[0] not in seen:
            kind = match[1] or "uuid"
            numbers[kind] += 1
            seen[match[0]] = f"{kind}-{numbers[kind]}"
        return seen[match[0]]

    text = NAMES.sub(number, json.dumps(value))
    return json.loads(KEY.sub(r'\1KEY"', text))


def run_python(name: str, base_url: str) -> Ended:
    """One run of a Python client; its history stands in the transcript."""
    python = clients_python()
    assert python is not None
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and k != "PYTHONPATH"}
    done = subprocess.run(
        [python, str(HERE / "python_client.py"), name, base_url],
        env={**environment, "LANGSMITH_TRACING": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    found = json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else {}
    history = ordered_ids(found.get("history")) if found.get("history") else []
    return Ended(
        done.returncode,
        found.get("answer"),
        bool(found.get("error")),
        history,
        found.get("error") or done.stderr[-2000:],
    )


def main_requests(up: Any) -> list[dict[str, Any]]:
    """The upstream's records of the conversation itself, with parsed bodies: no titles, no counting, no asks."""
    rows = [r for r in up.requests if r.get("route") == "main" and "body" in r]
    return [{**r, "json": json.loads(r["body"])} for r in rows]
