"""The sweep for a client of coroutines, on the client's own event loop."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from cg.gateway.embedded.client_call import (
    ClientCall,
    as_upstream_errors,
    client_call,
    client_error,
    headers_of,
    inbound_of,
    route_and_provider,
)
from cg.gateway.embedded.client_library import AsyncTransportPool, joined, library_of
from cg.gateway.embedded.engine import Engine, response_of
from cg.gateway.embedded.gateway import EmbeddedGateway, Providers, RequestFigures
from cg.gateway.events import Route
from cg.gateway.exchange import Headers, Outbound
from cg.gateway.upstream.contract import Body, Reply, UpstreamError, read_whole

log = logging.getLogger("cg.gateway")
MAX_LOOPS = 8  # that one client was seen on; a program of several `asyncio.run` leaves one behind each time


class AsyncReply:
    """A reply of an asynchronous transport."""

    def __init__(self, response: Any, call: ClientCall) -> None:
        self.status: int = response.status_code
        self.headers: Headers = headers_of(response)
        self._stream, self._library = response.stream, call.library

    async def stream(self) -> AsyncIterator[bytes]:
        with as_upstream_errors(self._library):
            async for piece in self._stream:
                yield piece

    async def read(self, limit: int) -> bytes:
        return await read_whole(self.stream(), limit)

    async def close(self) -> None:
        await self._stream.aclose()


class AsyncUpstream:
    """Sends through `inner`. `is_background`: no client waits for what it sends."""

    def __init__(self, inner: Any, *, is_background: bool = False) -> None:
        self._inner, self._is_background = inner, is_background

    async def send(self, method: str, target: bytes, headers: Headers, body: Body = b"", call: object = None) -> Reply:
        """See `cg.gateway.upstream.contract.Upstream.send`."""
        calling = client_call(call)
        request = calling.request(method, headers, body, is_background=self._is_background)
        with as_upstream_errors(calling.library):
            if not self._is_background:
                calling.is_sent = True
            response = await self._inner.handle_async_request(request)
        if not self._is_background:
            calling.keep_extensions(response)
        return AsyncReply(response, calling)

    async def aclose(self) -> None:
        """Nothing: the connections are the transport's."""


class AsyncEngine(Engine):
    """Answers the requests of one client of coroutines."""

    def __init__(self, gateway: EmbeddedGateway, inner: Any) -> None:
        super().__init__(gateway, inner)
        self._by_loop: dict[asyncio.AbstractEventLoop, Providers] = {}

    # -- one request -------------------------------------------------------------------------------------------------

    async def answer(self, request: Any) -> Any:
        """The response; raises what the inner transport raised."""
        inner = self._inner_for(request)
        route, provider = route_and_provider(request)
        with RequestFigures(self.gateway.events, route) as figures:
            response = None
            if self.is_swept(route):
                response = await self._swept(request, inner, route, provider, figures)
            if response is None:
                response = await inner.handle_async_request(request)
                figures.answered(response.status_code)
                figures.over()
        return response

    async def _swept(self, request: Any, inner: Any, route: Route, provider: str, figures: RequestFigures) -> Any:
        """The response as the sweep makes it; None where the request has to pass instead, nothing sent yet."""
        await request.aread()
        if len(request.content) > self.gateway.settings.max_body_bytes:
            return None
        call = ClientCall(request, provider)
        try:
            providers = self._here(inner)
            messages = providers.at(provider) if providers is not None else None
            if messages is None:
                return None
            handle = messages.handle if route is Route.MESSAGES else messages.count_tokens
            outbound = await handle(inbound_of(request, call))
        except UpstreamError as error:
            raise client_error(error, call.library) from None
        except Exception as error:
            self.report_fault(error, call)
            return None
        figures.answered(outbound.status)
        kind = joined(AsyncResponseBody, call.library, "AsyncByteStream")
        return response_of(outbound, call, kind(outbound, call, figures))

    def _inner_for(self, request: Any) -> Any:
        if self._inner is None:
            library = library_of(request)
            self._inner = AsyncTransportPool(library.AsyncHTTPTransport, library)
        return self._inner

    def _here(self, inner: Any) -> Providers | None:
        """Who works on the running loop; None where it is not asyncio's."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None
        providers = self._by_loop.get(loop)
        if providers is None:
            for ended in [known for known in self._by_loop if known.is_closed()]:
                del self._by_loop[ended]  # its tasks ended with it, and its workers end when nobody refers to them
            if len(self._by_loop) >= MAX_LOOPS:
                return None
            providers = Providers(self.gateway, AsyncUpstream(inner), AsyncUpstream(inner, is_background=True))
            self._by_loop[loop] = providers
        return providers

    # -- the end -----------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait for what is still being learnt from replies."""
        providers = self._by_loop.get(asyncio.get_running_loop())
        if providers is not None:
            await providers.settle()

    def let_go(self) -> None:
        """For a client that was let go of without being closed: its timers end, its connections are not touched."""
        self._is_passing = True
        for loop, providers in self._by_loop.items():
            with suppress(RuntimeError):  # the loop has been closed, and its tasks ended with it
                loop.call_soon_threadsafe(_close_there, loop, providers)
        self.gateway.close()

    async def close(self) -> None:
        """End everything; requests that come later pass, to connections that are closed."""
        self._is_passing = True
        here = self._by_loop.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.close()
        self.let_go()
        if self._inner is not None:
            await self._inner.aclose()


def _close_there(loop: asyncio.AbstractEventLoop, providers: Providers) -> None:
    _closing.add(task := loop.create_task(providers.close()))
    task.add_done_callback(_closing.discard)


_closing: set["asyncio.Task[None]"] = set()


class AsyncResponseBody:
    """An answer's body."""

    def __init__(self, outbound: Outbound, call: ClientCall, figures: RequestFigures) -> None:
        self._outbound, self._call, self._figures = outbound, call, figures
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = self._outbound.body
        if isinstance(body, bytes):
            yield body
            return
        library = self._call.library
        try:
            async for piece in body:
                yield piece
        except UpstreamError as error:
            if self._is_closed and error.__cause__ is None:  # nothing came from the client's own transport
                raise library.ReadError("the response was closed") from None
            raise client_error(error, library) from None

    async def aclose(self) -> None:
        """Let go of the upstream's reply, read whole or not; a task that still reads it is told so by that reply."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._let_go()
        except Exception as error:
            log.error("fault in closing: %s", type(error).__name__)
        finally:
            self._call.release()
            self._figures.over()

    async def _let_go(self) -> None:
        body, close = self._outbound.body, self._outbound.close
        try:
            if hasattr(body, "aclose") and not getattr(body, "ag_running", False):  # else a task is inside it
                await body.aclose()
        finally:
            if close is not None:
                await close()
