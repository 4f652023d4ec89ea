"""The sweep on live traffic inside a test: no server in front, a scripted upstream behind, and its manual clock."""

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from event_recorder import EventRecorder
from fake_upstream import FakeUpstream
from markers import find_markers
from sessions import HOUR_MARK, MARK, MODEL, READ_TOOL
from sweeping import output

from cg.gateway.exchange import Headers, Inbound, Outbound
from cg.gateway.http import sse
from cg.gateway.messages.handler import SweepHandler
from cg.gateway.replies.message import of_events
from cg.gateway.settings import Settings
from cg.gateway.upstream.pool import PooledUpstream
from cg.sweep.body.marker import DECLARATION, EXPAND_TOOL
from cg.sweep.config import Config, load
from cg.sweep.drivers import Sweep
from cg.sweep.prices import PriceTable, cost_usd
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import usage_of

__all__ = ["DECLARATION", "EXPAND_TOOL", "HOUR_MARK", "MARK", "find_markers", "output"]
SECRET = b"s" * 32
ASKED = "Housekeeping:"  # how a question of the sweep begins
OWED = {"i": "$label", "needed_by": "b", "quote": "write notes", "verdict": "keep"}
SPENT = {"i": "$label", "needed_by": "none", "verdict": "drop"}
VERDICTS = {"labels": r"^\[(\d+)\]", "item": SPENT, "keep": [11], "keep_item": OWED}
ALL_SPENT = {"name": "ask", "match": {"last_user~": ASKED}, "turns": [{"verdicts": VERDICTS}], "then": "repeat"}
WORK = {"name": "work", "turns": [{"text": "Working on it."}], "then": "repeat"}


class ManualClock:
    """The upstream's clock; who sleeps until a moment is woken by the advance that reaches it."""

    def __init__(self, up: FakeUpstream) -> None:
        self._clock = up.clock
        self._sleeping: list[tuple[float, asyncio.Event]] = []

    def now(self) -> float:
        return float(self._clock.now())

    async def sleep_until(self, moment: float) -> None:
        while self.now() < moment:
            woken = asyncio.Event()
            self._sleeping.append((moment, woken))
            await woken.wait()

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)
        for _, woken in self._sleeping:
            woken.set()
        self._sleeping.clear()


@dataclass
class Answer:
    """What the client read."""

    status: int
    headers: Headers
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The message, also of a stream."""
        if not self.body.startswith(b"event:"):
            found: dict[str, Any] = json.loads(self.body)
            return found
        whole = of_events(self.events)
        return {"content": whole.blocks, "stop_reason": whole.stop_reason, "usage": whole.usage}

    @property
    def events(self) -> list[sse.SseEvent]:
        return list(sse.Parser().feed(self.body))

    @property
    def content(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.message["content"]
        return found


async def read_out(outbound: Outbound) -> Answer:
    """The whole answer, closed as a server would."""
    try:
        if isinstance(outbound.body, bytes):
            return Answer(outbound.status, outbound.headers, outbound.body)
        pieces = [piece async for piece in outbound.body]
        return Answer(outbound.status, outbound.headers, b"".join(pieces))
    finally:
        if outbound.close is not None:
            await outbound.close()


@dataclass
class Live:
    """A gateway with its upstream, its clock and its store."""

    up: FakeUpstream
    clock: ManualClock
    messages: Any
    recorder: EventRecorder
    sweep: Sweep
    store: Any

    async def post(self, body: bytes, *, target: bytes = b"/v1/messages?beta=true", **headers: str) -> Answer:
        """Send a body as a client would, and read the answer to its end."""
        found = await read_out(await self.messages.handle(inbound(body, target, **headers)))
        await self.messages.settle()
        return found

    async def count(self, body: bytes, **headers: str) -> Answer:
        return await read_out(
            await self.messages.count_tokens(inbound(body, b"/v1/messages/count_tokens?beta=true", **headers))
        )

    async def wait(self, seconds: float) -> None:
        """Let time pass, and everything that falls due in it happen."""
        await asyncio.sleep(0)  # who has just started to wait may write down until when
        self.clock.advance(seconds)
        for _ in range(20):  # and who is due now, begin
            await asyncio.sleep(0)
        await until(lambda: not self.messages.timers._firing)

    @property
    def sent(self) -> list[dict[str, Any]]:
        """What the upstream got as Messages requests, in order."""
        return [r for r in self.up.requests if r["path"].split("?")[0] == "/v1/messages"]

    def bodies(self, route: str | None = None) -> list[bytes]:
        found = [r for r in self.sent if route in (None, r.get("route"))]
        return [r["body"].encode() if "body" in r else base64.b64decode(r["body_b64"]) for r in found]

    @property
    def usd(self) -> float:
        """What all calls cost, by the upstream's own usage."""
        return cost_of(self.up)


def cost_of(up: FakeUpstream) -> float:
    total = 0.0
    for record in up.requests:
        usage = usage_of(record.get("usage")) if record.get("reply") else None
        if usage is not None:
            total += cost_usd(usage, PriceTable.default().price(MODEL)) or 0.0
    return total


def inbound(body: bytes, target: bytes = b"/v1/messages?beta=true", **more: str) -> Inbound:
    """A request as the server hands it over; `more` are headers, `_` for `-`."""
    headers = {
        "host": "127.0.0.1:8788",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "anthropic-version": "2023-06-01",
        "x-api-key": "key",
        "x-claude-code-session-id": "11111111-2222-3333-4444-555555555555",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    return Inbound("POST", target, [(n.encode(), v.encode()) for n, v in headers.items() if v], body)


async def until(holds: Callable[[], bool]) -> None:
    """Waits for what must come true, however slow the machine."""
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def live(
    routes: Any,
    *,
    preset: str = "paid",
    store: Any = None,
    up: FakeUpstream | None = None,
    flags: dict[str, Any] | None = None,
    make: Any = None,
    budget_ms: float = 20_000.0,
    **upstream: Any,
) -> AsyncIterator[Live]:
    """A gateway before a scripted upstream; `routes` is its script. `make` builds another kind of gateway."""
    config: Config = load(None, {}, flags, preset)
    own = up is None
    if up is None:
        up = FakeUpstream({"routes": routes}, clock="manual", **upstream)
        up.server.socket.listen(128)  # the default queue of five resets connections that come together
        serving = {"poll_interval": 0.01}  # by default a server takes half a second to notice that it is to stop
        threading.Thread(target=up.server.serve_forever, kwargs=serving, daemon=True).start()
    store = MemoryStore() if store is None else store
    pool = PooledUpstream(up.base_url, environment={})
    clock, recorder, sweep = ManualClock(up), EventRecorder(), Sweep(config, store)
    settings = Settings(upstream=up.base_url, config=config, budget_ms=budget_ms)
    made = make or SweepHandler
    messages = made(settings, pool, sweep, recorder, secret=SECRET, clock=clock)
    try:
        yield Live(up, clock, messages, recorder, sweep, store)
    finally:
        await messages.close()
        await pool.aclose()
        if own:
            up.__exit__(None, None, None)


@dataclass
class Talk:
    """A client's own history: what it would send, whole, whatever the gateway does."""

    messages: list[dict[str, Any]] = field(
        default_factory=lambda: [{"role": "user", "content": "Read all, write notes."}]
    )
    n: int = 0
    mark: dict[str, str] | None = field(default_factory=lambda: dict(MARK))
    top: dict[str, Any] = field(default_factory=dict)

    def call(self, content: Any = None, *, size: int = 4000, name: str = "Read", path: str | None = None) -> str:
        """A call of the client's tool and its result; returns the result's tool_use id."""
        use_id = f"toolu_{self.n:03}"
        text = output(self.n, size) if content is None else content
        use = {"type": "tool_use", "id": use_id, "name": name, "input": {"file_path": path or f"src/{self.n}.py"}}
        self.messages.append({"role": "assistant", "content": [use]})
        self.messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use_id, "content": text}]}
        )
        self.n += 1
        return use_id

    def calls(self, n: int, **how: Any) -> "Talk":
        for _ in range(n):
            self.call(**how)
        return self

    def say(self, text: str) -> "Talk":
        """The model's last word, and the user's next."""
        self.messages.append({"role": "assistant", "content": [{"type": "text", "text": "Done with that."}]})
        self.messages.append({"role": "user", "content": text})
        return self

    def answered(self, content: list[dict[str, Any]], *, errors: bool = True) -> "Talk":
        """Take a reply into the history; a call of a tool that the client has not gets its error."""
        self.messages.append({"role": "assistant", "content": content})
        results = []
        for use in (block for block in content if block["type"] == "tool_use"):
            error = f"<tool_use_error>Error: No such tool available: {use['name']}</tool_use_error>"
            unknown = use["name"] != "Read"
            text = error if unknown else output(900 + self.n)
            self.n += 1
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": text}
            results.append({**result, "is_error": True} if unknown else result)
        if results:
            self.messages.append({"role": "user", "content": results})
        return self

    def body(self, **top: Any) -> bytes:
        """The request as it leaves the client."""
        messages = json.loads(json.dumps(self.messages))
        last = messages[-1]
        if self.mark is not None:
            if isinstance(last["content"], str):
                last["content"] = [{"type": "text", "text": last["content"]}]
            last["content"][-1]["cache_control"] = self.mark
        made = {"model": MODEL, "max_tokens": 32000, "system": "s" * 5000, "tools": [READ_TOOL], "messages": messages}
        return json.dumps({**made, **self.top, **top}, ensure_ascii=False).encode()


async def swept(gateway: Live, talk: Talk, *, n: int = 14, **headers: str) -> list[str]:
    """Bring a session to where eleven outputs are removed; returns their keys. Takes three turns of the script."""
    await gateway.post(talk.body(), **headers)
    talk.calls(n)
    await gateway.post(talk.body(), **headers)
    await gateway.wait(241)
    await gateway.wait(1000)
    await gateway.post(talk.say("And now?").body(), **headers)
    keys = find_markers(gateway.bodies("work")[-1].decode())
    assert len(keys) == 11, gateway.recorder.turns[-1]
    return keys


def scripted(*turns: dict[str, Any]) -> list[dict[str, Any]]:
    """The routes of a session that `swept` brought to its removals, and what the model says then."""
    return [ALL_SPENT, {"name": "work", "turns": [{"text": "Working on it."}] * 3 + list(turns), "then": "repeat"}]


def expands(nth: int = 0, **also: Any) -> dict[str, Any]:
    """A turn that asks for the nth removed output again."""
    return {
        "tool": EXPAND_TOOL,
        "input": {"id": {"$find": "<<cg:([0-9a-f]{16})>>", "in": "messages", "nth": nth}},
        **also,
    }
