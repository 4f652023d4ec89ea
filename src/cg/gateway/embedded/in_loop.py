"""The sweep for a client of coroutines, on the client's own event loop."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from cg.gateway.embedded.async_upstream import AsyncUpstream
from cg.gateway.embedded.client_call import Calling, as_came, inbound_of, whose
from cg.gateway.embedded.client_library import AsyncConnections, joined, library_of
from cg.gateway.embedded.local import Lifetime, Local, Providers
from cg.gateway.events import Fault, Route
from cg.gateway.exchange import Outbound
from cg.gateway.upstream.contract import UpstreamError

log = logging.getLogger("cg.gateway")
MAX_LOOPS = 8  # that one client was seen on; a program of several `asyncio.run` leaves one behind each time


class InLoop:
    """Answers the requests of one client."""

    def __init__(self, local: Local, inner: Any) -> None:
        self.local = local
        self._given = inner
        self._inner: Any = inner
        self._by_loop: dict[asyncio.AbstractEventLoop, Providers] = {}
        self._is_passing = False

    def passing(self) -> "InLoop":
        """One that only passes requests on, with connections of its own."""
        other = InLoop(self.local, self._given)
        other._is_passing = True
        return other

    # -- one request -------------------------------------------------------------------------------------------------

    async def answer(self, request: Any) -> Any:
        """The response; raises what the inner transport raised."""
        inner = self._inner_for(request)
        route, provider = whose(request)
        lifetime = Lifetime(self.local.events, route)
        try:
            if route in (Route.MESSAGES, Route.COUNT_TOKENS) and not self._is_passing:
                response = await self._swept(request, inner, route, provider, lifetime)
                if response is not None:
                    return response
            response = await inner.handle_async_request(request)
            lifetime.answered(response.status_code)
        except BaseException:
            lifetime.over(is_whole=False)
            raise
        lifetime.over()
        return response

    async def _swept(self, request: Any, inner: Any, route: Route, provider: str, lifetime: Lifetime) -> Any:
        """The response as the rooms make it; None where the request has to pass instead, nothing sent yet."""
        await request.aread()
        if len(request.content) > self.local.settings.max_body_bytes:
            return None
        calling = Calling(request, provider)
        library = calling.library
        try:
            providers = self._here(inner)
            messages = providers.at(provider) if providers is not None else None
            if messages is None:
                return None
            handle = messages.handle if route is Route.MESSAGES else messages.count_tokens
            outbound = await handle(inbound_of(request, calling))
        except UpstreamError as error:
            raise as_came(error, library) from None
        except Exception as error:
            log.error("fault in answering: %s", type(error).__name__)
            self.local.events.tell(Fault.SWEEP)
            if calling.is_sent:  # it may have been charged for: whether it is sent again is the client's to say
                raise library.ReadError("a fault of the transport's own") from error
            return None
        lifetime.answered(outbound.status)
        kind = joined(AsyncPieces, library, "AsyncByteStream")
        stream = kind(outbound, calling, lifetime)
        return library.Response(
            outbound.status, headers=outbound.headers, stream=stream, extensions=calling.reply_extensions
        )

    def _inner_for(self, request: Any) -> Any:
        if self._inner is None:
            library = library_of(request)
            self._inner = AsyncConnections(library.AsyncHTTPTransport, library)
        return self._inner

    def _here(self, inner: Any) -> Providers | None:
        """Who works on the running loop; None where it is not asyncio's."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None
        found = self._by_loop.get(loop)
        if found is None:
            for ended in [known for known in self._by_loop if known.is_closed()]:
                del self._by_loop[ended]  # its tasks ended with it, and its workers end when nobody refers to them
            if len(self._by_loop) >= MAX_LOOPS:
                return None
            found = Providers(self.local, AsyncUpstream(inner), AsyncUpstream(inner, is_ours=True))
            self._by_loop[loop] = found
        return found

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
        self.local.close()

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


class AsyncPieces:
    """An answer's body."""

    def __init__(self, outbound: Outbound, calling: Calling, lifetime: Lifetime) -> None:
        self._outbound, self._calling, self._lifetime = outbound, calling, lifetime
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = self._outbound.body
        if isinstance(body, bytes):
            yield body
            return
        library = self._calling.library
        try:
            async for piece in body:
                yield piece
        except UpstreamError as error:
            if self._is_closed and error.__cause__ is None:  # nothing came from the client's own transport
                raise library.ReadError("the response was closed") from None
            raise as_came(error, library) from None

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
            self._calling.ended()
            self._lifetime.over()

    async def _let_go(self) -> None:
        body, close = self._outbound.body, self._outbound.close
        try:
            if hasattr(body, "aclose") and not getattr(body, "ag_running", False):  # else a task is inside it
                await body.aclose()
        finally:
            if close is not None:
                await close()
