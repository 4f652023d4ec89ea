"""A gateway without server and connections, inside the process of its client: store, sweep, figures."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from cg.errors import CgError
from cg.gateway.events import Events, RequestClosed, RequestOpened, Route, Stage, StageTimed
from cg.gateway.http.app import MessagesHandler
from cg.gateway.messages.handler import SweepHandler
from cg.gateway.messages.observer import ObserveHandler
from cg.gateway.messages.projection import Projection
from cg.gateway.settings import Settings
from cg.gateway.state.clock import Clock
from cg.gateway.state.open_state import open_state
from cg.gateway.telemetry.event_log import EventLog
from cg.gateway.telemetry.listeners import Listeners
from cg.gateway.telemetry.metrics import Metrics
from cg.gateway.telemetry.otel import SpanAttributes, traced
from cg.gateway.telemetry.prometheus_text import render
from cg.gateway.telemetry.stats import GatewayInfo, Stats
from cg.gateway.upstream.contract import Upstream
from cg.sweep.drivers import Sweep

log = logging.getLogger("cg.gateway")
log.addHandler(logging.NullHandler())  # a library prints nothing unless its program says so
MAX_PROVIDERS = 16  # base URLs of one client; past it requests pass untouched


class EmbeddedGateway:
    """What all requests of one client share. Raises CgError for a state that cannot be used."""

    def __init__(self, settings: Settings, clock: Clock | None = None, events: Events | None = None) -> None:
        self.settings = settings
        self._state = open_state(settings, clock)
        self.clock, self.secret, self.store = self._state.clock, self._state.secret, self._state.store
        self.sweep = Sweep(settings.config, self.store)
        metrics = Metrics(asks_in_request=settings.config.ask == "on-request")
        about = GatewayInfo(self.clock.now(), settings.observe, settings.config.to_dict())
        self._stats = Stats(
            metrics,
            about,
            self.clock.now,
            store_status=self.store.status,
            store_totals=self.store.totals,
            store_switch=self.store.switch,
        )
        program = () if events is None else (events,)
        self.events: Events = Listeners(metrics, EventLog(), SpanAttributes(), *program)

    def stats(self) -> Mapping[str, Any]:
        """All figures, as `/stats` of a gateway shows them."""
        return self._stats.collect()

    def metrics(self) -> bytes:
        """All figures in the Prometheus text format, as `/metrics` of a gateway shows them."""
        return render(self._stats.snapshot, self._stats.gauges())

    def close(self) -> None:
        """Close the state."""
        self._state.close()


class Providers:
    """One `Messages` for each base URL that a client talks to, on one event loop."""

    def __init__(self, gateway: EmbeddedGateway, upstream: Upstream, asks: Upstream) -> None:
        self._gateway, self._upstream, self._asks = gateway, upstream, asks
        self._by_base: dict[str, tuple[MessagesHandler, SweepHandler | ObserveHandler]] = {}

    def at(self, base: str) -> MessagesHandler | None:
        """Whoever answers for a base URL; None for one that cannot be told from others, or one too many."""
        if base not in self._by_base:
            if len(self._by_base) >= MAX_PROVIDERS:
                return None
            try:
                made = self._make(replace(self._gateway.settings, upstream=base))
            except CgError:
                return None
            self._by_base[base] = traced(made, base), made
        return self._by_base[base][0]

    def _make(self, settings: Settings) -> SweepHandler | ObserveHandler:
        gateway = self._gateway
        if settings.observe:
            projection = Projection(settings.config, gateway.events)
            return ObserveHandler(
                settings, self._upstream, projection, gateway.events, secret=gateway.secret, clock=gateway.clock
            )
        return SweepHandler(
            settings,
            self._upstream,
            gateway.sweep,
            gateway.events,
            secret=gateway.secret,
            clock=gateway.clock,
            asks=self._asks,
        )

    async def settle(self) -> None:
        """Wait for what is still being learnt from replies."""
        for _, messages in list(self._by_base.values()):
            await messages.settle()

    async def close(self) -> None:
        """Let go of timers and credentials, and finish what is behind replies."""
        for _, messages in list(self._by_base.values()):
            await messages.close()


class RequestFigures:
    """One request's figures: opened now, its answer's head and end once each. Leaving its block by an error ends them."""

    def __init__(self, events: Events, route: Route) -> None:
        self._events, self._route = events, route
        self._began, self._status, self._is_over = time.monotonic(), 0, False
        events.tell(RequestOpened())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.over(is_whole=False)

    def answered(self, status: int) -> None:
        """The head of the answer has come."""
        self._status = status
        self._events.tell(StageTimed(Stage.FIRST_BYTE, time.monotonic() - self._began))

    def over(self, *, is_whole: bool = True) -> None:
        """The answer has ended, in order or not."""
        if self._is_over:
            return
        self._is_over = True
        if is_whole:
            self._events.tell(StageTimed(Stage.TOTAL, time.monotonic() - self._began))
        self._events.tell(RequestClosed(self._route, self._status))
