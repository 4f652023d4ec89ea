"""The gateway's own routes that only read: health, metrics, figures and the page.

Whether a caller may see them at all is decided before (`access`); nothing here changes a state.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

from cg.gateway.exposition import CONTENT_TYPE, render
from cg.gateway.page import dashboard
from cg.gateway.stats import Stats

Headers = list[tuple[bytes, bytes]]

PATHS = frozenset({"/healthz", "/metrics", "/stats", "/dashboard"})

# Figures are nobody else's: no cache keeps them, no frame shows them, no other origin reads them.
_ALWAYS: Headers = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer of ours."""

    status: int
    headers: Headers
    body: bytes


class OwnRoutes:
    """Answers our paths. `is_stopping` turns the health check bad, so that no new client is sent here."""

    def __init__(self, stats: Stats, *, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._stats = stats
        self._is_stopping = is_stopping

    async def answer(self, method: str, path: str) -> Answer | None:
        """The answer for a path of ours, None for any other; the path comes without its query."""
        if path not in PATHS:
            return None
        if method not in ("GET", "HEAD"):
            answer = _answer(405, b"application/json", _json({"error": "method not allowed"}), [(b"allow", b"GET, HEAD")])
        elif path == "/healthz":
            answer = self._health()
        elif path == "/metrics":
            answer = _answer(200, CONTENT_TYPE, await asyncio.to_thread(self._metrics))
        elif path == "/stats":
            answer = _answer(200, b"application/json", _json(await asyncio.to_thread(self._stats.collect)))
        else:
            page, policy = dashboard()
            answer = _answer(200, b"text/html; charset=utf-8", page, [(b"content-security-policy", policy)])
        return Answer(answer.status, answer.headers, b"") if method == "HEAD" else answer

    def _health(self) -> Answer:
        """Whether requests are served. The store is not asked: without it the gateway still passes everything on."""
        stopping = self._is_stopping()
        return _answer(503 if stopping else 200, b"application/json", _json({"status": "stopping" if stopping else "ok"}))

    def _metrics(self) -> bytes:
        return render(self._stats.snapshot, self._stats.gauges())


def _answer(status: int, content_type: bytes, body: bytes, more: Headers | None = None) -> Answer:
    length = (b"content-length", str(len(body)).encode())
    return Answer(status, [(b"content-type", content_type), length, *_ALWAYS, *(more or [])], body)


def _json(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
