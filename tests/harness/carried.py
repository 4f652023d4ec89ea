"""One client's requests to a scripted upstream, carried three ways: through the gateway, and in process by a transport
for threads and by one for coroutines."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_upstream import FakeUpstream
from served import UpstreamClock, gateway

from cg.gateway.embedded.loop_thread import LoopThread
from cg.gateway.transport import AsyncTransport, Transport
from cg.sweep.config import Config

WAYS = ("threads", "loop")
PATIENCE_S = 60.0  # for what should happen at once; only a failing test waits as long
HEADERS = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "key"}


@dataclass
class Answer:
    """What the client read."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Carried:
    """One way of carrying, as a client sees it."""

    up: FakeUpstream
    post: Callable[..., Answer]
    stats: Callable[[], Any]
    transport: Any = None
    client: Any = None

    def wait(self, seconds: float, asks: int | None = None) -> None:
        """Let time pass; where `asks` are due by then in all, until they have been answered and written down."""
        self.up.clock.advance(seconds)
        if asks is not None:
            until(lambda: sum(self.stats()["asks"]["outcomes"].values()) >= asks)

    @property
    def sent(self) -> list[tuple[str, str]]:
        """(path, SHA-256 of the body) of all that the upstream got, in order."""
        return [(r["path"], r.get("sha256", "")) for r in self.up.requests]

    def bodies(self, route: str | None = None) -> list[bytes]:
        """The bodies of Messages requests that the upstream got."""
        messages = [r for r in self.up.requests if r["path"].split("?")[0] == "/v1/messages"]
        return [r["body"].encode() for r in messages if route in (None, r.get("route"))]


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.005)


@contextlib.contextmanager
def upstream(script: Any, **more: Any) -> Iterator[FakeUpstream]:
    """A stand-in upstream on a manual clock, whose queue takes many clients at once."""
    up = FakeUpstream(script, clock="manual", clock_start=1_800_000_000, **more)
    up.server.socket.listen(128)
    serving = {"poll_interval": 0.01}  # by default a server takes half a second to notice that it is to stop
    threading.Thread(target=up.server.serve_forever, kwargs=serving, daemon=True).start()
    try:
        yield up
    finally:
        up.__exit__(None, None, None)


@contextlib.contextmanager
def carried(
    way: str, up: FakeUpstream, config: Config, library: Any, *, state: Path | None = None, **options: Any
) -> Iterator[Carried]:
    """`way`: gateway | threads | loop. `library` is httpx2 or httpx."""
    timeout = library.Timeout(PATIENCE_S)
    if way == "gateway":
        with gateway(up, config, state=state) as live, library.Client(trust_env=False, timeout=timeout) as client:
            yield Carried(up, poster(client, live.url), live.stats)
    elif way == "threads":
        transport = Transport(config=config, state=state, clock=UpstreamClock(up), **options)
        with library.Client(transport=transport, timeout=timeout) as client:
            yield Carried(up, poster(client, up.base_url), transport.stats, transport, client)
    else:
        yield from in_loop(up, config, library, timeout, state, options)


def in_loop(up: Any, config: Config, library: Any, timeout: Any, state: Any, options: Any) -> Iterator[Carried]:
    """The asynchronous transport, on a loop that goes on between requests as a program's would."""
    loop = LoopThread("test-loop")
    transport = AsyncTransport(config=config, state=state, clock=UpstreamClock(up), **options)
    client = library.AsyncClient(transport=transport, timeout=timeout)

    async def send(url: str, body: bytes, headers: dict[str, str]) -> Answer:
        async with client.stream("POST", url, content=body, headers=headers) as reply:
            read = await reply.aread()
        return Answer(reply.status_code, dict(reply.headers), read)

    def post(body: bytes, path: str = "/v1/messages?beta=true", **headers: str) -> Answer:
        return loop.submit(send(up.base_url + path, body, {**HEADERS, **named(headers)})).result(PATIENCE_S)

    try:
        yield Carried(up, post, transport.stats, transport, client)
    finally:
        loop.submit(client.aclose()).result(PATIENCE_S)
        loop.stop(PATIENCE_S)


def poster(client: Any, url: str) -> Callable[..., Answer]:
    def post(body: bytes, path: str = "/v1/messages?beta=true", **headers: str) -> Answer:
        with client.stream("POST", url + path, content=body, headers={**HEADERS, **named(headers)}) as reply:
            read = reply.read()
        return Answer(reply.status_code, dict(reply.headers), read)

    return post


def named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def message(answer: Answer) -> dict[str, Any]:
    """The message in an answer that was no stream."""
    found: dict[str, Any] = json.loads(answer.body)
    return found


def run_async(work: Any) -> Any:
    """Run a coroutine to its end, on a loop of its own."""
    return asyncio.run(work)
