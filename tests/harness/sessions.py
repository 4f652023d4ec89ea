"""Agent sessions as a client would send them, request by request, for tests that drive the whole sweep."""

import json
from typing import Any

from cg.sweep.config import Config
from cg.sweep.drivers import Sweep
from cg.sweep.effects import Answer, Failure
from cg.sweep.ledger import TurnReport
from cg.sweep.store import Store
from cg.sweep.values import Usage

MARK = {"type": "ephemeral"}
HOUR_MARK = {"type": "ephemeral", "ttl": "1h"}
READ_TOOL = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}
MODEL = "claude-sonnet-5"
LONG = 4000  # bytes of an output that every preset takes for a candidate
RODE_ON_THE_CACHE = Usage(read=10_000, output=50)
COLD_AFTER_S = 361.0  # lifetime, margin, and one second


def output(n: int, size: int = LONG) -> str:
    """An output like no other, in lines, with names that stand nowhere else."""
    line = f"entry_{n}_"
    lines = [f"{line}{i:04} value {n * 7919 + i}" for i in range(size // 20 + 1)]
    return "\n".join(lines)[:size]


def step(n: int, content: Any = None, *, name: str = "Read", **arguments: Any) -> list[dict[str, Any]]:
    """A call and its result, as two messages."""
    use = {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": arguments or {"file_path": f"src/{n}.py"}}
    answer = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": output(n) if content is None else content}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]


def opening(text: str = "Look around.") -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def history(n: int, size: int = LONG) -> list[dict[str, Any]]:
    """An opening and `n` outputs."""
    return opening() + [message for i in range(n) for message in step(i, output(i, size))]


def request(messages: list[dict[str, Any]], *, mark: dict[str, str] | None = MARK, **members: Any) -> bytes:
    """The body of a request, with its newest message marked as clients do."""
    messages = json.loads(json.dumps(messages))
    last = messages[-1]
    if mark is not None:
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        last["content"][-1]["cache_control"] = mark
    body = {"model": MODEL, "max_tokens": 4096, "tools": [READ_TOOL], "messages": messages, **members}
    return json.dumps({key: value for key, value in body.items() if value is not None}).encode()


def drops(n: int, needed_by: str = "none") -> str:
    """A reply that drops the first `n` labels."""
    return json.dumps([{"i": i, "needed_by": needed_by, "quote": "", "verdict": "drop"} for i in range(n)])


class Replies:
    """An asker that gives the replies it was made with, one an ask, and keeps what it was asked."""

    def __init__(self, *replies: str | Answer | Failure, usage: Usage | None = RODE_ON_THE_CACHE) -> None:
        self._replies = [Answer(r, usage) if isinstance(r, str) else r for r in replies]
        self.asked: list[bytes] = []
        self.timeouts: list[float] = []

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        self.asked.append(body)
        self.timeouts.append(timeout_s)
        return self._replies.pop(0)


class Client:
    """One client of one thread: sends requests at given times and keeps the reports."""

    def __init__(self, store: Store, config: Config, thread: str = "t") -> None:
        self.sweep, self.store, self.thread = Sweep(config, store), store, thread
        self.reports: list[TurnReport] = []

    def send(self, body: bytes, now: float, asker: Replies | None = None) -> bytes:
        swept = self.sweep.process(body, self.thread, now, asker=asker)
        self.reports.append(swept.report)
        return swept.body

    @property
    def report(self) -> TurnReport:
        return self.reports[-1]


def results(body: bytes) -> dict[str, Any]:
    """The content of every tool result of a body by its tool_use id."""
    return {
        block["tool_use_id"]: block["content"]
        for message in json.loads(body)["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    }
