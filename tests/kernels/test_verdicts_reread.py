"""Text that is read again: however many brackets end up at the same place, each reads as if it were alone."""

from collections.abc import Iterator

import pytest
import verdict_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from verdict_replies import in_pieces

from cg import _verdict_parser
from cg.verdicts import decode

ANSWER = '\n[{"i":0,"needed_by":"none","quote":"","verdict":"drop"}]'
LEADS = st.sampled_from(["[", "{", "[[", "[{a:", "[1,", "{a:", "{a:[", "[\n", "{i:", "{i"])
STRINGS = st.sampled_from(['""', "''", '"x"', "\u201cx\u201d", "\u201c", '"', "'", "x", ""])
HIDES = st.sampled_from(["//", " #", "/*", "\n#", "", ":", ":/*", ",//", "*/", "[]"])
JOINTS = st.sampled_from(["\n", "*/", "\u201d", "\n//x\n", "\n//[''\n", '"', "'", "*/,", "\u201d:"])
WAYS = st.sampled_from(
    [",1", ",a", ", ", "\n//[''\n", ",[1]", ",[", "]", "]}", ",a:1", ":1,a", " ", " #x\n", "/*[''*/", ",[]"]
)
ENDS = st.sampled_from(["x", "", "=", "...", "<", "\n", "]", "}", ",", "\u2026"])


@pytest.fixture(params=[0, 1], ids=["plain", "vector"])
def scan(request: pytest.FixtureRequest) -> Iterator[int]:
    """Every scan path that a processor may have."""
    _verdict_parser.force_scan(request.param)
    yield request.param
    _verdict_parser.force_scan(1)


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
    assert in_pieces(reply, [0, 1], sorted(cuts)) == want


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
def test_candidates_that_nearly_agree_break_each_for_itself(reply: str, scan: int) -> None:
    """Other brackets open, or one more than 64, or another thing expected: read for itself."""
    for tail in (ANSWER, "\u201d" + ANSWER, "x" + ANSWER):
        assert decode(reply + tail, [0, 1]).to_dict() == verdict_oracle.decode(reply + tail, [0, 1])


KEEP = "{i:0,verdict:keep}"
FAR = " " * 70


@pytest.mark.parametrize(
    ("reply", "drops", "reason"),
    [
        pytest.param(f'[""//["",//\n{FAR}\'[{KEEP}]\']{ANSWER}', (0,), None, id="another thing expected"),
        pytest.param(f'{{a:[""//[[""//\n//{KEEP}\n{FAR}]]{ANSWER}', (0,), None, id="another bracket closed"),
        pytest.param(f'[[""//[""//\n//{KEEP}\n{FAR}]x{ANSWER}', (0,), None, id="the outermost closed"),
        pytest.param('[""//[[[[""//\n' + FAR + ",[1" * 61 + "=", (), "limit", id="one more than 64"),
        pytest.param('{"":1,a//{"":1,i//\n' + FAR + ":1,=", (), "malformed", id="a name of a verdict"),
        pytest.param("{“a{“i”" + FAR + f":1,= {ANSWER.strip()}", (), "malformed", id="a name in curly quotes"),
        pytest.param(f'{ANSWER}\n["",/**//*["",//\n"<think>"]{KEEP}*/{FAR}=', (), None, id="another place"),
        pytest.param("{“a{“verdict”" + FAR + f":1,= {ANSWER.strip()}", (), "malformed", id="a curly verdict"),
    ],
)
def test_what_differs_in_one_thing_is_read_for_itself(
    reply: str, drops: tuple[int, ...], reason: str | None, scan: int
) -> None:
    """The bracket before it broke behind the same comment or string; this one ends otherwise, and hides other text."""
    found = decode(reply, [0, 1])
    assert found.to_dict() == verdict_oracle.decode(reply, [0, 1])
    assert (found.drops, found.reason) == (drops, reason)


RUN = "{i:0,verdict:drop}\n{i:1,verdict:drop}\n"


@pytest.mark.parametrize(
    ("reply", "status", "drops"),
    [
        pytest.param(RUN + "{a:[[]," + "[" * 64 + "x", "ok", (), id="behind a run"),
        pytest.param("[[],{i:" + "[" * 64 + "x", "truncated", (), id="behind a name of a verdict"),
        pytest.param("[\n[],{i:" + "[" * 64 + "x", "ok", (), id="first on its line"),
    ],
)
def test_an_empty_array_between_brackets_given_up_is_read_in_its_turn(
    reply: str, status: str, drops: tuple[int, ...], scan: int
) -> None:
    """It comes after the run before it; where a named value stood in what was given up, it stands behind a break."""
    found = decode(reply, [0, 1])
    assert found.to_dict() == verdict_oracle.decode(reply, [0, 1])
    assert (found.status, found.drops) == (status, drops)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(f'[["",//[[],"",[1,//\n{FAR}{"[" * 63}=', id="in an array"),
        pytest.param(f'{{a:["",//[[],"",[1,//\n{FAR}{"[" * 63}=', id="in an object"),
        pytest.param(f'["",//[[],["",//\n{FAR}//\n{"[" * 63}=', id="behind a second comment"),
    ],
)
def test_a_bracket_given_up_on_the_way_to_the_break_is_given_up_by_each(reply: str, scan: int) -> None:
    """The bracket before it broke at the same byte; that an empty array in this one is the last answer is found all the
    same, and takes the drop back."""
    reply = ANSWER + "\n" + reply
    want = verdict_oracle.decode(reply, [0, 1])
    assert decode(reply, [0, 1]).to_dict() == in_pieces(reply.encode(), [0, 1], [*range(len(reply))]) == want
    assert (want["status"], want["verdicts"], want["drops"]) == ("ok", [], [])


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        pytest.param(f'{ANSWER}\n[[""/*[[""//[""//<think>\n//*/ //\n{FAR}]={KEEP}', "ok", id="at an earlier place"),
        pytest.param(f'["",//{{i:["",//\n{FAR}1< {ANSWER.strip()}', "unparseable", id="behind a name"),
    ],
)
def test_a_candidate_inside_a_comment_knows_nothing_of_the_one_before(reply: str, status: str, scan: int) -> None:
    """It goes its own way to the break, also where one of them shows a verdict."""
    want = verdict_oracle.decode(reply, [0, 1])
    assert decode(reply, [0, 1]).to_dict() == in_pieces(reply.encode(), [0, 1], [*range(len(reply))]) == want
    assert (want["status"], want["drops"]) == (status, [])
