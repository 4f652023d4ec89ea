"""The HTTP client's connections, on the event loop's own transports.

Written here in the place of the client's own adapter to asyncio (httpcore2's, over anyio), for two reasons:

- Time to a reply's first byte, through the gateway, on two cores, side by side in one run of 300 rounds (2026-12-01): with
  the client's adapter the median is 1.15 to 1.21 times ours (bodies of 1 MB and of 2 KB), processor time 1.03 to 1.14
  times; two gateways with this file in the same run differ by 1.03.
- A connection that holds bytes nobody asked for must not be used again: they would be taken for the next reply. Here all
  that was received is seen (`is_readable`); the client's adapter asks the socket, and does not see what it or its TLS
  layer has taken from there already.

To be deleted once the client's adapter is within 10 % on the first, and its `is_readable` true for bytes that it holds.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain, zip_longest
from typing import Any, TypeVar

import httpcore2 as http

HIGH_WATER_BYTES = 256 * 1024  # received and not yet read; past it the peer is slowed down
STAGGER_S = 0.25  # RFC 8305, 5: a dead IPv6 route must not hold up the IPv4 one

P = TypeVar("P", bound=asyncio.Protocol)


class ByteStreamProtocol(asyncio.Protocol):
    """What is received on one connection, until it is read."""

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
    def is_readable_now(self) -> bool:
        """Whether a read would return at once: with bytes, or since nothing will come any more."""
        return bool(self._pieces) or self.is_ended

    async def receive(self, max_bytes: int, timeout_s: float | None) -> bytes:
        """Up to `max_bytes` as soon as there are any; empty at the end. Raises TimeoutError, or what ended the connection."""
        if not self.is_readable_now:
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

    async def send_all(self, data: bytes, timeout_s: float | None) -> None:
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


class LoopStream(http.AsyncNetworkStream):
    """One connection, as the HTTP client takes it."""

    def __init__(self, protocol: ByteStreamProtocol) -> None:
        self._protocol = protocol

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return await self._protocol.receive(max_bytes, timeout)
        except TimeoutError as error:
            raise http.ReadTimeout from error
        except (OSError, RuntimeError) as error:
            raise http.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        try:
            await self._protocol.send_all(buffer, timeout)
        except TimeoutError as error:
            raise http.WriteTimeout from error
        except (OSError, RuntimeError) as error:
            raise http.WriteError from error

    async def aclose(self) -> None:
        """Close at once: whatever was not written belongs to an abandoned request."""
        if self._protocol.transport is not None:
            self._protocol.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> http.AsyncNetworkStream:
        assert self._protocol.transport is not None
        protocol = ByteStreamProtocol()
        try:
            async with asyncio.timeout(timeout):
                transport = await asyncio.get_running_loop().start_tls(
                    self._protocol.transport, protocol, ssl_context, server_hostname=server_hostname
                )
        except BaseException as error:
            self._protocol.transport.abort()
            if isinstance(error, TimeoutError):
                raise http.ConnectTimeout from error
            if isinstance(error, OSError):  # ssl.SSLError is one
                raise http.ConnectError("TLS: " + type(error).__name__) from error
            raise
        if transport is None:
            raise http.ConnectError("TLS: closed")
        protocol.connection_made(transport)
        return LoopStream(protocol)

    def get_extra_info(self, info: str) -> Any:
        transport = self._protocol.transport
        if info == "is_readable":
            return self._protocol.is_readable_now or transport is None or transport.is_closing()
        names = {"ssl_object": "ssl_object", "socket": "socket", "server_addr": "peername", "client_addr": "sockname"}
        return transport.get_extra_info(names[info]) if transport is not None and info in names else None


class LoopBackend(http.AsyncNetworkBackend):
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
                transport, protocol = await dial(ByteStreamProtocol, host, port, local_address)
        except TimeoutError as error:
            raise http.ConnectTimeout from error
        except (OSError, UnicodeError) as error:
            raise http.ConnectError(type(error).__name__) from error
        connection = transport.get_extra_info("socket")
        for option in socket_options or ():
            connection.setsockopt(*option)
        return LoopStream(protocol)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def dial(make: Callable[[], P], host: str, port: int, local: str | None = None) -> tuple[asyncio.Transport, P]:
    """The first connection that is made. Raises OSError, the last one's, if none is.

    An address is tried before the one ahead of it has failed (RFC 8305). asyncio's own loop can do that, uvloop cannot.
    """
    loop = asyncio.get_running_loop()
    resolved = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = interleaved((int(family), str(where[0])) for family, _, _, _, where in resolved)
    local_address = (local, 0) if local else None
    error: BaseException = OSError("no address")
    racing: set[asyncio.Task[tuple[asyncio.Transport, P]]] = set()
    try:
        while addresses or racing:
            if addresses:
                racing.add(
                    asyncio.create_task(loop.create_connection(make, addresses.pop(0), port, local_addr=local_address))
                )
            wait_s = STAGGER_S if addresses else None
            done, racing = await asyncio.wait(racing, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            connected = [task.result() for task in done if task.exception() is None]
            for transport, _ in connected[1:]:
                transport.abort()
            if connected:
                return connected[0]
            error = next((task.exception() or error for task in done), error)
        raise error
    finally:
        for task in racing:
            task.add_done_callback(_abort)
            task.cancel()


def _abort(task: "asyncio.Task[tuple[asyncio.Transport, P]]") -> None:
    """A connection that was made after another had won is closed."""
    if not task.cancelled() and task.exception() is None:
        task.result()[0].abort()


def interleaved(addresses: Iterable[tuple[int, str]]) -> list[str]:
    """Addresses with their families taking turns, in the resolver's order otherwise, each once (RFC 8305, 4)."""
    by_family: dict[int, list[str]] = {}
    for family, address in addresses:
        known = by_family.setdefault(family, [])
        if address not in known:
            known.append(address)
    return [address for address in chain.from_iterable(zip_longest(*by_family.values())) if address is not None]
