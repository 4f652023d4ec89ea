"""Text that is read again: however many brackets end up at the same place, each reads as if it were alone."""

from collections.abc import Iterator

import pytest
import verdict_oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from cg import _verdict_parser
from cg.verdicts import Decoder, decode

ANSWER = '\n[{"i":0,"needed_by":"none","quote":"","verdict":"drop"}]'
LEADS = st.sampled_from(["[", "{", "[[", "[{a:", "[1,", "{a:", "{a:[", "[\n", "{i:", "{i"])
STRINGS = st.sampled_from(['""', "''", '"x"', "\u201cx\u201d", "\u201c", '"', "'", "x", ""])
HIDES = st.sampled_from(["//", " #", "/*", "\n#", "", ":", ":/*", ",//", "*/", "[]"])
JOINTS = st.sampled_from(["\n", "*/", "\u201d", "\n//x\n", "\n//[''\n", '"', "'", "*/,", "\u201d:"])
WAYS = st.sampled_from(
    [",1", ",a", ", ", "\n//[''\n", ",[1]", ",[", "]", "]}", ",a:1", ":1,a", " ", " #x\n", "/*[''*/", ",[]"]
)
ENDS = st.sampled_from(["x", "", "=", "...", "<", "\n", "]", "}", ",", "\u2026"])


@pytest.fixture(params=[0, 1, 2], ids=["plain", "vector", "wide"])
def scan(request: pytest.FixtureRequest) -> Iterator[int]:
    """Every scan path that a processor may have."""
    _verdict_parser.force_scan(request.param)
    yield request.param
    _verdict_parser.force_scan(2)


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(LEADS, STRINGS, HIDES).map("".join), st.sampled_from([2, 3, 9, 70]), JOINTS, WAYS, st.sampled_from([1, 20, 40]),
    ENDS, st.sampled_from(["", "\u201d", '"']), st.lists(st.integers(0, 900), max_size=5),
)  # fmt: skip
def test_brackets_that_end_at_one_place_read_as_the_slow_decoder_reads_them(
    lead: str, times: int, joint: str, way: str, ways: int, end: str, close: str, cuts: list[int]
) -> None:
    """In comments and curly strings that share an end, with a long way from there to the break."""
    reply = (lead * times + joint + way * ways + end + close + ANSWER).encode()
    want = verdict_oracle.decode(reply, [0, 1])
    assert decode(reply, [0, 1]).to_dict() == want
    decoder = Decoder([0, 1])
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), len(reply)], strict=True):
        decoder.feed(reply[start:stop])
    assert decoder.finish().to_dict() == want


@pytest.mark.parametrize(
    "reply",
    [
        '{""//' * 30 + "\n" + "//\n" * 40 + ":1,a=",
        '[""//' * 30 + '{a:""//' * 30 + "\n" + ",1" * 60 + "x",
        "[“" * 30 + "[[{a:“" * 30 + "”" + ",a" * 40 + "]",
        "[[“" * 40 + "”" + "]" + ",[[1]]" * 30 + "," + "[" * 62 + "x",
        '[{a:""//' * 20 + '[""//' * 20 + "\n" + ",b:1" * 30 + "},2" + "]x",
        '[[""//' * 20 + '{a:[""//' * 20 + "\n" + ",1" * 40 + "],2,3]",
        "{':" * 200 + "[]",
        '[["[",' * 90 + "[[],{}" * 80,
        "['\", [ ' ]" * 80 + '["[",' * 70,
    ],
)
def test_a_break_that_is_known_is_taken_by_its_equals_only(reply: str, scan: int) -> None:
    """Other brackets open, or one more than 64, or another thing expected: read for itself."""
    for tail in (ANSWER, "\u201d" + ANSWER, "x" + ANSWER):
        assert decode(reply + tail, [0, 1]).to_dict() == verdict_oracle.decode(reply + tail, [0, 1])
