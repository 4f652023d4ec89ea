"""Figures, log and own routes of one gateway, put together: whoever builds a gateway needs only this."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from cg.gateway.events import Events
from cg.gateway.settings import Settings
from cg.gateway.telemetry.event_log import EventLog
from cg.gateway.telemetry.listeners import Listeners
from cg.gateway.telemetry.metrics import Metrics
from cg.gateway.telemetry.otel import SpanAttributes
from cg.gateway.telemetry.routes import TelemetryRoutes
from cg.gateway.telemetry.stats import GatewayInfo, Stats
from cg.sweep.prices import PriceTable
from cg.sweep.store import Store


@dataclass(frozen=True, slots=True)
class Counting:
    """`events` is what the rooms tell of their work, `routes` what is shown of it."""

    events: Events
    metrics: Metrics
    routes: TelemetryRoutes


def counting(
    settings: Settings,
    now: Callable[[], float],
    *,
    store: Store | None = None,
    prices: PriceTable | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Counting:
    """The counting side of a gateway; `now` is its clock, seconds since the epoch."""
    metrics = Metrics(prices, asks_in_request=settings.config.ask == "on-request")
    about = GatewayInfo(
        started_at=now(),
        observing=settings.observe,
        config=settings.config.to_dict(),
        upstream=place_of(settings.upstream),
    )
    if store is None:
        stats = Stats(metrics, about, now)
    else:
        stats = Stats(metrics, about, now, store_status=store.status, store_totals=store.totals)
    return Counting(
        Listeners(metrics, EventLog(), SpanAttributes()), metrics, TelemetryRoutes(stats, is_stopping=is_stopping)
    )


def place_of(url: str) -> str:
    """Scheme, host and port of a URL: a user's name, a password, a path or a query in it are nobody's to see."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    host = parts.hostname or ""
    return f"{parts.scheme}://[{host}]{port}" if ":" in host else f"{parts.scheme}://{host}{port}"
