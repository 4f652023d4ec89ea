"""Records: exact for what is JSON from its first byte to its last, absent for everything else, at any depth."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cg.shape import Kind, describe

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


@settings(max_examples=300, deadline=None)
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


@pytest.mark.parametrize("text", ["\f[1]", "\v[1]", " \f\n[1]", "\ufeff\f[1]", "[1]\f"], ids=repr)
def test_a_form_feed_is_no_blank_of_json(text: str) -> None:
    """Before the array as behind it."""
    assert describe(text).records is None
    assert describe(text.replace("\f", " ").replace("\v", " ")).records == 1


def test_invalid_utf8_takes_the_records_away() -> None:
    """JSON is UTF-8: an array with a stray byte in a long string is not wholly valid."""
    assert describe(b'["' + b"a" * 100 + b'"]').records == 1
    shape = describe(b'["' + b"a" * 100 + b'\xff"]')
    assert (shape.kind, shape.records) == (Kind.JSON_ARRAY, None)


def test_records_of_json_lines_are_lines_by_their_ends() -> None:
    """Blank lines count as nothing; behind the first 8 KiB only the ends of a line are looked at."""
    lines = [json.dumps({"n": n}) for n in range(1000)]
    text = "\n\n".join(lines) + "\n"
    assert (describe(text).kind, describe(text).records) == (Kind.JSON_LINES, 1000)
    for at, records in ((3, None), (900, 1000)):
        unread = [*lines[:at], "{no JSON inside}", *lines[at + 1 :]]
        assert describe("\n\n".join(unread)).records == records
    for broken in ("no object", '{"n": 1'):
        assert describe("\n".join([*lines[:900], broken, *lines[901:]])).records is None
    assert describe("\n".join(lines)[:-1]).records is None
