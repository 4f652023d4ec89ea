"""The growing index says what `index.build` says, whatever becomes of the conversation, and reads only what is new."""

import random

import pytest
from conversations import call, result, say, transcript, user

from cg.sweep.judging.coreference import build
from cg.sweep.judging.growing_coreference import Growing

WORDS = [
    f"{name}_{part}" for name in ("fetch", "store", "parse", "write") for part in ("rows", "page", "key_4", "utf8")
]


def words(rng: random.Random, most: int) -> str:
    return " ".join(rng.sample(WORDS, rng.randrange(most + 1)))


def turns_of(rng: random.Random, first: int, n: int) -> list:
    """`n` calls with results, and prose that speaks of some names."""
    turns = []
    for i in range(first, first + n):
        turns += [say(f"so {words(rng, 2)}"), call(f"t{i}", path=words(rng, 1))]
        turns.append(result(f"t{i}", *(words(rng, 6) for _ in range(rng.choice([1, 1, 2])))))
        if rng.random() < 0.4:
            turns.append(user(words(rng, 2)))
    return turns


def changed(rng: random.Random, turns: list) -> list:
    """The same with an output replaced, or a piece of prose."""
    turns = list(turns)
    at = rng.randrange(1, len(turns))
    role, block = turns[at]
    if block["type"] == "tool_result":
        turns[at] = result(block["tool_use_id"], rng.choice(["[removed]", words(rng, 6)]))
    elif block["type"] == "text":
        turns[at] = role, {"type": "text", "text": f"or {words(rng, 3)}"}
    return turns


def moved(rng: random.Random, turns: list) -> list:
    """The same with a piece of the middle gone, as behind a compaction, or with a piece put in: what follows moves."""
    at = rng.randrange(1, len(turns) + 1)
    piece = [] if rng.random() < 0.6 else [say(words(rng, 3)), user(words(rng, 1))]
    return [*turns[:at], *piece, *turns[at + rng.randrange(5) :]]


def check(grown: Growing, turns: list, system: str, min_later_turns: int) -> None:
    read = transcript(*turns, system=system)
    plain, found = (make(read, min_later_turns=min_later_turns) for make in (build, grown))
    identities = [text.identity for text in read.tool_texts]
    assert {i: found.record(i) for i in identities} == {i: plain.record(i) for i in identities}
    assert set(found.records) == set(plain.records)


@pytest.mark.parametrize("seed", range(60))
def test_it_equals_the_index_that_is_built_anew(seed: int) -> None:
    """Conversations that grow, lose their end, are changed in the middle or get another system prompt."""
    rng = random.Random(seed)
    grown, turns, system = Growing(), [user("look"), *turns_of(rng, 0, 3)], words(rng, 2)
    for step in range(1, 12):
        check(grown, turns, system, rng.choice([0, 3, 8]))
        match rng.randrange(6):
            case 0:
                turns = changed(rng, changed(rng, turns))
            case 1:
                turns = turns[: rng.randrange(1, len(turns) + 1)]
            case 5:
                turns = moved(rng, turns)
            case 2 if rng.random() < 0.3:
                system = words(rng, 3)
        turns = turns + turns_of(rng, 100 * step, rng.randrange(6))
    check(grown, turns, system, 8)


def test_an_output_that_moved_towards_the_start_is_found_where_it_is() -> None:
    """Its name is used for the first time in front of where it stood."""
    grown = Growing()
    early = [user("look"), call("t1"), result("t1", "nothing"), call("t2"), result("t2", "fetch_rows")]
    late = [*early[:1], *early[3:], say("fetch_rows it is"), user("go on")]
    for turns in (early, late, early, late):
        check(grown, turns, "", 0)


def test_only_new_and_changed_messages_are_read() -> None:
    """Growth reads what was added; a removal in the middle reads that message; an equal body reads nothing."""
    rng = random.Random(1)
    grown, turns = Growing(), [user("look"), *turns_of(rng, 0, 50)]
    read = transcript(*turns)
    grown(read)
    assert grown.read == read.n_messages
    grown(transcript(*turns))
    assert grown.read == read.n_messages
    more = [*turns, say("done"), user("go on")]
    grown(transcript(*more))
    new = transcript(*more).n_messages - read.n_messages
    assert grown.read <= read.n_messages + new + 1  # the last message may have got a block more
    before = grown.read
    at = next(i for i, (_, block) in enumerate(more) if block["type"] == "tool_result")
    more[at] = result(more[at][1]["tool_use_id"], "[removed]")
    grown(transcript(*more))
    assert grown.read == before + 1


def test_an_output_that_is_gone_has_no_record() -> None:
    """After a removal the original's identity is unknown, as in an index built anew."""
    turns = [user("look"), call("t1"), result("t1", "fetch_rows"), say("so fetch_rows")]
    grown = Growing()
    before = transcript(*turns).tool_texts[0].identity
    assert grown(transcript(*turns)).record(before) is not None
    turns[2] = result("t1", "[removed]")
    assert grown(transcript(*turns)).record(before) is None
