"""Whatever comes in, the command answers a valid response or one error line."""

import io
import json
import os
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import binary, data, integers, just, lists, one_of, sampled_from

from cg.hints import cli
from cg.hints.refusal import Code

VALID = json.dumps(
    {
        "snapshot_id": "s\u00e9",
        "query": "card 결제",
        "documents": [{"id": "a", "text": "card"}, {"id": "b", "text": "결제 page"}, {"id": "c", "text": ""}],
        "hints": {"snapshot_id": "s\u00e9", "query": "card 결제", "ids": ["c", "a"]},
    },
    ensure_ascii=False,
).encode()
PIECES = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"1e999", b"NaN", b"true", b"\\ud800", b"\\u0000", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"id"', b'"a"', b'"query":"x",', b"\n", b"\x00", b"\xff", b"\\"]  # fmt: skip
EXAMPLES = 20_000 if os.environ.get("CG_LONG") else 400


class Stream:
    """A text stream in name only: the command uses the bytes under it."""

    def __init__(self, body: bytes = b"") -> None:
        self.buffer = io.BytesIO(body)


def run(body: bytes, *arguments: str) -> tuple[int, bytes, bytes]:
    """(exit code, stdout, stderr) of the command, in this process for speed."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = Stream(), Stream()
    sys.stdin, sys.stdout, sys.stderr = Stream(body), out, err  # type: ignore[assignment]
    try:
        code = cli.main(list(arguments))
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
    return code, out.buffer.getvalue(), err.buffer.getvalue()


def assert_is_error(line: Any) -> None:
    assert list(line) == ["error"] and list(line["error"]) == ["code", "message", "path"]
    assert line["error"]["code"] in set(Code) - {Code.INTERNAL, Code.USAGE}


def assert_is_response(body: bytes, response: Any) -> None:
    request = json.loads(body)
    assert response["query"] == request["query"]
    assert sorted(c["id"] for c in response["candidates"]) == sorted(d["id"] for d in request["documents"])


def assert_answered(body: bytes) -> None:
    code, out, err = run(body)
    if code == 0:
        assert err == b"" and out.count(b"\n") == 1
        assert_is_response(body, json.loads(out))
    else:
        assert (code, out) == (2, b"") and err.count(b"\n") == 1
        assert_is_error(json.loads(err))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data())
def test_a_mutated_request_is_answered_or_refused(draw: Any) -> None:
    """Cuts, repeats and insertions at any byte of a valid request."""
    body = VALID
    for _ in range(draw.draw(integers(1, 4))):
        start = draw.draw(integers(0, len(body)))
        end = draw.draw(one_of(just(start), integers(start, min(len(body), start + 12)), integers(start, len(body))))
        piece = draw.draw(one_of(just(b""), sampled_from(PIECES), binary(max_size=4), just(body[start:end] * 2)))
        body = body[:start] + piece + body[end:]
    assert_answered(body)


@settings(max_examples=EXAMPLES, deadline=None)
@given(lists(one_of(sampled_from(PIECES), binary(max_size=3)), max_size=30).map(b"".join))
def test_any_bytes_are_answered_or_refused(body: bytes) -> None:
    assert_answered(body)


@settings(max_examples=EXAMPLES, deadline=None)
@given(lists(one_of(just(VALID), binary(max_size=20), sampled_from(PIECES)), max_size=6))
def test_every_line_has_its_answer(lines: list[bytes]) -> None:
    body = b"".join(line + b"\n" for line in lines)
    code, out, err = run(body, "--lines")
    assert (code, err) == (0, b"") and out.count(b"\n") == body.count(b"\n")
    for line, reply in zip(body.split(b"\n"), out.split(b"\n")[:-1], strict=False):
        answer = json.loads(reply)
        assert_is_error(answer) if "error" in answer else assert_is_response(line, answer)


@pytest.mark.parametrize("cut", range(len(VALID)))
def test_a_request_cut_anywhere_is_refused(cut: int) -> None:
    code, out, err = run(VALID[:cut])
    assert (code, out) == (2, b"")
    assert json.loads(err)["error"]["code"] in (Code.INVALID_JSON, Code.INVALID_UTF8)
