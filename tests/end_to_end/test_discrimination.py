"""Spent outputs go and owed ones stay: the first publication's script, its damages, and when each preset acts."""

import json

import pytest
from fake_upstream import damage
from sweeping import START, Judge, encoded, history, output, settled, sweep_of

from cg.sweep.body.transcript import read

OWED = {8, 9, 10, 11}
N = 12
TTL_S, WINDOW_S = 300, 60
DAMAGES = [
    "bracket_prose",
    "prose_around",
    "trailing_bracket",
    "code_fence",
    "unclosed_array",
    "empty",
    "not_json",
    "single_quotes",
    "trailing_comma",
    "wrapped_object",
    "duplicate_label",
    "missing_label",
    "unknown_label",
    "empty_objects",
    "null_fields",
    "missing_field",
    "wrong_types",
    "fabricated_quote",
]
LABELS = ("paid", "classic")


def recorded_reply() -> str:
    """Eight of twelve spent, four owed to the notes."""
    spent = {"needed_by": "none", "verdict": "drop"}
    owed = {"needed_by": "b", "quote": "write the notes", "verdict": "keep"}
    return json.dumps([{"i": i, **(owed if i in OWED else spent)} for i in range(N)])


def gone(body: bytes, out: bytes) -> set[int]:
    """Numbers of the outputs that do not stand in what left."""
    texts = {t.tool_use_id: t.text for t in read(out).tool_texts}
    return {i for i in range(N) if texts[f"toolu_{i:03}"] != output(i)}


def swept(preset: str, reply: str, n: int = N):
    """(sweep, outputs gone, report) after one ask answered with `reply`, as each preset asks and applies."""
    judge, sweep = Judge(reply), sweep_of(preset=preset, select="oldest")
    sweep.process(encoded(history(0)), "t", START, asker=judge)
    sweep.process(encoded(history(n)), "t", START + 10, asker=judge)
    later = encoded(history(n, last="And now?"))
    if preset == "paid":
        settled(sweep, "t", START + 10 + TTL_S - WINDOW_S, judge)
    done = sweep.process(later, "t", START + (1000 if preset == "paid" else 10 + 250), asker=judge)
    return sweep, gone(later, done.body), done.report


@pytest.mark.parametrize("preset", LABELS)
def test_of_twelve_outputs_the_eight_spent_go_and_the_four_owed_stay(preset: str) -> None:
    """8/8 dropped, 4/4 kept."""
    _, dropped, report = swept(preset, recorded_reply())
    assert dropped == set(range(N)) - OWED
    assert report.reason == "removed" and len(report.removed) == 8


@pytest.mark.parametrize("preset", LABELS)
@pytest.mark.parametrize("shape", DAMAGES)
def test_a_damaged_reply_never_drops_what_is_owed(shape: str, preset: str) -> None:
    """Whatever arrives in the place of a good reply: less may go, nothing else."""
    _, dropped, report = swept(preset, damage(recorded_reply(), shape))
    assert dropped <= set(range(N)) - OWED
    assert len(report.removed) == len(dropped)


def test_every_damage_that_leaves_the_verdicts_readable_leaves_the_drops() -> None:
    """Lenient reading is worth something: the sound verdicts of these replies all count."""
    for shape in (
        "bracket_prose",
        "prose_around",
        "trailing_bracket",
        "code_fence",
        "trailing_comma",
        "wrapped_object",
    ):
        assert swept("paid", damage(recorded_reply(), shape))[1] == set(range(N)) - OWED, shape


def test_every_damage_that_leaves_no_verdict_drops_nothing() -> None:
    """Doubt keeps."""
    for shape in ("empty", "not_json", "empty_objects", "null_fields", "missing_field"):
        assert swept("paid", damage(recorded_reply(), shape))[1] == set(), shape


@pytest.mark.parametrize(("idle", "fires"), [(0.0, False), (15.0, False), (250.0, True)])
def test_classic_fires_at_250_seconds_and_not_at_0_or_15_in_the_same_session(idle: float, fires: bool) -> None:
    """Only a request in the last minute of the lifetime asks and removes."""
    judge, sweep = Judge(recorded_reply()), sweep_of(preset="classic", select="oldest")
    sweep.process(encoded(history(0)), "t", START, asker=judge)
    sweep.process(encoded(history(N)), "t", START + 10, asker=judge)
    later = encoded(history(N, last="And now?"))
    done = sweep.process(later, "t", START + 10 + idle, asker=judge)
    assert bool(judge.bodies) is bool(done.report.removed) is fires
    assert gone(later, done.body) == (set(range(N)) - OWED if fires else set())


def test_the_default_asks_in_the_gap_and_applies_at_the_cold_request() -> None:
    """The ask rides on the warm prefix and changes nothing; the request that finds it cold leaves without the spent."""
    judge, sweep = Judge(recorded_reply()), sweep_of()
    sweep.process(encoded(history(0)), "t", START)
    before = sweep.process(encoded(history(N)), "t", START + 10)
    assert not judge.bodies
    asked = settled(sweep, "t", START + 250, judge)
    assert asked.reason == "judged" and len(judge.bodies) == 1
    # The question stands behind the body exactly as it was sent, so that its prefix is read.
    prefix = before.body[: before.body.rindex(b"]}]") + 2].replace(b'"max_tokens":32000', b'"max_tokens":16000')
    assert judge.bodies[0].startswith(prefix)
    assert len(sweep.state("t").pending) == 8 and not sweep.state("t").removals
    done = sweep.process(encoded(history(N, last="And now?")), "t", START + 1000)
    assert done.report.phase == "cold" and len(done.report.removed) == 8
    assert not sweep.state("t").pending


def test_a_pending_drop_that_the_new_prompt_refers_to_is_rescued() -> None:
    """The conversation went on between the verdict and its moment: what it speaks of stays, counted, and is forgotten."""
    judge, sweep = Judge(recorded_reply()), sweep_of()
    sweep.process(encoded(history(0)), "t", START)
    sweep.process(encoded(history(N)), "t", START + 10)
    settled(sweep, "t", START + 250, judge)
    name = output(3).split()[0]
    later = encoded(history(N, last=f"Why is {name} so large?"))
    done = sweep.process(later, "t", START + 1000)
    assert gone(later, done.body) == set(range(N)) - OWED - {3}
    assert done.report.events["sweep_rescued"] == 1 and not sweep.state("t").pending
    again = encoded(history(N, last=f"Why is {name} so large?", max_tokens=31000))
    assert 3 not in gone(again, sweep.process(again, "t", START + 5000).body)


@pytest.mark.parametrize("idle", [1.0, 100.0, 239.0, 245.0, 299.0, 310.0, 359.0])
def test_cold_never_asks_and_leaves_a_prefix_alone_that_may_still_be_there(idle: float) -> None:
    """Warm, about to expire, or not surely gone: nothing is removed."""
    judge, sweep = Judge(recorded_reply()), sweep_of(preset="cold", keep_newest=4)
    sweep.process(encoded(history(0)), "t", START, asker=judge)
    sweep.process(encoded(history(N)), "t", START + 10, asker=judge)
    done = sweep.process(encoded(history(N, last="And now?")), "t", START + 10 + idle, asker=judge)
    assert not done.report.removed and not judge.bodies


@pytest.mark.parametrize("how", ["cold", "broken"])
def test_cold_removes_where_the_prefix_is_lost_anyway(how: str) -> None:
    """At a cold request, or when the client itself changed what stands in front: all but the newest go."""
    sweep = sweep_of(preset="cold", keep_newest=4)
    sweep.process(encoded(history(0)), "t", START)
    sweep.process(encoded(history(N)), "t", START + 10)
    system, idle = ("s", 360.0) if how == "cold" else ("another", 5.0)
    later = encoded(history(N, last="And now?", system=system))
    done = sweep.process(later, "t", START + 10 + idle)
    assert done.report.phase == how and gone(later, done.body) == set(range(N)) - OWED
