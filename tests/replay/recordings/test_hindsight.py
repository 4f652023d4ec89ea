"""Later use of an output, asked at any request after one pass, is what going through the whole session would find."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
import reuse_oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_steps import TRANSCRIPTS, document, steps_of

from cg.replay.recordings.hindsight import Hindsight, Label, look_back
from cg.replay.recordings.recording import Session, Step
from cg.replay.sessions import open_sessions

LABELLED = sorted(path.name.removesuffix(".labels.json") for path in TRANSCRIPTS.glob("*.labels.json"))


def as_read(name: str) -> list[Step]:
    """The steps that the reader gives, whose bodies a strict server would take."""
    (session,) = open_sessions(TRANSCRIPTS / f"{name}.json")
    assert isinstance(session, Session)
    return list(session.steps())


@pytest.mark.parametrize("read", [as_read, lambda name: steps_of(document(name)["events"])], ids=["reader", "document"])
@pytest.mark.parametrize("name", LABELLED)
def test_the_published_labels_come_out_exactly(name: str, read: Callable[[str], list[Step]]) -> None:
    """Every label of every cut of the label files, and for live ones the reply that proves it, its lines and its names."""
    doc = document(name)
    replies = [n for n, event in enumerate(doc["events"]) if event["role"] == "assistant"]
    hindsight = look_back(read(name))
    compared = 0
    for cut in json.loads((TRANSCRIPTS / f"{name}.labels.json").read_text("utf-8"))["cuts"]:
        request = cut["cut_request"]
        for output, want in cut["labels"].items():
            assert hindsight.label(output, request) == want["label"], (request, output)
            used = hindsight.next_use(output, request)
            assert used == (replies.index(want["evidence_event"]) if want["label"] == "live" else None)
            uses = hindsight.uses(output, request)
            assert sum(use.lines for use in uses) == want.get("lines", 0)
            named = frozenset().union(*[use.identifiers for use in uses])
            assert sorted(named)[:6] == want.get("identifiers", [])
            compared += 1
    assert compared > 50


# --------------------------------------------------------------------------- made-up sessions against the slow oracle

LINES = [f"a line that says number_{n} and runs on" for n in range(3)]
TEXTS = st.lists(
    st.sampled_from(
        [*LINES, f"  12\u2192{LINES[0]}", "ident_one", "identTwo", "file3.py and ident_one", "prose", "x/y_z9"]
    ),
    max_size=3,
).map("\n".join)
BLOCKS = st.one_of(
    st.tuples(st.just("bring"), st.tuples(st.sampled_from("abcd"), TEXTS)), st.tuples(st.just("write"), TEXTS)
)
STEPS = st.tuples(
    st.integers(0, 3).map(lambda n: n == 0), st.lists(BLOCKS, max_size=4), st.lists(TEXTS, min_size=1, max_size=2)
)


def made_up(session: list[tuple[bool, list[Any], list[str]]]) -> tuple[list[Step], list[reuse_oracle.Moment]]:
    """The same session as steps and as moments."""
    steps: list[Step] = []
    moments: list[reuse_oracle.Moment] = []
    for n, (opens, blocks, texts) in enumerate(session):
        content = [
            {"type": "tool_result", "tool_use_id": what[0], "content": what[1]}
            if kind == "bring"
            else {"type": "text", "text": what}
            for kind, what in blocks
        ]
        user = json.dumps({"role": "user", "content": content}).encode()
        said: list[Any] = [{"type": "text", "text": texts[0]}]
        if len(texts) > 1:
            said.append({"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"deep": [{"command": texts[1]}]}})
        reply = json.dumps({"role": "assistant", "content": said}).encode()
        before = (steps[-1].reply,) if steps and not opens else ()
        steps.append(Step(n, float(n), None, "m", opens, (*before, user), reply, None))
        moments += [("forget", None)] if opens else []
        moments += [*blocks, ("reply", texts)]
    return steps, moments


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=1, max_size=7))
def test_any_session_is_labelled_as_going_through_it_again_would(
    session: list[tuple[bool, list[Any], list[str]]],
) -> None:
    """For every output and every request: the label, and the request that proves a live one."""
    steps, moments = made_up(session)
    hindsight = look_back(steps)
    for output in {what[0] for kind, what in moments if kind == "bring"}:
        for request in range(len(steps) + 1):
            label, proof = reuse_oracle.label(moments, output, request)
            assert (hindsight.label(output, request), hindsight.next_use(output, request)) == (label, proof)


# --------------------------------------------------------------------------- rules, each by itself


def told(*replies: str, outputs: dict[str, str], rereads: dict[int, dict[str, str]] | None = None) -> Hindsight:
    """Outputs before the first reply, more of them before others, and what the replies say."""
    steps = []
    for n, reply in enumerate(replies):
        brought = outputs if n == 0 else (rereads or {}).get(n, {})
        content = [{"type": "tool_result", "tool_use_id": key, "content": text} for key, text in brought.items()]
        message = json.dumps({"role": "user", "content": content or [{"type": "text", "text": "on"}]}).encode()
        said = json.dumps({"role": "assistant", "content": [{"type": "text", "text": reply}]}).encode()
        steps.append(Step(n, float(n), None, "m", n == 0, (message,), said, None))
    return look_back(steps)


LINE = "return the_answer + 42  # as agreed"


def test_an_output_is_live_until_its_last_use() -> None:
    """Live for every request up to the reply that repeats a line of it, spent from the next on."""
    found = told("so", "and", LINE, "done", outputs={"a": f"x\n{LINE}"})
    assert [found.label("a", n) for n in range(4)] == [Label.LIVE] * 3 + [Label.SPENT]
    assert [found.next_use("a", n) for n in range(4)] == [2, 2, 2, None]


def test_one_identifier_leaves_it_unsure_and_two_make_it_live() -> None:
    """Two different names between all later replies prove a use; the first reply by which both stood is the proof."""
    found = told("see first_name", "second_name", "first_name?", outputs={"a": "first_name second_name"})
    assert [found.label("a", n) for n in range(3)] == [Label.LIVE, Label.UNSURE, Label.SPENT]
    assert found.next_use("a", 0) == 1


def test_a_repeated_read_takes_the_items_over() -> None:
    """What is used afterwards belongs to the newer copy."""
    found = told("go", LINE, outputs={"a": LINE}, rereads={1: {"b": LINE}})
    assert (found.label("a", 1), found.label("b", 1)) == (Label.SPENT, Label.LIVE)


def test_what_the_assistant_wrote_out_it_no_longer_owes_to_the_output() -> None:
    """A second use of the same line is no use of the output."""
    found = told(LINE, LINE, outputs={"a": LINE})
    assert (found.label("a", 0), found.label("a", 1)) == (Label.LIVE, Label.SPENT)


@pytest.mark.parametrize(("carriers", "label"), [(3, Label.LIVE), (4, Label.SPENT)])
def test_what_more_than_three_outputs_brought_is_common_property(carriers: int, label: Label) -> None:
    """Up to three carriers the last one is used, from four on none is."""
    found = told(LINE, outputs={f"o{n}": LINE for n in range(carriers)})
    assert found.label(f"o{carriers - 1}", 0) is label


def test_what_a_compaction_took_away_cannot_be_used() -> None:
    """A history that starts anew holds only what it is sent: the same line is then nobody's, or a later output's."""
    steps = steps_of(
        [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": LINE}]},
            {"role": "assistant", "content": [{"type": "text", "text": "so"}]},
            {"role": "system", "content": [], "compact": True},
            {"role": "user", "content": [{"type": "text", "text": "in short"}]},
            {"role": "assistant", "content": [{"type": "text", "text": LINE}]},
        ]
    )
    assert look_back(steps).label("a", 0) is Label.SPENT


def test_an_output_that_the_session_does_not_have_is_refused() -> None:
    """An unknown id is an error, not a spent output."""
    found = told("x", outputs={"a": "b"})
    assert "a" in found and "z" not in found
    with pytest.raises(KeyError):
        found.label("z", 0)


# --------------------------------------------------------------------------- cost


def test_a_label_costs_the_same_however_long_the_session_and_however_often_asked() -> None:
    """No rescan: the calls that a label makes do not grow with the outputs, the uses or the cuts."""
    costs = []
    for n in (5, 400):
        names = {f"t{i}": f"name_of_{i} other_of_{i}" for i in range(n)}
        found = told(*[f"name_of_{i} other_of_{i}" for i in range(n)], outputs=names)
        count = 0

        def counted(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += 1

        sys.setprofile(counted)
        try:
            found.label("t0", 0)
        finally:
            sys.setprofile(None)
        costs.append(count)
    assert costs[0] == costs[1] < 10
