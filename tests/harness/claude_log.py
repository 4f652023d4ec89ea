"""Logs as Claude Code writes them, made line by line."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOON = 1_800_000_000.0


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(call_id: str, name: str = "Read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def usage(**counts: Any) -> dict[str, Any]:
    """One hour's writes, unless said otherwise."""
    written = counts.pop("written", 1000)
    split = {"ephemeral_1h_input_tokens": written, "ephemeral_5m_input_tokens": 0}
    return {
        "input_tokens": 3,
        "cache_read_input_tokens": counts.pop("read", 0),
        "cache_creation_input_tokens": written,
        "cache_creation": counts.pop("split", split),
        "output_tokens": counts.pop("output", 10),
        **counts,
    }


class Log:
    """Lines that follow each other unless they are given another parent; every line comes a second after the last."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = NOON
        self.last: str | None = None
        self._n = 0

    def add(self, kind: str, *, parent: str | None = "", **members: Any) -> str:
        """A line of any kind; its uuid."""
        self._n += 1
        self.now += 1
        uuid = f"00000000-0000-4000-8000-{self._n:012}"
        entry = {
            "parentUuid": self.last if parent == "" else parent,
            "isSidechain": False,
            "version": "2.1.50",
            "sessionId": "s",
            "type": kind,
            "uuid": uuid,
            "timestamp": datetime.fromtimestamp(self.now, UTC).isoformat().replace("+00:00", "Z"),
            **members,
        }
        self.lines.append(json.dumps(entry, ensure_ascii=False))
        self.last = uuid
        return uuid

    def user(self, content: Any, **members: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **members)

    def result(self, call_id: str, content: Any = "done", **members: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return self.user([block], **members)

    def answer(self, message: str, *blocks: dict[str, Any], model: str = "claude-opus-4-6", **members: Any) -> str:
        """One line for each block, as the client writes them; the uuid of the last."""
        counts = members.pop("usage", usage())
        for block in blocks:
            body = {"id": message, "type": "message", "role": "assistant", "model": model, "content": [block]}
            uuid = self.add("assistant", message={**body, "usage": counts}, **members)
            members.pop("parent", None)
        return uuid

    def compact(self, summary: str) -> str:
        """A compaction: the boundary, a new root, and the summary that takes the place of all before."""
        before = self.last
        self.add("system", parent=None, subtype="compact_boundary", logicalParentUuid=before, content="Compacted")
        return self.user(summary, isCompactSummary=True)

    def write(self, path: Path, tail: str = "") -> Path:
        """The log as a file; a name that ends in gz is packed."""
        raw = ("\n".join(self.lines) + "\n" + tail).encode("utf-8", "surrogatepass")
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return path
