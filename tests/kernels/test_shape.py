"""The public door: lines, descriptor, key, marker, wrong types, subclasses, threads."""

import threading

import pytest

from cg._shape import has_vectors
from cg.shape import Kind, Shape, content_key, describe, marker


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2), ("\r", 1)])
def test_lines_are_newlines_and_an_open_last_line(text: str, lines: int) -> None:
    """A trailing newline ends a line and starts none."""
    assert describe(text).lines == lines


def test_the_descriptor_is_one_line_of_kind_and_numbers() -> None:
    """The exact text; `records` only where defined."""
    assert (
        Shape(Kind.GREP_HITS, None, 81, 5312).descriptor()
        == "[tool output removed: kind=grep_hits lines=81 bytes=5312]"
    )
    assert (
        Shape(Kind.JSON_ARRAY, 0, 1, 2).descriptor()
        == "[tool output removed: kind=json_array records=0 lines=1 bytes=2]"
    )


def test_the_marker_carries_sixteen_digits_of_the_key() -> None:
    """K is the front of the SHA-256."""
    key = content_key("abc")
    assert key == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert marker(key) == "<<cg:ba7816bf8f01cfea>>"


@pytest.mark.parametrize("wrong", [None, 3, bytearray(b"x"), memoryview(b"x"), ["x"]])
def test_anything_but_text_or_bytes_is_a_type_error(wrong: object) -> None:
    """Exceptions are for wrong types, never for content; the message names the type."""
    with pytest.raises(TypeError, match=type(wrong).__name__):
        describe(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=type(wrong).__name__):
        content_key(wrong)  # type: ignore[arg-type]


def test_subclasses_of_str_and_bytes_are_taken_as_what_they_hold() -> None:
    """An override of a method cannot change what is described."""

    class Text(str):
        def isascii(self) -> bool:
            return True

        def encode(self, *args: object, **kwargs: object) -> bytes:
            return b"forged"

    class Data(bytes):
        pass

    assert describe(Text("caf\u00e9")) == describe("caf\u00e9")
    assert describe(Text("cafe")) == describe(Data(b"cafe"))
    assert content_key(Text("caf\u00e9")) == content_key("caf\u00e9")


def test_threads_agree() -> None:
    """The same content described from many threads has one shape."""
    contents = ["x = 1\n" * 20000, '{"a":1}\n' * 9000, "\u4e2d\u6587\n" * 9000, "[" + "1," * 30000 + "1]"]
    expected = [describe(c) for c in contents]
    wrong: list[object] = []

    def work() -> None:
        for _ in range(10):
            wrong.extend(None for c, e in zip(contents, expected, strict=True) if describe(c) != e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_vector_path_says_whether_it_runs() -> None:
    """So that a run of these tests shows which paths it compared."""
    assert isinstance(has_vectors(), bool)


def test_the_kinds_are_numbered_in_the_order_of_the_enum() -> None:
    """One text of each kind would meet the wrong name if the two lists were out of step; two ends are enough here."""
    assert describe("a.py:1:x\n").kind is Kind.GREP_HITS
    assert describe(b"\0").kind is Kind.BINARY
    assert describe("").kind is Kind.OTHER
