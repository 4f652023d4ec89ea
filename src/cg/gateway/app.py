"""The ASGI application: says whose a request is, and hands it there."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from cg.gateway.events import Events
from cg.gateway.exchange import Handler, Inbound, Outbound
from cg.gateway.settings import Settings
from cg.gateway.upstream import Upstream

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Messages(Protocol):
    """The sweep on live traffic, as the application sees it."""

    async def handle(self, inbound: Inbound) -> Outbound: ...

    async def count_tokens(self, inbound: Inbound) -> Outbound: ...


class App:
    """One gateway. `own` maps each path of ours to its handler; `messages` None passes everything through."""

    def __init__(
        self,
        settings: Settings,
        upstream: Upstream,
        events: Events,
        *,
        messages: Messages | None = None,
        own: Mapping[bytes, Handler] | None = None,
    ) -> None:
        self._settings = settings
        self._upstream = upstream
        self._events = events
        self._messages = messages
        self._own = dict(own or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError  # the skeleton only fixes names
