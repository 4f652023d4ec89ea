"""The HTTP client's sockets, on the event loop's own transports.

The client brings an adapter to another concurrency library, which costs more per event of a stream than everything else
together, and does TLS in Python; the loop's own transports do neither.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from typing import Any

import httpcore2 as http

from cg.gateway.upstream.dialing import dial

HIGH_WATER_BYTES = 256 * 1024  # read and not yet asked for; past it the peer is slowed down


class Line(asyncio.Protocol):
    """What comes over one connection, until it is asked for."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_ended = False
        self.error: Exception | None = None
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._is_paused = False
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > HIGH_WATER_BYTES and not self._is_paused and self.transport is not None:
            self._is_paused = True
            self.transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> bool:
        self.is_ended = True
        _wake(self._reader)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_ended = True
        self.error = exc
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        _wake(self._writer)

    @property
    def has_something(self) -> bool:
        """Whether a read would return at once: with bytes, or since nothing will come any more."""
        return bool(self._pieces) or self.is_ended

    async def take(self, max_bytes: int, timeout_s: float | None) -> bytes:
        """Up to `max_bytes` as soon as there are any; empty at the end. Raises TimeoutError, or what broke the line."""
        if not self.has_something:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await _within(self._reader, timeout_s)
            finally:
                self._reader = None
        if not self._pieces:
            if self.error is not None:
                raise self.error
            return b""
        piece = self._pieces.popleft()
        if len(piece) > max_bytes:
            self._pieces.appendleft(piece[max_bytes:])
            piece = piece[:max_bytes]
        self._size -= len(piece)
        if self._is_paused and self._size <= HIGH_WATER_BYTES // 2 and self.transport is not None:
            self._is_paused = False
            self.transport.resume_reading()
        return piece

    async def give(self, data: bytes, timeout_s: float | None) -> None:
        """Write, and wait while the peer takes less than is written. Raises TimeoutError or OSError."""
        if self.transport is None or self.transport.is_closing() or self.error is not None:
            raise self.error or ConnectionResetError("closed")
        self.transport.write(data)
        if self._is_full:
            self._writer = asyncio.get_running_loop().create_future()
            try:
                await _within(self._writer, timeout_s)
            finally:
                self._writer = None
            if self.transport.is_closing():
                raise self.error or ConnectionResetError("closed")


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


async def _within(waiter: "asyncio.Future[None]", timeout_s: float | None) -> None:
    """Await a future; a timer fails it, which costs less than a scope around it."""
    if timeout_s is None:
        await waiter
        return
    timer = asyncio.get_running_loop().call_later(timeout_s, _fail, waiter)
    try:
        await waiter
    finally:
        timer.cancel()


def _fail(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class Stream(http.AsyncNetworkStream):
    """One connection, as the client wants it."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return await self._line.take(max_bytes, timeout)
        except TimeoutError as error:
            raise http.ReadTimeout from error
        except (OSError, RuntimeError) as error:
            raise http.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        try:
            await self._line.give(buffer, timeout)
        except TimeoutError as error:
            raise http.WriteTimeout from error
        except (OSError, RuntimeError) as error:
            raise http.WriteError from error

    async def aclose(self) -> None:
        """Close at once: whatever was not written belongs to an abandoned request."""
        if self._line.transport is not None:
            self._line.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> http.AsyncNetworkStream:
        assert self._line.transport is not None
        line = Line()
        try:
            async with asyncio.timeout(timeout):
                transport = await asyncio.get_running_loop().start_tls(
                    self._line.transport, line, ssl_context, server_hostname=server_hostname
                )
        except BaseException as error:
            self._line.transport.abort()
            if isinstance(error, TimeoutError):
                raise http.ConnectTimeout from error
            if isinstance(error, OSError):  # ssl.SSLError is one
                raise http.ConnectError("TLS: " + type(error).__name__) from error
            raise
        if transport is None:
            raise http.ConnectError("TLS: closed")
        line.connection_made(transport)
        return Stream(line)

    def get_extra_info(self, info: str) -> Any:
        transport = self._line.transport
        if info == "is_readable":
            return self._line.has_something or transport is None or transport.is_closing()
        names = {"ssl_object": "ssl_object", "socket": "socket", "server_addr": "peername", "client_addr": "sockname"}
        return transport.get_extra_info(names[info]) if transport is not None and info in names else None


class Sockets(http.AsyncNetworkBackend):
    """Opens connections on the running loop."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> http.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                transport, line = await dial(Line, host, port, local_address)
        except TimeoutError as error:
            raise http.ConnectTimeout from error
        except (OSError, UnicodeError) as error:
            raise http.ConnectError(type(error).__name__) from error
        own = transport.get_extra_info("socket")
        for option in socket_options or ():
            own.setsockopt(*option)
        return Stream(line)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
