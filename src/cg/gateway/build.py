"""Puts one gateway together from its settings."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cg.gateway.events import Events
from cg.gateway.expansion.route import Originals
from cg.gateway.http.app import App, MessagesHandler
from cg.gateway.messages.handler import Messages as Sweeping
from cg.gateway.messages.observer import Observing
from cg.gateway.messages.projection import Projection
from cg.gateway.settings import Settings
from cg.gateway.state.clock import Clock
from cg.gateway.state.housekeeping import Housekeeping
from cg.gateway.state.opened import opened
from cg.gateway.telemetry.counting import Counting, counting
from cg.gateway.telemetry.otel import traced
from cg.gateway.turns.thread_naming import Naming
from cg.gateway.upstream.pool import PooledUpstream
from cg.sweep.drivers import Sweep

Stop = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Gateway:
    """What a server serves, and whoever counts what it does."""

    app: App
    events: Events


def build(settings: Settings, *, clock: Clock | None = None) -> Gateway:
    """A gateway that is ready to be served. Raises CgError for a state or a proxy that cannot be used."""
    state = opened(settings, clock)
    store, secret, clock = state.store, state.secret, state.clock
    upstream = PooledUpstream(
        settings.upstream,
        connect_timeout_s=settings.connect_timeout_s,
        idle_timeout_s=settings.upstream_idle_s,
        max_connections=settings.max_requests,
    )
    told = counting(settings, clock.now, store=store, is_stopping=lambda: app.is_stopping)
    sweep = Sweep(settings.config, store)
    messages, stop = _messages(settings, upstream, sweep, told, secret, clock)
    originals = Originals(sweep, Naming(secret, settings.upstream), told.events, clock.now)

    house = Housekeeping(store, told.events, clock)

    async def close_store() -> None:
        state.close()

    app = App(
        settings,
        upstream,
        told.events,
        messages=traced(messages, settings.upstream),
        gateway_routes={**told.routes.handlers, b"/expand": originals.expand},
        on_start=(house.start,),
        on_stop=(house.stop, stop, close_store),
    )
    return Gateway(app, told.events)


def _messages(
    settings: Settings, upstream: PooledUpstream, sweep: Sweep, told: Counting, secret: bytes, clock: Clock
) -> tuple[MessagesHandler, Stop]:
    """Whoever answers Messages requests, and how it is stopped."""
    if settings.observe:
        observing = Observing(
            settings, upstream, Projection(settings.config, told.events), told.events, secret=secret, clock=clock
        )
        return observing, observing.close
    sweeping = Sweeping(settings, upstream, sweep, told.events, secret=secret, clock=clock)
    return sweeping, sweeping.close
