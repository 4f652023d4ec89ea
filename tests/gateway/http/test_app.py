"""Each request gets one answer, or the same end that the upstream came to."""

import asyncio
import json
import socket
import threading

import pytest
from live import RawUpstream, ask, dial, status, until

from cg.gateway.events import Fault, Refusal, Route
from cg.gateway.exchange import Outbound
from cg.gateway.upstream.contract import Cut, TimedOut, Unreachable


class Echo:
    """A sweep that answers with what it was given."""

    def __init__(self, *, error=None):
        self.seen = []
        self.closed = 0
        self.error = error

    async def handle(self, inbound):
        self.seen.append(inbound)
        if self.error is not None:
            raise self.error

        async def pieces():
            yield b"<"
            yield inbound.body
            yield b">"

        async def close():
            self.closed += 1

        return Outbound(200, [(b"content-type", b"text/plain")], pieces(), close)

    async def count_tokens(self, inbound):
        self.seen.append(inbound)
        return Outbound(200, [], b"counted")


def test_messages_go_to_the_sweep_whole(gateway):
    """With the target and the headers that came, ours among them; the answer's source is closed once."""
    echo = Echo()
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=echo)
        answer = ask(served.port, b"POST /v1/messages?beta=true", b"x-cg-session: s", b"X-Api-Key: k", body=b"{}")
        assert answer.body == b"<{}>" and answer.one(b"transfer-encoding") == b"chunked"
        (inbound,) = echo.seen
        assert (inbound.method, inbound.target, inbound.path, inbound.query) == (
            "POST",
            b"/v1/messages?beta=true",
            b"/v1/messages",
            b"beta=true",
        )
        assert (b"x-cg-session", b"s") in inbound.headers and (b"x-api-key", b"k") in inbound.headers
        assert until(lambda: served.heard.of("request") == [(Route.MESSAGES, 200)])
        assert echo.closed == 1 and upstream.requests == []


def test_count_tokens_goes_to_the_sweep(gateway):
    """What is counted has to be what would be sent."""
    echo = Echo()
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=echo)
        answer = ask(served.port, b"POST /v1/messages/count_tokens", body=b"{}")
        assert answer.body == b"counted" and answer.one(b"content-length") == b"7"
        assert until(lambda: served.heard.of("request") == [(Route.COUNT_TOKENS, 200)])


@pytest.mark.parametrize(
    "line", [b"GET /v1/messages", b"POST /v1/messages/batches", b"POST /v1/messages/", b"POST /v1/Messages"]
)
def test_what_only_resembles_a_message_passes(gateway, line):
    """The sweep sees one method on one path."""
    echo = Echo()
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=echo)
        assert ask(served.port, line).body == b"ok"
        assert echo.seen == [] and len(upstream.requests) == 1


def test_a_body_past_the_limit_is_refused_unread(gateway):
    """By its own account: not a byte of it is waited for."""
    echo = Echo()
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=echo, max_body_bytes=1000)
        with dial(served.port) as wire:
            wire.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1001\r\n\r\n")
            answer = wire.message()
            assert status(answer) == 413 and b"1000 bytes" in answer.body
            assert json.loads(answer.body)["error"]["type"] == "request_too_large"
            assert wire.is_closed_by_peer()
        assert ask(served.port, b"POST /v1/messages", body=b"x" * 1000).body == b"<" + b"x" * 1000 + b">"
        assert served.heard.of("refused") == [(Refusal.TOO_LARGE,)]


def test_a_body_in_chunks_is_refused_at_the_limit(gateway):
    """A body that does not say its length is read up to the limit and no further; its memory is free again."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Echo(), max_body_bytes=100_000, max_buffered_bytes=100_000)
        for _ in range(3):
            with dial(served.port) as wire:
                wire.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
                chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
                try:
                    for _ in range(64):
                        wire.send(chunk)
                except OSError:
                    pass  # it stopped listening
                else:
                    assert status(wire.message()) == 413
        assert until(lambda: served.app._body_budget.free_bytes == 100_000)


def test_memory_for_bodies_is_bounded_over_all_requests(gateway):
    """When it is full, a request is told to come again."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Echo(), max_body_bytes=1000, max_buffered_bytes=1000)
        served.app._body_budget._timeout_s = 0.05
        with dial(served.port) as holder:
            holder.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n" + b"x" * 900)
            assert until(lambda: served.app._body_budget.free_bytes == 100)
            answer = ask(served.port, b"POST /v1/messages", body=b"y" * 200)
            assert status(answer) == 503 and answer.one(b"retry-after") == b"1"
            assert ask(served.port, b"POST /v1/messages", body=b"y" * 50).body == b"<" + b"y" * 50 + b">"
        assert until(lambda: served.app._body_budget.free_bytes == 1000)


def test_requests_at_one_time_are_bounded(gateway):
    """Past the bound a request is told to come again, at once."""
    release = threading.Event()

    def script(wire, request):
        release.wait(60)
        wire.reply(b"ok")

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url, max_requests=2)
        with dial(served.port) as one, dial(served.port) as two:
            for wire in (one, two):
                wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert until(lambda: len(upstream.requests) == 2)
            answer = ask(served.port, b"GET /x")
            assert status(answer) == 503 and answer.one(b"retry-after") == b"1"
            release.set()
            assert one.message().body == two.message().body == b"ok"
        assert until(lambda: served.app.active == 0)
        assert ask(served.port, b"GET /x").body == b"ok"


@pytest.mark.parametrize(
    ("error", "code", "fault"),
    [
        (Unreachable("ConnectError"), 502, Fault.UPSTREAM_UNREACHABLE),
        (TimedOut("ReadTimeout"), 504, Fault.UPSTREAM_TIMEOUT),
        (Cut("closed before its head", is_reset=False), 502, Fault.UPSTREAM_CUT),
        (ValueError("secret"), 500, None),
    ],
)
def test_what_becomes_of_the_upstream_is_told_by_a_status(gateway, error, code, fault, caplog):
    """And a fault of ours says nothing of what it met."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Echo(error=error))
        answer = ask(served.port, b"POST /v1/messages", body=b"{}")
        assert status(answer) == code
        assert json.loads(answer.body)["error"]["message"].startswith("cg-proxy: ")
        assert b"secret" not in answer.body
        assert served.heard.of("fault") == ([(fault,)] if fault else [])
        assert until(lambda: served.app._body_budget.free_bytes == 512 * 2**20)


def test_an_upstream_that_is_not_there_is_a_502(gateway):
    """At once, and in words."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    served = gateway(f"http://127.0.0.1:{port}")
    answer = ask(served.port, b"GET /x")
    assert status(answer) == 502 and b"cannot be reached" in answer.body


def test_an_upstream_that_says_nothing_is_a_504(gateway):
    """After the limit, which is far longer than any model is silent."""
    with RawUpstream(lambda wire, request: wire.is_closed_by_peer()) as upstream:
        served = gateway(upstream.url, upstream_idle_s=0.2)
        assert status(ask(served.port, b"GET /x")) == 504


def cut_after_first(end):
    def script(wire, request):
        wire.stream_head()
        wire.chunk(b"event")
        threading.Event().wait(0.1)
        end(wire)

    return script


def test_a_stream_that_is_cut_ends_for_the_client_as_it_ended_for_us(gateway):
    """In order where the upstream closed: the chunks lack their end, so that nobody takes it for whole."""
    with RawUpstream(cut_after_first(lambda wire: wire.fin())) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert wire.head() is not None
            assert wire.exactly(len(b"5\r\nevent\r\n")) == b"5\r\nevent\r\n"
            assert wire.socket.recv(100) == b""
        assert until(lambda: (Fault.UPSTREAM_CUT,) in served.heard.of("fault"))


def test_a_stream_that_is_reset_is_reset_for_the_client(gateway):
    """Clients treat a reset and an orderly end differently, and go on as they would without the gateway."""
    with RawUpstream(cut_after_first(lambda wire: wire.rst())) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert wire.head() is not None
            assert wire.exactly(len(b"5\r\nevent\r\n")) == b"5\r\nevent\r\n"
            with pytest.raises(ConnectionResetError):
                wire.socket.recv(100)


def test_a_short_body_is_not_passed_for_whole(gateway):
    """A reply that has fewer bytes than it says ends early for the client too."""

    def script(wire, request):
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        wire.fin()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            with pytest.raises(ConnectionError):
                wire.message()


def test_a_stream_that_stalls_is_cut_at_the_limit(gateway):
    """A half-open upstream does not hold a client for ever."""

    def script(wire, request):
        wire.stream_head()
        wire.chunk(b"event")
        wire.is_closed_by_peer()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url, upstream_idle_s=0.2)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            with pytest.raises(ConnectionError):
                wire.message()
        assert (Fault.UPSTREAM_TIMEOUT,) in served.heard.of("fault")


def test_a_client_that_stops_sending_is_told_and_let_go(gateway):
    """Half a body, and then nothing."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Echo(), body_idle_s=0.2)
        with dial(served.port) as wire:
            wire.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf")
            assert status(wire.message()) == 408
            assert wire.is_closed_by_peer()
        assert until(lambda: served.app._body_budget.free_bytes == 512 * 2**20)


def test_a_slow_client_that_goes_on_is_waited_for(gateway):
    """The limit is on silence, not on the whole."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Echo(), body_idle_s=0.5)
        with dial(served.port) as wire:
            wire.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 12\r\n\r\n")
            for _ in range(12):
                threading.Event().wait(0.1)
                wire.send(b"x")
            assert wire.message().body == b"<xxxxxxxxxxxx>"


def test_a_client_that_takes_nothing_slows_the_upstream_and_is_let_go(gateway):
    """Back-pressure reaches the upstream: what nobody reads is not stored up. After the limit both are ended."""
    sent, ended = [], threading.Event()

    def script(wire, request):
        wire.stream_head()
        try:
            for n in range(4000):
                wire.chunk(b"x" * 65536)
                sent.append(n)
        except OSError:
            ended.set()
            raise

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url, client_idle_s=1.0)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert ended.wait(60)
        assert len(sent) < 1000, "a client that reads nothing was sent 64 MB"
        assert until(lambda: (Fault.CLIENT_GONE,) in served.heard.of("fault"))


def test_an_answer_s_source_is_closed_also_when_its_body_was_never_started(gateway):
    """A client that goes away while the answer is being found must end the upstream's work."""
    closed = threading.Event()
    asked = threading.Event()

    class Slow:
        async def handle(self, inbound):
            async def never():
                yield b"x"

            async def close():
                closed.set()

            asked.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                await close()
                raise
            return Outbound(200, [], never(), close)

    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Slow())
        with dial(served.port) as wire:
            wire.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}")
            assert asked.wait(60)
        assert closed.wait(60)
        assert until(lambda: served.heard.of("request") == [(Route.MESSAGES, 0)])


def test_every_request_is_opened_and_closed_once(gateway):
    """The number of requests in hand can be told at any time."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Echo())
        ask(served.port, b"GET /x")
        ask(served.port, b"POST /v1/messages", body=b"{}")
        ask(served.port, b"GET /x", host=b"evil.example")
        assert until(lambda: len(served.heard.of("closed")) == 3)
        assert len(served.heard.of("opened")) == 3 and served.app.active == 0


def test_an_expected_continue_is_given_by_the_gateway(gateway):
    """A client that asks before it sends a large body is told to go on."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Echo())
        with dial(served.port) as wire:
            wire.send(
                b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
            )
            assert wire.line_end(b"\r\n\r\n") == b"HTTP/1.1 100 Continue"
            wire.send(b"{}")
            assert wire.message().body == b"<{}>"
