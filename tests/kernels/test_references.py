"""Names and lines: what a later text can be recognised by."""

import json
import threading
from pathlib import Path

import pytest
import references_oracle
from hypothesis import given
from hypothesis import strategies as st

from cg.references import items

SESSIONS = Path(__file__).parents[1] / "data" / "transcripts"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", set()),
        (b"plain words only", set()),
        (b"a.b re-read x_ 1234 ab1", set()),
        (b"fetch_rows\nfetchRows\nutf8 12345", {b"fetch_rows", b"fetchRows", b"utf8", b"12345"}),
        (b"(hub.NewTranscript.)", {b"hub.NewTranscript", b"NewTranscript"}),
        (b"src/cg/db_core.py:12", {b"db_core.py", b"db_core"}),
        (b"x" * 65 + b"_1", set()),
        (b"x" * 61 + b"_11", {b"x" * 61 + b"_11"}),
        (b"\xff\xfe name_one\x00name_two", {b"name_one", b"name_two"}),
        (b"   12\t  return the value of it all\r\n", {b"return the value of it all"}),
        ("  7→return the value of it all".encode(), {b"return the value of it all"}),
        (b"w " * 300, {(b"w " * 200)}),
    ],
)
def test_items_are_names_and_lines(text: bytes, found: set[bytes]) -> None:
    """What can be recognised again: words that are no plain words, and lines of 24 bytes with two words."""
    assert items(text) == found


def test_items_refuse_what_is_not_bytes() -> None:
    """One type, no silent conversion."""
    with pytest.raises(TypeError):
        items("text")
    with pytest.raises(TypeError):
        items(None)
    assert json.dumps(sorted(item.decode() for item in items(b"ab_cd"))) == '["ab_cd"]'


ALPHABET = "aZ09_.-\n\t :|→/ xY"
TEXTS = st.one_of(
    st.binary(max_size=300),
    st.text(ALPHABET, max_size=200).map(lambda text: text.encode()),
    st.lists(st.text(ALPHABET, max_size=40), max_size=12).map(lambda lines: "\n  12\t".join(lines).encode()),
)


@given(TEXTS)
def test_the_compiled_reader_agrees_with_the_oracle(text: bytes) -> None:
    """Every text, well-formed or not."""
    assert items(text) == references_oracle.items(text)


@pytest.mark.parametrize("name", ["entire-mid-59", "swe-agent-demo-21"])
def test_recorded_outputs_read_as_the_oracle_reads_them(name: str) -> None:
    """Real tool outputs, byte for byte."""
    session = json.loads((SESSIONS / f"{name}.json").read_text("utf-8"))
    for event in session["events"]:
        for block in event["content"] if event["role"] == "user" else ():
            text = json.dumps(block).encode() if block["type"] == "text" else block["content"].encode()
            assert items(text) == references_oracle.items(text)


def test_a_text_of_nothing_but_names_is_bounded() -> None:
    """100,000 items of one text, with or without line breaks."""
    for gap in (b" ", b"\n"):
        assert len(items(gap.join(b"n_%d" % i for i in range(150_000)))) == 100_000


def test_threads_read_independently() -> None:
    """No state is shared between calls."""
    text = b"\n".join(b"name_%d is used in file_%d.py" % (i, i) for i in range(500))
    wanted, wrong = items(text), []

    def work() -> None:
        wrong.extend(1 for _ in range(20) if items(text) != wanted)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
