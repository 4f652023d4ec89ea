"""Puts one gateway together from its settings."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cg.gateway.events import Events
from cg.gateway.expansion.route import ExpandRoute
from cg.gateway.http.app import App, MessagesHandler
from cg.gateway.messages.handler import SweepHandler
from cg.gateway.messages.observer import ObserveHandler
from cg.gateway.messages.projection import Projection
from cg.gateway.settings import Settings
from cg.gateway.state.clock import Clock
from cg.gateway.state.housekeeping import Housekeeping
from cg.gateway.state.open_state import open_state
from cg.gateway.telemetry.event_log import EventLog
from cg.gateway.telemetry.listeners import Listeners
from cg.gateway.telemetry.metrics import Metrics
from cg.gateway.telemetry.otel import SpanAttributes, traced
from cg.gateway.telemetry.routes import TelemetryRoutes
from cg.gateway.telemetry.stats import GatewayInfo, Stats
from cg.gateway.turns.thread_naming import ThreadNaming
from cg.gateway.upstream.base_url import place_of
from cg.gateway.upstream.pool import PooledUpstream
from cg.sweep.drivers import Sweep
from cg.sweep.store import Store

Stop = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Telemetry:
    """`events` takes what happens, `routes` show it."""

    events: Events
    routes: TelemetryRoutes


@dataclass(frozen=True, slots=True)
class Gateway:
    """What a server serves, and whoever counts what it does."""

    app: App
    events: Events


def build(settings: Settings, *, clock: Clock | None = None) -> Gateway:
    """A gateway that is ready to be served. Raises CgError for a state or a proxy that cannot be used."""
    state = open_state(settings, clock)
    store, secret, clock = state.store, state.secret, state.clock
    upstream = PooledUpstream(
        settings.upstream,
        connect_timeout_s=settings.connect_timeout_s,
        idle_timeout_s=settings.upstream_idle_s,
        max_connections=settings.max_requests,
    )
    telemetry = _telemetry(settings, clock.now, store, lambda: app.is_stopping)
    sweep = Sweep(settings.config, store)
    messages, stop = _messages(settings, upstream, sweep, telemetry.events, secret, clock)
    expand_route = ExpandRoute(sweep, ThreadNaming(secret, settings.upstream), telemetry.events, clock.now)

    housekeeping = Housekeeping(store, telemetry.events, clock)

    async def close_store() -> None:
        state.close()

    app = App(
        settings,
        upstream,
        telemetry.events,
        messages=traced(messages, settings.upstream),
        gateway_routes={**telemetry.routes.handlers, b"/expand": expand_route.expand},
        on_start=(housekeeping.start,),
        on_stop=(housekeeping.stop, stop, close_store),
    )
    return Gateway(app, telemetry.events)


def _messages(
    settings: Settings, upstream: PooledUpstream, sweep: Sweep, events: Events, secret: bytes, clock: Clock
) -> tuple[MessagesHandler, Stop]:
    """Whoever answers Messages requests, and how it is stopped."""
    if settings.observe:
        observer = ObserveHandler(
            settings, upstream, Projection(settings.config, events), events, secret=secret, clock=clock
        )
        return observer, observer.close
    handler = SweepHandler(settings, upstream, sweep, events, secret=secret, clock=clock)
    return handler, handler.close


def _telemetry(
    settings: Settings, now: Callable[[], float], store: Store, is_stopping: Callable[[], bool]
) -> Telemetry:
    """The telemetry of a gateway; `now` is its clock, seconds since the epoch."""
    metrics = Metrics(asks_in_request=settings.config.ask == "on-request")
    about = GatewayInfo(
        started_at=now(),
        observing=settings.observe,
        config=settings.config.to_dict(),
        upstream=place_of(settings.upstream),
    )
    stats = Stats(metrics, about, now, store_status=store.status, store_totals=store.totals, store_switch=store.switch)
    return Telemetry(Listeners(metrics, EventLog(), SpanAttributes()), TelemetryRoutes(stats, is_stopping=is_stopping))
