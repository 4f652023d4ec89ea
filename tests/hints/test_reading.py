"""Reading stops at the limit, for the whole input and for each line of it."""

import io

import pytest

from cg.hints.refusal import Code, Refusal
from cg.hints.shell import reading
from cg.hints.shell.reading import read_body, read_lines


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_REQUEST_BYTES", 10)


def test_a_body_at_the_limit_is_read_and_past_it_refused() -> None:
    assert read_body(io.BytesIO(b"x" * 10)) == b"x" * 10
    stream = io.BytesIO(b"x" * 1000)
    with pytest.raises(Refusal) as caught:
        read_body(stream)
    assert caught.value.code is Code.REQUEST_TOO_LARGE and stream.tell() == 11


@pytest.mark.parametrize("skip", [3, 65_536])
def test_a_line_past_the_limit_is_passed_over_in_its_place(skip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_SKIP_BYTES", skip)
    lines = list(read_lines(io.BytesIO(b"a\n" + b"x" * 10 + b"\n" + b"y" * 11 + b"\n\n" + b"z" * 99 + b"\nlast")))
    shown = [line if isinstance(line, bytes) else line.code for line in lines]
    large = Code.REQUEST_TOO_LARGE
    assert shown == [b"a", b"x" * 10, large, b"", large, b"last"]
