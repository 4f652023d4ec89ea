"""The gateway's own routes that only read: health, metrics, figures and the page.

Whether a caller may see them at all is decided before (`access`); nothing here changes a state.
"""

import asyncio
import json
from collections.abc import Callable, Mapping

from cg.gateway.exchange import Handler, Headers, Inbound, Outbound
from cg.gateway.telemetry.dashboard import dashboard
from cg.gateway.telemetry.prometheus_text import CONTENT_TYPE, render
from cg.gateway.telemetry.stats import Stats

# Figures are nobody else's: no cache keeps them, no other origin reads them.
_ALWAYS: Headers = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]
_JSON = b"application/json"


class TelemetryRoutes:
    """Answers our paths. `is_stopping` turns the health check bad, so that no new client is sent here."""

    def __init__(self, stats: Stats, *, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._stats = stats
        self._is_stopping = is_stopping

    @property
    def handlers(self) -> Mapping[bytes, Handler]:
        """Each path with its handler, for the application."""
        return {
            b"/healthz": self.health,
            b"/metrics": self.metrics,
            b"/stats": self.stats,
            b"/dashboard": self.dashboard,
        }

    async def health(self, inbound: Inbound) -> Outbound:
        """Whether requests are served. The store is not asked: without it the gateway still passes everything on."""
        if not _reads(inbound):
            return _refused()
        stopping = self._is_stopping()
        return _answer(503 if stopping else 200, _JSON, _json({"status": "stopping" if stopping else "ok"}))

    async def metrics(self, inbound: Inbound) -> Outbound:
        """All figures in the Prometheus text format."""
        return _answer(200, CONTENT_TYPE, await asyncio.to_thread(self._exposed)) if _reads(inbound) else _refused()

    async def stats(self, inbound: Inbound) -> Outbound:
        """All figures as JSON."""
        if not _reads(inbound):
            return _refused()
        return _answer(200, _JSON, await asyncio.to_thread(lambda: _json(self._stats.collect())))

    async def dashboard(self, inbound: Inbound) -> Outbound:
        """The page. It holds no figure itself; it reads `/stats`, with the caller's token where one is needed."""
        if not _reads(inbound):
            return _refused()
        page, policy = dashboard()
        return _answer(200, b"text/html; charset=utf-8", page, [(b"content-security-policy", policy)])

    def _exposed(self) -> bytes:
        return render(self._stats.snapshot, self._stats.gauges())


def _reads(inbound: Inbound) -> bool:
    return inbound.method in ("GET", "HEAD")


def _refused() -> Outbound:
    return _answer(405, _JSON, _json({"error": "only GET and HEAD are answered here"}), [(b"allow", b"GET, HEAD")])


def _answer(status: int, content_type: bytes, body: bytes, more: Headers | None = None) -> Outbound:
    return Outbound(status, [(b"content-type", content_type), *_ALWAYS, *(more or [])], body)


def _json(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
