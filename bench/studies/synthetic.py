"""Made-up sessions in any number, for tests and measurements: sizes, waits and later use as in recorded sessions.

A session is a pure function of its seed. It costs little to make, so that what reads it can be measured.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from cg.replay.recordings.blocks import encoded, message
from cg.replay.recordings.conversation import START
from cg.replay.recordings.recording import Session, Step
from cg.sweep.values import Usage

MODEL = "claude-sonnet-4-5"
TOOLS = ("Read", "Bash", "Grep", "Edit")
# Quantiles of recorded sessions, with the probability of each point; straight lines between.
OUTPUT_BYTES = (
    (0.0, 8),
    (0.1, 32),
    (0.25, 104),
    (0.5, 332),
    (0.75, 1_760),
    (0.9, 5_112),
    (0.99, 30_536),
    (1.0, 60_000),
)
WAIT_S = (
    (0.0, 1.5),
    (0.1, 3.7),
    (0.25, 4.7),
    (0.5, 7.2),
    (0.75, 14.9),
    (0.9, 63.6),
    (0.95, 166.7),
    (0.97, 300.0),
    (0.99, 1_022.0),
    (0.996, 3_600.0),
    (0.999, 35_048.0),
    (1.0, 90_000.0),
)
REUSE = ((1, 0.49), (2, 0.43), (5, 0.34), (10, 0.27), (20, 0.18), (40, 0.12), (80, 0.06))  # live at this age, requests
LINE_BYTES = 60
POOL_LINES = 2_000
PROMPT_TOKENS = 36_000  # of the first request
BYTES_PER_TOKEN = 2.9


@dataclass(frozen=True, slots=True)
class Made:
    """The requests of a made session; called to read them, as a file's reader is."""

    seed: int
    turns: int

    def __call__(self) -> Iterator[Step]:
        rng = random.Random(self.seed)
        answered: tuple[bytes, ...] = ()
        user = message("user", [encoded({"type": "text", "text": f"Please see to task {self.seed}."})])
        at, prompt = START + self.seed % 1_000_000, float(PROMPT_TOKENS)
        for turn in range(self.turns):
            reply = self._reply(rng, turn)
            grown = (len(user) + sum(map(len, answered))) / BYTES_PER_TOKEN
            usage = Usage(3, 0 if turn == 0 else round(prompt), round(grown), 0, len(reply) // 4)
            yield Step(turn, at, at + 1.0, MODEL, turn == 0, (*answered, user), reply, usage)
            answered, user = (reply,), self._result(rng, turn)
            prompt += grown
            at += quantile(WAIT_S, rng.random())

    def _reply(self, rng: random.Random, turn: int) -> bytes:
        """A call, and now and then a line of an earlier output."""
        said = b"Going on."
        age = _age(rng)
        if age <= turn and rng.random() < 0.3:
            said = b"So " + line(self.seed, turn - age, 0)
        return (
            b'{"role":"assistant","content":[{"type":"text","text":"%s"},{"type":"tool_use","id":"call_%d","name":"%s",'
            b'"input":{"file_path":"src/part_%d.py"}}]}' % (said, turn, rng.choice(TOOLS).encode(), rng.randrange(60))
        )

    def _result(self, rng: random.Random, turn: int) -> bytes:
        size = round(quantile(OUTPUT_BYTES, rng.random()))
        first = rng.randrange(POOL_LINES)
        text = (line(self.seed, turn, 0) + rb"\n" + filler(first, size))[: max(size, LINE_BYTES)]
        text = text[:-1] if text.endswith(b"\\") else text  # half of an escape
        return b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%d","content":"%s"}]}' % (
            turn,
            text,
        )


def made_session(seed: int, turns: int = 200) -> Session:
    """A session of so many requests. Raises ValueError for none."""
    if turns < 1:
        raise ValueError(f"{turns} turns; a session has at least 1")
    return Session(f"made-{seed}", Path(f"made-{seed}"), "made", 300, True, turns, Made(seed, turns))


def quantile(points: tuple[tuple[float, float], ...], p: float) -> float:
    """The value at probability `p` of a distribution given by points, straight lines between."""
    for (low, a), (high, b) in zip(points, points[1:], strict=False):
        if p <= high:
            return a + (b - a) * (p - low) / (high - low)
    return points[-1][1]


def line(seed: int, turn: int, n: int) -> bytes:
    """A line that stands in one output alone."""
    return b"entry_%d_%d_%d = compute_value(%d) of the table" % (seed, turn, n, seed * 31 + turn)


def filler(first: int, size: int) -> bytes:
    """`size` bytes of lines that many outputs share, as JSON string content."""
    pool = _pool()
    start = first * LINE_BYTES % (len(pool) // 2)
    return pool[start : start + min(size, len(pool) // 2)]


@lru_cache(maxsize=1)
def _pool() -> bytes:
    rng = random.Random(7)
    rows = [
        f"{i:5} row with value {rng.randrange(10**9):09} and note {rng.randrange(10**6):06}" for i in range(POOL_LINES)
    ]
    return b"".join(row[: LINE_BYTES - 2].ljust(LINE_BYTES - 2).encode() + rb"\n" for row in rows)


def _age(rng: random.Random) -> int:
    """How long ago the output was that an answer uses: as likely as outputs of that age are live."""
    at = rng.random() * REUSE[0][1]
    for (young, _), (_, live) in zip(REUSE, REUSE[1:], strict=False):
        if at >= live:
            return young
    return REUSE[-1][0]


def as_agent_session(session: Session) -> dict[str, Any]:
    """The session in the format `agent-session/1`, to be written as JSON."""
    events: list[dict[str, Any]] = []
    for step in session.steps():
        user = json.loads(step.messages[-1])
        events.append({"ts": step.at - START, "role": "user", "content": user["content"]})
        said = json.loads(step.reply)["content"]
        ended = None if step.answered_at is None else step.answered_at - START
        events.append({"ts": ended, "ts_end": ended, "role": "assistant", "model": step.model, "content": said})
        if step.usage is not None:
            events[-1]["usage"] = logged(step.usage)
    return {"format": "agent-session/1", "name": session.name, "client": session.client, "events": events}


def as_claude_log(session: Session) -> Iterator[dict[str, Any]]:
    """The session's lines as Claude Code would log them, without sub-agents, compactions and rewinds."""
    parent: str | None = None
    for step in session.steps():
        asked, said = f"user-{step.index}", f"assistant-{step.index}"
        yield _entry("user", asked, parent, step.at, json.loads(step.messages[-1]))
        answer = {"id": f"msg_{session.name}_{step.index}", "model": step.model, **json.loads(step.reply)}
        if step.usage is not None:
            answer["usage"] = logged(step.usage)
        yield _entry("assistant", said, asked, step.at if step.answered_at is None else step.answered_at, answer)
        parent = said


def _entry(kind: str, uuid: str, parent: str | None, at: float, message: dict[str, Any]) -> dict[str, Any]:
    stamp = datetime.fromtimestamp(at, UTC).isoformat()
    link = {"parentUuid": parent, "isSidechain": False, "version": "made"}
    return {**link, "type": kind, "uuid": uuid, "timestamp": stamp, "message": message}


def logged(usage: Usage) -> dict[str, Any]:
    """A usage as a provider words it."""
    return {
        "input_tokens": usage.fresh,
        "cache_read_input_tokens": usage.read,
        "cache_creation_input_tokens": usage.write_5m + usage.write_1h,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.write_5m,
            "ephemeral_1h_input_tokens": usage.write_1h,
        },
        "output_tokens": usage.output,
    }
