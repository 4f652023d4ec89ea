"""The compiled rules against a slow reading of the same page, over random texts, bytes, sizes and both paths."""

import hashlib

import pytest
import shape_oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from cg._shape import facts
from cg.shape import Kind, content_key, describe

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


@settings(max_examples=300, deadline=None)
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
