"""What comes over one connection of a client: where messages end, what is refused, and that the words arrive."""

import socket
import threading

import pytest
from live import RawUpstream, ask, dial, status, until

from cg.gateway.events import Fault
from cg.gateway.http.request_target import MAX_HEAD_BYTES
from cg.gateway.serve import protocol
from cg.gateway.serve.message_slices import MessageSlices

GET = b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def echo(wire, request):
    """Answers with the path and the body's size."""
    wire.reply(b"%b %d" % (request.line.split(b" ")[1], len(request.body)))


# -- an offer of another protocol ------------------------------------------------------------------------------------

OFFERS = [
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n",
    b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==\r\n",
    b"Connection: keep-alive, Upgrade\r\nUpgrade: TLS/1.0, foo/2\r\n",
]
BODIES = {
    "length": (b"Content-Length: 5\r\n", b"hello"),
    "chunks": (b"Transfer-Encoding: chunked\r\n", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    "none": (b"", b""),
}


@pytest.mark.parametrize("offer", OFFERS, ids=["h2c", "websocket", "other"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("is_later", [False, True])
def test_an_offer_to_upgrade_is_passed_over(gateway, offer, body, is_later):
    """The request is answered in this protocol, its body arrives whole, and so does the next request."""
    framing, sent = BODIES[body]
    with RawUpstream(echo) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(
                b"POST /a HTTP/1.1\r\nHost: localhost\r\n" + offer + framing + b"\r\n" + (b"" if is_later else sent)
            )
            if is_later:
                threading.Event().wait(0.05)
                wire.send(sent)
            assert wire.message().body == (b"/a 0" if body == "none" else b"/a 5")
            wire.send(GET % b"/next")
            assert wire.message().body == b"/next 0"
        assert [request.body for request in upstream.requests] == [b"" if body == "none" else b"hello", b""]


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "opening",
    [b"3\r\nabc\r\n0\r\nx: ", b"3\r\nabc\r\n0\r\n", b"3;", b"3\r\nabc\r\n3;name=", b'3\r\nabc\r\n0;x="'],
    ids=["trailer value", "trailer name", "first chunk's extension", "later extension", "last extension"],
)
@pytest.mark.parametrize("size", [1000, 65536])
def test_what_is_no_body_in_chunks_is_bounded(gateway, opening, size):
    """A trailer without end took the gateway's memory and time."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(CHUNKED + opening)
            for _ in range(-(-4 * MAX_HEAD_BYTES // size)):
                wire.send(b"a" * size)
            answer = wire.message()
            assert status(answer) == 431
            assert wire.is_closed_by_peer()
        assert ask(served.port, b"GET /after").body == b"ok"


def test_many_trailers_are_bounded_too(gateway):
    """Fields instead of one long one; a few are passed over."""
    with RawUpstream(echo) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(CHUNKED + b"3\r\nabc\r\n0\r\n" + b"x-a: b\r\n" * 20 + b"\r\n")
            assert wire.message().body == b"/x 3"
            wire.send(CHUNKED + b"3\r\nabc\r\n0\r\n" + b"x-a: b\r\n" * 40_000)
            assert status(wire.message()) == 431


def head(size: int) -> bytes:
    """A head of exactly so many bytes."""
    opening = b"GET /long HTTP/1.1\r\nHost: localhost\r\nX-Fill: "
    return opening + b"a" * (size - len(opening) - 4) + b"\r\n\r\n"


@pytest.mark.parametrize("size", [MAX_HEAD_BYTES + 1, 70_000, 120_000, 262_144])
@pytest.mark.parametrize("before", [b"", GET % b"/first"])
def test_a_head_over_the_limit_is_refused_in_one_write_too(gateway, size, before):
    """However much of it comes at once; the answer before it is the one before it."""
    with RawUpstream(echo) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(before + head(size))
            if before:
                assert wire.message().body == b"/first 0"
            assert status(wire.message()) == 431


@pytest.mark.parametrize("size", [200, MAX_HEAD_BYTES])
@pytest.mark.parametrize("body", [b"", b"a" * 70_000, b"\r\n\r\n" * 20_000, b"a" * 200_000])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_bytes_of_a_head_are_counted_exactly(gateway, size, body, is_chunked):
    """Bodies before a head are not counted as of it, wherever writes begin and end."""
    if is_chunked:
        first = CHUNKED + (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    else:
        first = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    whole = first + head(size)
    with RawUpstream(echo) as upstream:
        served = gateway(upstream.url)
        for cut in (len(first) + 10, len(whole) - 2):
            with dial(served.port) as wire:
                wire.send(whole[:cut])
                threading.Event().wait(0.03)
                wire.send(whole[cut:])
                assert wire.message().body == b"/x %d" % len(body)
                assert wire.message().body == b"/long 0"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_slices_end_where_heads_and_bodies_do(size):
    """Whatever pieces come."""
    sent = b"A: b\r\n\r\n" + b"0123456789" + b"\r\nC\r\n\r\n"
    slices, ends, at = MessageSlices(), set(), 0
    for start in range(0, len(sent), size):
        piece, within = sent[start : start + size], 0
        while within < len(piece):
            end = slices.end(piece, within)
            at += end - within
            ends.add(at)
            within = end
            if at == 8:
                slices.body_left = 10
    assert {8, 18, len(sent)} <= ends


def test_many_requests_in_one_write_are_answered_in_order(gateway):
    """Few of them are parsed ahead: what waits is bytes."""
    with RawUpstream(echo) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            threading.Thread(
                target=wire.send, args=(b"".join(GET % b"/%d" % n for n in range(400)),), daemon=True
            ).start()
            assert [wire.message().body for _ in range(400)] == [b"/%d 0" % n for n in range(400)]


# -- refusals --------------------------------------------------------------------------------------------------------

LONG = 8 * 2**20
REFUSED = {
    "another host": (421, b"POST /v1/messages HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: %d\r\n\r\n" % LONG),
    "too long": (413, b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % LONG),
    "too long in chunks": (
        413,
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % LONG,
    ),
    "another origin": (
        403,
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nOrigin: https://a.example\r\nContent-Length: %d\r\n\r\n" % LONG,
    ),
    "no target": (400, b"POST http://a/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % LONG),
    "two hosts": (400, b"POST / HTTP/1.1\r\nHost: localhost\r\nHost: b\r\nContent-Length: %d\r\n\r\n" % LONG),
    "an older version": (505, b"POST / HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % LONG),
    "a broken chunk": (400, CHUNKED + b"zz\r\n"),
    "a long head": (431, b"GET / HTTP/1.1\r\nX-A: "),
}


class Whole:
    """Answers a Messages request by its size."""

    async def handle(self, inbound):
        raise AssertionError("it is refused before")


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_reaches_a_client_that_is_still_sending(gateway, name):
    """As most do, it sends all before it reads: what it sends meanwhile is read and thrown away."""
    code, opening = REFUSED[name]
    with RawUpstream() as upstream:
        served = gateway(upstream.url, messages=Whole(), max_body_bytes=100_000)
        with dial(served.port) as wire:
            wire.send(opening + b"a" * LONG)
            threading.Event().wait(0.05)
            assert status(wire.message()) == code
            assert wire.is_closed_by_peer()


def test_what_is_read_after_a_refusal_is_bounded(gateway, monkeypatch):
    """In bytes, and in time."""
    monkeypatch.setattr(protocol.ProtocolRules, "__init__", rules(drain_bytes=100_000, drain_s=0.2))
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire, pytest.raises(OSError):
            wire.send(b"BAD\r\n\r\n")
            for _ in range(10_000):
                wire.send(b"a" * 65_536)
        with dial(served.port) as wire, pytest.raises(OSError):
            wire.send(b"BAD\r\n\r\n")
            assert until(lambda: wire.send(b"a") and False, 1.0)


def rules(**given):
    """The constructor with other bounds."""
    plain = protocol.ProtocolRules.__init__
    return lambda self, *arguments: plain(self, *arguments, **given)


BAD = {
    "garbage": (400, b"GARBAGE\r\n\r\n"),
    "an older version": (505, b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"),
    "a second version": (505, b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"),
    "too many headers": (431, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 300 + b"\r\n"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "a broken chunk": (400, CHUNKED + b"3\r\nabcXX0\r\n\r\n"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_bad_request_takes_no_answer_of_those_before_it(gateway, name, before):
    """Each gets its own, in order, the bad one its refusal."""
    code, bad = BAD[name]

    def script(wire, request):
        threading.Event().wait(0.05)
        echo(wire, request)

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"".join(GET % b"/%d" % n for n in range(before)) + bad)
            assert [wire.message().body for _ in range(before)] == [b"/%d 0" % n for n in range(before)]
            assert status(wire.message()) == code
            assert wire.is_closed_by_peer()


# -- a client that sends no more -------------------------------------------------------------------------------------


@pytest.mark.parametrize("requests", [1, 3])
@pytest.mark.parametrize("rest", [b"", b"GET /half"])
def test_a_client_that_closes_its_half_gets_its_answers(gateway, requests, rest):
    """To all that came whole; then the connection ends."""

    def script(wire, request):
        threading.Event().wait(0.1)
        echo(wire, request)

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"".join(GET % b"/%d" % n for n in range(requests)) + rest)
            wire.socket.shutdown(socket.SHUT_WR)
            assert [wire.message().body for _ in range(requests)] == [b"/%d 0" % n for n in range(requests)]
            assert wire.is_closed_by_peer()


def test_a_client_that_closed_its_half_is_told_that_its_answer_takes_long(gateway, monkeypatch):
    """By an interim answer; one that left altogether answers that with a reset, and the upstream's work ends."""
    monkeypatch.setattr(protocol, "HALF_CLOSED_GRACE_S", 0.05)
    monkeypatch.setattr(protocol, "PROBE_CHECK_S", 0.02)
    release, gone = threading.Event(), threading.Event()

    def script(wire, request):
        if b"/left" in request.line:
            assert wire.is_closed_by_peer()
            gone.set()
        else:
            assert release.wait(60)
            echo(wire, request)

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(GET % b"/waits")
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.head().line == b"HTTP/1.1 100 Continue"
            release.set()
            assert wire.message().body == b"/waits 0"
        with dial(served.port) as wire:
            wire.send(GET % b"/left")
            assert until(lambda: len(upstream.requests) == 2)
        assert gone.wait(10)


def test_a_client_that_closed_its_half_gets_a_stream_to_its_end(gateway, monkeypatch):
    """As long as something of it comes."""
    monkeypatch.setattr(protocol, "HALF_CLOSED_GRACE_S", 0.3)
    shut = threading.Event()

    def script(wire, request):
        wire.stream_head()
        wire.chunk(b"one ")
        assert shut.wait(60)
        for _ in range(8):
            threading.Event().wait(0.1)
            wire.chunk(b"more ")
        wire.end()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(GET % b"/stream")
            assert wire.head() is not None
            wire.socket.shutdown(socket.SHUT_WR)
            shut.set()
            assert wire.chunks() == b"one " + b"more " * 8


# -- statuses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [b"600 Odd", b"999 Odd", b"101 Switching Protocols", b"700 Odd"])
def test_a_status_that_is_none_of_http_is_a_502(gateway, code):
    """A protocol that nobody asked for is one too; the connection is not used again."""
    with RawUpstream(lambda wire, request: wire.send(b"HTTP/1.1 %b\r\ncontent-length: 1\r\n\r\nx" % code)) as upstream:
        served = gateway(upstream.url)
        for _ in range(2):
            assert status(ask(served.port, b"POST /x", body=b"{}")) == 502
        assert upstream.connections == 2
        fault = "upstream_cut" if code.startswith(b"101") else "upstream_unreadable"
        assert served.recorder.of(Fault) == [fault] * 2


@pytest.mark.parametrize(
    ("code", "length"), [(b"304 Not Modified", b"3"), (b"304 Not Modified", b"0"), (b"204 None", None)]
)
def test_a_status_without_a_body_may_say_a_length(gateway, code, length):
    """That of a body which does not come; with 204 it has no meaning, and goes."""
    sent = b"HTTP/1.1 %b\r\ncontent-length: %b\r\netag: x\r\n\r\n" % (code, length or b"3")
    with RawUpstream(lambda wire, request: wire.send(sent)) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            for _ in range(2):
                wire.send(GET % b"/x")
                answer = wire.message(no_body=True)
                assert answer.line.split(b" ")[1] == code[:3] and answer.one(b"content-length") == length
                assert answer.one(b"transfer-encoding") is None


def test_of_chunks_and_a_length_the_chunks_hold(gateway):
    """A length beside them says nothing."""
    sent = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n8\r\nABCDEFGH\r\n0\r\n\r\n"
    with RawUpstream(lambda wire, request: wire.send(sent)) as upstream:
        served = gateway(upstream.url)
        assert ask(served.port, b"GET /x").body == b"ABCDEFGH"
