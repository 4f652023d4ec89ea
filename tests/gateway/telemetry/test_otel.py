"""A span for each Messages request where the program has a tracer provider, by the GenAI conventions and without content."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip(
    "opentelemetry.sdk", reason="opentelemetry-sdk is not installed: spans are for programs that have it"
)

pytest.importorskip("httpx2", reason="httpx2 is not installed: the transport is an extra")

import httpx2
from carried import WAYS, carried, upstream
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from wired import WORK, Talk, expands, scripted

from cg.gateway.exchange import Inbound, Outbound
from cg.gateway.telemetry import otel
from cg.gateway.telemetry.otel import TracedMessages, request_attributes, tokens
from cg.sweep.config import load
from cg.sweep.values import Usage

COLD = load(None, {}, {"keep_newest": 2, "pings": 0}, "cold")
SECRETS = ("sk-secret", "Read all", "toolu_", "Working on it", "session-")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What a program's own provider exports."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    class Set:
        """The API as a program that has set this provider sees it."""

        ProxyTracerProvider = trace.ProxyTracerProvider
        SpanKind, StatusCode = trace.SpanKind, trace.StatusCode
        get_current_span = staticmethod(trace.get_current_span)
        get_tracer = staticmethod(lambda *name: provider.get_tracer(*name))

    monkeypatch.setattr(otel, "_trace", lambda: Set)
    yield exporter
    provider.shutdown()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", ["gateway", *WAYS])
def test_a_request_has_one_span_with_model_server_usage_and_turn(way: str, stream: bool, spans: Any) -> None:
    """Streamed or not, through the gateway or in process; the input is all of it, the cached part told again."""
    with upstream({"routes": [WORK]}) as up, carried(way, up, COLD, httpx2) as live:
        talk = Talk().calls(14)
        for seconds in (0, 1000):
            live.wait(seconds)
            assert live.post(talk.say("Go on.").body(stream=stream), x_api_key="sk-secret").status == 200
        usage, port = up.requests[-1]["usage"], int(up.base_url.rpartition(":")[2])
    first, second = spans.get_finished_spans()
    found = dict(second.attributes)
    assert second.name == f"chat {found['gen_ai.request.model']}" and second.kind is trace.SpanKind.CLIENT
    assert found["gen_ai.operation.name"] == "chat" and found["gen_ai.provider.name"] == "anthropic"
    assert (found["server.address"], found["server.port"]) == ("127.0.0.1", port)
    assert found["gen_ai.request.max_tokens"] == 32000
    assert found["gen_ai.usage.output_tokens"] == usage["output_tokens"]
    read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    assert found["gen_ai.usage.input_tokens"] == usage["input_tokens"] + read + written
    assert found["gen_ai.usage.cache_read.input_tokens"] == read
    assert found["gen_ai.usage.cache_creation.input_tokens"] == written
    assert found["cg.turn.reason"] == "removed" and found["cg.turn.removed_outputs"] == 12
    assert first.attributes["cg.turn.phase"] and first.end_time <= second.start_time


def test_no_span_holds_content_or_credentials(spans: Any) -> None:
    """Not in its name, its attributes, its events or its status."""
    script = {"routes": [*scripted(expands(text="One again."), {"text": "Thank you."})]}
    with upstream(script) as up, carried("threads", up, COLD, httpx2) as live:
        talk = Talk().calls(14)
        for _ in range(4):
            live.wait(1000)
            live.post(talk.say("Read all.").body(), x_api_key="sk-secret", x_claude_code_session_id="session-1")
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    assert len(spans.get_finished_spans()) == 4
    assert not [secret for secret in SECRETS if secret in told]


def test_a_model_name_that_is_none_is_not_repeated(spans: Any) -> None:
    """A client can write anything there."""
    assert request_attributes(Talk().body(model="my key is <b>")) == {"gen_ai.request.max_tokens": 32000}
    assert request_attributes(b"{broken") == {}


def test_an_error_is_told_by_its_kind(spans: Any) -> None:
    """A status, or the name of what failed; never its text."""
    fault = {"kind": "http_error", "status": 529, "message": "secret words"}
    with upstream([{"text": ".", "fault": fault}]) as up, carried("threads", up, COLD, httpx2) as live:
        assert live.post(Talk().body()).status == 529
    with carried("threads", up, COLD, httpx2) as live, pytest.raises(httpx2.ConnectError):
        live.post(Talk().body())
    refused, unreachable = spans.get_finished_spans()
    assert refused.attributes["error.type"] == "529" and unreachable.attributes["error.type"] == "Unreachable"
    assert {span.status.status_code for span in (refused, unreachable)} == {trace.StatusCode.ERROR}
    assert "secret" not in refused.to_json()


def test_a_cut_stream_ends_its_span(spans: Any) -> None:
    """As an error."""
    fault = {"kind": "cut", "after_events": 3, "how": "fin"}
    with upstream([{"text": "x" * 400, "fault": fault}]) as up, carried("threads", up, COLD, httpx2) as live:
        body = Talk().body(stream=True)
        with pytest.raises(httpx2.RemoteProtocolError):
            live.post(body)
    (span,) = spans.get_finished_spans()
    assert span.attributes["error.type"] == "Cut"


def test_a_trace_that_the_client_names_is_gone_on_with(spans: Any) -> None:
    """Through the gateway, by the header; in process, by the context around the call."""
    import opentelemetry.propagate  # noqa: F401  (a program that instruments has loaded it)

    with upstream({"routes": [WORK]}) as up, carried("gateway", up, COLD, httpx2) as live:
        live.post(Talk().body(), traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    (span,) = spans.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    spans.clear()
    around = TracerProvider().get_tracer("test").start_span("agent")
    with trace.use_span(around), upstream({"routes": [WORK]}) as up, carried("threads", up, COLD, httpx2) as live:
        live.post(Talk().body())
    (span,) = spans.get_finished_spans()
    assert span.parent.span_id == around.get_span_context().span_id


def test_a_span_that_the_sdk_has_begun_for_the_call_is_added_to(spans: Any) -> None:
    """Two spans of one inference would count its tokens twice."""
    begun = TracerProvider().get_tracer("sdk").start_span("chat m", attributes={"gen_ai.operation.name": "chat"})
    with trace.use_span(begun), upstream({"routes": [WORK]}) as up, carried("threads", up, COLD, httpx2) as live:
        live.post(Talk().body())
    assert not spans.get_finished_spans()
    assert begun.is_recording() and begun.attributes["cg.turn.reason"]


def test_a_provider_that_fails_costs_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request goes on without a span."""

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("no")

    monkeypatch.setattr(otel, "_trace", Broken)

    class Plain:
        async def handle(self, inbound: Inbound) -> Outbound:
            return Outbound(200, [], b"ok")

        count_tokens = handle

    traced = TracedMessages(Plain(), "https://api.example.com")
    assert asyncio.run(traced.handle(Inbound("POST", b"/v1/messages", [], b"{}"))).body == b"ok"


def test_without_a_provider_nothing_is_loaded_and_nothing_is_written() -> None:
    """A gateway in a program without tracing does not import OpenTelemetry; with the API alone, no span is made."""
    code = """
import sys
import threading
from cg.gateway import build
from cg.gateway.telemetry import otel
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
assert otel._trace() is None
from opentelemetry import trace
assert otel._trace() is None
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
assert otel._trace() is trace
print("ok")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n", done.stderr


def test_usage_is_told_in_the_conventions_terms() -> None:
    """There the input tokens include the cached ones."""
    assert tokens(Usage(fresh=1, read=10, write_5m=100, write_1h=1000, output=5)) == {
        "gen_ai.usage.input_tokens": 1111,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 10,
        "gen_ai.usage.cache_creation.input_tokens": 1100,
    }
    assert json.dumps(request_attributes(Talk().body()))


def test_no_body_is_read_on_the_event_loop(spans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long one would hold up all streams for as long as it takes."""
    threads: list[int] = []
    read = otel.read
    monkeypatch.setattr(otel, "read", lambda body: threads.append(threading.get_ident()) or read(body))

    class Fine:
        async def handle(self, inbound: Inbound) -> Outbound:
            return Outbound(200, [], b"{}")

    async def session() -> None:
        outbound = await TracedMessages(Fine(), "https://up.example").handle(
            Inbound("POST", b"/v1/messages", [], Talk().body())
        )
        assert outbound.close is not None
        await outbound.close()

    asyncio.run(session())
    assert len(threads) == 1 and threads[0] != threading.get_ident()
    (span,) = spans.get_finished_spans()
    assert span.attributes["gen_ai.request.max_tokens"] == 32000
