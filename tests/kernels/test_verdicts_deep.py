"""Brackets in brackets: 64 levels are read, of more the outermost are given up, and what is inside is still found."""

import verdict_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from verdict_replies import drop, in_pieces, keep

from cg.verdicts import decode


def test_64_levels_are_read_and_65_give_up_the_outermost() -> None:
    """A limit of the candidate, not of the reply: what is inside is still found."""
    inner = f"[{drop(0)}]"
    for levels in (62, 63, 64, 65, 100, 1000):
        for lead in ("[", '{"a":[', "[[],"):
            reply = lead * levels + inner
            assert decode(reply, [0, 1]).to_dict() == verdict_oracle.decode(reply, [0, 1]), (lead, levels)


def test_a_bracket_behind_64_others_stands_where_it_is_written() -> None:
    """Behind a break it may answer if it is the first on its line, however many outer brackets were given up."""
    broken = '[{"i":0,"verdict":"keep","quote":"it says "x'
    for lead in ("[\n", '{"a":\n[', '["a",\n', "[\n "):
        reply = broken + "\n" + lead * 100 + f"[{drop(1)}]" + "]" * 40
        found = decode(reply, [0, 1]).to_dict()
        assert (
            found == verdict_oracle.decode(reply, [0, 1]) == in_pieces(reply.encode(), [0, 1], list(range(len(reply))))
        )
    assert decode(broken + "\n" + "[\n" * 100 + f"[{drop(1)}]" + "]" * 100, [0, 1]).drops == (1,)


LEADS = st.lists(
    st.sampled_from(['"[",', '"{",', "[],", "{},", "[", '{"a":', '"a"', "1,", "[1]", '"', "'", "//", "\n", "<", "</think>", ":", "]", "}"]
                    + [keep(1) + ",", drop(1) + ",", drop(0), f"[{drop(1)}],", '"{\'i\':1,\'verdict\':\'keep\'}",']),
    min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(LEADS, st.sampled_from(["[", '{"a":', '{"verdict":', "[\n"]), st.integers(60, 70), st.data())
def test_what_stands_between_given_up_brackets_is_read_as_text(
    pieces: list[str], opener: str, times: int, data: st.DataObject
) -> None:
    """Whatever opens there, in strings and comments too, and however far it goes."""
    pieces.insert(data.draw(st.integers(0, len(pieces))), opener)
    tail = data.draw(st.sampled_from(["", "]" * 80, "]}" * 40, "x", '"', "...", f"\n[{drop(0)},{drop(1)}]"]))
    reply = f"[{drop(0)}]\n" + "".join(pieces) * times + tail
    want = verdict_oracle.decode(reply, [0, 1, 2])
    assert decode(reply, [0, 1, 2]).to_dict() == want
    assert in_pieces(reply.encode(), [0, 1, 2], sorted(data.draw(st.lists(st.integers(0, 600), max_size=9)))) == want


def test_rows_of_brackets_read_as_the_slow_decoder_reads_them() -> None:
    """However long the row is, and wherever it is cut."""
    for reply in (
        "[" * 300 + "]" * 40,
        '["a",' + "[" * 200 + drop(0) + "]",
        '[{"i":0,"x":' + "[" * 200 + f"{drop(0)}]]",
    ):
        want = verdict_oracle.decode(reply, [0, 1])
        assert decode(reply, [0, 1]).to_dict() == want
        assert in_pieces(reply.encode(), [0, 1], list(range(len(reply)))) == want


def test_a_run_ends_where_the_bracket_behind_it_is_given_up() -> None:
    """One object is no sequence then, though the reply is cut in a further one."""
    reply = '{"i":0,"verdict":"drop"}' + "{i:1,a:" * 66
    want = verdict_oracle.decode(reply, [0, 1])
    assert decode(reply, [0, 1]).to_dict() == in_pieces(reply.encode(), [0, 1], [*range(len(reply))]) == want
    assert (want["status"], want["drops"]) == ("truncated", [])
