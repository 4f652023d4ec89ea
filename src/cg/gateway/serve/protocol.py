"""The HTTP/1.1 server protocol: uvicorn's on llhttp, stricter, bounded, and able to end an answer as the upstream did."""

import socket
import struct
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cg.gateway.events import Refusal
from cg.gateway.http import request_target
from cg.gateway.http.error_responses import error_body
from cg.gateway.upstream.tcp_keepalive import keep_alive

_NO_LINGER = struct.pack("ii", 1, 0)  # a close with this sends a reset


@dataclass(frozen=True, slots=True)
class ProtocolRules:
    """What the protocol is given besides uvicorn's own configuration."""

    head_timeout_s: float = 30.0
    max_connections: int = 1024
    refused: Callable[[Refusal], None] = lambda why: None


class RefusedHead(Exception):
    """A head that is not to be answered by the application; carries the status and the words for the client."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


class StrictProtocol(HttpToolsProtocol):
    """One connection of a client.

    Adds to uvicorn: a deadline and a size limit for each head; a refusal of every head that two readers could read
    differently; trailers that cannot become headers; the request line's own target; and a way to cut an answer.
    """

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._rules: ProtocolRules = getattr(self.config, "rules", ProtocolRules())
        self._head_bytes = 0
        self._in_head = False
        self._is_refused = False
        self._head_timer: TimerHandle | None = None
        keep_alive(transport.get_extra_info("socket"))
        if len(self.connections) > self._rules.max_connections:
            self._rules.refused(Refusal.BUSY)
            transport.close()
            return
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        if self._in_head and not self._is_refused:
            self._head_bytes += len(data)
            if self._head_bytes > request_target.MAX_HEAD_BYTES:
                self._refuse(431, f"the request's head is longer than {request_target.MAX_HEAD_BYTES} bytes")

    # -- the parser's callbacks ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._start_head_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what comes after the body could overrule a header that was checked
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_head_timer()
        wrong = request_target.fault(self.headers, self.parser.get_http_version())
        if wrong is not None:
            raise RefusedHead(400 if "HTTP/1.1" not in wrong else 505, wrong)
        super().on_headers_complete()
        connection = {"target": bytes(self.url), "cut": self._cut}
        cast(dict[str, Any], self.scope).setdefault("extensions", {})["cg"] = connection

    def _unsupported_upgrade_warning(self) -> None:
        """Called by uvicorn after a request that offered another protocol, which is answered in this one."""
        if self.cycle is not None:
            self.cycle.keep_alive = False  # the parser takes whatever follows for that other protocol

    # -- refusing ------------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for whatever its parser, or a check above, did not take."""
        self._refuse(400, "the request is not well-formed HTTP/1.1")

    def _refuse(self, status: int, words: str) -> None:
        self._is_refused = True
        self._stop_head_timer()
        self._rules.refused(Refusal.FRAMING)
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:  # else another answer is being written
            body = error_body(status, words)
            head = f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\ncontent-type: application/json\r\n"
            head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
        self.transport.close()

    # -- time ----------------------------------------------------------------------------------------------------------

    def _start_head_timer(self) -> None:
        self._stop_head_timer()
        self._head_timer = self.loop.call_later(self._rules.head_timeout_s, self._close_on_head_timeout)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_on_head_timeout(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _cut(self, is_reset: bool) -> None:
        """End the connection now. In order: what was written is still delivered. By a reset: the rest is dropped."""
        if self.transport.is_closing():
            return
        if is_reset:
            connection = self.transport.get_extra_info("socket")
            if connection is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.transport.abort()
        else:
            self.transport.close()


_PHRASES = {400: "Bad Request", 431: "Request Header Fields Too Large", 505: "HTTP Version Not Supported"}
