"""The upstream's connections: kept, renewed, bounded in time, and made through the user's proxy."""

import select
import socket
import ssl
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from live import RawUpstream, ask, dial, status, until

from cg.errors import CgError
from cg.gateway.upstream.base_url import checked
from cg.gateway.upstream.pool import PooledUpstream
from cg.gateway.upstream.proxy_environment import proxy_for


def test_a_connection_serves_one_request_after_another(gateway):
    """Also those of different clients."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        for n in range(5):
            assert ask(served.port, b"POST /%d" % n, body=b"{}").body == b"ok"
        assert upstream.connections == 1 and len(upstream.requests) == 5


def test_a_connection_that_the_upstream_has_closed_is_not_used_again(gateway):
    """A request on it would be lost."""
    closed = threading.Event()

    def script(wire, request):
        wire.reply(b"ok")
        if request.line.startswith(b"GET /1"):
            wire.fin()
            closed.set()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        assert ask(served.port, b"GET /1").body == b"ok"
        assert closed.wait(60)
        threading.Event().wait(0.05)
        assert ask(served.port, b"POST /2", body=b"{}").body == b"ok"
        assert upstream.connections == 2


def test_a_connection_is_not_used_again_after_a_client_left_in_the_middle(gateway):
    """What is left of the abandoned reply must not become the next one's beginning."""

    def script(wire, request):
        if b"/left" in request.line:
            wire.stream_head()
            wire.chunk(b"x")
            wire.is_closed_by_peer()
        else:
            wire.reply(b"ok")

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as left:
            left.sendall(b"GET /left HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert left.recv(100)
        for _ in range(3):
            assert ask(served.port, b"GET /x").body == b"ok"


def test_a_request_that_reached_the_upstream_is_not_sent_again(gateway):
    """It may have been charged for; the client decides."""

    def script(wire, request):
        wire.fin()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        assert status(ask(served.port, b"POST /x", body=b"{}")) == 502
        assert len(upstream.requests) == 1


def test_a_reading_request_without_an_answer_is_sent_once_more(gateway):
    """It costs nothing and changes nothing."""
    seen = []

    def script(wire, request):
        seen.append(request.line)
        if len(seen) == 1:
            wire.fin()
        else:
            wire.reply(b"ok")

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        assert ask(served.port, b"GET /x").body == b"ok"
        assert len(seen) == 2


def test_interim_answers_are_passed_over(gateway):
    """The final one is the answer."""

    def script(wire, request):
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        wire.reply(b"ok")

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        answer = ask(served.port, b"GET /x")
        assert answer.body == b"ok" and answer.one(b"link") is None


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nbad header: x\r\ncontent-length: 0\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"\x00" * 100,
    ],
)
def test_an_answer_that_is_not_http_is_a_502(gateway, raw):
    """And is not passed on as if it were."""

    def script(wire, request):
        wire.send(raw)
        wire.fin()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        assert status(ask(served.port, b"POST /x", body=b"{}")) == 502


def test_an_http_upstream_is_asked_through_the_proxy(gateway):
    """With the absolute target that a proxy needs, and its own credential."""
    with RawUpstream() as proxy:
        served = gateway(
            "http://api.example/base", environment={"http_proxy": f"http://me:pass@127.0.0.1:{proxy.port}"}
        )
        assert ask(served.port, b"GET /x?y=%20").body == b"ok"
        (request,) = proxy.requests
        assert request.line == b"GET http://api.example/base/x?y=%20 HTTP/1.1"
        assert request.one(b"host") == b"api.example"
        assert request.one(b"proxy-authorization") == b"Basic bWU6cGFzcw=="


def test_an_https_upstream_is_asked_through_a_tunnel(gateway):
    """The proxy learns host and port and nothing else."""

    def script(wire, request):
        wire.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

    with RawUpstream(script) as proxy:
        served = gateway("https://api.example", environment={"HTTPS_PROXY": f"127.0.0.1:{proxy.port}"})
        answer = ask(served.port, b"POST /x", b"x-api-key: secret", body=b"{}")
        assert status(answer) == 502 and b"ProxyError" in answer.body
        for request in proxy.requests:
            assert request.line == b"CONNECT api.example:443 HTTP/1.1"
            assert request.one(b"x-api-key") is None


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://a.example", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://a.example", {"HTTPS_PROXY": "http://p:1", "https_proxy": "http://q:1"}, "http://q:1"),
        ("https://a.example", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://a.example", {"ALL_PROXY": "socks5://p:1"}, "socks5://p:1"),
        ("https://a.example", {"HTTPS_PROXY": ""}, None),
        ("https://a.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example"}, None),
        ("https://a.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example"}, None),
        ("https://a.example", {"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
        ("https://a.example:444", {"HTTPS_PROXY": "http://p:1", "no_proxy": "a.example:444"}, None),
        ("https://a.example:444", {"HTTPS_PROXY": "http://p:1", "no_proxy": "a.example:445"}, "http://p:1"),
        ("https://b.example", {"HTTPS_PROXY": "http://p:1", "no_proxy": "a.example"}, "http://p:1"),
        ("http://a.example", {"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, None),
    ],
)
def test_the_proxy_variables(url, environment, proxy):
    """As other programs read them."""
    assert proxy_for(urlsplit(url), environment) == proxy


@pytest.mark.parametrize(
    "url",
    ["", "api.example", "ftp://a", "http://", "http://u:p@a", "http://a?b", "http://a#b", "http://a:x", "http://a/ b"],
)
def test_an_upstream_that_is_no_base_url_is_refused(url):
    """Before anything is sent anywhere; the message repeats nothing of it."""
    with pytest.raises(CgError) as caught:
        checked(url)
    assert "u:p" not in str(caught.value)


def test_a_proxy_that_cannot_be_used_is_refused():
    """At the start, not at the first request."""
    with pytest.raises(CgError, match="proxy"):
        PooledUpstream("https://a.example", environment={"HTTPS_PROXY": "gopher://p:1"})


def test_an_authority_file_that_cannot_be_read_is_refused():
    """A gateway that cannot verify its upstream does not start."""
    with pytest.raises(CgError, match="NODE_EXTRA_CA_CERTS"):
        PooledUpstream("https://a.example", environment={"NODE_EXTRA_CA_CERTS": "/does/not/exist"})


CERTIFICATE = Path(__file__).parents[2] / "data" / "gateway" / "localhost.pem"  # of nobody but these tests


def secured(script=lambda wire, request: wire.reply(b"ok")):
    """An upstream that speaks TLS with a certificate that no system trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return RawUpstream(script, wrap=lambda connection: context.wrap_socket(connection, server_side=True))


def test_an_upstream_behind_tls_is_verified(gateway):
    """With the authorities that the client's own variable adds; without them nothing is sent."""
    with secured() as upstream:
        url = f"https://localhost:{upstream.port}"
        trusting = gateway(url, environment={"NODE_EXTRA_CA_CERTS": str(CERTIFICATE)})
        body = bytes(range(256)) * 8192
        for _ in range(3):
            assert ask(trusting.port, b"POST /x", body=body).body == b"ok"
        assert upstream.connections == 1 and [request.body for request in upstream.requests] == [body] * 3
        answer = ask(gateway(url).port, b"POST /x", b"x-api-key: secret", body=b"{}")
        assert status(answer) == 502 and b"ConnectError" in answer.body
        assert len(upstream.requests) == 3


def test_events_pass_one_by_one_through_tls(gateway):
    """Nothing waits for a record to fill."""
    heard = threading.Event()

    def script(wire, request):
        wire.stream_head()
        for n in range(3):
            wire.chunk(b"data: %d\n\n" % n)
            assert heard.wait(60)
            heard.clear()
        wire.end()

    with secured(script) as upstream:
        environment = {"NODE_EXTRA_CA_CERTS": str(CERTIFICATE)}
        served = gateway(f"https://127.0.0.1:{upstream.port}", environment=environment)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert wire.head() is not None
            for n in range(3):
                assert wire.exactly(int(wire.line_end(b"\r\n"), 16) + 2) == b"data: %d\n\n\r\n" % n
                heard.set()
            assert wire.chunks() == b""


def test_tls_through_a_tunnel(gateway):
    """The proxy opens the tunnel and sees nothing of what passes."""
    with secured() as upstream:
        seen = []

        def script(wire, request):
            seen.append(request.line)
            wire.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            with socket.create_connection(("127.0.0.1", upstream.port)) as other:
                shovel(wire.socket, other, seen)

        with RawUpstream(script) as proxy:
            served = gateway(
                f"https://localhost:{upstream.port}",
                environment={
                    "NODE_EXTRA_CA_CERTS": str(CERTIFICATE),
                    "https_proxy": f"http://127.0.0.1:{proxy.port}",
                },
            )
            assert ask(served.port, b"POST /x", b"x-api-key: in-the-clear", body=b"{}").body == b"ok"
            served.live.stop()
            assert until(lambda: not served.live.is_alive)
        assert seen[0] == b"CONNECT localhost:%d HTTP/1.1" % upstream.port
        assert len(seen) > 2 and not any(b"in-the-clear" in piece for piece in seen)


def shovel(one, other, seen):
    """Pass bytes both ways until one side ends."""
    while True:
        ready, _, _ = select.select([one, other], [], [], 10)
        if not ready:
            return
        for source in ready:
            piece = source.recv(65536)
            if not piece:
                return
            seen.append(piece)
            (other if source is one else one).sendall(piece)


def test_a_socks_proxy_is_used(gateway):
    """By name: the proxy resolves it."""
    asked = []

    def relay(listener, port):
        with listener, listener.accept()[0] as connection, socket.create_connection(("127.0.0.1", port)) as other:
            assert connection.recv(3) == b"\x05\x01\x00"
            connection.sendall(b"\x05\x00")
            asked.append(connection.recv(262))
            connection.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
            shovel(connection, other, [])

    with RawUpstream() as upstream:
        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=relay, args=(listener, upstream.port), daemon=True)
        thread.start()
        environment = {"ALL_PROXY": f"socks5h://127.0.0.1:{listener.getsockname()[1]}"}
        served = gateway("http://api.example:81", environment=environment)
        assert ask(served.port, b"GET /x").body == b"ok"
        served.live.stop()
        thread.join(60)
        assert asked == [b"\x05\x01\x00\x03\x0bapi.example\x00\x51"]
        assert upstream.requests[0].line == b"GET /x HTTP/1.1"
