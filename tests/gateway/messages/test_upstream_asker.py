"""An ask over HTTP: what is taken for an answer, and that nothing the other side does is taken for one."""

import asyncio
import gzip
import json
import logging
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from event_recorder import EventRecorder
from live import RawUpstream, Request, Script, Wire
from wired import ALL_SPENT, EXPAND_TOOL, WORK, Live, Talk, live

from cg.gateway.messages.upstream_asker import MAX_REPLY_BYTES, UpstreamAsker
from cg.gateway.state.clock import SystemClock
from cg.gateway.upstream.pool import PooledUpstream
from cg.sweep.counters import Decline
from cg.sweep.effects import Answer, Failure
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.values import Usage

DROPS = json.dumps([{"i": label, "needed_by": "none", "verdict": "drop"} for label in range(12)])


def asked(turn: dict[str, Any], **flags: Any) -> tuple[TurnReport, Mapping[str, float], int]:
    """(report of the request behind an ask that was answered so, all declines, how often the upstream was asked)."""

    async def session(gateway: Live) -> tuple[TurnReport, Mapping[str, float], int]:
        talk = Talk()
        await gateway.post(talk.body())
        await gateway.post(talk.calls(14).body())
        await gateway.wait(241)
        await gateway.post(talk.say("And now?").body())
        return gateway.recorder.turns[-1], gateway.store.totals()["declines"], len(gateway.bodies("ask"))

    async def run() -> tuple[TurnReport, Mapping[str, float], int]:
        async with live([{**ALL_SPENT, "turns": [turn]}, WORK], flags=flags) as gateway:
            return await session(gateway)

    return asyncio.run(run())


def test_u13_a_call_in_the_reply_is_discarded_and_judges_nothing() -> None:
    """A reply that only calls a tool brings no text, whatever the call's input or the thinking looks like."""
    call = {"tool": EXPAND_TOOL, "input": json.loads(DROPS)[0]}
    report, declines, _ = asked({"thinking": DROPS, **call})
    assert declines[Decline.UNPARSEABLE] == 1 and not report.removed


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "http_error", "status": 400},
        {"kind": "http_error", "status": 413},
        {"kind": "http_error", "status": 429},
        {"kind": "http_error", "status": 529},
        {"kind": "gateway"},
        {"kind": "cut", "after_bytes": 40, "how": "fin"},
        {"kind": "cut", "after_bytes": 40, "how": "rst"},
    ],
    ids=lambda fault: " ".join(map(str, fault.values())),
)
def test_a_failed_ask_is_not_tried_again_and_judges_nothing(fault: dict[str, Any]) -> None:
    """The provider has seen the request: another try could be charged. Only the ask over samples follows."""
    report, declines, asks = asked({"text": DROPS, "fault": {**fault, "times": 9}})
    assert report.reason is Reason.ASK_FAILED and declines[Decline.ASK_FAILED] == 1
    assert asks == 2 and declines[Decline.FALLBACK_FAILED] == 1


def test_the_deadline_holds_whatever_the_other_side_does() -> None:
    """Each leg ends at its own time."""
    silent = {"kind": "slow_first_byte", "seconds": 30, "times": 9}
    began = time.monotonic()
    report, declines, _ = asked({"text": DROPS, "fault": silent}, ask_timeout_s=1, fallback_timeout_s=1)
    assert report.reason is Reason.ASK_FAILED and declines[Decline.FALLBACK_FAILED] == 1
    assert time.monotonic() - began < 25


# -- one call over a real connection ----------------------------------------------------------------------------------

SECRET = "sk-ant-oat01-not-a-real-credential"
HEADERS = [(b"authorization", b"Bearer " + SECRET.encode()), (b"anthropic-beta", b"context-1m-2025-08-07")]
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 9000, "output_tokens": 5}
MESSAGE = json.dumps(
    {"type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "[]"}], "usage": USAGE}
).encode()
SOON_S = 0.3  # a deadline that a test can wait for


def called(
    script: Script, *, timeout_s: float = 10.0, headers: list[tuple[bytes, bytes]] = HEADERS
) -> tuple[Answer | Failure, list[Request], UpstreamAsker]:
    """(what came of one ask that was answered so, the requests that arrived, the asker)."""

    async def run(url: str) -> tuple[Answer | Failure, UpstreamAsker]:
        upstream = PooledUpstream(url, environment={})
        try:
            asker = UpstreamAsker(upstream, b"/v1/messages", headers, EventRecorder(), SystemClock())
            return await asker.ask(b"{}", timeout_s), asker
        finally:
            await upstream.aclose()

    with RawUpstream(script) as upstream:
        outcome, asker = asyncio.run(run(upstream.url))
    return outcome, upstream.requests, asker


def reason_of(script: Script, *, timeout_s: float = 10.0) -> str:
    """Why an ask failed, which was made once."""
    outcome, requests, _ = called(script, timeout_s=timeout_s)
    assert isinstance(outcome, Failure) and outcome.asker and len(requests) == 1
    return outcome.reason


def replying(body: bytes, status: str = "200 OK", *headers: bytes) -> Script:
    return lambda wire, request: wire.reply(body, status, *headers)


def test_an_answer_is_its_text_with_its_usage() -> None:
    """Texts are joined, other blocks and calls are passed over, and the time it took is measured."""
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "[1"},
        {"type": "tool_use", "id": "x", "name": "Bash", "input": {}},
        {"type": "text", "text": ",2]"},
    ]
    outcome, _, _ = called(replying(json.dumps({**json.loads(MESSAGE), "content": blocks}).encode()))
    assert isinstance(outcome, Answer)
    assert (outcome.text, outcome.usage) == ("[1,2]", Usage(fresh=3, read=9000, output=5))
    assert outcome.milliseconds > 0


def test_credential_and_betas_leave_and_what_is_ours_does_not() -> None:
    """They belong to the cache; an encoding that the client asked for is not asked for here."""
    _, [request], _ = called(
        replying(MESSAGE), headers=[*HEADERS, (b"x-cg-session", b"s1"), (b"accept-encoding", b"br")]
    )
    names = [name.lower() for name, _ in request.headers]
    assert {name.lower(): value for name, value in request.headers}.items() >= dict(HEADERS).items()
    assert (b"accept-encoding", b"identity") in [(name.lower(), value) for name, value in request.headers]
    assert names.count(b"accept-encoding") == 1 and not any(name.startswith(b"x-cg-") for name in names)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_redirect_is_not_followed(status: str) -> None:
    """The credential is for this host, and no other is asked."""
    with RawUpstream(replying(MESSAGE)) as other:
        location = f"location: {other.url}/v1/messages".encode()
        assert reason_of(replying(b"", status, location)) == f"status {status[:3]}"
    assert other.requests == []


@pytest.mark.parametrize(("status", "is_refused"), [("401 Unauthorized", True), ("403 Forbidden", False)])
def test_a_401_says_that_the_credential_was_refused(status: str, is_refused: bool) -> None:
    """Whoever holds it lets it go; another status may be over at the next ask."""
    outcome, requests, asker = called(replying(MESSAGE, status))
    assert isinstance(outcome, Failure) and outcome.reason == f"status {status[:3]}" and len(requests) == 1
    assert asker.is_refused is is_refused


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}",
        b"nothing like HTTP\r\n\r\n",
    ],
)
def test_a_reply_that_is_cut_or_no_http_is_a_failure_and_is_not_asked_for_again(sent: bytes) -> None:
    """Whole requests may have been charged for."""

    def script(wire: Wire, request: Request) -> None:
        wire.send(sent)
        wire.fin()

    assert reason_of(script) == "Cut"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"null", b'{"content":"text"}', b'{"content":[1]}', b"[" * 100_000, b"\xff\xfe"]
)
def test_a_reply_that_is_no_message_is_unreadable(body: bytes) -> None:
    """Whatever it is instead."""
    assert reason_of(replying(body)) == "unreadable reply"


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"x-more: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    ],
    ids=["headers in drops", "a body in drops", "a body without an end"],
)
def test_a_reply_in_drops_ends_at_the_deadline(head: bytes, piece: bytes) -> None:
    """Even if each byte comes in time, and while the other side still has more to say."""
    finished = []

    def script(wire: Wire, request: Request) -> None:
        wire.send(head)
        for _ in range(500):
            wire.send(piece)
            time.sleep(0.01)
        finished.append(True)

    assert reason_of(script, timeout_s=SOON_S) == "timeout"
    assert not finished


def test_a_huge_reply_is_refused_while_it_is_read() -> None:
    """Not after: what is held is bounded."""
    sent = []

    def script(wire: Wire, request: Request) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n" + MESSAGE)
        for n in range(64):
            wire.send(b" " * 2**20)
            sent.append(n)

    assert reason_of(script) == "unreadable reply"
    assert len(sent) < 32


@pytest.mark.parametrize(("encoding", "pack"), [(b"gzip", gzip.compress), (b"deflate", zlib.compress)])
def test_a_packed_reply_is_unpacked(encoding: bytes, pack: Callable[[bytes], bytes]) -> None:
    """It was not asked for, but it is paid."""
    outcome, _, _ = called(replying(pack(MESSAGE), "200 OK", b"content-encoding: " + encoding))
    assert isinstance(outcome, Answer) and outcome.text == "[]"


def test_a_packed_reply_unpacks_no_further_than_the_limit() -> None:
    """A megabyte can hold a gigabyte."""
    bomb = gzip.compress(MESSAGE + b" " * MAX_REPLY_BYTES)  # an answer, could all of it be read
    assert len(bomb) < 10_000
    assert reason_of(replying(bomb, "200 OK", b"content-encoding: gzip")) == "unreadable reply"
    assert reason_of(replying(b"not packed", "200 OK", b"content-encoding: gzip")) == "unreadable reply"


def test_credentials_stand_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    """Not in a failure, not in a log, not in what an object says of itself, whatever the other side repeats."""
    caplog.set_level(logging.DEBUG)
    refused, _, asker = called(replying(SECRET.encode(), "401 Unauthorized"))
    unreadable, _, _ = called(replying(SECRET.encode()))
    said = [repr(refused), repr(unreadable), repr(asker), caplog.text]
    assert not any(SECRET in text for text in said)
