"""What passes between the gateway's rooms: a request that has come in, and the answer that is to go out."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

Headers = list[tuple[bytes, bytes]]  # names in lower case, in the order of the wire, repeats kept


def first(headers: Headers, name: bytes) -> bytes | None:
    """The value of the first header of this (lower-case) name, or None."""
    for key, value in headers:
        if key == name:
            return value
    return None


@dataclass(frozen=True, slots=True)
class Inbound:
    """One request of a client. `target` is the request line's own bytes (path and query), `headers` are all that came,
    ours among them; `forwarding.outgoing` makes of them what may leave. `body` was read whole and is bounded. `call` is
    for an upstream that has to know whose request it sends on: the embedded ones."""

    method: str
    target: bytes
    headers: Headers
    body: bytes = b""
    call: object = None

    @property
    def path(self) -> bytes:
        """The target without its query, byte for byte."""
        return self.target.partition(b"?")[0]

    @property
    def query(self) -> bytes:
        """What stands after the first `?`; empty if nothing does."""
        return self.target.partition(b"?")[2]


@dataclass(frozen=True, slots=True)
class Outbound:
    """One answer. Of `headers` only end-to-end ones stand here; the framing is the server's.

    A `bytes` body gets its length; of an iterator each piece leaves as it comes, under the upstream's own
    `content-length` if that is among the headers. `close` is awaited exactly once, however the answer ended, and also
    when the iterator was never started: a client that goes away must end the upstream's work too.
    """

    status: int
    headers: Headers
    body: bytes | AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]] | None = None


class Handler(Protocol):
    """Whoever answers one kind of request. Cancelled when the client goes away; may raise an `UpstreamError`."""

    async def __call__(self, inbound: Inbound) -> Outbound: ...
