"""The verdict decoder against its vectors and its slow twin."""

import base64
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
import verdict_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from verdict_replies import drop, drops, in_pieces

from cg import _verdict_parser
from cg.verdicts import decode

VECTORS = sorted((Path(__file__).parents[1] / "data" / "verdicts").glob("*.json"))
# Ends tried a vector: the slow decoder takes a second for one of three thousand brackets.
CUTS = 60 if os.environ.get("CG_LONG") == "1" else 4 if os.environ.get("HYPOTHESIS_PROFILE") == "sanitize" else 15


def reply_of(spec: Any) -> bytes:
    if isinstance(spec, str):
        return spec.encode()
    if "base64" in spec:
        return base64.b64decode(spec["base64"])
    return "".join(part["text"] * part.get("repeat", 1) for part in spec["parts"]).encode()


@pytest.fixture(params=[0, 1], ids=["plain", "vector"])
def scan(request: pytest.FixtureRequest) -> Any:
    """Every scan path that a processor may have."""
    _verdict_parser.force_scan(request.param)
    yield request.param
    _verdict_parser.force_scan(1)


def test_the_vectors_are_all_here() -> None:
    """An empty folder must not pass for a green one."""
    assert len(VECTORS) == 82


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_vector_reads_as_expected_however_it_is_cut(path: Path) -> None:
    """Whole, byte by byte and in random pieces the result is the vector's."""
    case = json.loads(path.read_text("utf-8"))
    reply, labels, expected = reply_of(case["reply"]), case["offered_labels"], case["expected"]
    got = decode(reply, labels).to_dict()
    rng = Random(path.stem)
    ways = [sorted(rng.choices(range(len(reply) + 1), k=k)) for k in (1, 3, 17)]
    if len(reply) < 10_000:
        ways.append(list(range(len(reply))))
    for cuts in ways:
        assert in_pieces(reply, labels, cuts) == got
    assert verdict_oracle.decode(reply, labels) == got
    if expected["reason"] is None:
        expected = {**expected, "reason": got["reason"]}
    assert got == expected


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_vector_cut_anywhere_reads_as_the_slow_decoder_does(path: Path) -> None:
    """A reply may end at any byte; CUTS of them, other ones for each vector."""
    case = json.loads(path.read_text("utf-8"))
    reply, labels = reply_of(case["reply"]), case["offered_labels"]
    ends = sorted(Random(path.stem).sample(range(min(len(reply), 4000)), min(len(reply), CUTS)))
    for end in ends:
        assert decode(reply[:end], labels).to_dict() == verdict_oracle.decode(reply[:end], labels), end


TOKENS = st.sampled_from(
    ["[", "]", "{", "}", ",", ":", '"', "'", "\u201c", "\u201d", "\\", "...", "\u2026", "<", "<think>", "</think>", "//", "/*", "*/"]
    + [" #", "\n", " ", '"i":', '"verdict":', '"needed_by":', '"quote":', '"drop"', '"keep"', '"none"', "null", "0", "1", "x"]
    + ["[]", "[ ]", "- [ ]", "[a]", "{x}", '["', "\u00e9", "\u3000", "\uff0c", "\ud800", "\\ud83d", "\x00", "Final:\n", "{'i':0,'verdict':'keep'}"]
    + ["< think >", "</ think>", '<seed:think a="[1]">', "<thought>", "</thoughts>", "\u25c1think\u25b7", "\u25c1/think\u25b7", "\uff1c", "\uff1e"]
    + ["[THINK]", "[/THINK]", "[ think", "/", ">", '"needed\\_by":', '"note":']
    + ['{"i":0,"verdict":"drop"}', '{"i":1,"verdict":"drop","needed_by":"a"}', '[{"i":2,"verdict":"drop"}]', "[[[[" * 17]
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.lists(TOKENS, max_size=25).map("".join), st.data())
def test_any_reply_reads_as_the_slow_decoder_reads_it(text: str, data: st.DataObject) -> None:
    """Whole and cut anywhere, in every detail."""
    labels, reply = [0, 1, 2], text.encode("utf-8", "surrogatepass")
    want = verdict_oracle.decode(text, labels)
    assert decode(text, labels).to_dict() == want
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=6)))
    assert in_pieces(reply, labels, cuts) == want


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 2))
def test_any_bytes_read_as_the_slow_decoder_reads_them(noise: bytes, where: int) -> None:
    """Ill-formed UTF-8 in prose, in a string and between tokens."""
    reply = (
        b"%s[" + drop(0).encode() + b"]",
        b'[{"i":0,"quote":"%s","verdict":"keep"}]',
        b"[" + drop(0).encode() + b",%s]",
    )[where]
    reply = reply.replace(b"%s", noise)
    assert decode(reply, [0, 1]).to_dict() == verdict_oracle.decode(reply, [0, 1])


def test_scan_paths_agree(scan: int) -> None:
    """An opener or a quote is found at every offset of a vector, and past its end."""
    for lead in range(70):
        reply = "x" * lead + "[" + drop(0, note="y" * lead) + "]" + "z" * lead
        assert drops(reply) == (0,)
