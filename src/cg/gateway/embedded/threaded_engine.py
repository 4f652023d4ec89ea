"""The sweep for a client of threads: decided on a loop in a thread of its own, sent and read in the client's."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from typing import Any

from cg.gateway.embedded.client_call import client_error, inbound_of, route_and_provider
from cg.gateway.embedded.client_library import SyncTransportPool, joined, library_of
from cg.gateway.embedded.engine import Engine, response_of
from cg.gateway.embedded.gateway import EmbeddedGateway, Providers, RequestFigures
from cg.gateway.embedded.loop_thread import LoopThread, Stopped
from cg.gateway.embedded.thread_call import BackgroundUpstream, ThreadCall, ThreadUpstream, Work, run_in_background
from cg.gateway.events import Route
from cg.gateway.exchange import Outbound
from cg.gateway.upstream.contract import UpstreamError

log = logging.getLogger("cg.gateway")
CLOSE_S = 10.0  # for what is still being written when a client is closed


class ThreadedEngine(Engine):
    """Answers the requests of one client, from any of its threads."""

    def __init__(self, gateway: EmbeddedGateway, inner: Any) -> None:
        super().__init__(gateway, inner)
        self._guard = threading.Lock()
        self._thread: LoopThread | None = None
        self._providers: Providers | None = None

    # -- one request -------------------------------------------------------------------------------------------------

    def answer(self, request: Any) -> Any:
        """The response; raises what the inner transport raised."""
        inner = self._inner_for(request)
        route, provider = route_and_provider(request)
        with RequestFigures(self.gateway.events, route) as figures:
            response = None
            if self.is_swept(route):
                response = self._swept(request, inner, route, provider, figures)
            if response is None:
                response = inner.handle_request(request)
                figures.answered(response.status_code)
                figures.over()
        return response

    def _swept(self, request: Any, inner: Any, route: Route, provider: str, figures: RequestFigures) -> Any:
        """The response as the sweep makes it; None where the request has to pass instead, nothing sent yet."""
        request.read()
        if len(request.content) > self.gateway.settings.max_body_bytes:
            return None
        call = ThreadCall(request, provider)
        try:
            thread, providers = self._running(inner)
            answer = thread.submit(_outbound(providers, provider, route, request, call))
            outbound = call.threads.wait(answer)
        except UpstreamError as error:
            raise client_error(error, call.library) from None
        except (CancelledError, Stopped):
            if not call.is_sent:
                return None
            raise call.library.ReadError("the transport was closed") from None
        except Exception as error:
            self.report_fault(error, call)
            return None
        if outbound is None:
            return None
        figures.answered(outbound.status)
        kind = joined(ResponseBody, call.library, "SyncByteStream")
        return response_of(outbound, call, kind(outbound, call, thread, figures))

    def _inner_for(self, request: Any) -> Any:
        if self._inner is None:
            with self._guard:
                if self._inner is None:
                    library = library_of(request)
                    self._inner = SyncTransportPool(library.HTTPTransport, library)
        return self._inner

    def _running(self, inner: Any) -> tuple[LoopThread, Providers]:
        """The loop and who works on it, begun with the first request. Raises Stopped once this has been closed."""
        with self._guard:
            if self._is_passing:  # since this request looked: whatever it began, nobody would end
                raise Stopped("the transport was closed")
            if self._thread is None or self._providers is None:
                self._providers = Providers(self.gateway, ThreadUpstream(inner), BackgroundUpstream(inner))
                self._thread = LoopThread("cg-transport")
            return self._thread, self._providers

    # -- the end -----------------------------------------------------------------------------------------------------

    def settle(self, timeout_s: float) -> None:
        """Wait for what is still being learnt from replies."""
        if self._thread is not None and self._providers is not None:
            self._thread.submit(self._providers.settle()).result(timeout_s)

    def let_go(self) -> None:
        """For a client that was let go of without being closed: all ends, in a thread that nothing waits for, as this
        may be called in the middle of anything. The inner transport is not touched."""
        run_in_background(Work(self._end))

    def _end(self) -> None:
        with self._guard:
            self._is_passing = True
            thread, providers = self._thread, self._providers
        if thread is not None and providers is not None:
            try:
                thread.submit(providers.close()).result(CLOSE_S)
            except (Exception, CancelledError) as error:
                log.error("fault in closing: %s", type(error).__name__)
            thread.stop(CLOSE_S)
        self.gateway.close()

    def close(self) -> None:
        """End everything; requests that come later pass, to connections that are closed."""
        self._end()
        if self._inner is not None:
            self._inner.close()


async def _outbound(
    providers: Providers, provider: str, route: Route, request: Any, call: ThreadCall
) -> Outbound | None:
    messages = providers.at(provider)
    if messages is None:
        return None
    inbound = inbound_of(request, call)
    return await (messages.handle if route is Route.MESSAGES else messages.count_tokens)(inbound)


class ResponseBody:
    """An answer's body, each piece fetched by the thread that reads it."""

    def __init__(self, outbound: Outbound, call: ThreadCall, thread: LoopThread, figures: RequestFigures) -> None:
        self._outbound, self._call = outbound, call
        self._thread, self._figures = thread, figures
        self._is_closed = False
        self._pump: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[bytes]:
        body = self._outbound.body
        if isinstance(body, bytes):
            yield body
            return
        library = self._call.library
        try:
            pumped = self._thread.submit(self._pumped(body))
            for piece in self._call.threads.pieces(pumped):
                yield piece
                if self._is_closed:  # by another thread, while nothing was waited for: the library's own streams end so
                    return
            pumped.result()
            if self._is_closed:  # while this was waiting, and what was made of it meanwhile is dropped
                raise CancelledError
        except UpstreamError as error:
            raise client_error(error, library) from None
        except (CancelledError, Stopped):
            raise library.ReadError("the response or its transport was closed") from None

    async def _pumped(self, body: AsyncIterator[bytes]) -> None:
        """On the loop: hand each piece over as soon as it is there."""
        self._pump = asyncio.current_task()
        async for piece in body:
            self._call.threads.hand(piece)

    def close(self) -> None:
        """Let go of the upstream's reply, read whole or not."""
        if self._is_closed:
            return
        self._is_closed = self._call.threads.is_closed = True
        try:
            self._call.threads.wait(self._thread.submit(self._ended()))
        except (Exception, CancelledError) as error:
            log.error("fault in closing: %s", type(error).__name__)
        finally:
            self._call.threads.leave()
            self._call.release()
            self._figures.over()

    async def _ended(self) -> None:
        """On the loop: stop making pieces, then let go of what they were made from."""
        if self._pump is not None and not self._pump.done():
            self._pump.cancel()
            await asyncio.wait([self._pump])
        aclose = getattr(self._outbound.body, "aclose", None)
        if aclose is not None:
            await aclose()
        if self._outbound.close is not None:
            await self._outbound.close()
