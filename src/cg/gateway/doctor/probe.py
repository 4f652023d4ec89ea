"""The doctor's requests: what it sends through a gateway, and how it reads what comes back."""

import http.client
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from cg.errors import CgError
from cg.sweep.values import Usage, usage_of

TIMEOUT_S = 120.0  # of one exchange: a small reply of a busy model
MAX_REPLY_BYTES = 4 * 1024 * 1024
# Providers cache from 1,024 to 4,096 tokens on, by model: some 24 KB of plain lines are past the largest.
LONG_BYTES = 24_000
OUTPUT_LINES = 104
TOOL = {
    "name": "read_sheet",
    "description": "Returns a numbered sheet of words.",
    "input_schema": {"type": "object", "properties": {"sheet": {"type": "integer"}}, "required": ["sheet"]},
}


@dataclass(frozen=True, slots=True)
class ProbeReply:
    """An answer: `status` 0 when there was none, with the reason in `problem`."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None  # parsed JSON, None if it was none
    problem: str = ""

    @property
    def usage(self) -> Usage | None:
        return usage_of(self.body.get("usage")) if isinstance(self.body, dict) else None

    @property
    def text(self) -> str:
        """The text blocks of a message, joined."""
        if not isinstance(self.body, dict) or not isinstance(self.body.get("content"), list):
            return ""
        blocks = [b for b in self.body["content"] if isinstance(b, dict) and b.get("type") == "text"]
        return "\n".join(str(b.get("text", "")) for b in blocks)

    @property
    def error_type(self) -> str:
        """The provider's own word for an error, if it gave one."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return str(error.get("type", "")) if isinstance(error, dict) else ""


class ProbeClient:
    """Exchanges with one gateway; each check has a conversation of its own."""

    def __init__(self, gateway: str, credential: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(gateway)
        if parts.scheme != "http" or not parts.hostname:
            raise CgError(f"gateway is {gateway!r}; it must be an http URL such as http://127.0.0.1:8788")
        self.gateway = gateway.rstrip("/")
        self._host, self._port = parts.hostname, parts.port or 80
        self._path = parts.path.rstrip("/")
        self._credential = dict(credential)
        self._timeout_s = timeout_s

    def get(self, path: str) -> ProbeReply:
        """One of the gateway's own routes."""
        return self._exchange("GET", path, None, {})

    def post(self, body: Mapping[str, Any], session: str) -> ProbeReply:
        """One Messages request in the conversation `session`."""
        headers = {
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
            "x-cg-session": session,
            **self._credential,
        }
        return self._exchange("POST", "/v1/messages", json.dumps(body).encode(), headers)

    def _exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> ProbeReply:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        try:
            connection.request(method, self._path + path, body, dict(headers))
            response = connection.getresponse()
            raw = response.read(MAX_REPLY_BYTES)
        except (OSError, http.client.HTTPException) as error:
            return ProbeReply(0, problem=type(error).__name__)
        finally:
            connection.close()
        try:
            parsed = json.loads(raw)
        except (ValueError, RecursionError):
            parsed = None
        return ProbeReply(response.status, {k.lower(): v for k, v in response.getheaders()}, parsed)


def session_name() -> str:
    """A conversation that nobody else has."""
    return f"doctor-{secrets.token_hex(8)}"


def small(model: str) -> dict[str, Any]:
    """A request that costs next to nothing."""
    return {"model": model, "max_tokens": 8, "messages": [{"role": "user", "content": "Reply with the word: ready"}]}


def long(model: str, ttl: str) -> dict[str, Any]:
    """A request whose beginning is long enough to be cached, and new to every cache; with a tool, as agents have."""
    mark: dict[str, Any] = {"type": "ephemeral"} | ({"ttl": "1h"} if ttl == "1h" else {})
    opening = f"Reference sheet {secrets.token_hex(8)}.\n"
    lines = "".join(f"Line {n}: the value of item {n} is {n * 7919 % 10007}.\n" for n in range(LONG_BYTES // 40))
    return {
        "model": model,
        "max_tokens": 16,
        "system": [{"type": "text", "text": opening + lines, "cache_control": mark}],
        "tools": [TOOL],
        "messages": [{"role": "user", "content": "Reply with the word: ready"}],
    }


@dataclass(frozen=True, slots=True)
class RemovalCase:
    """A conversation whose one long output is removed before the last question, which needs it."""

    first: dict[str, Any]
    second: dict[str, Any]
    word: str  # stands in the removed output and nowhere else


def removal_case(model: str) -> RemovalCase:
    """Two requests; between them the beginning of the history changes, so that removing the output costs nothing."""
    word = f"{secrets.choice(_COLOURS)}-{secrets.randbelow(9000) + 1000}"
    rows = [f"{n:03d}: entry {n} of the sheet, checked twice, value {n * 31 % 997}" for n in range(1, OUTPUT_LINES + 1)]
    rows[OUTPUT_LINES // 2] = f"{OUTPUT_LINES // 2 + 1:03d}: the code word is {word}"
    mark = {"type": "ephemeral"}
    opening: list[dict[str, Any]] = [
        {"role": "user", "content": "Read sheet 1, then wait for my question."},
        {"role": "assistant", "content": [_call("toolu_doctor_1")]},
    ]
    result = {"type": "tool_result", "tool_use_id": "toolu_doctor_1", "content": "\n".join(rows)}
    common = {"model": model, "max_tokens": 400, "tools": [TOOL]}
    first = {
        **common,
        "system": [{"type": "text", "text": "You read sheets.", "cache_control": mark}],
        "messages": [*opening, {"role": "user", "content": [{**result, "cache_control": mark}]}],
    }
    question = (
        "What is the code word on the sheet? If the sheet was taken out of this conversation, call cg_expand with the "
        "id that stands in its place, and then answer with the code word only."
    )
    second = {
        **common,
        "system": [{"type": "text", "text": "You read sheets and answer briefly.", "cache_control": mark}],
        "messages": [
            *opening,
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": "I have read it."}]},
            {"role": "user", "content": [{"type": "text", "text": question, "cache_control": mark}]},
        ],
    }
    return RemovalCase(first, second, word)


def _call(identifier: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": TOOL["name"], "input": {"sheet": 1}}


_COLOURS = ("amber", "cobalt", "crimson", "indigo", "ochre", "saffron", "teal", "umber", "violet")


def wait(seconds: float) -> None:
    """Let the wall clock run; in one place, so that tests can do without."""
    time.sleep(seconds)
