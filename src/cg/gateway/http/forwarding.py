"""What passes: which headers, in both directions, and whole requests that are not the sweep's business."""

from collections.abc import AsyncIterator

from cg.gateway.events import Events
from cg.gateway.exchange import Headers, Outbound
from cg.gateway.http.request_cycle import RequestCycle
from cg.gateway.upstream.contract import Reply, Upstream

# RFC 9110, 7.6.1, and what older implementations treat as such; these describe one connection, not the message.
HOP_BY_HOP = frozenset(
    [
        b"connection",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ]
)
OURS = b"x-cg-"


def outgoing(headers: Headers) -> Headers:
    """Of a client's headers those that go to the upstream: end-to-end ones that are not ours, in their order.

    `host` and `expect` are of this connection too. `content-length` goes: whoever sends a body knows its length.
    """
    named = connection_options(headers)
    return [
        (name, value)
        for name, value in headers
        if name not in HOP_BY_HOP
        and name not in named
        and name not in (b"host", b"expect", b"content-length")
        and not name.startswith(OURS)
    ]


def incoming(headers: Headers) -> Headers:
    """Of an upstream's headers those that go to the client; `content-length` stays."""
    named = connection_options(headers) - {b"content-length"}
    return [
        (name, value)
        for name, value in headers
        if name not in HOP_BY_HOP and name not in named and not name.startswith(OURS)
    ]


def connection_options(headers: Headers) -> frozenset[bytes]:
    """The header names that `connection` declares to be of this connection only."""
    return frozenset(
        option.strip().lower() for name, value in headers if name == b"connection" for option in value.split(b",")
    )


class Forwarder:
    """Sends a request on and its answer back, touching nothing but what belongs to one connection only."""

    def __init__(self, upstream: Upstream, events: Events) -> None:
        self._upstream = upstream
        self._events = events

    async def handle(self, call: RequestCycle) -> Outbound:
        """The upstream's answer, its body as it comes. Raises an UpstreamError, ClientDisconnected or ClientTimeout."""
        headers = outgoing(call.headers)
        body: bytes | AsyncIterator[bytes] = b""
        if call.has_body:
            body = call.pieces()
            if call.declared_bytes is not None:
                headers.append((b"content-length", str(call.declared_bytes).encode()))
        return forwarded(await self._upstream.send(call.method, call.target, headers, body), self._events)


def forwarded(reply: Reply, events: Events) -> Outbound:
    """A reply as an answer, unread."""
    events.upstream(reply.status)
    return Outbound(reply.status, incoming(reply.headers), reply.stream(), reply.close)
