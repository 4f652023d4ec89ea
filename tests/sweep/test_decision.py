"""From a reply to drops: doubt keeps, obligations refuse, and everything is counted once."""

import json
from collections import Counter
from dataclasses import dataclass, field

import pytest
from conversations import call, result, transcript, user

from cg.sweep.counters import Decline, Event
from cg.sweep.decision import Haystack, decide, haystack_of
from cg.sweep.index import Index, Record, Standing
from cg.sweep.inventory import eligible
from cg.sweep.values import Thread


class Floors:
    min_tokens = 0


def inventory(n: int = 2):
    turns = [t for i in range(n) for t in (call(f"t{i}", path=f"{i}"), result(f"t{i}", f"text {i}"))]
    return eligible(transcript(user("the release notes are still owed"), *turns), Thread(), Floors(), 2.0)[0]


@dataclass(frozen=True)
class Said:
    """One verdict as a decoder hands it over."""

    i: int
    action: str
    verdict: str | None = "drop"
    needed_by: str | None = "none"
    quote: str | None = None


@dataclass(frozen=True)
class Reply:
    """A decoded reply."""

    verdicts: tuple[Said, ...] = ()
    status: str = "ok"
    counters: dict[str, int] = field(default_factory=dict)


def judged(*verdicts: Said, n: int = 2, read: str = "", **options):
    return decide(inventory(n), Reply(verdicts), read, **options)


def labels(made) -> list[str]:
    return [one.text.tool_use_id for one in made.drops]


def test_a_drop_that_owes_nothing_goes_and_a_keep_stays() -> None:
    """One event for the drop, one decline for the keep."""
    made = judged(Said(0, "drop"), Said(1, "keep", "keep", "b", "owed"), read="owed")
    assert labels(made) == ["t0"] and made.spent_judged == 1
    assert made.events == Counter({Event.ADJUDICATED: 2, Event.DROPPED: 1})
    assert made.declines == Counter({Decline.KEPT: 1})


@pytest.mark.parametrize("needed_by", ["a", "b", "c", " B ", "z", "n/a", "nobody", "0"])
def test_rule_1_a_drop_that_names_an_obligation_is_refused_and_counted(needed_by: str) -> None:
    """Any word but none is an obligation, also when the decoder let the drop through."""
    for action in ("drop", "refused"):
        made = judged(Said(0, action, needed_by=needed_by), n=1)
        assert not made.drops and made.spent_judged == 1
        assert made.declines == Counter({Decline.DROP_REFUSED_OBLIGATION: 1})


@pytest.mark.parametrize(
    ("action", "counted"),
    [
        ("unusable", Decline.VERDICT_UNUSABLE),
        ("conflict", Decline.VERDICT_CONFLICT),
        ("an action of tomorrow", Decline.VERDICT_UNUSABLE),
        ("", Decline.VERDICT_UNUSABLE),
    ],
)
def test_rule_2_doubt_keeps(action: str, counted: Decline) -> None:
    """A verdict that is not clearly a drop keeps its output, and is counted once."""
    made = judged(Said(0, action), n=1)
    assert not made.drops and made.declines == Counter({counted: 1})


def test_rule_2_a_missing_verdict_keeps_and_is_no_keep() -> None:
    """Nothing was said about it: counted apart from what was judged needed."""
    made = judged(Said(0, "drop"), n=3)
    assert labels(made) == ["t0"] and made.declines == Counter({Decline.VERDICT_MISSING: 2})


def test_rule_2_a_label_that_was_not_offered_acts_on_nothing() -> None:
    """Neither past the end nor before the start, where Python would count from the back."""
    made = judged(Said(-1, "drop"), Said(2, "drop"))
    assert not made.drops and made.declines[Decline.VERDICT_UNKNOWN_LABEL] == 2


def test_rule_3_a_quote_that_was_not_read_is_counted_for_drops_and_keeps() -> None:
    """It changes nothing: models paraphrase."""
    made = judged(Said(0, "drop", quote="never written"), Said(1, "keep", "keep", "b", "nor this"), read="something")
    assert labels(made) == ["t0"] and made.declines == Counter({Decline.QUOTE_FABRICATED: 2, Decline.KEPT: 1})


@pytest.mark.parametrize("quote", ["", "  ", None, "owed still", " owed  still ", "owed\tstill"])
def test_rule_3_an_empty_or_faithful_quote_is_not_counted(quote: str | None) -> None:
    """Exact first, then with runs of blanks as one."""
    assert not judged(Said(0, "drop", quote=quote), n=1, read="is owed\n  still here").declines


def test_d5_the_haystack_is_the_whole_asked_body() -> None:
    """System, prose, tool arguments and results, text beside a result too."""
    read = transcript(
        user("the order"), call("t", command="make all"), result("t", "the output"), user("beside it"), system="the law"
    )
    haystack = haystack_of(read)
    for text in ("the law", "the order", "make all", "the output", "beside it"):
        assert text in haystack
    assert "the order of things" not in haystack


def test_a_quote_may_not_be_pasted_together_from_two_texts() -> None:
    """Texts are apart by a line break, which only the collapsed form reads as a blank."""
    assert "onetwo" not in Haystack("one", "two")


@pytest.mark.parametrize("needed_by", [None, "", "  "])
def test_rule_4_an_unanswered_criterion_is_tolerated_and_counted(needed_by: str | None) -> None:
    """The drop goes; keeps are counted alike."""
    made = judged(Said(0, "drop", needed_by=needed_by), Said(1, "keep", "keep", needed_by))
    assert labels(made) == ["t0"]
    assert made.declines == Counter({Decline.CRITERION_MISSING: 2, Decline.KEPT: 1})


def test_an_empty_array_keeps_everything_and_misses_nothing() -> None:
    """It is an answer; on the fallback path it has a name of its own."""
    assert judged().declines == Counter({Decline.KEPT_EVERYTHING: 1})
    assert judged(is_fallback=True).declines == Counter({Decline.FALLBACK_KEPT_EVERYTHING: 1})


def test_unreadable_and_cut_replies_are_told_apart() -> None:
    """Their remedies are opposite: the prompt, or the reply's budget. A cut one keeps what was complete."""
    unreadable = decide(inventory(), Reply(status="unparseable"), "")
    assert not unreadable.drops and unreadable.counters == Counter({Decline.UNPARSEABLE: 1})
    cut = decide(inventory(), Reply((Said(0, "drop"),), "truncated"), "")
    assert labels(cut) == ["t0"]
    assert cut.declines == Counter({Decline.REPLY_TRUNCATED: 1, Decline.VERDICT_MISSING: 1})


def test_what_the_decoder_counts_about_the_reply_is_carried_over() -> None:
    """Labels unknown, missing or twice, stray elements, and counting from one."""
    told = {"unknown_label": 1, "no_label": 2, "duplicate_label": 3, "stray": 4, "label_shift": 1, "keep": 9}
    made = decide(inventory(), Reply((Said(0, "drop"), Said(1, "drop")), counters=told), "")
    assert made.declines == Counter({
        Decline.VERDICT_UNKNOWN_LABEL: 1, Decline.VERDICT_NO_LABEL: 2, Decline.VERDICT_DUPLICATE_LABEL: 3,
        Decline.VERDICT_STRAY: 4, Decline.VERDICT_LABEL_SHIFT: 1,
    })  # fmt: skip


def standings(candidates, *kinds: Standing) -> Index:
    records = zip(candidates, kinds, strict=True)
    return Index({one.text.identity: Record(1, 0, 0, None, None, 9, kind) for one, kind in records})


def test_a_reply_that_drops_all_keeps_what_the_index_calls_open() -> None:
    """An output can carry "mark everything spent"; where one is kept, the reply has told them apart."""
    offered = inventory(2)
    index = standings(offered, Standing.OPEN, Standing.CLOSED)
    made = decide(offered, Reply((Said(0, "drop"), Said(1, "drop"))), "", index)
    assert labels(made) == ["t1"] and made.declines == Counter({Decline.DROP_ALL_KEPT_OPEN: 1})
    assert made.events[Event.DROPPED] == 1
    some = decide(offered, Reply((Said(0, "drop"), Said(1, "keep", "keep"))), "", index)
    assert labels(some) == ["t0"]


def test_every_candidate_has_one_outcome() -> None:
    """Dropped, or one reason to stay: the counts sum to what was offered."""
    made = judged(
        Said(0, "drop"), Said(1, "keep", "keep"), Said(2, "refused", needed_by="a"), Said(3, "unusable", "trim"),
        Said(4, "conflict"), n=6,
    )  # fmt: skip
    assert made.events[Event.DROPPED] + made.declines.total() == made.events[Event.ADJUDICATED] == 6


def test_u24_drops_that_were_refused_count_as_judged_spent() -> None:
    """Twelve drops naming b: twelve judged spent, none became a drop, twelve refusals."""
    made = judged(*(Said(i, "refused", needed_by="b") for i in range(12)), n=12)
    assert (made.spent_judged, len(made.drops), made.declines[Decline.DROP_REFUSED_OBLIGATION]) == (12, 0, 12)


def test_no_counter_stands_in_both_families() -> None:
    """A series of declines must not rise because the sweep works better."""
    assert not {str(name) for name in Event} & {str(name) for name in Decline}
    assert json.loads(json.dumps(judged(Said(0, "drop"), n=1).counters)) == {"sweep_adjudicated": 1, "sweep_dropped": 1}
