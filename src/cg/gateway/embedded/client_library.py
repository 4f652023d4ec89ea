"""Which HTTP client library a request is of, and the connections that an SDK's own client would make with it.

`httpx2` and the older `httpx` have the same interface and share no class, so nothing here names one of them: whatever a
request is made of, its answer is made of too.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from cg.gateway.upstream.proxy_environment import system_proxy
from cg.gateway.upstream.tcp_keepalive import keepalive_options

NAMES = ("httpx2", "httpx")
MAX_CONNECTIONS, MAX_KEPT = 1000, 100  # what the Python SDK allows its own client
KEEPALIVE_S, KEEPALIVE_PROBES = 60, 5  # of TCP: an idle stream behind a NAT is kept, and a dead one noticed


def installed() -> Any:
    """The library that is there, the newer one first. Raises ImportError with what to install."""
    for name in NAMES:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    raise ImportError("cg.gateway.transport needs httpx2 or httpx: pip install 'cg-context[transport]'")


def library_of(thing: object) -> Any:
    """The library that a request, response or transport is of. Raises TypeError if it is of none."""
    for kind in type(thing).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in NAMES:
            return import_module(name)
    raise TypeError(f"a {type(thing).__name__} is of neither {' nor '.join(NAMES)}")


@cache
def joined(kind: type, library: Any, base: str) -> type:
    """`kind` as a class of the library, which takes streams of its own base class only."""
    return type(kind.__name__, (kind, getattr(library, base)), {})


class TransportPool:
    """Connections to wherever requests go, by the limits of the SDK and the proxy variables of this process."""

    def __init__(self, make: Callable[..., Any], library: Any) -> None:
        self._make = make
        self._shared = {
            "limits": library.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_KEPT),
            "socket_options": keepalive_options(KEEPALIVE_S, KEEPALIVE_S, KEEPALIVE_PROBES),
        }
        self._by_proxy: dict[str | None, Any] = {}

    def to(self, url: Any) -> Any:
        """The transport for a URL; threads that ask at the same time may make two, of which one is kept."""
        proxy = system_proxy(url.scheme, url.host, url.port)
        transport = self._by_proxy.get(proxy)
        if transport is None:
            options = self._shared if proxy is None else {**self._shared, "proxy": proxy}
            transport = self._by_proxy.setdefault(proxy, self._make(**options))
        return transport

    @property
    def transports(self) -> list[Any]:
        """The transports so far."""
        return list(self._by_proxy.values())


class SyncTransportPool(TransportPool):
    """As a transport for threads."""

    def handle_request(self, request: Any) -> Any:
        return self.to(request.url).handle_request(request)

    def close(self) -> None:
        for transport in self.transports:
            transport.close()


class AsyncTransportPool(TransportPool):
    """As a transport for coroutines."""

    async def handle_async_request(self, request: Any) -> Any:
        return await self.to(request.url).handle_async_request(request)

    async def aclose(self) -> None:
        for transport in self.transports:
            await transport.aclose()
