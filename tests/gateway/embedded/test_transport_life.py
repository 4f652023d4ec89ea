"""A transport lives in its client's process: threads, forks, interrupts, event loops, and its end."""

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="httpx2 is not installed: the transport is an extra")

import httpx2
from carried import PATIENCE_S, WAYS, Carried, carried, until, upstream
from wired import ALL_SPENT, WORK, EventRecorder, Talk

from cg.errors import CgError
from cg.gateway.events import Timer
from cg.gateway.transport import AsyncTransport, Transport
from cg.sweep.config import ConfigError, load

PAID = load(preset="paid")
COLD = load(None, {}, {"keep_newest": 2, "pings": 0}, "cold")
TESTS = Path(__file__).parents[2]
URL = "https://api.example.com/v1/messages"


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_sixteen_threads_on_one_client_send_what_one_after_the_other_would() -> None:
    """Conversations do not touch each other."""

    def talks() -> list[Talk]:
        return [Talk(messages=[{"role": "user", "content": f"Conversation {n}."}]) for n in range(16)]

    def bodies(live: Carried, talk: Talk) -> None:
        for step in range(3):
            assert live.post(talk.body(), x_cg_session=str(id(talk))).status == 200
            talk.calls(6).say(f"Step {step}.")

    def session(workers: int) -> Counter[bytes]:
        with upstream([{"text": "."}] + [{"text": "."}] * 100) as up, carried("threads", up, COLD, httpx2) as live:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(lambda talk: bodies(live, talk), talks()))
            assert live.stats()["in_flight"] == 0 and not live.stats()["faults"]["ours"]
            return Counter(live.bodies())

    assert session(16) == session(1)


def test_an_interrupt_in_the_clients_thread_is_raised_there() -> None:
    """The transport goes on with the next request."""
    hits = iter([KeyboardInterrupt(), None])

    def inner(request: Any) -> Any:
        if (error := next(hits)) is not None:
            raise error
        return httpx2.Response(200, json={"type": "message", "content": [], "usage": {}})

    with httpx2.Client(transport=Transport(httpx2.MockTransport(inner), config=COLD)) as client:
        with pytest.raises(KeyboardInterrupt):
            client.post("https://api.example.com/v1/messages", content=Talk().body())
        assert client.post("https://api.example.com/v1/messages", content=Talk().body()).status_code == 200


def test_a_client_that_is_closed_while_a_request_is_begun_leaves_nothing_running() -> None:
    """The request passes to the connections that are closed, and begins no thread that nobody would end."""
    carrier = Transport(httpx2.MockTransport(lambda request: httpx2.Response(200, json={})), config=COLD)

    class Closing(httpx2.SyncByteStream):
        def __iter__(self) -> Any:
            carrier.close()
            yield Talk().body()

    request = httpx2.Request("POST", "https://api.example.com/v1/messages", stream=Closing())
    assert carrier.handle_request(request).status_code == 200
    assert carrier._engine._thread is None


def test_an_interrupt_between_two_pieces_of_a_stream_lets_go_of_it() -> None:
    """The upstream's reply is closed, and the transport goes on."""
    closed: list[bool] = []

    class Slow(httpx2.SyncByteStream):
        def __iter__(self) -> Any:
            yield b'event: ping\ndata: {"type": "ping"}\n\n'
            raise KeyboardInterrupt

        def close(self) -> None:
            closed.append(True)

    def inner(request: Any) -> Any:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Slow())

    transport = Transport(httpx2.MockTransport(inner), config=COLD)
    with httpx2.Client(transport=transport) as client:
        for n in (1, 2):
            with pytest.raises(KeyboardInterrupt):
                client.post("https://api.example.com/v1/messages", content=Talk().body(stream=True))
            until(lambda n=n: len(closed) == n)
        assert transport.stats()["in_flight"] == 0


class Held:
    """A body whose second piece comes when it is closed, and then is an error, as a connection's is."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.is_waiting, self.is_closed = threading.Event(), threading.Event()
        self.closed = 0

    def __iter__(self) -> Any:
        yield b'event: ping\ndata: {"type": "ping"}\n\n'
        self.is_waiting.set()
        assert self.is_closed.wait(PATIENCE_S)
        raise self.library.ReadError("closed")

    async def __aiter__(self) -> Any:
        yield b'event: ping\ndata: {"type": "ping"}\n\n'
        self.is_waiting.set()
        async with asyncio.timeout(PATIENCE_S):
            while not self.is_closed.is_set():
                await asyncio.sleep(0.001)
        raise self.library.ReadError("closed")

    def close(self) -> None:
        self.closed += 1
        self.is_closed.set()

    async def aclose(self) -> None:
        self.close()


def held_by(library: Any) -> tuple[Any, Any]:
    """Such a body, and the transport that answers with it."""
    base = type("Body", (Held, library.SyncByteStream, library.AsyncByteStream), {})
    body = base(library)
    head = {"content-type": "text/event-stream"}
    return body, library.MockTransport(lambda request: library.Response(200, headers=head, stream=body))


@pytest.mark.parametrize("is_waiting", [True, False], ids=["waiting", "between pieces"])
@pytest.mark.parametrize("name", ["httpx2", "httpx"])
def test_a_response_that_another_thread_closes_ends_as_it_would_without_us(name: str, is_waiting: bool) -> None:
    """With ReadError for who waits for a piece; nobody waits for ever, and the upstream's reply is closed."""
    library = pytest.importorskip(name)

    def session(ours: bool) -> tuple[str, int]:
        body, inner = held_by(library)
        transport = Transport(inner, config=COLD) if ours else inner
        with library.Client(transport=transport) as client:
            request = client.build_request("POST", URL, content=Talk().body(stream=True))
            reply = client.send(request, stream=True)
            pieces, ended = reply.iter_raw(), []

            def read() -> None:
                try:
                    ended.append(f"whole {len(list(pieces))}")
                except Exception as error:
                    ended.append(type(error).__name__)

            next(pieces)
            reader = threading.Thread(target=read, daemon=True)
            if is_waiting:
                reader.start()
                assert body.is_waiting.wait(PATIENCE_S)
            closer = threading.Thread(target=reply.close, daemon=True)
            closer.start()
            closer.join(PATIENCE_S)
            if not is_waiting:
                reader.start()
            reader.join(PATIENCE_S)
            assert not closer.is_alive() and not reader.is_alive()
            assert not ours or transport.stats()["in_flight"] == 0
        return ended[0], body.closed

    found = session(ours=True)
    assert found == (("ReadError", 1) if is_waiting else ("whole 0", 1))
    assert not is_waiting or found == session(ours=False)


@pytest.mark.parametrize("is_waiting", [True, False], ids=["waiting", "between pieces"])
@pytest.mark.parametrize("name", ["httpx2", "httpx"])
def test_a_response_that_another_task_closes_ends_as_it_would_without_us(
    name: str, is_waiting: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The same on an event loop, where whoever reads is inside the body that is closed."""
    library = pytest.importorskip(name)

    async def session(ours: bool) -> tuple[str, int]:
        body, inner = held_by(library)
        transport = AsyncTransport(inner, config=COLD) if ours else inner
        async with library.AsyncClient(transport=transport) as client:
            request = client.build_request("POST", URL, content=Talk().body(stream=True))
            reply = await client.send(request, stream=True)
            pieces = reply.aiter_raw()

            async def read() -> str:
                try:
                    return f"whole {len([piece async for piece in pieces])}"
                except Exception as error:
                    return type(error).__name__

            await anext(pieces)
            async with asyncio.timeout(PATIENCE_S):
                if is_waiting:
                    reader = asyncio.create_task(read())
                    while not body.is_waiting.is_set():
                        await asyncio.sleep(0.001)
                await asyncio.create_task(reply.aclose())
                ended = await (reader if is_waiting else read())
            assert not ours or transport.stats()["in_flight"] == 0
        return ended, body.closed

    found = asyncio.run(session(ours=True))
    assert found == (("ReadError", 1) if is_waiting else ("whole 0", 1))
    assert not is_waiting or found == asyncio.run(session(ours=False))
    assert not caplog.records


def test_a_transport_that_is_closed_in_the_middle_of_a_stream_ends_it() -> None:
    """With an error of the library's; nobody waits for a thread that is gone."""
    with upstream([{"text": "word " * 4000}]) as up:
        transport = Transport(config=COLD)
        with httpx2.Client(transport=transport) as client:
            body = Talk().body(stream=True)
            with client.stream("POST", up.base_url + "/v1/messages", content=body, headers={"x-api-key": "k"}) as reply:
                pieces = reply.iter_raw(64)
                assert next(pieces)
                transport.close()
                with pytest.raises(httpx2.TransportError):
                    list(pieces)
        assert transport.stats()["in_flight"] == 0


def test_a_timer_dies_with_the_transport(way: str) -> None:
    """A closed client asks nothing more."""
    recorder = EventRecorder()
    with upstream({"routes": [ALL_SPENT, WORK]}) as up:
        with carried(way, up, PAID, httpx2, events=recorder) as live:
            talk = Talk()
            live.post(talk.body())
            live.post(talk.calls(14).body())
        assert recorder.timers[Timer.ARMED] >= 1 and recorder.timers[Timer.DROPPED] == 1
        assert not any(thread.name == "cg-transport" for thread in threading.enumerate())
        assert [r.get("route") for r in up.requests] == ["work", "work"]


def test_on_another_event_loop_requests_pass_untouched() -> None:
    """Timers and workers are asyncio's; a program on trio is served without them."""
    trio = pytest.importorskip("trio", reason="trio is not installed")
    seen: list[bytes] = []

    def inner(request: Any) -> Any:
        seen.append(request.content)
        return httpx2.Response(200, json={"type": "message", "content": [], "usage": {}})

    transport = AsyncTransport(httpx2.MockTransport(inner), config=COLD)
    body = Talk().body()

    async def asked() -> int:
        request = httpx2.Request("POST", "https://api.example.com/v1/messages", content=body)
        return int((await transport.handle_async_request(request)).status_code)

    assert trio.run(asked) == 200
    assert seen == [body] and transport.stats()["turns"] == 0


def test_what_cannot_work_is_refused_when_it_is_made(tmp_path: Path) -> None:
    """A preset that is none, two sources of one thing, a state that is no database."""
    with pytest.raises(ConfigError):
        Transport(preset="none-such")
    with pytest.raises(CgError, match="not both"):
        Transport(config=COLD, preset="cold")
    (tmp_path / "state.db").write_bytes(b"no database at all, but long enough to be looked at" * 40)
    (tmp_path / "state.db").chmod(0o600)
    with pytest.raises(CgError):
        Transport(config=COLD, state=tmp_path / "state.db")


def test_figures_can_be_read_as_the_gateway_shows_them() -> None:
    """As values, and as the text that Prometheus reads."""
    with upstream([{"text": "."}]) as up, carried("threads", up, COLD, httpx2) as live:
        live.post(Talk().body())
        assert live.stats()["requests"] == {"messages": {"200": 1}}
        assert 'cg_requests_total{route="messages",status="200"} 1' in live.transport.metrics()


def test_a_transport_that_is_let_go_of_ends_by_itself() -> None:
    """Its thread is gone soon after it."""
    with upstream([{"text": "."}]) as up:
        transport = Transport(config=COLD)
        with httpx2.Client(transport=transport) as client:
            client._transport = httpx2.MockTransport(lambda request: None)  # so that closing the client leaves ours
            reply = transport.handle_request(
                httpx2.Request("POST", up.base_url + "/v1/messages", content=Talk().body(), headers={"x-api-key": "k"})
            )
            reply.read()
            inner = transport._engine._inner
        threads = [thread for thread in threading.enumerate() if thread.name == "cg-transport"]
        assert len(threads) == 1
        del transport, reply
        until(lambda: not threads[0].is_alive())
        inner.close()


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_one_library_alone_is_enough(name: str) -> None:
    """Neither the other one nor anything that the gateway's server needs is loaded."""
    pytest.importorskip(name)
    hidden = {"httpx", "httpx2", "httpcore2", "uvicorn", "httptools", "anthropic"} - {
        name,
        "httpcore2" * (name == "httpx2"),
    }
    code = f"import sys\nfor name in {sorted(hidden)!r}: sys.modules[name] = None\n" + ALONE % {"name": name}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "200\n", done.stderr


ALONE = """
import %(name)s as library
from cg.gateway.transport import AsyncTransport, Transport

def inner(request):
    return library.Response(200, json={"type": "message", "content": [], "usage": {}})

transport = Transport(library.MockTransport(inner), preset="cold")
body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Go."}]}
with library.Client(transport=transport) as client:
    print(client.post("https://api.example.com/v1/messages", json=body).status_code)
assert transport.stats()["turns"] == 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_a_sweep_of_its_own(tmp_path: Path) -> None:
    """Made anew on the same state; the parent's goes on."""
    code = FORK % {"state": str(tmp_path / "state.db"), "paths": [str(TESTS / "harness")]}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["parent", "200", "child", "0", "parent", "200"], done.stderr


FORK = """
import os, sys, time
sys.path[:0] = %(paths)r
import httpx2
from carried import HEADERS, upstream
from wired import Talk
from cg.gateway.transport import AsyncTransport, Transport

with upstream([{"text": "."}] * 9) as up:
    transport = Transport(preset="cold", state=%(state)r)
    client = httpx2.Client(transport=transport)
    def post():
        return client.post(up.base_url + "/v1/messages", content=Talk().body(), headers=HEADERS).status_code
    print("parent", post(), flush=True)
    child = os.fork()
    if not child:
        try:
            status, end = post(), time.monotonic() + 60
            # Counted once the loop's thread has closed the reply, which may be after the client has read it.
            while (requests := transport.stats()["requests"]) != {"messages": {"200": 1}} and time.monotonic() < end:
                time.sleep(0.01)
            ok = status == 200 and requests == {"messages": {"200": 1}}
            print("child saw", status, requests, file=sys.stderr, flush=True)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(2)
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    print("child", status, flush=True)
    print("parent", post(), flush=True)
    client.close()
"""
