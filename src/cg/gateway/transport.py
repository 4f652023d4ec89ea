"""The sweep inside a Python program: a transport for the HTTP client of an SDK, in the place of `cg-proxy`.

    anthropic.Anthropic(http_client=httpx2.Client(transport=cg.gateway.transport.Transport()))
    anthropic.AsyncAnthropic(http_client=httpx2.AsyncClient(transport=cg.gateway.transport.AsyncTransport()))

Works with `httpx2` and, for an SDK that still uses it, with `httpx`. Messages requests go through the same code as in
the gateway and leave with the same bytes; every other request passes. Whatever fails here, the client gets what it
would have got without us.
"""

import logging
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cg.errors import CgError
from cg.gateway.embedded.async_engine import AsyncEngine
from cg.gateway.embedded.client_library import installed
from cg.gateway.embedded.gateway import EmbeddedGateway
from cg.gateway.embedded.threaded_engine import ThreadedEngine
from cg.gateway.events import Events
from cg.gateway.settings import Settings, state_named
from cg.gateway.state.clock import Clock
from cg.sweep import config as sweep_config
from cg.sweep.config import Config

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport, BaseTransport
else:
    _library = installed()
    BaseTransport, AsyncBaseTransport = _library.BaseTransport, _library.AsyncBaseTransport

log = logging.getLogger("cg.gateway")
_INHERITED: list[object] = []  # a parent's engines: their threads are not here, and their state is not ours to close


class _EmbeddedTransport:
    """What both kinds of transport are made from, and what of it a forked child has to make anew."""

    _engine_class: type[ThreadedEngine] | type[AsyncEngine]
    _engine: Any
    _make: Callable[[], Any]
    _finalizer: Any
    _lock: threading.Lock
    _is_closed: bool

    def __init__(
        self,
        inner: BaseTransport | AsyncBaseTransport | None = None,
        *,
        config: Config | None = None,
        preset: str | None = None,
        state: str | os.PathLike[str] | None = None,
        observe: bool = False,
        budget_ms: float = 2000.0,
        events: Events | None = None,
        clock: Clock | None = None,
    ) -> None:
        if config is None:
            config = sweep_config.load(None, os.environ, {}, preset)
        elif preset is not None:
            raise CgError("give either a config or a preset, not both")
        named = None if state is None else state_named(os.fspath(state))
        settings = Settings(state=named, config=config, observe=observe, budget_ms=budget_ms)
        engine_class = self._engine_class  # no reference to self: it is let go of as soon as nobody uses it
        self._make = lambda: engine_class(EmbeddedGateway(settings, clock, events), inner)
        self._lock = threading.Lock()
        self._is_closed = False
        self._start()
        _all.add(self)

    def _start(self) -> None:
        self._engine = self._make()
        self._finalizer = weakref.finalize(self, self._engine.let_go)
        self._finalizer.atexit = False  # the interpreter's end ends everything

    def _restart_in_child(self) -> None:
        """In a child: nothing of the parent's is used, waited for or closed."""
        _INHERITED.append(self._engine)
        self._finalizer.detach()
        self._lock = threading.Lock()
        if self._is_closed:
            return
        try:
            self._start()
        except Exception as error:
            log.error("requests pass untouched in a forked child: %s", type(error).__name__)
            self._engine = self._engine.passing()

    def stats(self) -> Mapping[str, Any]:
        """All figures since the start, as the gateway's `/stats` shows them; no content is in them."""
        figures: Mapping[str, Any] = self._engine.gateway.stats()
        return figures

    def metrics(self) -> str:
        """All figures in the Prometheus text format, as the gateway's `/metrics` shows them."""
        text: bytes = self._engine.gateway.metrics()
        return text.decode()


class Transport(_EmbeddedTransport, BaseTransport):
    """For `httpx2.Client` and `httpx.Client`; safe between threads.

    `inner` carries what is sent; without one, connections like those of the SDK's own client are made, the proxy
    variables heeded. `preset` or `config` say what is done (`quiet` by default, CG_SWEEP_ variables over it). `state` is
    the file that outlives the process, or the URL of a server that is shared; without one all is in memory. Idle asks,
    where the preset has them, are made in the name of the last request of their conversation, whose credential is kept
    until then and no longer.
    `observe` changes nothing and projects. `events` hears what is counted. Raises CgError for what cannot work.
    """

    _engine_class = ThreadedEngine

    def handle_request(self, request: Any) -> Any:
        """The response to a request of the client's; raises what the client's own transport would."""
        return self._engine.answer(request)

    def settle(self, timeout_s: float = 30.0) -> None:
        """Wait until everything has been learnt from the replies so far; for tests, and before figures are read."""
        self._engine.settle(timeout_s)

    def close(self) -> None:
        """End timers, forget credentials, close the state and the connections; may be repeated."""
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
        if is_first:
            self._finalizer.detach()
            self._engine.close()


class AsyncTransport(_EmbeddedTransport, AsyncBaseTransport):
    """For `httpx2.AsyncClient` and `httpx.AsyncClient` on asyncio; as `Transport`.

    Timers are tasks on the client's own loop. Under another event loop than asyncio's, requests pass untouched.
    """

    _engine_class = AsyncEngine

    async def handle_async_request(self, request: Any) -> Any:
        """The response to a request of the client's; raises what the client's own transport would."""
        return await self._engine.answer(request)

    async def settle(self) -> None:
        """Wait until everything has been learnt from the replies so far; for tests, and before figures are read."""
        await self._engine.settle()

    async def aclose(self) -> None:
        """End timers, forget credentials, close the state and the connections; may be repeated."""
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
        if is_first:
            self._finalizer.detach()
            await self._engine.close()


FORK_WAIT_S = 2.0  # for what is being written when a program forks; it takes milliseconds
_all: "weakref.WeakSet[_EmbeddedTransport]" = weakref.WeakSet()


def _after_fork() -> None:
    for transport in list(_all):
        transport._restart_in_child()


def _before_fork() -> None:
    """Let writing end: SQLite's record of who holds a lock on a file is copied into the child, where it would never be
    let go of, and the child could not open its own."""
    for transport in list(_all):
        if isinstance(transport, Transport):
            with suppress(Exception):  # one that hangs, or is closed, holds up no fork
                transport.settle(FORK_WAIT_S)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
