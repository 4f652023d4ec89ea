"""A gateway for each test: `gateway(upstream.url)` serves on a port of its own until the test ends."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from live import Live

from cg.gateway.events import Silent
from cg.gateway.http.app import App
from cg.gateway.serve.launch import event_loop
from cg.gateway.serve.server import Server, listen, serve
from cg.gateway.settings import Settings
from cg.gateway.upstream.pool import PooledUpstream


class Heard(Silent):
    """Keeps what it is told, as (name, *arguments)."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattribute__(self, name: str) -> Any:
        if name in ("told", "of") or name.startswith("__"):
            return object.__getattribute__(self, name)
        return lambda *given: self.told.append((name, *given))

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of each call of one name."""
        return [tuple(given) for called, *given in self.told if called == name]


@dataclass
class Served:
    """A gateway that is being served."""

    port: int
    heard: Heard
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
            heard = Heard()
            listener = stack.enter_context(listen(settings.listen))
            made: list[Any] = []

            def begin() -> Any:
                client = PooledUpstream(
                    upstream,
                    connect_timeout_s=settings.connect_timeout_s,
                    idle_timeout_s=settings.upstream_idle_s,
                    environment=environment or {},
                )
                app = App(settings, client, heard, **parts)
                server = Server(app, settings, heard.refused, takes_signals=False)
                made[:] = [app, server]
                return lambda ready: serve(server, listener, ready), server.stop

            live = stack.enter_context(Live(begin, loop_factory=event_loop()))
            return Served(listener.getsockname()[1], heard, *made, live)

        yield start
