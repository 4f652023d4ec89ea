"""What stands in a name shows, and does nothing."""

import io
import json
from pathlib import Path

import pytest
from replaying import TRANSCRIPTS

from cg.replay.cli import main
from cg.replay.reporting import command
from cg.replay.reporting.printable import plain

SMALL = (TRANSCRIPTS / "ctxeval-small-15.json").read_bytes()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("naïve ファイル 🙂.jsonl", "naïve ファイル 🙂.jsonl"),
        ("a\x1b[2J\x07b", r"a\x1b[2J\x07b"),
        ("two\nlines\r", r"two\nlines\r"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("\u202egpj.exe\u2028", r"\u202egpj.exe\u2028"),
        ("\udcff\ud800", r"\xff\ud800"),
        ("", ""),
    ],
)
def test_what_is_not_printed_as_itself_is_escaped(name: str, shown: str) -> None:
    """Letters of any script stay; controls, marks of direction, line ends and half characters do not."""
    assert plain(name) == shown


def hostile(folder: Path) -> None:
    """Two sessions, a damaged one and a file that is none, with names and a client that would steer a terminal, or are no
    text."""
    session = json.loads(SMALL)
    for name in ("red\x1b[31m", "half \ud800"):
        session |= {"name": name, "client": "\x1b]0;owned\x07\ud800"}
        (folder / f"{len(name)}.json").write_text(json.dumps(session))
    (folder / "broken\x1b[2J.json").write_text('{"format": "agent-session/1", "events": [')
    (folder / "other\x1b[2J.json").write_text("nothing")


def test_hostile_names_reach_neither_a_terminal_nor_a_page(tmp_path: Path, capsys) -> None:
    """Table, notes, skipped files and the page hold escapes; the page is written whatever a name holds."""
    folder = tmp_path / "logs"
    folder.mkdir()
    hostile(folder)
    page = tmp_path / "page.html"
    assert (
        main(["replay", "--policy", "cold", "--html", str(page), "--csv", str(tmp_path / "lines.csv"), str(folder)])
        == 3
    )
    captured = capsys.readouterr()
    lines = (tmp_path / "lines.csv").read_text("utf-8")
    for text in (captured.out, page.read_text("utf-8"), lines):
        assert r"red\x1b[31m" in text and r"half \ud800" in text
        assert "\x1b" not in text and "\x07" not in text
    assert r"broken\x1b[2J.json" in captured.err and r"other\x1b[2J.json" in captured.err
    assert "\x1b" not in captured.err


def test_a_name_that_the_output_has_no_letters_for_is_escaped() -> None:
    """A table is printed to any encoding."""
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", errors="strict", newline="\n")
    command._say("naïve €", stream)
    stream.flush()
    assert stream.buffer.getvalue() == rb"na\xefve \u20ac" + b"\n"  # type: ignore[attr-defined]
