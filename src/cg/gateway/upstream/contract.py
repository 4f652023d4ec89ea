"""What the gateway asks of an HTTP client, and how a call can fail."""

from collections.abc import AsyncIterator
from typing import Protocol

from cg.errors import CgError
from cg.gateway.exchange import Headers

Body = bytes | AsyncIterator[bytes]


class UpstreamError(CgError):
    """The upstream gave no whole answer; the message names the kind of failure and no address."""


class Unreachable(UpstreamError):
    """No connection could be made, or it ended before a reply began: name, route, proxy or TLS."""


class TimedOut(UpstreamError):
    """Not a byte came within the limit."""


class Cut(UpstreamError):
    """The reply ended before its end."""

    def __init__(self, message: str, *, is_reset: bool) -> None:
        super().__init__(message)
        self.is_reset = is_reset  # by a reset, not by an orderly end: clients react to the two differently


class Reply(Protocol):
    """A reply whose head has come. It must be closed, also after it was read to its end."""

    status: int
    headers: Headers

    def stream(self) -> AsyncIterator[bytes]:
        """The body's raw bytes as they come, once; nothing is decompressed. Raises Cut or TimedOut."""
        ...

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises Cut, TimedOut, or `TooLong` past `limit` bytes."""
        ...

    async def close(self) -> None:
        """Let go of the connection: back to the pool if the body was read whole, else closed. May be repeated."""
        ...


class TooLong(UpstreamError):
    """The reply has more bytes than the caller can take."""


async def read_whole(pieces: AsyncIterator[bytes], limit: int) -> bytes:
    """A body in one; raises TooLong past `limit` bytes, and what the pieces raise."""
    received: list[bytes] = []
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > limit:
            raise TooLong(f"the reply has more than {limit} bytes")
        received.append(piece)
    return b"".join(received)


class Upstream(Protocol):
    """Whoever sends requests to the provider."""

    async def send(self, method: str, target: bytes, headers: Headers, body: Body = b"", call: object = None) -> Reply:
        """Send one request; returns when the reply's head has come. Raises an UpstreamError.

        `target` is path and query byte for byte, under the upstream's own base path. `headers` are end-to-end ones:
        `forwarding.outgoing`; host and framing are added here (a body of `bytes` is sent with its length, an iterator with
        the `content-length` among the headers, else in chunks). Redirects are not followed and no cookie is
        kept. `call` is `Inbound.call` of the request that it is sent for.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...
