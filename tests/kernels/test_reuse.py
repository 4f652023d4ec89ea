"""Which lines and identifiers of a text are telling enough to be recognised when they come back."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import reuse_oracle
from hypothesis import example, given, settings
from hypothesis import strategies as st
from quiet_oracle import rest_of

from cg.reuse import Ownership, contents, items

SIGNS = [" ", "\t", "\u2192", ":", "|", "\n", ".", "-", "_", "$", "@", "/", "\u2003", "\r"]
WORDS = [
    "12",
    "\u0664",
    "1",
    "123456",
    "word",
    "é",
    "Ab",
    "fooBar",
    "a_b",
    "x.y",
    "twenty-four characters it is",
    "z" * 30,
]
PIECES = st.sampled_from(SIGNS + WORDS)


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
@example(" 12 \t\tconst alpha = beta + gammaDelta;")
@example("12\u2192    const alpha = beta + gammaDelta;")
def test_items_are_those_of_the_letter(text: str) -> None:
    """Lines and identifiers as a slow reading of the rules finds them."""
    assert items(text) == (reuse_oracle.lines_of(text), reuse_oracle.identifiers_of(text))


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
@example("12: foo\nsrc/first_name.py\nfirst_name\n123456: x")
def test_what_items_do_not_hold_is_accounted_for_line_by_line(text: str) -> None:
    """The share of the bytes that they hold, and how many different lines they do not hold whole."""
    share, rest = rest_of(text)
    found = contents(text)
    assert (found[3], len(found[2])) == (share, len(rest)) and found[:2] == items(text)


@pytest.mark.parametrize(("length", "is_read"), [(19_999, True), (20_000, False)])
def test_identifiers_in_very_long_lines_are_noise(length: int, is_read: bool) -> None:
    """From 20,000 characters on a line gives no identifiers; its neighbours do."""
    _, found = items("first_name\n" + "é" * (length - 9) + " last_one")
    assert "first_name" in found
    assert ("last_one" in found) is is_read


def test_long_lines_are_compared_by_their_beginning() -> None:
    """Only 400 characters of a line count, behind its number."""
    ((line,), _) = items("  17\u2192" + "mäny words " * 100)
    assert line == ("mäny words " * 100)[:400]


LINE = "a line that says enough to be known"


def test_the_last_output_that_brought_an_item_owns_it_until_somebody_writes_it() -> None:
    """A reply's use names the owner once; afterwards nobody owns the item."""
    ownership = Ownership(3)
    ownership.bring(0, [LINE, "first_name"])
    ownership.bring(1, [f"  7\t{LINE}", LINE])
    assert ownership.use([LINE, LINE, "first_name"]) == ([1], [(0, "first_name")])
    assert ownership.use([LINE, "first_name"]) == ([], [])
    ownership.bring(2, ["first_name"])
    ownership.write(["first_name"])
    assert ownership.use(["first_name"]) == ([], [])
    assert len(ownership) == 2


def test_a_history_that_is_no_longer_sent_owns_nothing_but_counts() -> None:
    """After a compaction old owners are gone; outputs that brought an item before it still count as carriers."""
    ownership = Ownership(1)
    ownership.bring(0, [LINE])
    ownership.forget()
    assert ownership.use([LINE]) == ([], [])
    ownership.bring(1, [LINE])
    assert ownership.use([LINE]) == ([], [])


def test_an_item_brought_twice_by_one_output_has_one_carrier() -> None:
    """Repeats within the texts of one output do not make an item common property."""
    ownership = Ownership(1)
    ownership.bring(0, [LINE, f"{LINE}\n{LINE}"])
    assert ownership.use([LINE]) == ([0], [])


def test_a_hundred_thousand_items_are_told_apart() -> None:
    """The table grows and forgets none of them."""
    ownership, n = Ownership(3), 100_000
    for owner in range(10):
        ownership.bring(owner, ["\n".join(f"name_{i}" for i in range(owner, n, 10))])
    assert len(ownership) == n
    _, named = ownership.use(["\n".join(f"name_{i}" for i in range(n))])
    assert sorted(named) == sorted((i % 10, f"name_{i}") for i in range(n))


@pytest.mark.parametrize(
    "wrong", [lambda o: o.bring(-1, ["x"]), lambda o: o.bring(2**31, ["x"]), lambda o: o.write([b"x"])]
)
def test_what_makes_no_sense_is_refused(wrong: Callable[[Ownership], object]) -> None:
    """Owners outside the range and texts that are none: an error, and the object stays usable."""
    ownership = Ownership(3)
    with pytest.raises((ValueError, OverflowError, TypeError)):
        wrong(ownership)
    ownership.bring(0, [LINE])
    assert ownership.use([LINE]) == ([0], [])


def test_several_threads_may_share_one() -> None:
    """Every item is owned and used exactly once, whichever thread came first."""
    ownership = Ownership(3)

    def work(n: int) -> int:
        ownership.bring(n, [f"name_{n}_{i}" for i in range(2000)])
        return len(ownership.use([f"name_{n}_{i}" for i in range(2000)])[1])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [2000] * 8


@pytest.mark.parametrize(
    "hostile", ["a" * 19_999, "1" * 19_998 + "$", "a." * 9_999, "." * 19_999, "9" * 19_999, " " * 19_999]
)
def test_the_longest_lines_of_a_hostile_kind_read_as_the_oracle_reads_them(hostile: str) -> None:
    """Nothing about their length or their repetition changes what is found; their cost stands in the benchmarks."""
    text = "\n".join([hostile] * 3)
    assert items(text) == (reuse_oracle.lines_of(text), reuse_oracle.identifiers_of(text))
