"""A gateway for each test: `gateway(upstream.url)` serves on a port of its own until the test ends."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from event_recorder import EventRecorder
from live import Live

from cg.gateway.http.app import App
from cg.gateway.serve.launch import event_loop
from cg.gateway.serve.server import Server, listen, serve
from cg.gateway.settings import Settings
from cg.gateway.upstream.pool import PooledUpstream


@dataclass
class Served:
    """A gateway that is being served."""

    port: int
    recorder: EventRecorder
    app: App
    server: Server
    live: Live


@pytest.fixture
def gateway() -> Iterator[Callable[..., Served]]:
    """Start a gateway: its upstream's URL, and whatever settings, handlers and environment differ from the default."""
    with contextlib.ExitStack() as stack:

        def start(upstream: str, *, environment: dict[str, str] | None = None, **given: Any) -> Served:
            parts = {
                name: given.pop(name) for name in ("messages", "gateway_routes", "on_start", "on_stop") if name in given
            }
            settings = replace(Settings(listen=("127.0.0.1", 0), upstream=upstream, stop_timeout_s=5), **given)
            recorder = EventRecorder()
            listener = stack.enter_context(listen(settings.listen))
            made: list[Any] = []

            def begin() -> Any:
                client = PooledUpstream(
                    upstream,
                    connect_timeout_s=settings.connect_timeout_s,
                    idle_timeout_s=settings.upstream_idle_s,
                    environment=environment or {},
                )
                app = App(settings, client, recorder, **parts)
                server = Server(app, settings, recorder.tell, takes_signals=False)
                made[:] = [app, server]
                return lambda ready: serve(server, listener, ready), server.stop

            live = stack.enter_context(Live(begin, loop_factory=event_loop()))
            return Served(listener.getsockname()[1], recorder, *made, live)

        yield start
