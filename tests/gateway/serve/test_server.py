"""The server: its connections, its limits in time, its end."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from live import RawUpstream, ask, dial, status, until

from cg.errors import CgError
from cg.gateway.serve.server import listen, url_of


def slow_stream(release, *, started=None):
    def script(wire, request):
        wire.stream_head()
        wire.chunk(b"first")
        if started is not None:
            started.set()
        assert release.wait(60)
        wire.chunk(b"last")
        wire.end()

    return script


def test_a_stop_lets_open_streams_finish_and_takes_no_more(gateway):
    """The client of a stream sees nothing of the stop; a new one is not let in."""
    release = threading.Event()
    stream = slow_stream(release)
    with RawUpstream(lambda w, r: w.reply() if b"/y" in r.line else stream(w, r)) as upstream:
        served = gateway(upstream.url)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert wire.head() is not None
            served.live.stop()
            assert until(lambda: served.app.is_stopping)

            def is_shut():
                try:
                    with dial(served.port) as other:
                        other.send(b"GET /y HTTP/1.1\r\nhost: localhost\r\n\r\n")
                        return other.message() is None
                except OSError:
                    return True

            assert until(is_shut)
            assert served.live.is_alive
            release.set()
            assert wire.chunks() == b"firstlast"
        assert until(lambda: not served.live.is_alive)


def test_a_stop_does_not_wait_for_ever(gateway):
    """A stream that does not end is cut after the time for it."""
    release = threading.Event()
    try:
        with RawUpstream(slow_stream(release)) as upstream:
            served = gateway(upstream.url, stop_timeout_s=1)
            with dial(served.port) as wire:
                wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert wire.head() is not None
                served.live.stop()
                assert until(lambda: not served.live.is_alive)
            release.set()
    finally:
        release.set()


def test_what_was_started_is_stopped_in_order(gateway):
    """After the last answer, each once, the upstream's connections last; a fault in one does not keep the next."""
    order = []

    async def start():
        order.append("start")

    async def bad():
        order.append("bad")
        raise ValueError

    async def stop():
        order.append("stop")

    with RawUpstream() as upstream:
        served = gateway(upstream.url, on_start=[start], on_stop=[bad, stop])
        assert ask(served.port, b"GET /x").body == b"ok"
        assert order == ["start"]
        served.live.stop()
        assert until(lambda: not served.live.is_alive)
        assert order == ["start", "bad", "stop"]


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b", b"\r\n" * 100])
def test_a_head_that_does_not_come_ends_its_connection(gateway, sent):
    """Whoever opens connections and says nothing holds none of them."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, head_timeout_s=0.3)
        with dial(served.port) as wire:
            wire.send(sent)
            assert wire.is_closed_by_peer()
        assert upstream.requests == []


def test_a_head_in_drips_ends_its_connection(gateway):
    """The limit is on the whole head, so that a byte now and then does not extend it."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, head_timeout_s=0.5)
        with dial(served.port) as wire:
            wire.send(b"GET / HTTP/1.1\r\n")
            try:
                for n in range(100):
                    wire.send(b"x-%d: y\r\n" % n)
                    threading.Event().wait(0.05)
            except OSError:
                pass
            else:
                pytest.fail("the connection was held open by drips")


def test_a_second_head_has_a_limit_too(gateway):
    """Also on a connection that was good once."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, head_timeout_s=0.3)
        with dial(served.port) as wire:
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert wire.message().body == b"ok"
            threading.Event().wait(0.5)  # idle between requests is no head
            wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert wire.message().body == b"ok"
            wire.send(b"GET /x HT")
            assert wire.is_closed_by_peer(3.0)


def test_connections_are_bounded(gateway):
    """One past the bound is closed at once, and the others go on."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, max_connections=2)
        with dial(served.port) as one, dial(served.port) as two:
            for wire in (one, two):
                wire.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert wire.message().body == b"ok"
            with dial(served.port) as three:
                assert three.is_closed_by_peer()
            one.send(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert one.message().body == b"ok"
        assert until(lambda: status(ask(served.port, b"GET /x")) == 200)


def test_sixty_four_streams_at_once(gateway):
    """All open at one time, none dropped, none mixed up, none held up by another."""
    count, open_now = 64, []
    all_open, lock = threading.Event(), threading.Lock()

    def script(wire, request):
        name = request.line.split(b" ")[1]
        wire.stream_head()
        with lock:
            open_now.append(name)
            if len(open_now) == count:
                all_open.set()
        assert all_open.wait(60)
        for n in range(50):
            wire.chunk(b"%s event %d\n" % (name, n))
        wire.end()

    with RawUpstream(script) as upstream:
        served = gateway(upstream.url)
        with ThreadPoolExecutor(count) as pool:
            answers = list(pool.map(lambda n: ask(served.port, b"GET /%d" % n).body, range(count)))
        for n, answer in enumerate(answers):
            assert answer == b"".join(b"/%d event %d\n" % (n, i) for i in range(50))
        assert upstream.connections == count


def test_an_address_in_use_is_said():
    """With the address, before anything is started."""
    with listen(("127.0.0.1", 0)) as taken, pytest.raises(CgError, match=f"127.0.0.1:{taken.getsockname()[1]}"):
        listen(taken.getsockname()[:2])


def test_the_url_for_a_client_on_this_machine():
    """With the port that was taken."""
    with listen(("127.0.0.1", 0)) as one:
        assert url_of(one) == f"http://127.0.0.1:{one.getsockname()[1]}"
    with listen(("0.0.0.0", 0)) as any_address:
        assert url_of(any_address) == f"http://127.0.0.1:{any_address.getsockname()[1]}"
