"""One request on its connection: its body as it comes in, its answer as it goes out, and whether the client is there."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from cg.gateway.exchange import Headers, Outbound, first
from cg.gateway.http.body_budget import BodyBudget

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Abort = Callable[[bool], None]  # ends the connection in the middle of an answer, by a reset or in order
T = TypeVar("T")


class ClientDisconnected(Exception):
    """The client closed its connection before its answer was complete."""


class ClientTimeout(Exception):
    """The client sent or took nothing for too long."""


class BodyTooLarge(Exception):
    """The request's body is longer than what is read whole."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Of one request. Seconds without progress, not of the whole: a slow line is no reason to end a request."""

    body_bytes: int
    body_idle_s: float
    client_idle_s: float


class RequestCycle:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: RequestLimits) -> None:
        self.method: str = scope["method"]
        self.headers: Headers = list(scope["headers"])
        self.target = _target(scope)
        self.first_byte_after: float | None = None  # seconds from the head's arrival to the answer's
        self.status = 0  # of the answer; 0 until it has begun
        self._began = time.monotonic()
        self._receive = receive
        self._send = send
        self._limits = limits
        self._connection: dict[str, Any] = scope.get("extensions", {}).get("cg", {})
        self._is_complete = False
        self._client_error: Exception | None = None  # why the client is no longer served
        self._sending_since = 0.0  # monotonic seconds; 0 while nothing is being sent
        self._timer: asyncio.TimerHandle | None = None
        self._body_ended = asyncio.Event()  # read whole, or nobody wants more of it
        if not self.has_body:
            self._body_ended.set()

    @property
    def path(self) -> bytes:
        """The target without its query, byte for byte."""
        return self.target.partition(b"?")[0]

    @property
    def declared_bytes(self) -> int | None:
        """The body's length if the client said it; framing has been checked before."""
        length = first(self.headers, b"content-length")
        return int(length) if length is not None else None

    @property
    def has_body(self) -> bool:
        return bool(self.declared_bytes) or first(self.headers, b"transfer-encoding") is not None

    # -- the request's body ----------------------------------------------------------------------------------------

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ClientDisconnected or ClientTimeout."""
        try:
            while not self._body_ended.is_set():
                try:
                    async with asyncio.timeout(self._limits.body_idle_s):
                        message = await self._receive()
                except TimeoutError:
                    raise ClientTimeout from None
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                if not message.get("more_body", False):
                    self._body_ended.set()
                if piece := message.get("body", b""):
                    yield piece
        finally:
            self._body_ended.set()

    async def read_body(self, budget: BodyBudget) -> bytes:
        """The whole body; its bytes are reserved in `budget`, and the caller releases them. On an error none are.

        Raises BodyTooLarge, ClientDisconnected, ClientTimeout or BodyBudgetTimeout. What is too long by its own account is
        not read at all.
        """
        limit = self._limits.body_bytes
        if (self.declared_bytes or 0) > limit:
            raise BodyTooLarge
        pieces: list[bytes] = []
        size = 0
        try:
            async for piece in self.pieces():
                if size + len(piece) > limit:
                    raise BodyTooLarge
                await budget.reserve(len(piece))
                size += len(piece)
                pieces.append(piece)
        except BaseException:
            budget.release(size)
            raise
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # -- the client ------------------------------------------------------------------------------------------------

    async def while_connected(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`, which is cancelled when the client goes away or takes nothing.

        Raises ClientDisconnected or ClientTimeout."""
        task = asyncio.current_task()
        assert task is not None
        watcher = asyncio.create_task(self._watch(task))
        self._schedule_idle_check(task, self._limits.client_idle_s)
        try:
            return await work
        except asyncio.CancelledError:
            if self._client_error is not None and task.uncancel() == 0:
                raise self._client_error from None
            raise
        finally:
            watcher.cancel()
            if self._timer is not None:
                self._timer.cancel()

    async def _watch(self, task: "asyncio.Task[Any]") -> None:
        """Cancel the task when the client has gone."""
        await self._body_ended.wait()  # until then the body's reader sees the client go
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._is_complete:
            self._client_error = ClientDisconnected()
            task.cancel()

    def _schedule_idle_check(self, task: "asyncio.Task[Any]", after_s: float) -> None:
        """One timer a request: a scope around each piece of an answer would cost as much as sending it."""
        self._timer = asyncio.get_running_loop().call_later(after_s, self._check_idle, task)

    def _check_idle(self, task: "asyncio.Task[Any]") -> None:
        """Cancel the task if the piece in hand has waited for the client too long; else look again when it would."""
        limit = self._limits.client_idle_s
        waited = time.monotonic() - self._sending_since if self._sending_since else 0.0
        if waited >= limit:
            self._client_error = ClientTimeout()
            task.cancel()
        else:
            self._schedule_idle_check(task, limit - waited)

    # -- the answer ------------------------------------------------------------------------------------------------

    async def answer(self, outbound: Outbound) -> None:
        """Send an answer. Raises what the body's iterator raises; `outbound.close` is the caller's."""
        body = outbound.body
        headers = outbound.headers
        if isinstance(body, bytes):
            if self.method != "HEAD" and outbound.status not in (204, 304):
                headers = [pair for pair in headers if pair[0] != b"content-length"]
                headers.append((b"content-length", str(len(body)).encode()))
            await self._begin(outbound.status, headers)
        else:
            await self._begin(outbound.status, headers)
            async for piece in body:
                if piece:
                    await self._put({"type": "http.response.body", "body": piece, "more_body": True})
            body = b""
        self._is_complete = True  # before the last message: the server tells of a complete answer as of a lost client
        await self._put({"type": "http.response.body", "body": body, "more_body": False})

    def cut(self, *, is_reset: bool) -> None:
        """End the connection in the middle of the answer, as the upstream did, so that nobody takes it for whole."""
        self._is_complete = True
        end: Abort | None = self._connection.get("cut")
        if end is not None:
            end(is_reset)

    async def _begin(self, status: int, headers: Headers) -> None:
        await self._put({"type": "http.response.start", "status": status, "headers": headers})
        self.status = status
        self.first_byte_after = time.monotonic() - self._began

    async def _put(self, message: dict[str, Any]) -> None:
        """Hand a message to the server; waits while the client takes nothing."""
        self._sending_since = time.monotonic()
        await self._send(message)
        self._sending_since = 0.0


def _target(scope: Scope) -> bytes:
    """The request line's own target; another server than ours hands over only its parsed parts."""
    target: bytes | None = scope.get("extensions", {}).get("cg", {}).get("target")
    if target is not None:
        return target
    raw: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")
    query: bytes = scope.get("query_string", b"")
    return raw + b"?" + query if query else raw
