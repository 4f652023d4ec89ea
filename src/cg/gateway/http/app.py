"""The ASGI application: says whose a request is, hands it there, and sees that each gets one answer or a clear end."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from cg.gateway.events import Events, Fault, Refusal, RequestClosed, RequestOpened, Route, Stage, StageTimed
from cg.gateway.exchange import Handler, Inbound, Outbound
from cg.gateway.http.access import Access, Denial
from cg.gateway.http.body_budget import BodyBudget, BodyBudgetTimeout
from cg.gateway.http.error_responses import refuse
from cg.gateway.http.forwarding import Forwarder
from cg.gateway.http.request_cycle import (
    BodyTooLarge,
    ClientDisconnected,
    ClientTimeout,
    Receive,
    RequestCycle,
    RequestLimits,
    Scope,
    Send,
)
from cg.gateway.http.request_target import is_origin_form
from cg.gateway.http.routes import route_of
from cg.gateway.settings import Settings
from cg.gateway.upstream.contract import Cut, NotHttp, TimedOut, TooLong, Unreachable, Upstream, UpstreamError

log = logging.getLogger("cg.gateway")
NEEDS_TOKEN = frozenset([b"/expand"])  # shows content
FOR_ALL = frozenset([b"/healthz"])  # says whether requests are served, and nothing else


class MessagesHandler(Protocol):
    """The sweep on live traffic, as the application sees it."""

    async def handle(self, inbound: Inbound) -> Outbound: ...

    async def count_tokens(self, inbound: Inbound) -> Outbound: ...


class App:
    """One gateway. `gateway_routes` maps each path of ours to its handler; without `messages` everything passes through.

    `on_start` and `on_stop` are awaited once each, in order, when the server starts and after its last answer.
    """

    def __init__(
        self,
        settings: Settings,
        upstream: Upstream,
        events: Events,
        *,
        messages: MessagesHandler | None = None,
        gateway_routes: Mapping[bytes, Handler] | None = None,
        on_start: Sequence[Callable[[], Awaitable[None]]] = (),
        on_stop: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self.is_stopping = False
        self.active = 0
        self._settings = settings
        self._events = events
        self._messages = messages
        self._gateway_routes = dict(gateway_routes or {})
        self._forwarder = Forwarder(upstream, events)
        self._access = Access(settings.is_loopback, settings.token.encode() if settings.token else None)
        self._body_budget = BodyBudget(settings.max_buffered_bytes)
        self._limits = RequestLimits(settings.max_body_bytes, settings.body_idle_s, settings.client_idle_s)
        self._on_start, self._on_stop = tuple(on_start), (*on_stop, upstream.aclose)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(RequestCycle(scope, receive, send, self._limits))
        else:
            await send({"type": "websocket.close", "code": 1002})

    # -- life --------------------------------------------------------------------------------------------------------

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        for start in self._on_start:
            await start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for stop in self._on_stop:
            try:
                await stop()
            except Exception as error:  # the next one still has to close what is its own
                log.error("fault in stopping: %s", type(error).__name__)
        await send({"type": "lifespan.shutdown.complete"})

    # -- one request -------------------------------------------------------------------------------------------------

    async def _serve(self, call: RequestCycle) -> None:
        """Answer one request; the figures close however it ends."""
        began = time.monotonic()
        route = route_of(call.method, call.path, self._gateway_routes)
        self._events.tell(RequestOpened())
        self.active += 1
        try:
            await self._answer(call, route)
            self._events.tell(StageTimed(Stage.TOTAL, time.monotonic() - began))
        except ClientDisconnected:
            self._events.tell(Fault.CLIENT_GONE)
        except ClientTimeout:
            self._events.tell(Fault.CLIENT_GONE)
            await self._end(call, 408, "the request's body stopped coming")
        except asyncio.CancelledError:
            if not self.is_stopping:
                raise
            call.cut(is_reset=False)  # the time for open streams is over
        finally:
            self.active -= 1
            self._events.tell(RequestClosed(route, call.status))
            if call.first_byte_after is not None:
                self._events.tell(StageTimed(Stage.FIRST_BYTE, call.first_byte_after))

    async def _answer(self, call: RequestCycle, route: Route) -> None:
        denied = self._denied(call, route)
        if denied is not None:
            self._events.tell(denied.why)
            await call.answer(refuse(denied.status, denied.words, *denied.headers))
            return
        try:
            if route in (Route.MESSAGES, Route.COUNT_TOKENS) and self._messages is not None:
                await self._answer_swept(call, route, self._messages)
            elif route is Route.OWN:
                handler = self._gateway_routes[call.path]
                await call.while_connected(self._send(call, handler(Inbound(call.method, call.target, call.headers))))
            else:
                await call.while_connected(self._send(call, self._forwarder.handle(call)))
        except UpstreamError as error:
            await self._answer_upstream_error(call, error)
        except (ClientDisconnected, ClientTimeout):
            raise
        except Exception as error:
            log.error("fault in answering: %s", type(error).__name__, exc_info=error)
            await self._end(call, 500, "a fault of the gateway's own")

    def _denied(self, call: RequestCycle, route: Route) -> Denial | None:
        if not is_origin_form(call.target):
            return Denial(Refusal.TARGET, 400, "the request target must be a path; this is no forward proxy")
        if self.active > self._settings.max_requests:
            return Denial(Refusal.BUSY, 503, "too many requests at one time", ((b"retry-after", b"1"),))
        return self._access.deny(
            call.headers,
            is_gateway_route=route is Route.OWN,
            needs_token=call.path in NEEDS_TOKEN,
            is_for_all=route is Route.OWN and call.path in FOR_ALL,
        )

    async def _answer_swept(self, call: RequestCycle, route: Route, messages: MessagesHandler) -> None:
        """A request that is read whole before anything is done about it."""
        try:
            body = await call.read_body(self._body_budget)
        except BodyTooLarge:
            self._events.tell(Refusal.TOO_LARGE)
            limit = self._settings.max_body_bytes
            await call.answer(refuse(413, f"the request's body is longer than the limit of {limit} bytes"))
            return
        except BodyBudgetTimeout:
            self._events.tell(Refusal.BUSY)
            await call.answer(refuse(503, "no memory for the request's body", (b"retry-after", b"1")))
            return
        size = len(body)
        handle = messages.handle if route is Route.MESSAGES else messages.count_tokens
        answering = handle(Inbound(call.method, call.target, call.headers, body))
        del body  # a stream of minutes must not hold the request that it answers
        await call.while_connected(self._send(call, self._releasing(size, answering)))

    async def _releasing(self, size: int, answering: Awaitable[Outbound]) -> Outbound:
        """Await an answer, and give back the budget of its request's body before the answer is sent."""
        try:
            return await answering
        finally:
            self._body_budget.release(size)

    async def _send(self, call: RequestCycle, answering: Awaitable[Outbound]) -> None:
        """Await an answer and send it; its source is closed however that ends."""
        outbound = await answering
        close = outbound.close or _no_source
        try:
            await call.answer(outbound)
        except BaseException:
            await _finish(close())
            raise
        await close()

    async def _answer_upstream_error(self, call: RequestCycle, error: UpstreamError) -> None:
        """Tell the client what became of the upstream: by a status, or by the same end in the middle of an answer."""
        match error:
            case TimedOut():
                fault, status, words = Fault.UPSTREAM_TIMEOUT, 504, "the upstream did not answer in time"
            case Unreachable():
                fault, status, words = Fault.UPSTREAM_UNREACHABLE, 502, f"the upstream cannot be reached ({error})"
            case NotHttp():
                fault, status, words = (
                    Fault.UPSTREAM_UNREADABLE,
                    502,
                    f"the upstream's reply cannot be passed on ({error})",
                )
            case TooLong():
                fault, status, words = Fault.UPSTREAM_UNREADABLE, 502, "the upstream's reply is too long"
            case _:
                fault, status, words = Fault.UPSTREAM_CUT, 502, f"the upstream ended its reply too early ({error})"
        self._events.tell(fault)
        await self._end(call, status, words, is_reset=isinstance(error, Cut) and error.is_reset)

    async def _end(self, call: RequestCycle, status: int, words: str, *, is_reset: bool = False) -> None:
        if call.status:
            call.cut(is_reset=is_reset)
        else:
            with suppress(ClientDisconnected, ClientTimeout):
                await call.answer(refuse(status, words))


async def _no_source() -> None:
    """An answer that has no source to close."""


async def _finish(work: Awaitable[None]) -> None:
    """Await to the end what must be done although this task was cancelled; a fault in it is logged."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=5.0)
        raise
    except Exception as error:
        log.error("fault in closing: %s", type(error).__name__)
