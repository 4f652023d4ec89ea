"""Drive conversations through `cg-sweep run` as a script would, and compare what leaves with what came, span by span."""

import io
import json
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

from fake_upstream import Validator

from cg.sweep import cli
from cg.sweep.body.marker import DECLARATION
from cg.sweep.body.transcript import read

WIRE = Path(__file__).parents[1] / "data" / "wire"
START = 1_800_000_000.0
# Notes of the client's stand in the recordings by their length; this one is known.
UNCHANGED = "Wasted call \u2014 file unchanged since your last Read. Refer to that earlier tool_result instead."
NOTE = f"[client note, {len(UNCHANGED)} chars]"
MARKS = (b'"cache_control":{"type":"ephemeral"}', b'"cache_control":{"type":"ephemeral","ttl":"1h"}')


def encoded(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def recorded(folder: str) -> list[dict]:
    """The requests of a recorded session, in order, with the client's own word for a file that is unchanged."""
    texts = (path.read_text("utf-8") for path in sorted((WIRE / folder).glob("turn_*.json")))
    return [json.loads(text.replace(NOTE, UNCHANGED)) for text in texts]


def follow_on(row: dict, said: str, text: str) -> dict:
    """The request after the last recorded one: the reply that was given, and another word of the user's."""
    body = json.loads(json.dumps(row["body"]))
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("cache_control", None)
    body["messages"] += [
        {"role": "assistant", "content": [{"type": "text", "text": said}]},
        {"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]},
    ]
    if "cache_control" in body:  # a client that marks at the top level marks no block
        del body["messages"][-1]["content"][0]["cache_control"]
    return {**row, "body": body}


def validate(body: bytes, row: dict) -> None:
    """Raises unless the stand-in upstream, which refuses what the real API refuses, takes the body."""
    headers = {name.lower(): value for name, value in row["headers"]}
    Validator({}).body(json.loads(body), headers, row["path"].startswith("/v1/messages/count_tokens"))


def verdicts(*letters: str, quote: str = "") -> str:
    """A reply in the asked form, one verdict a label: "d" drops, "k" keeps."""
    said = {"d": {"needed_by": "none", "verdict": "drop"}, "k": {"needed_by": "b", "quote": quote, "verdict": "keep"}}
    return json.dumps([{"i": i, **said[letter]} for i, letter in enumerate(letters)])


@contextmanager
def streams(stdin: bytes):
    """Standard input and output as bytes; yields the output's buffer."""
    out = io.BytesIO()
    wrapped = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    with mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin))), mock.patch("sys.stdout", wrapped):
        yield out
    wrapped.detach()  # which leaves the buffer open


def command(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes]:
    """(exit code, stdout) of one `cg-sweep` command."""
    with streams(stdin) as out:
        try:
            code = cli.main(list(arguments))
        except SystemExit as refused:  # argparse leaves this way
            code = refused.code
    return code, out.getvalue()


class Pipe:
    """One session on one state file; every run opens the state anew, as a new process would."""

    def __init__(self, folder: Path, session: str = "s", preset: str | None = None, toml: str = "") -> None:
        self.state, self.session, self.folder = folder / "state" / "sweep.db", session, folder
        self.options = ["--preset", preset] if preset else []
        if toml:
            (folder / "sweep.toml").write_text("[sweep]\n" + toml, "utf-8")
            self.options += ["--config", str(folder / "sweep.toml")]

    def where(self) -> list[str]:
        return ["--state", str(self.state), "--session", self.session]

    def run(self, body: bytes, now: float, reply: str | None = None) -> tuple[bytes, dict]:
        """(what leaves, the report)."""
        report = self.folder / "report.json"
        options = ["--now", repr(now), "--report", str(report), *self.where(), *self.options]
        if reply is not None:
            (self.folder / "reply").write_text(reply, "utf-8")
            options += ["--reply", str(self.folder / "reply")]
        code, out = command("run", *options, stdin=body)
        assert code == 0
        return out, json.loads(report.read_text("utf-8"))


def tokens(body: bytes) -> dict[tuple[str, int], bytes]:
    """The JSON string token of every tool result's text, by call and block."""
    return {(t.tool_use_id, t.block): body[t.start : t.end] for t in read(body).tool_texts}


def changed_texts(body: bytes, out: bytes) -> dict[tuple[str, int], bytes]:
    """The tokens of `out` that are not the client's; raises AssertionError for any other difference.

    Between two tool texts every byte has to be the client's, but for our tool and one more cache breakpoint, and beside a
    text that is not the client's the word that its result is no error.
    """
    before, after = read(body), read(out)
    assert [(t.tool_use_id, t.block) for t in before.tool_texts] == [(t.tool_use_id, t.block) for t in after.tool_texts]
    was, now = tokens(body), tokens(out)
    changed = [now[where] != was[where] for where in was]
    declared = marked = 0
    pairs = zip(gaps(body, before.tool_texts), gaps(out, after.tool_texts), strict=True)
    for (theirs, ours), is_beside in zip(pairs, map(any, pairwise([False, *changed, False])), strict=True):
        bare = ours.replace(b"," + DECLARATION, b"", 1)
        declared += bare != ours
        if is_beside and b'"is_error":true' in theirs:
            bare = bare.replace(b'"is_error":false', b'"is_error":true')
        if bare != theirs:
            assert without_mark(theirs, bare), (theirs[:200], bare[:200])
            marked += 1
    assert declared <= 1 and marked <= 1
    return {where: now[where] for where in was if now[where] != was[where]}


def gaps(body: bytes, texts) -> list[bytes]:
    """What stands around the tool texts, in order."""
    ends = [0, *(t.end for t in texts)]
    starts = [*(t.start for t in texts), len(body)]
    return [body[a:b] for a, b in zip(ends, starts, strict=True)]


def without_mark(theirs: bytes, ours: bytes) -> bool:
    """Whether `ours` is `theirs` with one cache breakpoint put in: into a block, or into a string made a block."""
    for mark in MARKS:
        at = ours.find(b"," + mark)
        while at >= 0:
            rest = ours[:at] + ours[at + len(mark) + 1 :]
            opening = rest.rfind(b'[{"type":"text","text":', 0, at)
            as_string = rest[:opening] + rest[opening + 23 : at] + rest[at + 2 :] if opening >= 0 else rest
            if theirs in (rest, as_string):
                return True
            at = ours.find(b"," + mark, at + 1)
    return False
