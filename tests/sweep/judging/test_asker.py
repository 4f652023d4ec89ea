"""The asker over HTTP: what leaves, what is taken for an answer, and that nothing the other side does can hold it."""

import gzip
import json
import logging
import socket
import time
import zlib

import pytest
from raw_upstream import Script, reply, says, serving

from cg.errors import CgError
from cg.sweep.effects import Answer, Failure
from cg.sweep.judging.asker import MAX_REPLY_BYTES, HttpAsker, parse_reply, usage_of
from cg.sweep.values import Usage

SECRET = "sk-ant-oat01-not-a-real-credential"
HEADERS = {"Authorization": f"Bearer {SECRET}", "anthropic-beta": "context-1m-2025-08-07"}
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 9000, "output_tokens": 5}
MESSAGE = json.dumps({"content": [{"type": "text", "text": "[]"}], "usage": USAGE}).encode()
SOON_S = 0.3  # a deadline that a test can wait for


def asked(*scripts: Script, timeout_s: float = 10.0, body: bytes = b"{}") -> tuple[Answer | Failure, list[bytes]]:
    with serving(*scripts) as upstream:
        found = HttpAsker(upstream.url, HEADERS).ask(body, timeout_s)
    return found, upstream.requests


def reason_of(*scripts: Script, timeout_s: float = 10.0) -> str:
    found, requests = asked(*scripts, timeout_s=timeout_s)
    assert isinstance(found, Failure) and found.asker and len(requests) == 1
    return found.reason


def test_an_answer_is_its_text_with_its_usage() -> None:
    """Texts are joined, other blocks are passed over, and the time it took is measured."""
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "[1"}, {"type": "text", "text": ",2]"}]
    found, _ = asked(says(reply(json.dumps({"content": blocks, "usage": USAGE}).encode())))
    assert isinstance(found, Answer)
    assert (found.text, found.usage) == ("[1,2]", Usage(fresh=3, read=9000, output=5))
    assert found.milliseconds > 0


def test_the_body_and_the_caller_s_headers_leave_as_they_are() -> None:
    """Credential and betas belong to the cache; what belongs to one hop or to us does not leave."""
    body = b'{"model":"m","messages":[{"role":"user","content":"\\u00e9"}]}'
    headers = {**HEADERS, "X-CG-Session": "s1", "Content-Length": "7", "Accept-Encoding": "br", "Host": "elsewhere"}
    with serving(says(reply(MESSAGE))) as upstream:
        HttpAsker(upstream.url + "/base/", headers).ask(body, 10.0)
    head, sent = upstream.requests[0].split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    named = dict(line.lower().split(": ", 1) for line in lines[1:])
    assert sent == body and lines[0] == "POST /base/v1/messages HTTP/1.1"
    assert named["authorization"] == f"bearer {SECRET}" and named["anthropic-beta"] == "context-1m-2025-08-07"
    assert named["content-length"] == str(len(body)) and named["accept-encoding"] == "identity"
    assert "elsewhere" not in named["host"] and not any(name.startswith("x-cg-") for name in named)


def test_a_header_of_ours_stands_once_whatever_its_spelling() -> None:
    """The caller's version of the interface and content type hold."""
    with serving(says(reply(MESSAGE))) as upstream:
        HttpAsker(upstream.url, {"Content-Type": "application/json", "Anthropic-Version": "2099-01-01"}).ask(b"{}", 10)
    head = upstream.requests[0].lower()
    assert head.count(b"content-type:") == head.count(b"anthropic-version:") == 1 and b"2099-01-01" in head


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "413 Too Large", "429 Slow", "529 Busy"])
def test_another_status_is_a_failure_that_names_it_and_is_not_tried_again(status: str) -> None:
    """The provider has seen the request: another try could be charged."""
    assert reason_of(says(reply(MESSAGE, status)), says(reply(MESSAGE))) == f"status {status[:3]}"


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_redirect_is_not_followed(status: str) -> None:
    """The credential is for this host, and no other is asked."""
    with serving(says(reply(MESSAGE))) as other:
        assert reason_of(says(reply(b"", status, location=other.url + "/v1/messages"))) == f"status {status[:3]}"
    assert other.requests == []


@pytest.mark.parametrize(
    "cut",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        reply(MESSAGE)[:-1],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}",
        b"nothing like HTTP\r\n\r\n",
    ],
)
def test_a_reply_that_is_cut_or_no_http_is_a_failure_and_is_not_tried_again(cut: bytes) -> None:
    """Whole requests may have been charged for."""
    reason_of(says(cut), says(reply(MESSAGE)))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"null", b'{"content":"text"}', b'{"content":[1]}', b"[" * 100_000, b"\xff\xfe"]
)
def test_a_reply_that_is_no_message_is_unreadable(body: bytes) -> None:
    """Whatever it is instead."""
    assert reason_of(says(reply(body))) == "unreadable reply"


def slowly(piece: bytes, *first: bytes) -> Script:
    """Says `first`, then one piece after the other for as long as somebody listens."""

    def script(connection: socket.socket) -> None:
        for head in first:
            connection.sendall(head)
        for _ in range(500):
            connection.sendall(piece)
            time.sleep(0.01)

    return script


def silence(connection: socket.socket) -> None:
    """Says nothing until the other side has had enough."""
    connection.recv(1)
    raise ConnectionResetError


@pytest.mark.parametrize(
    "script",
    [
        silence,
        slowly(b"x-more: 1\r\n", b"HTTP/1.1 200 OK\r\n"),
        slowly(b" ", b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"),
        slowly(b" ", b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
    ids=["silence", "headers in drops", "a body in drops", "a body without an end"],
)
def test_the_deadline_holds_whatever_the_other_side_does(script: Script) -> None:
    """A leg ends at its time even if each single byte comes in time, and while the other side still has more to say."""
    finished = []

    def watched(connection: socket.socket) -> None:
        script(connection)
        finished.append(True)

    assert reason_of(watched, timeout_s=SOON_S) == "timeout"
    assert not finished


def test_a_huge_reply_is_refused_while_it_is_read() -> None:
    """Not after: what is held is bounded."""
    sent = []

    def script(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for n in range(64):
            connection.sendall(b" " * 2**20)
            sent.append(n)

    assert reason_of(script) == "oversized reply"
    assert len(sent) < 32


@pytest.mark.parametrize("encoding,pack", [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_packed_reply_is_unpacked(encoding: str, pack) -> None:
    """It was not asked for, but it is paid."""
    found, _ = asked(says(reply(pack(MESSAGE), content_encoding=encoding)))
    assert isinstance(found, Answer) and found.text == "[]"


def test_a_packed_reply_unpacks_no_further_than_the_limit() -> None:
    """A megabyte can hold a gigabyte."""
    bomb = gzip.compress(b" " * (MAX_REPLY_BYTES + 1))
    assert len(bomb) < 10_000
    assert reason_of(says(reply(bomb, content_encoding="gzip"))) == "oversized reply"
    assert reason_of(says(reply(b"not packed", content_encoding="gzip"))) == "unreadable reply"


def test_a_connection_that_cannot_be_opened_is_tried_twice_and_spends_nothing() -> None:
    """Nobody listens: the failure says so, within the deadline."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    found = HttpAsker(f"http://127.0.0.1:{port}", HEADERS).ask(b"{}", 5.0)
    assert isinstance(found, Failure) and found.reason == "connect: ConnectionRefusedError"


def test_credentials_stand_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    """Not in a failure, not in an error, not in a log, not in what an object says of itself."""
    caplog.set_level(logging.DEBUG)
    failed, _ = asked(says(reply(SECRET.encode(), "401 Unauthorized")))
    said = [str(failed), repr(HttpAsker("http://127.0.0.1:1", HEADERS)), caplog.text]
    for upstream, headers in [
        (f"http://user:{SECRET}@127.0.0.1", {}),
        (f"ftp://user:{SECRET}@127.0.0.1", {}),
        (f"http://127.0.0.1:{SECRET}", {}),
        (f"http:///{SECRET}", {}),
        ("http://127.0.0.1", {"x-api-key": SECRET + "\r\nx-more: 1"}),
        ("http://127.0.0.1", {"x-api-key": SECRET + "\u20ac"}),
    ]:
        with pytest.raises(CgError) as refused:
            HttpAsker(upstream, headers)
        said.append(str(refused.value))
    assert len(said) == 9 and not any(SECRET in text for text in said)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ([], None),
        ({}, Usage()),
        ({"input_tokens": True, "output_tokens": -1, "cache_read_input_tokens": "9"}, Usage()),
        ({"input_tokens": 10**400, "output_tokens": 10**13}, Usage()),
        ({"cache_creation_input_tokens": 7}, Usage(write_5m=7)),
        (
            {"cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 5}},
            Usage(write_5m=2, write_1h=5),
        ),
    ],
)
def test_usage_is_by_tier_and_believes_only_counts(usage: object, expected: Usage | None) -> None:
    """Writes that are not labelled count as five-minute ones."""
    assert usage_of(usage) == expected


def test_calls_in_a_reply_are_discarded() -> None:
    """They never reach a client, and say nothing."""
    message = {"content": [{"type": "tool_use", "id": "x", "name": "Bash", "input": {}}, {"type": "text", "text": "t"}]}
    assert parse_reply(json.dumps(message).encode()) == ("t", None)
