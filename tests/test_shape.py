"""Shape: kind, records, lines and bytes of a text, against a slow oracle and against Python's own JSON reader."""

import gc
import hashlib
import json
import random
import sys
import threading

import pytest
import shape_oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from cg._shape import facts, has_vectors
from cg.shape import Kind, Shape, content_key, describe, marker

KINDS = [k.value for k in Kind]
# Pieces that the rules look for, so that random texts come near their edges.
PIECES = ["a.py", ":", "12", "-", "\u2192", "\t", "|", " ", "  ", "{", "}", "[", "]", ",", '"', "\\", "**", "](", "# ", "```", " = ",
          "(", ")", "at ", ".", "/", "\n", "\r", "\x1b[", "\0", "\u251c\u2500", "ok", "FAIL", "=== RUN ", "@@ -1", "diff --git ", "key:",
          "- ", "---", "Found 3 ", "--", "word", "\u4e2d\u6587", "\ud800", "true", "0", "1e5", "\u00e9", "if (", "Traceback (most recent call last)",
          "total 1", "drwxr-xr-x 2 ", "File \"a\", line 3", "A", "z9", "=", "\x01", "\ufeff", ";", "'", "_", " PASSED", "panic: "]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


def as_oracle(content: str | bytes, vectors: bool = True) -> tuple[str, int | None, int, int]:
    kind, records, lines, size = facts(content, vectors)
    return KINDS[kind], None if records < 0 else records, lines, size


@settings(max_examples=600, deadline=None)
@given(texts)
def test_a_text_has_the_shape_that_the_oracle_reads_in_it(text: str) -> None:
    """The compiled rules are those of the page, on both instruction paths."""
    expected = shape_oracle.describe(text)
    assert as_oracle(text) == expected
    assert as_oracle(text, vectors=False) == expected


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_have_a_shape(data: bytes) -> None:
    """No content is an error."""
    assert as_oracle(data) == shape_oracle.describe(data)
    assert as_oracle(data, vectors=False) == shape_oracle.describe(data)


@settings(max_examples=30, deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.integers(1, 400), st.booleans())
def test_long_texts_are_read_in_two_windows(parts: list[str], times: int, ends: bool) -> None:
    """Past 12 KiB the front and the end decide, and sizes still count every byte."""
    text = "\n".join(parts * times)[:60000] + "\n" * ends
    assert as_oracle(text) == shape_oracle.describe(text)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 63, 64, 8192, 12288, 12289, 24577])
@pytest.mark.parametrize("unit", ["x", "\n", "ab\n", "[", '{"a":1}\n', "a,b\n", "\u4e2d"])
def test_every_size_around_a_vector_and_a_window_is_right(size: int, unit: str) -> None:
    """Nothing is lost at an edge."""
    text = (unit * (size + 1))[:size]
    expected = shape_oracle.describe(text)
    assert as_oracle(text) == expected
    assert as_oracle(text, vectors=False) == expected


@settings(max_examples=200, deadline=None)
@given(texts)
def test_a_text_and_its_bytes_have_one_shape(text: str) -> None:
    """A str is its UTF-8 bytes, lone surrogates included."""
    data = text.encode("utf-8", "surrogatepass")
    assert describe(text) == describe(data)
    assert content_key(text) == content_key(data) == hashlib.sha256(data).hexdigest()


STRINGS = ["", "a", "caf\u00e9", "\u4e2d", "\ud800", '"', "\\", "\n", "]", "x" * 30, "\U0001f600"]


def json_value(rng: random.Random, depth: int = 0) -> object:
    """A JSON value of a few levels; a seed of Hypothesis stands for it, as its own recursive values cost 20 ms each."""
    choice = rng.randrange(6 if depth > 3 else 9)
    if choice >= 6:
        items = [json_value(rng, depth + 1) for _ in range(rng.randrange(5))]
        return items if choice < 8 else {rng.choice(STRINGS): v for v in items}
    return [None, True, -rng.randrange(10**6), rng.random() * 10 ** rng.randrange(-30, 30), 0, rng.choice(STRINGS)][
        choice
    ]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 20), st.sampled_from([None, 1, 2]), st.booleans())
def test_a_valid_array_has_as_many_records_as_elements(seed: int, size: int, indent: int | None, escape: bool) -> None:
    """`records` of a JSON array is exact."""
    rng = random.Random(seed)
    text = json.dumps([json_value(rng) for _ in range(size)], indent=indent, ensure_ascii=escape)
    shape = describe(text)
    if "\ud800" not in text:
        assert (shape.kind, shape.records) == (Kind.JSON_ARRAY, size)
    else:  # not UTF-8, so no JSON; and a short text that is mostly lone surrogates is binary
        assert shape.records is None


def is_json(text: str) -> bool:
    def refuse(word: str) -> object:
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse, parse_int=len, parse_float=len)
    except ValueError:
        return False
    return True


@settings(max_examples=800, deadline=None)
@given(
    st.integers(0, 2**32).map(lambda seed: json.dumps([json_value(random.Random(seed + i)) for i in range(4)])),
    st.integers(0, 10_000),
    st.sampled_from(list('[]{}",:0123456789-+.eE\\u tfn\n\t\x01x')),
    st.integers(0, 2),
)
def test_records_stand_only_where_python_reads_json_too(text: str, at: int, piece: str, cut: int) -> None:
    """One byte changed, and the count stays exactly if the whole is still valid."""
    at %= len(text)
    text = text[:at] + piece + text[at + cut :]
    shape = describe(text)
    if text.lstrip(" \t\n\r")[:1] == "[" and shape.kind is not Kind.JSON_LINES:
        assert (shape.records is not None) == is_json(text)


@pytest.mark.parametrize("depth", [1, 2047, 2048, 2049, 100_000, 1_000_000])
def test_any_depth_is_counted_without_recursion(depth: int) -> None:
    """A million open brackets are a bit each, not a stack frame each."""
    assert describe("[" * depth + "]" * depth).records == (1 if depth > 1 else 0)
    both = '[{"a":' * depth + "1" + "}]" * depth
    assert describe(both).records == 1
    assert describe(both[:-1]).records is None
    assert describe("[" * depth + "]" * (depth - 1) + "}").records is None


@pytest.mark.parametrize(
    ("text", "records"),
    [("[]", 0), (" [ ] \n", 0), ("[1]", 1), ("[[],[],{}]", 3), ("[1,]", None), ("[,1]", None), ("[01]", None), ("[1.]", None),
     ("[1e]", None), ("[-]", None), ("[NaN]", None), ('["\\x"]', None), ('["\\u12G4"]', None), ('["\t"]', None), ("[1] 2", None),
     ("[1", None), ("[tru]", None), ('[{"a" 1}]', None), ("[1]\x0c", None), ("\ufeff[1,2]", 2)],
)  # fmt: skip
def test_records_of_small_arrays(text: str, records: int | None) -> None:
    """RFC 8259, nothing more lenient; a byte-order mark in front is passed over."""
    assert describe(text).records == records


def test_invalid_utf8_takes_the_records_away() -> None:
    """JSON is UTF-8: an array with a stray byte in a long string is not wholly valid."""
    assert describe(b'["' + b"a" * 100 + b'"]').records == 1
    shape = describe(b'["' + b"a" * 100 + b'\xff"]')
    assert (shape.kind, shape.records) == (Kind.JSON_ARRAY, None)


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


@pytest.mark.parametrize("text", ["plain text", "caf\u00e9 " * 20])
def test_describing_leaves_nothing_on_the_text(text: str) -> None:
    """No UTF-8 copy is cached on the caller's object, so a described history costs no memory."""
    fresh = "".join(list(text))
    before = sys.getsizeof(fresh)
    describe(fresh)
    content_key(fresh)
    assert sys.getsizeof(fresh) == before


def test_describing_keeps_no_memory() -> None:
    """Blocks in use do not grow with calls, deep brackets included."""
    contents = ["[" * 5000, "caf\u00e9 " * 500, b"\xff" * 100, '[{"a":1}]' * 50]
    for c in contents:
        describe(c)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(200):
        for c in contents:
            describe(c)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100


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
