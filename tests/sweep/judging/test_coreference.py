"""The co-reference index: what an output introduced, who used it, and the class that follows."""

import pytest
from conversations import call, result, say, transcript, user

from cg.sweep.judging import coreference as index
from cg.sweep.judging.coreference import Standing


def later(n: int) -> list[tuple[str, dict[str, object]]]:
    """`n` assistant turns that speak of nothing, each after a user's."""
    turns = []
    for _ in range(n):
        turns += [user("go on"), say("all right")]
    return turns


def record_of(*turns, **options):
    read = transcript(*turns)
    return index.build(read, **options).record(read.tool_texts[0].identity)


def test_an_output_that_nobody_used_is_unreferenced() -> None:
    """Eight later turns without a use of what the output introduced."""
    found = record_of(user("look"), call("t1"), result("t1", "see fetch_rows utf8"), *later(8))
    assert (found.introduced, found.references, found.standing) == (2, 0, Standing.UNREFERENCED)


def test_too_few_later_turns_leave_an_output_open() -> None:
    """Without turns after it, no use means nothing."""
    found = record_of(user("look"), call("t1"), result("t1", "fetch_rows"), *later(3))
    assert found.standing is Standing.OPEN
    assert record_of(user("look"), call("t1"), result("t1", "fetch_rows"), *later(3), min_later_turns=3).standing is (
        Standing.UNREFERENCED
    )


@pytest.mark.parametrize(
    "use", [say("I change fetch_rows now"), call("t9", "Edit", old="fetch_rows(a)"), user("what of fetch_rows?")]
)
def test_prose_and_calls_of_either_side_are_references(use) -> None:
    """The newest use is remembered by its message, so that a pending drop can be rescued by it."""
    read = transcript(user("look"), call("t1"), result("t1", "def fetch_rows"), *later(8), user("x"), use, *later(1))
    built = index.build(read)
    found = built.record(read.tool_texts[0].identity)
    where = found.last_reference
    assert found.references == 1 and found.standing is Standing.OPEN and where is not None
    assert built.refers_since(read.tool_texts[0].identity, where)
    assert not built.refers_since(read.tool_texts[0].identity, where + 1)


def test_a_tool_result_that_repeats_a_name_is_no_reference() -> None:
    """Outputs are mass: only prose and calls refer."""
    turns = [user("look"), call("t1"), result("t1", "fetch_rows other_name"), call("t2"), result("t2", "other_name")]
    found = record_of(*turns, *later(8))
    assert found.references == 0


def test_a_use_counts_for_the_output_that_carried_the_name_last() -> None:
    """Whoever reads a file again looks at the newer copy."""
    turns = [user("look"), call("t1"), result("t1", "fetch_rows"), say("hm"), call("t2"), result("t2", "fetch_rows")]
    read = transcript(*turns, say("fetch_rows it is"), *later(8))
    old, new = (index.build(read).record(text.identity) for text in read.tool_texts)
    assert (old.standing, new.references) == (Standing.UNREFERENCED, 1)


def test_siblings_share_what_both_introduce() -> None:
    """Two results of one message carry a name at the same moment: doubt keeps both."""
    turns = [user("look"), call("t1"), call("t2"), result("t1", "fetch_rows"), result("t2", "a fetch_rows")]
    read = transcript(*turns, say("fetch_rows it is"), *later(8))
    assert [index.build(read).record(text.identity).references for text in read.tool_texts] == [1, 1]


def test_what_was_spoken_of_before_is_not_introduced() -> None:
    """A name in the user's order, in the system text or in the call itself says nothing about the output."""
    read = transcript(
        user("fix fetch_rows"), call("t1", path="db_core.py"), result("t1", "db_core fetch_rows"),
        say("fetch_rows"), *later(8), system="",
    )  # fmt: skip
    found = index.build(read).record(read.tool_texts[0].identity)
    assert (found.introduced, found.standing) == (0, Standing.OPAQUE)


def test_a_name_in_many_outputs_tells_them_apart_no_more() -> None:
    """More than five carriers, and more than a quarter of the outputs: no reference."""
    turns = [user("look")]
    for i in range(6):
        turns += [call(f"t{i}"), result(f"t{i}", f"common_name own_{i}")]
    read = transcript(*turns, say("common_name"), *later(8))
    assert [index.build(read).record(text.identity).references for text in read.tool_texts] == [0] * 6


def test_references_long_ago_close_an_output_and_three_keep_it_open() -> None:
    """One or two uses older than twelve messages: closed; three and more: open for good."""
    start = [user("look"), call("t1"), result("t1", "one_name two_name three_name")]
    assert record_of(*start, say("one_name"), *later(8)).standing is Standing.CLOSED
    often = [say("one_name"), user("."), say("two_name"), user("."), say("three_name")]
    assert record_of(*start, *often, *later(8)).standing is Standing.OPEN


def test_the_index_is_a_pure_function() -> None:
    """The same transcript gives the same records, and a longer one never changes a use that was seen."""
    turns = [user("look"), call("t1"), result("t1", "fetch_rows"), say("fetch_rows"), *later(3)]
    read = transcript(*turns)
    assert index.build(read) == index.build(transcript(*turns))
    grown = index.build(transcript(*turns, *later(9))).record(read.tool_texts[0].identity)
    assert grown.last_reference == index.build(read).record(read.tool_texts[0].identity).last_reference


def test_arguments_are_read_as_values_not_as_json() -> None:
    """A line break in an argument is no letter n in front of a name."""
    found = record_of(user("look"), call("t1"), result("t1", "fetch_rows"), call("t2", "Edit", new="a\nfetch_rows\nb"))
    assert found.references == 1


def test_arguments_that_cannot_be_decoded_are_no_failure() -> None:
    """Hostile depth reads as nothing."""
    assert index.decoded_arguments(b"[" * 200_000) is None
    assert list(index.strings(None)) == []
