"""Every label and family that `/metrics` shows is moved by requests: here, or by the test that the table names."""

import ast
import asyncio
import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="httpx2 is not installed: the transport is an extra")

import httpx2
from carried import carried, upstream
from event_recorder import EventRecorder
from fake_upstream import FakeUpstream
from live import RawUpstream, Request, Wire, ask, dial, status, until
from wired import MODEL, WORK, Talk, expands, live, scripted, swept

from cg.gateway.events import (
    OURS,
    Events,
    Fault,
    GatewayEvent,
    Mode,
    Outcome,
    Refusal,
    Route,
    Spend,
    Stage,
    Timer,
)
from cg.gateway.messages.observer import ObserveHandler
from cg.gateway.messages.projection import Projection
from cg.gateway.serve.thread_server import serve_in_thread
from cg.gateway.settings import Settings
from cg.gateway.telemetry import metric_families
from cg.gateway.telemetry.metric_families import ALL_FAMILIES
from cg.gateway.telemetry.metrics import Metrics
from cg.gateway.telemetry.prometheus_text import render
from cg.sweep.config import load

Moved = set[tuple[str, str]]  # (family, one label's value, or nothing for a family without labels)
BODY = json.dumps(
    {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
).encode()
HEADERS = (b"x-api-key: key", b"content-type: application/json")
SAMPLE = re.compile(r"^(cg_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? (\S+)$")

LABELS: dict[type[StrEnum], metric_families.Family] = {
    Route: metric_families.REQUESTS,
    Refusal: metric_families.REFUSED,
    Spend: metric_families.CALLS,
    Mode: metric_families.RECOVERED,
    Outcome: metric_families.RECOVERED,
    Timer: metric_families.TIMERS,
    Stage: metric_families.STAGES,
}

# What takes longer, or another set-up, than the requests below: the test that sees it move.
ELSEWHERE = {
    Fault.STORE: "gateway/expansion/test_route.py::test_a_store_that_fails_is_a_clear_error",
    Fault.WATCHDOG: "gateway/messages/test_handler.py::test_rule_10_past_the_budget_the_last_frozen_form_leaves",
    Fault.TIMER: "gateway/messages/test_idle_timers.py::test_a_failing_store_costs_the_ask_and_nothing_else",
    Fault.RECOVERY: "gateway/expansion/test_expansion.py::test_an_inner_call_that_fails_lets_the_call_pass",
    Fault.UPSTREAM_TIMEOUT: "gateway/http/test_app.py::test_a_stream_that_stalls_is_cut_at_the_limit",
    Fault.UPSTREAM_CUT: "gateway/http/test_app.py::test_a_stream_that_is_cut_ends_for_the_client_as_it_ended_for_us",
    Fault.CLIENT_GONE: "gateway/http/test_forwarding.py::test_a_client_that_goes_away_ends_the_upstream_s_work",
    Spend.PING: "gateway/messages/test_idle_timers.py::test_the_cold_preset_pings_once",
    Mode.SHOWN: "gateway/expansion/test_expansion.py::test_a_mixed_reply_passes_and_later_copies_carry_the_original",
    Mode.ROUTE: "gateway/expansion/test_route.py::test_the_original_comes_back_byte_for_byte_and_as_no_page",
    Outcome.EXPIRED: "gateway/expansion/test_expansion.py::test_an_id_that_brings_nothing_back_says_why",
    Outcome.UNKNOWN: "gateway/expansion/test_expansion.py::test_an_id_that_brings_nothing_back_says_why",
    Outcome.ROUNDS_SPENT: "gateway/expansion/test_expansion.py::test_at_most_three_rounds_then_the_call_passes",
    Timer.DROPPED: "gateway/messages/test_idle_timers.py::test_a_gateway_that_slept_through_the_lifetime_asks_nobody",
    Timer.CLAIMED_ELSEWHERE: "gateway/messages/test_idle_timers.py::test_two_gateways_on_one_store_ask_once",
    Timer.CREDENTIAL_REFUSED: "gateway/messages/test_idle_timers.py::test_a_refused_credential_is_let_go",
}
FAMILIES_ELSEWHERE = {
    "cg_resent_originals_total": "gateway/test_transport.py::test_a_body_of_ours_that_is_refused_is_followed_by_the_clients_own",
}


# Members of different sets are equal when their words are, so each set is looked up by itself.
ELSEWHERE_OF = {kind: {m for m in ELSEWHERE if type(m) is kind} for kind in (Fault, *LABELS)}


def moved(text: str) -> Moved:
    """What is not zero in the text of `/metrics`."""
    found: Moved = set()
    for line in text.splitlines():
        if (sample := SAMPLE.match(line)) and float(sample[3]):
            found |= {(sample[1], value) for value in re.findall(r'="([^"]*)"', sample[2] or "")} | {(sample[1], "")}
    return found


def counted(recorder: EventRecorder) -> Moved:
    """The same for events that a handler told."""
    metrics = Metrics()
    for event in recorder.events:
        metrics.tell(event)
    return moved(render(metrics.figures.snapshot()).decode())


def unknown_encoding(wire: Wire, request: Request) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\ncontent-encoding: unheard-of\r\ncontent-length: 2\r\n\r\nxx")


def is_served(port: int) -> bool:
    try:
        return status(ask(port, b"GET /healthz")) == 200
    except (OSError, AssertionError):  # the connection was closed at once
        return False


def by_requests() -> Moved:
    """A served gateway, asked for this and that and for what it must refuse."""
    with FakeUpstream([{"text": "Hello."}] * 9) as up:
        settings = Settings(("127.0.0.1", 0), up.base_url, max_body_bytes=2000, max_connections=1)
        with serve_in_thread(settings) as url:
            port = int(url.rpartition(":")[2])
            with dial(port):  # the one connection that is allowed
                assert until(lambda: not is_served(port))
            assert until(lambda: is_served(port))
            for line in (b"POST /v1/messages", b"POST /v1/messages/count_tokens", b"POST /v1/chat/completions"):
                ask(port, line, *HEADERS, body=BODY)
            ask(port, b"POST /v1/messages", *HEADERS, body=BODY.replace(b"sonnet", b"unheard"))
            ask(port, b"GET /v1/models", *HEADERS)
            ask(port, b"GET /v1/models", host=b"evil.example")
            ask(port, b"GET /v1/models", b"origin: https://evil.example")
            ask(port, b"GET /expand?id=0123456789abcdef")
            ask(port, b"GET http://other.example/v1/models")
            ask(port, b"POST /v1/messages", b"transfer-encoding: chunked", *HEADERS, body=BODY)
            ask(port, b"POST /v1/messages", *HEADERS, body=b"x" * 3000)
            return moved(ask(port, b"GET /metrics").body.decode())


def by_an_upstream_that_fails() -> Moved:
    """One that is not there, and one whose reply cannot be read."""
    found: Moved = set()
    with RawUpstream(unknown_encoding) as up, serve_in_thread(Settings(("127.0.0.1", 0), up.url)) as url:
        port = int(url.rpartition(":")[2])
        ask(port, b"POST /v1/messages", *HEADERS, body=BODY)
        found |= moved(ask(port, b"GET /metrics").body.decode())
    with serve_in_thread(Settings(("127.0.0.1", 0), up.url)) as url:
        port = int(url.rpartition(":")[2])
        ask(port, b"POST /v1/messages", *HEADERS, body=BODY)
        return found | moved(ask(port, b"GET /metrics").body.decode())


def by_a_session() -> Moved:
    """Outputs are asked about in a gap and removed, one is expanded again, and the sweep fails once."""

    async def session() -> Moved:
        async with live(scripted(expands(text="Look. "), {"text": "Found."})) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            await gateway.post(talk.say("Show me.").body())
            gateway.sweep.process = None  # type: ignore[method-assign, assignment]
            await gateway.post(talk.say("Go on.").body())
            return counted(gateway.recorder)

    return asyncio.run(session())


def observing(settings: Settings, upstream: Any, sweep: Any, events: Events, **more: Any) -> ObserveHandler:
    return ObserveHandler(settings, upstream, Projection(settings.config, events), events, **more)


def by_cold_requests(make: Any, model: str) -> Moved:
    """Two requests with a long wait between them, after which outputs are removed, or would be."""

    async def session() -> Moved:
        flags = {"keep_newest": 2, "pings": 0}
        async with live([WORK], preset="cold", flags=flags, make=make) as gateway:
            talk = Talk(top={"model": model}).calls(14)
            for _ in range(2):
                await gateway.post(talk.say("Go on.").body())
                gateway.clock.advance(1000)
            return counted(gateway.recorder)

    return asyncio.run(session())


class Failing(Events):
    def tell(self, event: GatewayEvent) -> None:
        raise RuntimeError


def by_a_listener_that_fails() -> Moved:
    """A program's own, of the transport."""
    config = load(None, {}, None, "cold")
    with upstream([{"text": "Hello."}]) as up, carried("threads", up, config, httpx2, events=Failing()) as client:
        assert client.post(BODY).status == 200
        return moved(client.transport.metrics())


@pytest.fixture(scope="module")
def all_moved() -> Moved:
    found = by_requests() | by_an_upstream_that_fails() | by_a_session() | by_a_listener_that_fails()
    for make in (None, observing):
        for model in (MODEL, "somebody-elses-model"):
            found |= by_cold_requests(make, model)
    return found


@pytest.mark.parametrize("member", [*Route, *Refusal, *Spend, *Mode, *Outcome, *Timer, *Stage], ids=repr)
def test_a_label_is_moved(member: StrEnum, all_moved: Moved) -> None:
    """By a request of this file, or by the test that is named; none stands at zero for ever."""
    assert ((LABELS[type(member)].name, member.value) in all_moved) != (member in ELSEWHERE_OF[type(member)])


@pytest.mark.parametrize("fault", Fault, ids=repr)
def test_a_fault_is_moved(fault: Fault, all_moved: Moved) -> None:
    """Ours and the world's."""
    family = metric_families.FAULTS_OURS if fault in OURS else metric_families.FAULTS_WORLD
    assert (family.name, fault.value) in all_moved or fault in ELSEWHERE_OF[Fault]


@pytest.mark.parametrize("family", ALL_FAMILIES, ids=lambda family: family.name)
def test_a_family_is_moved(family: metric_families.Family, all_moved: Moved) -> None:
    """A figure that nothing moves is none."""
    if family is metric_families.IN_FLIGHT:  # the request for the figures is being served
        assert (family.name, "") in all_moved
    assert ((family.name, "") in all_moved) or family.name in FAMILIES_ELSEWHERE


@pytest.mark.parametrize("place", sorted({*ELSEWHERE.values(), *FAMILIES_ELSEWHERE.values()}))
def test_the_table_names_tests_that_are_there(place: str) -> None:
    """A test that was renamed or deleted is missed here."""
    path, _, name = place.partition("::")
    tree = ast.parse((Path(__file__).parents[1] / path).read_text("utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
