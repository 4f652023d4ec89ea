"""How originals come back: from the body when the store is full, and whatever the case of the id."""

import json
from contextlib import nullcontext
from hashlib import sha256

import pytest
from sessions import results
from sweeping import START, encoded, expanding, output, removed_at_cold, sweep_of

from cg.sweep.core.expansion import NEVER_EXISTED
from cg.sweep.counters import Decline, Event
from cg.sweep.store import StoreError
from cg.sweep.store_memory import MemoryStore


class FullStore(MemoryStore):
    """A store that takes no more originals, as one does whose room or disk is used up."""

    is_full = False

    def put(self, thread, payloads, now):
        return frozenset() if self.is_full else super().put(thread, payloads, now)


def test_a_full_store_does_not_keep_the_answer_to_an_expand_call_back() -> None:
    """The body holds the original: it stands in the place of the client's error, with the same bytes at each request
    while the store is full and after, and is counted once."""
    store = FullStore()
    sweep = sweep_of(store)
    _, done = removed_at_cold(sweep)
    removed = done.report.removed[0]
    store.is_full = True
    form = expanding(20, removed.key)
    sent = []
    for n in range(3):
        store.is_full = n < 2
        call = [
            {"role": "assistant", "content": f"Step {n}."},
            {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
        ]
        form["messages"] += call
        sent.append(sweep.process(encoded(form), "t", START + 1010 + n))
    number = int(removed.tool_use_id.removeprefix("toolu_"))
    answers = [results(one.body)["toolu_expand"] for one in sent]
    assert answers == [output(number)] * 3
    assert [one.report.events.get(Event.EXPANDED, 0) for one in sent] == [1, 0, 1]
    assert [one.report.declines.get(Decline.STORE_REFUSED, 0) for one in sent] == [1, 1, 0]
    assert len(store.load("t").removals) == len(done.report.removed) + 1  # frozen as soon as there was room


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("is_killed", [False, True], ids=["store fails", "killed"])
def test_an_expansion_that_left_is_marked_by_the_next_turn_if_its_own_could_not(is_killed: bool, monkeypatch) -> None:
    """The answer is frozen, the turn has left, and the mark was never written: a later copy stays whole all the same."""
    store = MemoryStore()
    sweep = sweep_of(store)
    _, done = removed_at_cold(sweep)
    removed = done.report.removed[0]
    form = expanding(20, removed.key)

    def fail(*_):
        raise Killed if is_killed else StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "expand_mark", fail)
        left = []
        with pytest.raises(Killed) if is_killed else nullcontext():
            sweep.process(encoded(form), "t", START + 1010, leave=left.append)
    number = int(removed.tool_use_id.removeprefix("toolu_"))
    assert results(left[0].body)["toolu_expand"] == output(number)
    assert not store.load("t").expanded
    form["messages"] += [{"role": "assistant", "content": "So."}, {"role": "user", "content": "Go on."}]
    again = sweep_of(store).process(encoded(form), "t", START + 1020)
    assert results(again.body)["toolu_expand"] == output(number)
    assert store.load("t").expanded == {sha256(output(number).encode()).hexdigest()}
    assert Event.EXPANDED not in again.report.events  # it came back once


def test_a_full_store_leaves_an_id_that_brings_nothing_back_to_the_client_s_words() -> None:
    """What cannot be frozen and is no original would not lead to the same bytes again."""
    store = FullStore()
    sweep = sweep_of(store)
    removed_at_cold(sweep)
    store.is_full = True
    done = sweep.process(encoded(expanding(20, "0" * 16)), "t", START + 1010)
    assert results(done.body)["toolu_expand"] == "Error: No such tool available: cg_expand"


def test_an_answer_that_the_api_refused_is_not_given_again_by_a_full_store() -> None:
    """A removal that ended does not come back by another way."""
    store = FullStore()
    sweep = sweep_of(store)
    _, done = removed_at_cold(sweep)
    form = expanding(20, done.report.removed[0].key)
    first = sweep.process(encoded(form), "t", START + 1010)
    (answer,) = set(first.carries) - set(done.carries)
    sweep.revoke("t", (answer,), START + 1011)
    store.is_full = True
    form["messages"] += [{"role": "assistant", "content": "So."}, {"role": "user", "content": "Go on."}]
    again = sweep.process(encoded(form), "t", START + 1020)
    assert results(again.body)["toolu_expand"] == "Error: No such tool available: cg_expand"


SPELLED = {
    "capitals": str.upper,
    "title": str.title,
    "its marker": "<<cg:{}>>".format,
    "its marker in capitals": lambda key: f" <<CG:{key.upper()}>> ",
    "with its prefix": "cg:{}".format,
    "with its prefix and a blank": "cg: {}".format,
    "in single brackets": "<cg:{}>".format,
    "in quotes": '"{}"'.format,
    "in typographic quotes": "\u201c{}\u201d".format,
    "as code": "`{}`".format,
    "its marker as code": "`<<cg:{}>>`".format,
    "with a line end": "{}\n".format,
    "with a full stop": "{}.".format,
    "a list written as text": '["{}"]'.format,
}


@pytest.mark.parametrize("spelled", SPELLED.values(), ids=SPELLED)
def test_an_id_is_known_however_it_is_written_down(spelled) -> None:
    """A model that writes the sixteen digits in capitals, in quotes or with their prefix asks for the same output."""
    sweep = sweep_of()
    _, done = removed_at_cold(sweep)
    removed = done.report.removed[0]
    number = int(removed.tool_use_id.removeprefix("toolu_"))
    assert sweep.expand("t", spelled(removed.key), START + 1001).answer == output(number).encode()
    answered = sweep.process(encoded(expanding(20, spelled(removed.key))), "t", START + 1010)
    assert results(answered.body)["toolu_expand"] == output(number)


def test_a_list_of_one_id_is_that_id() -> None:
    """A model that takes the argument for a list asks for one output all the same."""
    sweep = sweep_of()
    _, done = removed_at_cold(sweep)
    removed = done.report.removed[0]
    answered = sweep.process(encoded(expanding(20, [f"<<cg:{removed.key}>>"])), "t", START + 1010)
    assert results(answered.body)["toolu_expand"] == output(int(removed.tool_use_id.removeprefix("toolu_")))


def answered_in(body: bytes) -> dict:
    """The result of the expand call, as it leaves."""
    return json.loads(body)["messages"][-1]["content"][0]


def test_what_came_back_is_no_error_any_more() -> None:
    """The client calls its own answer to our tool an error; the original in its place is none, at every later request and
    after a restart too, where a client's own word for what is left in its place stays."""
    store = MemoryStore()
    sweep = sweep_of(store)
    _, done = removed_at_cold(sweep)
    form = expanding(20, done.report.removed[0].key)
    for now, again in enumerate((sweep, sweep, sweep_of(store))):
        sent = again.process(encoded({**form, "max_tokens": 31000 + now}), "t", START + 1010 + now)
        assert answered_in(sent.body)["is_error"] is False and "entry_" in answered_in(sent.body)["content"]
    unknown = sweep_of().process(encoded(expanding(20, "0" * 16)), "u", START + 1010)
    assert answered_in(unknown.body)["is_error"] is True


@pytest.mark.parametrize("form", ["no word", "no error", "null", "in front", "in blocks", "spaced"])
def test_the_word_that_it_is_an_error_is_found_wherever_it_stands(form: str) -> None:
    """Or left out: nothing is written where the client wrote nothing, and all other bytes stay."""
    sweep = sweep_of()
    _, done = removed_at_cold(sweep)
    body = expanding(20, done.report.removed[0].key)
    result = body["messages"][-1]["content"][0]
    if form == "in front":
        body["messages"][-1]["content"][0] = {"is_error": True, **{k: v for k, v in result.items() if k != "is_error"}}
    elif form == "in blocks":
        result["content"] = [{"type": "text", "text": result["content"]}, {"type": "text", "text": "is_error: true"}]
    elif form == "no word":
        del result["is_error"]
    elif form != "spaced":
        result["is_error"] = {"no error": False, "null": None}[form]
    raw = json.dumps(body, indent=1).encode() if form == "spaced" else encoded(body)
    sent = sweep.process(raw, "t", START + 1010).body
    told = answered_in(sent)
    assert told.get("is_error", "absent") is {"no word": "absent", "null": None}.get(form, False)
    assert {k: v for k, v in told.items() if k not in ("content", "is_error")} == {
        "type": "tool_result",
        "tool_use_id": "toolu_expand",
    }
    assert "entry_" in json.dumps(told["content"])


def test_an_answer_that_an_older_version_wrote_is_replayed_as_it_was() -> None:
    """With the client's word that it is an error: a changed byte would break the prefix that is cached."""
    sweep = sweep_of()
    _, done = removed_at_cold(sweep)
    form = expanding(20, done.report.removed[0].key)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cg.sweep.core.removal.NO_ERROR", b"")
        before = sweep.process(encoded(form), "t", START + 1010).body
    assert answered_in(before)["is_error"] is True
    after = sweep.process(encoded({**form, "max_tokens": 31000}), "t", START + 1011).body
    assert after == before.replace(b'"max_tokens":32000', b'"max_tokens":31000')


NO_IDS = {
    "too short": lambda a, b: a[:15],
    "too long": lambda a, b: a + "0",
    "two": lambda a, b: f"{a}, {b}",
    "two in a list": lambda a, b: [a, b],
    "none in a list": lambda a, b: [],
    "a list in a list": lambda a, b: [[a]],
    "an object": lambda a, b: {"id": a},
    "a number": lambda a, b: 5,
    "another prefix": lambda a, b: f"key:{a}",
    "a name": lambda a, b: "toolu_004",
}


@pytest.mark.parametrize("written", NO_IDS.values(), ids=NO_IDS)
def test_what_is_no_one_id_brings_nothing_back(written) -> None:
    """It is said so; nothing is guessed."""
    sweep = sweep_of()
    _, done = removed_at_cold(sweep)
    first, second = done.report.removed[0].key, done.report.removed[1].key
    answered = sweep.process(encoded(expanding(20, written(first, second))), "t", START + 1010)
    assert results(answered.body)["toolu_expand"] == NEVER_EXISTED
