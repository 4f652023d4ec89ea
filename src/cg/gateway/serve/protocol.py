"""The HTTP/1.1 server protocol: uvicorn's on llhttp, stricter, bounded, and able to end an answer as the upstream did."""

import socket
import struct
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cg.gateway.events import Refusal
from cg.gateway.exchange import first
from cg.gateway.http import request_target
from cg.gateway.http.error_responses import error_body
from cg.gateway.serve.message_slices import END, MessageSlices
from cg.gateway.upstream.tcp_keepalive import keep_alive

_NO_LINGER = struct.pack("ii", 1, 0)  # a close with this sends a reset
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

# A client that sends no more may have left, or wait for its answer: TCP does not say which until something is written.
# An interim answer, which every client has to pass over, is written only where the answer is long in coming. In the middle
# of an answer there is nothing to write but the answer: where nothing of it comes, the client is taken to have left.
HALF_CLOSED_GRACE_S = 2.0
PROBE_CHECK_S = 0.25
CHECKS_PER_PROBE = 60
MAX_PIPELINED = 16  # requests that are parsed ahead of their answers; what comes behind them waits as bytes


@dataclass(frozen=True, slots=True)
class ProtocolRules:
    """What the protocol is given besides uvicorn's own configuration."""

    head_timeout_s: float = 30.0
    max_connections: int = 1024
    refused: Callable[[Refusal], None] = lambda why: None
    drain_bytes: int = 256 * 2**20  # read and thrown away after a refusal, so that a client that still sends reads it
    drain_s: float = 30.0


class RefusedHead(Exception):
    """A head that is not to be answered by the application; carries the status and the words for the client."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


class CycleTransport:
    """What a cycle writes its answer to. Its close lets the client finish sending first, which would else not read it."""

    def __init__(self, protocol: "StrictProtocol") -> None:
        self._protocol = protocol
        self.write = protocol.transport.write

    def is_closing(self) -> bool:
        return self._protocol.is_draining or self._protocol.transport.is_closing()

    def close(self) -> None:
        self._protocol.close_after_answer()


class HoldingFlow(FlowControl):
    """Reads nothing more while bytes wait to be parsed."""

    is_holding = False

    def resume_reading(self) -> None:
        if not self.is_holding:
            super().resume_reading()


class StrictProtocol(HttpToolsProtocol):
    """One connection of a client.

    Adds to uvicorn: a deadline and a size limit for each head; a refusal of every head that two readers could read
    differently, which reaches a client that is still sending; trailers that are bounded and cannot become headers; the
    request line's own target; an offer to upgrade that is passed over; an answer for a client that has closed its half;
    and a way to cut an answer.
    """

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow: HoldingFlow = HoldingFlow(transport)
        self._held = b""
        self._rules: ProtocolRules = getattr(self.config, "rules", ProtocolRules())
        self._slices = MessageSlices()
        self._head_bytes = 0  # of the head that is being read, or of what stands before it
        self._unread_bytes = 0  # of a body in chunks since its last byte: chunk heads and trailers
        self._in_head = self._in_body = False
        self._is_chunked = False
        self._is_resuming = False  # the parser is told what the body is of a head that it has left
        self._lacks_body = False  # the parser takes the body for another protocol's
        self._answering: RequestResponseCycle | None = None
        self._refusal: tuple[int, str] | None = None
        self._is_deaf = False  # nothing more is read as a request
        self._has_eof = False
        self._has_written = False  # since the client sent no more
        self.is_draining = False
        self._drained_bytes = 0
        self._timer: TimerHandle | None = None  # for a head, or for the end of a connection
        keep_alive(transport.get_extra_info("socket"))
        if len(self.connections) > self._rules.max_connections:
            self._rules.refused(Refusal.BUSY)
            transport.close()
            return
        self._wait(self._rules.head_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self.is_draining:
            self._drained_bytes += len(data)
            if self._drained_bytes > self._rules.drain_bytes:
                self.transport.close()
            return
        if self._held:
            data, self._held = self._held + data, b""
        at = 0
        while at < len(data) and not self._is_deaf and len(self.pipeline) < MAX_PIPELINED:
            end = self._slices.end(data, at)
            self._parse(data if end - at == len(data) else data[at:end])
            at = end
        self._hold(b"" if self._is_deaf else data[at:])

    def _hold(self, data: bytes) -> None:
        """Keep what is to be parsed once some of the requests before it have their answers."""
        self._held = data
        self.flow.is_holding = bool(data)
        if data:
            self.flow.pause_reading()

    def _parse(self, piece: bytes) -> None:
        """Feed the parser, which reads no further than to the end of one head or body; bytes of heads are counted."""
        if not self._in_body:
            if self._timer is None and not self._is_answering:
                self._wait(self._rules.head_timeout_s)
            self._head_bytes += len(piece)
            if self._head_bytes > request_target.MAX_HEAD_BYTES:
                self._refuse(431, f"the request's head is longer than {request_target.MAX_HEAD_BYTES} bytes")
                return
        elif self._is_chunked:
            self._unread_bytes += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as offer:
            self._pass_over_upgrade(piece[offer.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(*_why(error))
            return
        if self._unread_bytes > request_target.MAX_HEAD_BYTES:
            self._refuse(431, f"the body's trailers are longer than {request_target.MAX_HEAD_BYTES} bytes")

    # -- the parser's callbacks ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._is_resuming:
            return
        super().on_message_begin()
        self._in_head = True
        self._wait(self._rules.head_timeout_s)

    def on_url(self, url: bytes) -> None:
        if not self._is_resuming:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what comes after the body could overrule a header that was checked
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._is_resuming:
            self._is_resuming = False
            return
        self._in_head = False
        self._stop_waiting()
        fault = request_target.fault(self.headers, self.parser.get_http_version())
        if fault is not None:
            raise RefusedHead(*fault)
        super().on_headers_complete()
        self._slices.body_left = int(first(self.headers, b"content-length") or 0)
        self._is_chunked = first(self.headers, b"transfer-encoding") is not None
        self._in_body = bool(self._slices.body_left) or self._is_chunked
        self._lacks_body = self._in_body and self.parser.should_upgrade() and not self._is_tunnel
        self.cycle.transport = cast(Transport, CycleTransport(self))
        connection = {
            "target": bytes(self.url),
            "cut": self._cut,
            "no_body": partial(setattr, self.cycle, "expected_content_length", 0),
        }
        cast(dict[str, Any], self.scope).setdefault("extensions", {})["cg"] = connection

    def on_body(self, body: bytes) -> None:
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._lacks_body:
            return
        self._head_bytes = self._unread_bytes = 0
        self._in_body = self._is_chunked = False
        super().on_message_complete()

    # -- offers of another protocol -------------------------------------------------------------------------------------

    @property
    def _is_tunnel(self) -> bool:
        return cast(dict[str, Any], self.scope).get("method") == "CONNECT"

    def _pass_over_upgrade(self, rest: bytes) -> None:
        """Go on in this protocol: another parser is told of the body only, since this one takes it for the other's."""
        if self._is_tunnel:
            self.cycle.keep_alive = False
            self._is_deaf = True
            return
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        if self._lacks_body:
            self._lacks_body, self._is_resuming = False, True
            framing = (
                b"transfer-encoding: chunked" if self._is_chunked else b"content-length: %d" % self._slices.body_left
            )
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + END)
        if rest:
            self.parser.feed_data(rest)

    # -- the end of an answer ------------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        if self.is_draining:
            self.server_state.total_requests += 1
            return
        super().on_response_complete()
        if self._held and len(self.pipeline) < MAX_PIPELINED:
            self.data_received(b"")
        if self._refusal is not None and not self._is_answering:
            self._write_refusal()

    @property
    def _is_answering(self) -> bool:
        return bool(self.pipeline) or (self._answering is not None and not self._answering.response_complete)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def close_after_answer(self) -> None:
        """Close, once the client has sent what it is sending: a close before that takes the answer from it."""
        if not self._has_eof and (self._in_body or self._is_deaf or self.flow.read_paused):
            self._drain()
        else:
            self.transport.close()

    def _drain(self) -> None:
        if self.is_draining or self.transport.is_closing():
            return
        self.is_draining = self._is_deaf = True
        self._hold(b"")
        self._unset_keepalive_if_required()
        self._wait(self._rules.drain_s)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()

    def shutdown(self) -> None:
        """Called by the server when it stops."""
        if self.is_draining:
            self.transport.close()
        else:
            super().shutdown()

    # -- refusing ------------------------------------------------------------------------------------------------------

    def _refuse(self, status: int, words: str) -> None:
        """Read no more; the words follow the answers that are due before them."""
        self._is_deaf = True
        self._stop_waiting()
        self._rules.refused(Refusal.FRAMING)
        if self.transport.is_closing():
            return
        self._refusal = (status, words)
        if self._in_body and not self.cycle.response_complete:
            self._abandon(self.cycle)
        elif not self._is_answering:
            self._write_refusal()

    def _abandon(self, cycle: RequestResponseCycle) -> None:
        """End the request whose body cannot be read."""
        for queued in [entry for entry in self.pipeline if entry[0] is cycle]:
            self.pipeline.remove(queued)  # the answers before it are still due
            return
        if cycle.response_started:
            self.transport.close()  # in the middle of its answer, so that nobody takes it for whole
            return
        cycle.disconnected = True
        cycle.message_event.set()
        self._write_refusal()

    def _write_refusal(self) -> None:
        status, words = self._refusal or (400, "")
        body = error_body(status, words)
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self._drain()

    # -- a client that sends no more -----------------------------------------------------------------------------------

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keep the connection for answers that are due to requests that came whole."""
        cycle = self.cycle
        if self.is_draining or not self._is_answering:
            return None
        if self._in_body and not cycle.response_complete:
            if not self.pipeline:
                return None
            self._abandon(cycle)
        self._is_deaf = self._has_eof = True
        last = self.pipeline[0][0] if self.pipeline else self._answering
        assert last is not None
        last.keep_alive = False
        assert self._answering is not None
        self._answering.transport.write = self._write_to_half_closed  # type: ignore[assignment]
        self.loop.call_later(HALF_CLOSED_GRACE_S, self._probe, 0)
        return True

    def _write_to_half_closed(self, data: bytes) -> None:
        self._has_written = True
        self.transport.write(data)

    def _probe(self, checks: int) -> None:
        """Whether the client has left altogether: then what is written to it is answered by a reset."""
        if self.transport.is_closing() or self._answering is None or not self._is_answering:
            return
        connection = self.transport.get_extra_info("socket")
        is_silent = self._answering.response_started and not self._has_written
        if is_silent or connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
            return
        if checks % CHECKS_PER_PROBE == 0 and not self._answering.response_started:
            self.transport.write(_CONTINUE)
        self.loop.call_later(PROBE_CHECK_S, self._probe, checks + 1)

    # -- time ----------------------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Close after so long."""
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

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


def _why(error: httptools.HttpParserError) -> tuple[int, str]:
    """The status and the words for what the parser, or a check in one of its callbacks, did not take."""
    if isinstance(error.__context__, RefusedHead):
        return error.__context__.status, error.__context__.words
    if "version" in str(error).lower():
        return 505, "HTTP/1.1 is required"
    return 400, "the request is not well-formed HTTP/1.1"
