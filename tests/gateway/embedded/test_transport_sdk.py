"""The Python SDK with the transport under it: the bodies that it sends through the gateway, and its own retries."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="anthropic is not installed: it is the SDK that the transport is for")

import anthropic
import python_client
import scripts
from carried import PATIENCE_S, upstream
from markers import find_markers
from served import UpstreamClock, gateway

from cg.gateway.embedded.async_engine import MAX_LOOPS
from cg.gateway.embedded.client_library import library_of
from cg.gateway.transport import AsyncTransport, Transport
from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.config import load

COLD = load(None, {}, {"keep_newest": 2, "pings": 0}, "cold")
LIBRARY = library_of(anthropic.DefaultHttpxClient())  # httpx2, or httpx in older SDKs
RUNS = ["sdk", "sdk-stream", "runner-full", "runner", "runner-stream"]


def script(**fault: Any) -> dict[str, Any]:
    turns = scripts.lookups()
    if fault:
        turns[9]["fault"] = [dict(fault), dict(fault)]
    return {"routes": [{"name": "main", "turns": turns}]}


def ran(name: str, url: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """One run of a real conversation; `options` are the client's."""
    made = anthropic.Anthropic
    with monkeypatch.context() as patched:
        patched.setattr(anthropic, "Anthropic", lambda **given: made(**{**given, **options}))
        return python_client.RUN[name](url, name)


def under_it(up: Any) -> Any:
    return LIBRARY.Client(transport=Transport(config=COLD, clock=UpstreamClock(up)))


def received(up: Any) -> list[tuple[str, int, str]]:
    return [(r["path"], r["status"], r.get("sha256", "")) for r in up.requests]


def through_the_gateway(name: str, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any], threads: str) -> Any:
    with upstream(script(**fault), threads=threads) as up, gateway(up, COLD) as live:
        return ran(name, live.url, monkeypatch), received(up)


@pytest.mark.parametrize("name", RUNS)
def test_the_sdk_sends_the_same_bodies_as_through_the_gateway(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte, over whole conversations with a cold cache in between; the same history for its caller."""
    threads = "serve" if name == "runner" else "unsupported"
    expected = through_the_gateway(name, monkeypatch, {}, threads)
    with upstream(script(), threads=threads) as up, under_it(up) as client:
        found = ran(name, up.base_url, monkeypatch, http_client=client), received(up)
    assert found == expected
    assert name == "runner" or find_markers(up.requests[-1]["body"])


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "http_error", "status": 529},
        {"kind": "http_error", "status": 500},
        {"kind": "http_error", "status": 429, "retry_after": 0},
        {"kind": "cut", "after_bytes": 20, "how": "rst"},
    ],
    ids=["529", "500", "429", "cut"],
)
def test_the_sdks_own_retries_are_the_same_turn(fault: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes again, as often as it would without us, and nothing is counted twice."""
    expected = through_the_gateway("sdk", monkeypatch, fault, "serve")
    with upstream(script(**fault)) as up:
        transport = Transport(config=COLD, clock=UpstreamClock(up))
        with LIBRARY.Client(transport=transport) as client:
            found = ran("sdk", up.base_url, monkeypatch, http_client=client), received(up)
    assert found == expected
    assert transport.stats()["reasons"]["retry"] == 2
    assert transport.stats()["in_flight"] == 0


def test_the_sdks_default_client_takes_the_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    """`anthropic.DefaultHttpxClient(transport=...)` keeps its timeouts and redirects."""
    with upstream(script()) as up:
        client = anthropic.DefaultHttpxClient(transport=Transport(config=COLD, clock=UpstreamClock(up)))
        assert ran("sdk", up.base_url, monkeypatch, http_client=client)[0] == "All sets look alike."
        client.close()


def test_a_stream_that_is_left_early_lets_go_of_its_connection() -> None:
    """The caller's `with` ends it, and the next request is answered."""
    with upstream([{"text": "word " * 400}] * 2) as up:
        transport = Transport(config=COLD, clock=UpstreamClock(up))
        with anthropic.Anthropic(
            api_key="k", base_url=up.base_url, http_client=LIBRARY.Client(transport=transport)
        ) as client:
            ask: Any = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "Go."}]}
            with client.messages.stream(**ask) as stream:
                assert next(iter(stream.text_stream)).startswith("word")
            assert transport.stats()["in_flight"] == 0
            assert client.messages.create(**ask).content[0].text.startswith("word")


async def talked(client: Any, *, stream: bool) -> list[Any]:
    """The conversation of `python_client`, as a coroutine."""
    messages: list[Any] = [{"role": "user", "content": python_client.ASK}]
    while True:
        request = {
            "model": python_client.MODEL,
            "max_tokens": 1000,
            "system": python_client.SYSTEM,
            "tools": [python_client.TOOL],
            "messages": messages,
            "cache_control": {"type": "ephemeral"},
        }
        if stream:
            async with client.messages.stream(**request) as under_way:
                reply = await under_way.get_final_message()
        else:
            reply = await client.messages.create(**request)
        content = [block.model_dump(exclude_none=True) for block in reply.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return messages
        messages.append({"role": "user", "content": [python_client.answered(call) for call in calls]})


@pytest.mark.parametrize("stream", [False, True])
def test_the_asynchronous_sdk_sends_the_same_bodies_as_through_the_gateway(stream: bool) -> None:
    """Streaming and not."""

    async def session(up: Any, url: str, http_client: Any) -> Any:
        async with anthropic.AsyncAnthropic(api_key="dummy", base_url=url, http_client=http_client) as client:
            return await talked(client, stream=stream), received(up)

    with upstream(script()) as up, gateway(up, COLD) as live:
        expected = asyncio.run(session(up, live.url, LIBRARY.AsyncClient(timeout=PATIENCE_S)))
    with upstream(script()) as up:
        transport = AsyncTransport(config=COLD, clock=UpstreamClock(up))
        found = asyncio.run(session(up, up.base_url, LIBRARY.AsyncClient(transport=transport, timeout=PATIENCE_S)))
    assert found == expected
    assert find_markers(up.requests[-1]["body"])


def test_one_client_serves_one_event_loop_after_another() -> None:
    """A program of many `asyncio.run` is swept in each; nothing of those that have ended is kept."""
    said = {"type": "message", "content": [], "usage": {}}
    transport = AsyncTransport(LIBRARY.MockTransport(lambda request: LIBRARY.Response(200, json=said)), config=COLD)
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Go."}]}

    async def asked() -> None:
        request = LIBRARY.Request("POST", "https://api.example.com/v1/messages", json=body)
        reply = await transport.handle_async_request(request)
        assert reply.status_code == 200 and await reply.aread()

    for _ in range(3 * MAX_LOOPS):
        asyncio.run(asked())
    assert transport.stats()["turns"] == 3 * MAX_LOOPS
    assert len(transport._engine._by_loop) == 1
    asyncio.run(transport.aclose())


def test_the_sdks_caller_never_sees_a_call_of_our_tool() -> None:
    """The model asks for one removed output; the caller's tools are all that it is asked to run."""
    turns = scripts.lookups()
    turns[10] = {"text": "One again.", "tool": EXPAND_TOOL, "input": {"id": scripts.MARKER}}
    with upstream({"routes": [{"name": "main", "turns": turns}]}) as up:
        transport = AsyncTransport(config=COLD, clock=UpstreamClock(up))

        async def session() -> Any:
            async with anthropic.AsyncAnthropic(
                api_key="dummy", base_url=up.base_url, http_client=LIBRARY.AsyncClient(transport=transport)
            ) as client:
                return await talked(client, stream=True)

        history = asyncio.run(session())
    calls = [b["name"] for m in history if m["role"] == "assistant" for b in m["content"] if b["type"] == "tool_use"]
    assert set(calls) == {"lookup"}
    assert transport.stats()["recoveries"]["hidden"] == {"original": 1}
