"""Heads that two readers could understand differently are refused."""

import pytest
from live import RawUpstream, ask, dial, status

from cg.gateway.http import request_target

HOST = (b"host", b"localhost")


@pytest.mark.parametrize(
    "headers",
    [
        [HOST],
        [HOST, (b"content-length", b"0")],
        [HOST, (b"content-length", b"12")],
        [HOST, (b"transfer-encoding", b"chunked")],
        [HOST, (b"transfer-encoding", b"Chunked")],
        [HOST, (b"x-name", b"with\ta tab, and \xe9")],
    ],
)
def test_a_head_with_one_meaning_is_taken(headers):
    """One host and at most one way to find the body's end."""
    assert request_target.fault(headers) is None


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [HOST, HOST],
        [HOST, (b"content-length", b"5"), (b"content-length", b"5")],
        [HOST, (b"content-length", b"5"), (b"content-length", b"6")],
        [HOST, (b"content-length", b"5"), (b"transfer-encoding", b"chunked")],
        [HOST, (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"identity")],
        [HOST, (b"transfer-encoding", b"gzip, chunked")],
        [HOST, (b"transfer-encoding", b"chunked\x0b")],
        [HOST, (b"transfer-encoding", b"xchunked")],
        [HOST, (b"content-length", b"+5")],
        [HOST, (b"content-length", b"-5")],
        [HOST, (b"content-length", b"5, 5")],
        [HOST, (b"content-length", b"0x5")],
        [HOST, (b"content-length", b"")],
        [HOST, (b"content-length", b"1" * 16)],
        [HOST, (b"content-length", b"\xb2")],
        [HOST, (b"na me", b"v")],
        [HOST, (b"", b"v")],
        [HOST, (b"name", b"v\r\nx: y")],
        [HOST, (b"name", b"v\nx: y")],
        [HOST, (b"name", b"\x00")],
        [HOST, *[(b"n", b"v")] * request_target.MAX_HEADERS],
    ],
)
def test_a_head_with_two_meanings_is_refused(headers):
    """Each of these has been read differently by two servers, or is too long to be meant."""
    assert request_target.fault(headers) is not None


def test_another_version_is_refused():
    """A reply in chunks means nothing to an older client."""
    assert request_target.fault([HOST], "1.0") is not None


@pytest.mark.parametrize("target", [b"/", b"/v1/messages?beta=true", b"//double", b"/%2e%2e/x", b"/?"])
def test_a_path_is_a_target(target):
    """Whatever the path, it is the upstream's to understand."""
    assert request_target.is_origin_form(target)


@pytest.mark.parametrize(
    "target", [b"", b"*", b"http://elsewhere/", b"elsewhere:443", b"/a b", b"/\xc3\xa9", b"/a\r\n"]
)
def test_anything_else_is_no_target(target):
    """An absolute URL would make a forward proxy of the gateway."""
    assert not request_target.is_origin_form(target)


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
ATTEMPTS = {
    "length and chunks": b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n" + SMUGGLED,
    "chunks and length": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n"
    b"0\r\n\r\n" + SMUGGLED,
    "two lengths": b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n" + SMUGGLED,
    "one length twice": b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"
    + SMUGGLED,
    "a list of lengths": b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0, 44\r\n\r\n" + SMUGGLED,
    "a signed length": b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: +0\r\n\r\n" + SMUGGLED,
    "a folded header": b"POST /a HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n Content-Length: 44\r\n\r\n" + SMUGGLED,
    "folded chunks": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "bare line feeds": b"POST /a HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n" + SMUGGLED,
    "a bare line feed within": b"POST /a HTTP/1.1\r\nHost: localhost\r\nX-A: b\nContent-Length: 44\r\n\r\n" + SMUGGLED,
    "a bare carriage return": b"POST /a HTTP/1.1\r\nHost: localhost\r\nX-A: b\rContent-Length: 44\r\n\r\n" + SMUGGLED,
    "a space before the colon": b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length : 44\r\n\r\n" + SMUGGLED,
    "an unknown encoding": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: identity\r\n\r\n" + SMUGGLED,
    "chunked not last": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n"
    + SMUGGLED,
    "chunked twice": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n" + SMUGGLED,
    "an underscore": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "a null byte": b"POST /a HTTP/1.1\r\nHost: localhost\r\nX-A: b\x00c\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
    "a chunk size with a sign": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n+0\r\n\r\n"
    + SMUGGLED,
    "a chunk size in 0x": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n"
    + SMUGGLED,
    "a chunk size past 64 bits": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"10000000000000000\r\n\r\n" + SMUGGLED,
    "a chunk longer than it says": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"1\r\nabc\r\n0\r\n\r\n" + SMUGGLED,
    "a chunk ended by a line feed": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\n\n"
    + SMUGGLED,
    "a length behind the chunks": b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n0\r\ncontent-length: 99\r\n\r\n" + SMUGGLED,
    "no host": b"GET /a HTTP/1.1\r\n\r\n" + SMUGGLED,
    "two hosts": b"GET /a HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere\r\n\r\n" + SMUGGLED,
    "an absolute target": b"GET http://elsewhere/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "a tunnel": b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: localhost\r\n\r\n" + SMUGGLED,
    "no target": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "an older version": b"GET /a HTTP/1.0\r\nHost: localhost\r\n\r\n" + SMUGGLED,
    "the second version": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SMUGGLED,
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_no_request_is_smuggled(gateway, name):
    """A refused head ends its connection: nothing after it is read as a request, and nothing of it reaches the upstream."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(ATTEMPTS[name])
            answer = wire.message()
            assert answer is None or 400 <= status(answer) < 600, answer
            assert wire.is_closed_by_peer()
        assert ask(served.port, b"GET /after").body == b"ok"  # the gateway goes on
        assert [request.line for request in upstream.requests] in (
            [b"GET /after HTTP/1.1"],
            # Its head was sound; the body, which was not, was never completed towards the upstream.
            [b"POST /a HTTP/1.1", b"GET /after HTTP/1.1"],
        )
        assert all(b"smuggled" not in request.line for request in upstream.requests)


def test_a_trailer_does_not_become_a_header(gateway):
    """What stands behind a body in chunks can overrule no header that was checked, and is not passed on."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(
                b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: x-api-key\r\n\r\n"
                b"3\r\nabc\r\n0\r\nx-api-key: forged\r\nx-cg-session: forged\r\n\r\n"
            )
            assert status(wire.message()) == 200
        (request,) = upstream.requests
        assert request.body == b"abc"
        assert request.one(b"x-api-key") is None


def test_a_header_cannot_be_injected_by_an_encoded_line_break(gateway):
    """Percent signs stay percent signs: nothing of a target is decoded on its way."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        ask(served.port, b"GET /a%0d%0aX-Injected:%20yes?b=%0d%0a", b"x-b: %0d%0ac: d")
        (request,) = upstream.requests
        assert request.line == b"GET /a%0d%0aX-Injected:%20yes?b=%0d%0a HTTP/1.1"
        assert request.one(b"x-b") == b"%0d%0ac: d" and request.one(b"x-injected") is None


@pytest.mark.parametrize("endless", [b"x: " + b"y" * 4096, b"x: y\r\n" * 512, b"GET"], ids=["value", "headers", "line"])
def test_a_head_without_end_is_refused(gateway, endless):
    """Past 64 KiB of head the connection ends, whatever part of it has no end."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            try:
                wire.send(b"GET /" if endless == b"GET" else b"GET / HTTP/1.1\r\nHost: localhost\r\n")
                for _ in range(64):
                    wire.send(endless if endless != b"GET" else b"a" * 4096)
            except OSError:
                pass  # it was refused while we were still writing
            assert wire.is_closed_by_peer()
        assert upstream.requests == []


def test_requests_in_one_write_are_answered_in_order(gateway):
    """A client may send its next request before it has read an answer."""

    def script(wire, request):
        wire.reply(request.line.split(b" ")[1])

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % n for n in range(8)))
            assert [wire.message().body for _ in range(8)] == [b"/%d" % n for n in range(8)]
