"""The sweep inside a client's process sends what the gateway would, and gives back what the client would have got."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="httpx2 is not installed: the transport is an extra")

import httpx2
from carried import WAYS, Carried, carried, until, upstream
from piped import encoded, recorded
from wired import ALL_SPENT, OWED, SPENT, WORK, EventRecorder, Talk, expands, find_markers, scripted

from cg.gateway.embedded.gateway import Providers
from cg.gateway.events import Timer
from cg.gateway.transport import Transport
from cg.sweep.config import load

PAID = load(preset="paid")
COLD = load(None, {}, {"keep_newest": 2, "pings": 0}, "cold")
LONG_BEFORE = {"claude_code": 17, "litellm": 14, "sdk_tool_runner_full": 14}  # the turn that comes after a long wait
ASKED_BEFORE = {"litellm", "sdk_tool_runner_full"}  # and in it a question; by recency the others
FOLDERS = [*LONG_BEFORE, "claude_code_compact", "sdk_tool_runner_threads"]


@pytest.fixture(params=["httpx2", "httpx"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    return request.param


def swept(live: Carried, talk: Talk, *, n: int = 14) -> list[str]:
    """Bring a session to where eleven outputs are removed; returns their keys."""
    live.post(talk.body())
    live.post(talk.calls(n).body())
    live.wait(241, asks=1)
    live.wait(1000)
    live.post(talk.say("And now?").body())
    keys = find_markers(live.bodies("work")[-1].decode())
    assert len(keys) == 11, live.stats()["reasons"]
    return keys


@cache
def replayed(way: str, folder: str) -> tuple[Any, ...]:
    """A recorded session's requests, carried one way: what the upstream got, and what the client read."""
    asks = folder in ASKED_BEFORE
    with upstream({"routes": [ALL_SPENT, WORK]}) as up, carried(way, up, PAID if asks else COLD, httpx2) as live:
        answers = []
        for number, row in enumerate(recorded(folder), start=1):
            if number == LONG_BEFORE.get(folder):
                live.wait(250, asks=1 if asks else None)
                live.wait(700)
            kept = {
                name: value for name, value in row["headers"] if name.lower().startswith(("anthropic-", "x-claude"))
            }
            answer = live.post(encoded(row["body"]), path=row["path"], **kept)
            answers.append((answer.status, answer.body))
            live.up.clock.advance(5)
        return live.sent, answers, live.stats()["removed"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_recorded_session_leaves_with_the_same_bytes_as_through_the_gateway(folder: str, way: str) -> None:
    """Every request, the asks in between among them, and every answer."""
    through, within = replayed("gateway", folder), replayed(way, folder)
    assert within == through
    if folder in LONG_BEFORE:
        assert within[2]["outputs"] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_our_tool_is_answered_inside(library: Any, way: str, stream: bool) -> None:
    """The client sees one message, and the upstream gets what it would get through the gateway."""
    script = {"routes": scripted(expands(text="One again."), {"text": "Thank you."})}

    def session(way: str) -> tuple[Any, ...]:
        with upstream(script) as up, carried(way, up, PAID, library) as live:
            talk = Talk()
            swept(live, talk)
            answer = live.post(talk.say("Look again.").body(stream=stream))
            return live.sent, answer.body, live.stats()["recoveries"]

    within = session(way)
    assert within == session("gateway")
    assert within[2] == {"hidden": {"original": 1}, "rounds": 1}
    assert b"Thank you." in within[1] and b"cg_expand" not in within[1]


def test_a_retry_of_an_identical_body_is_the_same_turn(way: str) -> None:
    """After an overloaded upstream nothing is asked or counted twice, and the same bytes leave again."""
    faults = [{"kind": "http_error", "status": 529}, {"kind": "http_error", "status": 500}]
    script = {
        "routes": [ALL_SPENT, {"name": "work", "turns": [{"text": "."}, {"text": "."}, {"text": ".", "fault": faults}]}]
    }
    with upstream(script) as up, carried(way, up, PAID, httpx2) as live:
        talk = Talk()
        live.post(talk.body())
        live.post(talk.calls(14).body())
        live.wait(241, asks=1)
        live.wait(1000)
        body = talk.say("And now?").body()
        assert [live.post(body).status for _ in range(3)] == [529, 500, 200]
        stats = live.stats()
    assert len(set(live.bodies("work")[-3:])) == 1
    assert stats["reasons"]["retry"] == 2 and stats["reasons"]["removed"] == 1
    assert stats["removed"]["outputs"] == 11 and sum(stats["asks"]["outcomes"].values()) == 1


@pytest.mark.parametrize("calls", [0, 2], ids=["looked at", "passing"])
def test_a_cut_stream_ends_as_it_would_without_us(library: Any, way: str, calls: int) -> None:
    """The same exception of the client's own library, what came before it read, and the next try goes on."""
    fault = {"kind": "cut", "after_events": 3, "how": "fin"}
    script = {"routes": [{"name": "work", "turns": [{"text": "x" * 400, "fault": fault}]}]}
    with upstream(script) as up, carried(way, up, COLD, library) as live:
        body = Talk().calls(calls).body(stream=True)
        with pytest.raises(library.RemoteProtocolError):
            live.post(body)
        assert live.post(body).status == 200
        until(lambda: live.stats()["in_flight"] == 0)
        assert live.stats()["reasons"]["retry"] == 1


def test_a_body_of_ours_that_is_refused_is_followed_by_the_clients_own(way: str) -> None:
    """Once, and what it carried is not tried again."""
    refuse = {"kind": "http_error", "status": 400, "message": "no"}
    script = {"routes": [{"name": "work", "turns": [{"text": "."}, {"text": "."}, {"text": ".", "fault": refuse}]}]}
    with upstream(script) as up, carried(way, up, COLD, httpx2) as live:
        talk = Talk()
        live.post(talk.body())
        live.post(talk.calls(14).body())
        live.wait(1000)
        body = talk.say("And now?").body()
        assert live.post(body).status == 200
        assert live.bodies()[-1] == body and find_markers(live.bodies()[-2].decode())
        assert live.stats()["resent"] == {"400": 1}


def test_a_restart_on_the_same_state_replays_the_same_bytes(way: str, tmp_path: Path) -> None:
    """What was removed by one process leaves as it was written by the next one."""
    state, talk = tmp_path / "state.db", Talk()
    with upstream({"routes": [ALL_SPENT, WORK]}) as up:
        with carried(way, up, PAID, httpx2, state=state) as live:
            swept(live, talk)
            before = live.bodies("work")[-1]
        with carried(way, up, PAID, httpx2, state=state) as live:
            live.post(talk.say("Go on.").body())
            after = live.bodies("work")[-1]
            assert live.stats()["removed"]["outputs"] == 0
    both = [json.loads(body)["messages"] for body in (before, after)]
    assert both[1][: len(both[0]) - 1] == both[0][:-1]
    assert find_markers(after.decode()) == find_markers(before.decode())


def test_a_state_file_is_shared_with_the_gateway(tmp_path: Path) -> None:
    """A conversation that moves from one to the other keeps its removals."""
    state, talk = tmp_path / "state.db", Talk()
    with upstream({"routes": [ALL_SPENT, WORK]}) as up:
        with carried("gateway", up, PAID, httpx2, state=state) as live:
            keys = swept(live, talk)
        with carried("threads", up, PAID, httpx2, state=state) as live:
            live.post(talk.say("Go on.").body())
            assert find_markers(live.bodies("work")[-1].decode()) == keys


def test_what_is_not_ours_passes_to_the_inner_transport(library: Any) -> None:
    """Other paths and methods, as the very request that the client made."""
    seen: list[Any] = []

    def inner(request: Any) -> Any:
        seen.append(request)
        return library.Response(200, json={"data": []})

    with library.Client(transport=Transport(library.MockTransport(inner), config=COLD)) as client:
        for method, path in (("GET", "/v1/models"), ("POST", "/v1/complete"), ("GET", "/v1/messages"), ("PUT", "/x")):
            request = client.build_request(method, "https://api.example.com" + path, content=b"as it is")
            assert client.send(request).status_code == 200
            assert seen[-1] is request


def test_a_count_of_tokens_is_of_the_body_that_would_be_sent(way: str) -> None:
    """And decides nothing."""
    with upstream({"routes": [ALL_SPENT, WORK]}) as up, carried(way, up, PAID, httpx2) as live:
        talk = Talk()
        keys = swept(live, talk)
        live.post(talk.body(), path="/v1/messages/count_tokens")
        counted = next(r for r in reversed(up.requests) if "count_tokens" in r["path"])
        assert find_markers(counted["body"]) == keys
        assert live.stats()["turns"] == 3


def test_the_clients_headers_leave_and_ours_stay() -> None:
    """Its credential, betas and host; nothing that begins with x-cg-."""
    seen: list[Any] = []

    def inner(request: Any) -> Any:
        seen.append(request)
        return httpx2.Response(200, json={"type": "message", "content": [], "usage": {}})

    with httpx2.Client(transport=Transport(httpx2.MockTransport(inner), config=COLD), timeout=7) as client:
        headers = {"x-api-key": "sk", "anthropic-beta": "a,b", "x-cg-session": "s", "authorization": "Bearer t"}
        client.post("https://api.example.com/v1/messages?beta=true", content=Talk().body(), headers=headers)
    (request,) = seen
    assert {name: request.headers.get(name) for name in headers} == {**headers, "x-cg-session": None}
    assert request.headers["host"] == "api.example.com" and str(request.url).endswith("/v1/messages?beta=true")
    assert set(request.extensions["timeout"].values()) == {7}


@pytest.mark.parametrize(
    "kind", ["ConnectError", "ConnectTimeout", "ReadTimeout", "ReadError", "PoolTimeout", "OSError"]
)
def test_an_error_of_the_inner_transport_is_the_clients(library: Any, kind: str) -> None:
    """The very exception, so that an SDK's retries see what they know."""
    made = OSError("x") if kind == "OSError" else getattr(library, kind)("x")

    def inner(request: Any) -> Any:
        raise made

    transport = Transport(library.MockTransport(inner), config=COLD)
    with library.Client(transport=transport) as client, pytest.raises(type(made)) as raised:
        client.post("https://api.example.com/v1/messages", content=Talk().body())
    assert raised.value is made
    assert transport.stats()["in_flight"] == 0


def test_a_fault_of_ours_sends_the_clients_own_body(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, and nothing else is to be seen of it."""

    def broken(self: Any, base: str) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr(Providers, "at", broken)
    with upstream([{"text": "."}]) as up, carried(way, up, COLD, httpx2) as live:
        body = Talk().calls(3).body()
        assert live.post(body).status == 200
        assert live.bodies() == [body]
        assert live.stats()["faults"]["ours"] == {"sweep": 1}


def test_an_ask_carries_the_credential_of_the_last_request(way: str) -> None:
    """It goes where that went, once, and the answer is applied at the next cold request."""
    recorder = EventRecorder()
    script = {"routes": [ALL_SPENT, WORK]}
    with upstream(script, redact=False) as up, carried(way, up, PAID, httpx2, events=recorder) as live:
        talk = Talk()
        live.post(talk.body(), x_api_key="first")
        live.post(talk.calls(14).body(), x_api_key="first", anthropic_beta="b-1")
        live.wait(241, asks=1)
        (ask,) = [r for r in up.requests if r.get("route") == "ask"]
        headers = {name.lower(): value for name, value in ask["headers"]}
        assert headers["x-api-key"] == "first" and headers["anthropic-beta"] == "b-1"
        assert recorder.timers[Timer.FIRED] == 1


def test_a_question_within_a_request_is_asked_beside_it(way: str) -> None:
    """Under `classic` the client's thread is not the one that waits for the judge."""
    verdicts = {"labels": r"^\[(\d+)\]", "item": SPENT, "keep": [11], "keep_item": OWED}
    ask = {"name": "ask", "match": {"last_user~": "Housekeeping:"}, "turns": [{"verdicts": verdicts}], "then": "repeat"}
    classic = load(None, {}, {}, "classic")

    def session(way: str) -> Any:
        with upstream({"routes": [ask, WORK]}) as up, carried(way, up, classic, httpx2) as live:
            talk = Talk()
            live.post(talk.body())
            live.post(talk.calls(14, size=7000).body())
            live.wait(250)
            live.post(talk.say("And now?").body())
            return live.sent, live.stats()["removed"]

    within = session(way)
    assert within == session("gateway")
    assert within[1]["outputs"] == 11


def test_observing_changes_nothing(way: str) -> None:
    """And projects."""
    with upstream({"routes": [WORK]}) as up, carried(way, up, COLD, httpx2, observe=True) as live:
        talk = Talk()
        own = [talk.body(), talk.calls(14).body(), talk.say("And now?").body()]
        for body in own:
            live.post(body)
            live.wait(1000)
        assert live.bodies() == own
        until(lambda: live.stats()["projected"]["removed"]["outputs"] > 0)
