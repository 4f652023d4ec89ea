"""What is not the sweep's business passes byte for byte, in both directions and as it comes."""

import gzip
import hashlib
import threading

import pytest
from live import RawUpstream, ask, dial, status, until

from cg.gateway.events import Fault, RequestClosed, Route, UpstreamReplied
from cg.gateway.http.forwarding import incoming, outgoing


def test_hop_by_hop_headers_and_ours_do_not_leave():
    """What describes one connection ends with it; what is said to the gateway is not told to the upstream."""
    kept = [(b"x-api-key", b"k"), (b"anthropic-beta", b"a"), (b"anthropic-beta", b"b"), (b"accept-encoding", b"br")]
    gone = [
        (b"host", b"localhost"),
        (b"connection", b"keep-alive, X-Private"),
        (b"x-private", b"1"),
        (b"keep-alive", b"timeout=5"),
        (b"te", b"trailers"),
        (b"trailer", b"x"),
        (b"transfer-encoding", b"chunked"),
        (b"content-length", b"3"),
        (b"upgrade", b"h2c"),
        (b"proxy-authorization", b"secret"),
        (b"proxy-connection", b"keep-alive"),
        (b"expect", b"100-continue"),
        (b"x-cg-session", b"s"),
        (b"x-cg-token", b"t"),
    ]
    assert outgoing([pair for two in zip(kept, gone, strict=False) for pair in two] + gone[4:]) == kept


def test_hop_by_hop_headers_do_not_come_back():
    """The reply's own framing is the server's; its length stays, as nothing of the body changes."""
    headers = [
        (b"content-length", b"5"),
        (b"connection", b"close, content-length, x-private"),
        (b"x-private", b"1"),
        (b"transfer-encoding", b"chunked"),
        (b"keep-alive", b"timeout=5"),
        (b"x-cg-forged", b"1"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"request-id", b"r"),
    ]
    assert incoming(headers) == [headers[0], *headers[6:]]


TARGETS = [
    b"/",
    b"/v1/models",
    b"/v1/messages/batches?limit=20&after_id=x",
    b"/a%2Fb/%c3%a9?q=%20+&q=2&&=",
    b"/v1/files?",
    b"//x//y/../z/./?a?b?c",
    b"/~!$&'()*+,;=:@[]|^`{}\"<>\\",
]


@pytest.mark.parametrize("target", TARGETS)
def test_the_target_passes_byte_for_byte(gateway, target):
    """Neither decoded, encoded, nor normalised; an empty query stays one."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url + "/base/")
        assert status(ask(served.port, b"GET " + target)) == 200
        assert upstream.requests[0].line == b"GET /base" + target + b" HTTP/1.1"


@pytest.mark.parametrize("method", [b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"])
def test_every_method_passes_with_its_body(gateway, method):
    """A body belongs to a request whatever its method."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        assert status(ask(served.port, method + b" /x", b"content-type: a/b", body=b"\x00\xff{}")) == 200
        (request,) = upstream.requests
        assert request.line == method + b" /x HTTP/1.1"
        assert request.body == b"\x00\xff{}" and request.one(b"content-length") == b"4"
        assert request.one(b"transfer-encoding") is None


def test_headers_pass_in_their_order_with_their_repeats_and_bytes(gateway):
    """Also a value that is no ASCII, and one that is empty; nothing is added but the upstream's own host."""
    sent = [
        (b"x-api-key", b"k"),
        (b"anthropic-beta", b"one"),
        (b"x-latin", b"caf\xe9"),
        (b"anthropic-beta", b"two,three"),
        (b"x-empty", b""),
        (b"user-agent", b"u/1 (x; y)"),
        (b"accept-encoding", b"gzip, br, zstd"),
        (b"cookie", b"a=b; c=d"),
    ]
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        ask(served.port, b"GET /x", *(name + b": " + value for name, value in sent), b"x-cg-session: mine")
        (request,) = upstream.requests
        assert [(n.lower(), v) for n, v in request.headers] == [(b"host", b"127.0.0.1:%d" % upstream.port), *sent]


def test_the_answer_passes_with_status_headers_and_bytes(gateway):
    """A compressed body stays compressed, two cookies stay two, an unknown status stays what it is."""
    packed = gzip.compress(b"x" * 1000)

    def script(wire, request):
        wire.reply(
            packed,
            "529 Site Overloaded",
            b"Content-Encoding: gzip",
            b"Set-Cookie: a=1",
            b"Set-Cookie: b=2",
            b"Retry-After: 7",
            b"Request-Id: r",
            b"X-Latin: caf\xe9",
            b"X-Tab: a\tb",
            b"Connection: keep-alive",
        )

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        answer = ask(served.port, b"GET /x")
        assert status(answer) == 529 and answer.body == packed
        assert answer.headers == [
            (b"content-encoding", b"gzip"),
            (b"set-cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
            (b"retry-after", b"7"),
            (b"request-id", b"r"),
            (b"x-latin", b"caf\xe9"),
            (b"x-tab", b"a\tb"),
            (b"content-length", b"%d" % len(packed)),
        ]
        assert until(lambda: served.recorder.of(RequestClosed) == [RequestClosed(Route.OTHER, 529)])
        assert served.recorder.of(UpstreamReplied) == [UpstreamReplied(529)]


def test_a_redirect_is_the_client_s_to_follow(gateway):
    """The gateway talks to one upstream and to nobody that it names."""
    with RawUpstream(lambda wire, request: wire.reply(b"", "307 Temporary Redirect", b"location: /else")) as upstream:
        served = gateway(upstream.url)
        answer = ask(served.port, b"GET /x")
        assert status(answer) == 307 and answer.one(b"location") == b"/else"
        assert len(upstream.requests) == 1


@pytest.mark.parametrize("code", ["204 No Content", "304 Not Modified"])
def test_an_answer_without_a_body_ends_at_once(gateway, code):
    """The connection serves the next request."""

    def script(wire, request):
        wire.send(f"HTTP/1.1 {code}\r\netag: x\r\n\r\n".encode())

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            for _ in range(2):
                wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
                answer = wire.message(no_body=True)
                assert answer.line.startswith(b"HTTP/1.1 " + code[:3].encode()) and answer.one(b"etag") == b"x"
        assert upstream.connections == 1


def test_the_head_of_an_answer_passes_with_its_length(gateway):
    """HEAD says how long the body would be."""
    with RawUpstream(lambda wire, request: wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 12345\r\n\r\n")) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            for _ in range(2):
                wire.send(b"HEAD /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert wire.message(no_body=True).one(b"content-length") == b"12345"


def test_a_body_in_chunks_stays_one(gateway):
    """No length is invented for a body whose end only its sender knows."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"POST /x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
            wire.send(b"2;ext=1\r\nde\r\n0\r\n\r\n")
            assert wire.message().body == b"ok"
        (request,) = upstream.requests
        assert request.body == b"abcde" and request.one(b"transfer-encoding") == b"chunked"
        assert request.one(b"content-length") is None


def test_a_post_without_a_body_says_so(gateway):
    """Some servers refuse a POST that gives no length."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        ask(served.port, b"POST /x", b"content-length: 0")
        assert upstream.requests[0].one(b"content-length") == b"0"


def test_events_pass_one_by_one(gateway):
    """Each event is with the client before the upstream sends the next, and the head before the first."""
    heard = threading.Event()

    def script(wire, request):
        wire.stream_head(b"content-type: text/event-stream")
        for n in range(3):
            assert heard.wait(60), "the client did not get what was sent before"
            heard.clear()
            wire.chunk(b"event: e\ndata: %d\n\n" % n)
        assert heard.wait(60)
        wire.end()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}")
            assert wire.head().one(b"content-type") == b"text/event-stream"
            for n in range(3):
                heard.set()
                assert wire.exactly(int(wire.line_end(b"\r\n"), 16) + 2) == b"event: e\ndata: %d\n\n\r\n" % n
            heard.set()
            assert wire.chunks() == b""


def test_a_request_s_body_passes_as_it_comes(gateway):
    """An upload starts upstream before it has ended, so its size is nobody's limit."""
    began = threading.Event()

    def script(wire, request):
        assert wire.exactly(5) == b"first"
        began.set()
        assert wire.exactly(6) == b"second"
        wire.reply(b"done")

    with RawUpstream(script, reads_bodies=False) as upstream:
        served = gateway(upstream.url, max_body_bytes=4)
        with dial(served.port) as wire:
            wire.send(b"POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: 11\r\n\r\nfirst")
            assert began.wait(60)
            wire.send(b"second")
            assert wire.message().body == b"done"


def test_large_bodies_pass_whole(gateway):
    """24 MiB up and down, through buffers that are far smaller."""
    body = bytes(range(256)) * (24 * 4096)

    def script(wire, request):
        assert hashlib.sha256(request.body).digest() == hashlib.sha256(body).digest()
        wire.reply(request.body)

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        assert ask(served.port, b"POST /v1/files", body=body).body == body


def test_a_reply_that_ends_with_its_connection_passes(gateway):
    """An old server gives neither length nor chunks."""

    def script(wire, request):
        wire.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it")
        wire.fin()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        assert ask(served.port, b"GET /x").body == b"all of it"


def test_an_early_answer_passes(gateway):
    """An upstream that refuses a body before it has come is heard."""

    def script(wire, request):
        wire.reply(b"too much", "413 Payload Too Large", b"connection: close")
        wire.is_closed_by_peer()

    with RawUpstream(script, reads_bodies=False) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n" + b"x" * 1000)
            answer = wire.message()
            assert status(answer) == 413 and answer.body == b"too much"


def test_routes_of_other_providers_pass_and_are_counted(gateway):
    """A client of another provider that is pointed here is seen in the figures."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        for path in (b"/v1/chat/completions", b"/v1/responses", b"/v1beta/models/g:generateContent"):
            assert ask(served.port, b"POST " + path, body=b"{}").body == b"ok"
        assert until(lambda: len(served.recorder.of(RequestClosed)) == 3)
        assert {event.route for event in served.recorder.of(RequestClosed)} == {Route.FOREIGN}


def test_an_upgrade_is_not_taken_up(gateway):
    """The request is answered as HTTP/1.1, as if nothing else had been offered."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        answer = ask(
            served.port, b"GET /x", b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AA"
        )
        assert status(answer) == 200
        (request,) = upstream.requests
        assert request.one(b"upgrade") is None and request.one(b"http2-settings") is None


def test_a_client_that_goes_away_ends_the_upstream_s_work(gateway):
    """Tokens that nobody reads are not paid for."""
    ended = threading.Event()

    def script(wire, request):
        wire.stream_head()
        wire.chunk(b"event")
        assert wire.is_closed_by_peer()
        ended.set()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}")
            assert wire.head() is not None
        assert ended.wait(60)
        assert until(lambda: Fault.CLIENT_GONE in served.recorder.of(Fault))


def test_a_client_that_goes_away_before_the_answer_ends_the_upstream_s_work_too(gateway):
    """Also while nothing has come back yet."""
    asked, ended = threading.Event(), threading.Event()

    def script(wire, request):
        asked.set()
        assert wire.is_closed_by_peer()
        ended.set()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert asked.wait(60)
        assert ended.wait(60)
        assert until(lambda: served.recorder.of(RequestClosed) == [RequestClosed(Route.OTHER, 0)])


def test_a_client_that_goes_away_within_its_body_ends_the_upstream_s_request(gateway):
    """A request that never became whole is not completed for it."""
    ended = threading.Event()

    def script(wire, request):
        assert wire.is_closed_by_peer()
        ended.set()

    with RawUpstream(script, reads_bodies=False) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf")
            assert until(lambda: upstream.requests)
        assert ended.wait(60)
