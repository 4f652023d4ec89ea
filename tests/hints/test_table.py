"""The table is for people: aligned, and no id can steer the terminal."""

import pytest

from cg.hints.ordering import respond
from cg.hints.request import Document, Request
from cg.hints.shell.table import table


def lines(*ids: str) -> list[str]:
    return table(respond(Request("s", "q", tuple(Document(id, "") for id in ids), None))).splitlines()


def test_one_line_a_candidate_under_a_heading() -> None:
    assert lines("a", "longer") == [
        "rank  id      source  bm25 rank  bm25 score",
        "   1  a       bm25            1      0.0000",
        "   2  longer  bm25            2      0.0000",
    ]


def test_wide_characters_keep_the_columns() -> None:
    assert lines("결제", "a")[1:] == [
        "   1  결제  bm25            1      0.0000",
        "   2  a     bm25            2      0.0000",
    ]


@pytest.mark.parametrize("id", ["x" * 1000, "가" * 1000])
def test_a_long_id_is_cut_to_its_column(id: str) -> None:
    line = lines(id)[1]
    assert "…" in line and len(line) < 100


def test_control_characters_are_shown_as_escapes() -> None:
    line = lines("a\x1b[2J\n\u202eb")[1]
    assert "a\\x1b[2J\\n\\u202eb" in line and line.isprintable()
