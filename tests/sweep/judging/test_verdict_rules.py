"""From a reply to drops: doubt keeps, obligations refuse, and everything is counted once."""

import json
from collections import Counter

import pytest
from conversations import call, result, transcript, user
from hypothesis import given
from hypothesis import strategies as st
from presets import paid

from cg.sweep.counters import Decline, Event
from cg.sweep.judging import question as ask
from cg.sweep.judging.coreference import Index, Record, Standing
from cg.sweep.judging.inventory import eligible
from cg.sweep.judging.verdict_rules import Haystack, decide, haystack_of
from cg.sweep.values import Thread
from cg.verdicts import Action, Decoded, Status, Verdict, decode
from cg.verdicts import Counter as Told


def inventory(n: int = 2):
    turns = [t for i in range(n) for t in (call(f"t{i}", path=f"{i}"), result(f"t{i}", f"text {i}"))]
    return eligible(transcript(user("the release notes are still owed"), *turns), Thread(), paid(min_tokens=0), 2.0)[0]


def said(i, action, verdict="drop", needed_by="none", quote=None) -> Verdict:
    """One verdict as a decoder hands it over."""
    return Verdict(i, needed_by, quote, verdict, action)


def reply(verdicts=(), status=Status.OK, counters=None) -> Decoded:
    """A decoded reply."""
    return Decoded(status, None, tuple(verdicts), (), counters or {})


def judged(*verdicts: Verdict, n: int = 2, read: str = "", **options):
    return decide(inventory(n), reply(verdicts), read, **options)


def labels(made) -> list[str]:
    return [one.text.tool_use_id for one in made.drops]


def test_a_drop_that_owes_nothing_goes_and_a_keep_stays() -> None:
    """One event for the drop, one decline for the keep."""
    made = judged(said(0, Action.DROP), said(1, Action.KEEP, "keep", "b", "owed"), read="owed")
    assert labels(made) == ["t0"] and made.spent_judged == 1
    assert made.events == Counter({Event.ADJUDICATED: 2, Event.DROPPED: 1})
    assert made.declines == Counter({Decline.KEPT: 1})


@pytest.mark.parametrize("needed_by", ["a", "b", "c", " B ", "z", "n/a", "nobody", "0"])
def test_rule_1_a_drop_that_names_an_obligation_is_refused_and_counted(needed_by: str) -> None:
    """Any word but none is an obligation, also when the decoder let the drop through."""
    for action in (Action.DROP, Action.REFUSED):
        made = judged(said(0, action, needed_by=needed_by), n=1)
        assert not made.drops and made.spent_judged == 1
        assert made.declines == Counter({Decline.DROP_REFUSED_OBLIGATION: 1})


@pytest.mark.parametrize(
    ("action", "counted"),
    [
        (Action.UNUSABLE, Decline.VERDICT_UNUSABLE),
        (Action.CONFLICT, Decline.VERDICT_CONFLICT),
        ("an action of tomorrow", Decline.VERDICT_UNUSABLE),
        ("", Decline.VERDICT_UNUSABLE),
    ],
)
def test_rule_2_doubt_keeps(action: str, counted: Decline) -> None:
    """A verdict that is not clearly a drop keeps its output, and is counted once."""
    made = judged(said(0, action), n=1)
    assert not made.drops and made.declines == Counter({counted: 1})


def test_rule_2_a_missing_verdict_keeps_and_is_no_keep() -> None:
    """Nothing was said about it: counted apart from what was judged needed."""
    made = judged(said(0, Action.DROP), n=3)
    assert labels(made) == ["t0"] and made.declines == Counter({Decline.VERDICT_MISSING: 2})


def test_rule_2_a_label_that_was_not_offered_acts_on_nothing() -> None:
    """Neither past the end nor before the start, where Python would count from the back."""
    made = judged(said(-1, Action.DROP), said(2, Action.DROP))
    assert not made.drops and made.declines[Decline.VERDICT_UNKNOWN_LABEL] == 2


def test_rule_3_a_quote_that_was_not_read_is_counted_for_drops_and_keeps() -> None:
    """It changes nothing: models paraphrase."""
    made = judged(
        said(0, Action.DROP, quote="never written"), said(1, Action.KEEP, "keep", "b", "nor this"), read="something"
    )
    assert labels(made) == ["t0"] and made.declines == Counter({Decline.QUOTE_FABRICATED: 2, Decline.KEPT: 1})


@pytest.mark.parametrize("quote", ["", "  ", None, "owed still", " owed  still ", "owed\tstill"])
def test_rule_3_an_empty_or_faithful_quote_is_not_counted(quote: str | None) -> None:
    """Exact first, then with runs of blanks as one."""
    assert not judged(said(0, Action.DROP, quote=quote), n=1, read="is owed\n  still here").declines


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
    assert "onetwo" not in Haystack(lambda: ("one", "two"))


@pytest.mark.parametrize("needed_by", [None, "", "  "])
def test_rule_4_an_unanswered_criterion_is_tolerated_and_counted(needed_by: str | None) -> None:
    """The drop goes; keeps are counted alike."""
    made = judged(said(0, Action.DROP, needed_by=needed_by), said(1, Action.KEEP, "keep", needed_by))
    assert labels(made) == ["t0"]
    assert made.declines == Counter({Decline.CRITERION_MISSING: 2, Decline.KEPT: 1})


def test_an_empty_array_keeps_everything_and_misses_nothing() -> None:
    """It is an answer; on the fallback path it has a name of its own."""
    assert judged().declines == Counter({Decline.KEPT_EVERYTHING: 1})
    assert judged(is_fallback=True).declines == Counter({Decline.FALLBACK_KEPT_EVERYTHING: 1})


def test_unreadable_and_cut_replies_are_told_apart() -> None:
    """Their remedies are opposite: the prompt, or the reply's budget. A cut one keeps what was complete."""
    unreadable = decide(inventory(), reply(status=Status.UNPARSEABLE), "")
    assert not unreadable.drops and unreadable.counters == Counter({Decline.UNPARSEABLE: 1})
    cut = decide(inventory(), reply((said(0, Action.DROP),), Status.TRUNCATED), "")
    assert labels(cut) == ["t0"]
    assert cut.declines == Counter({Decline.REPLY_TRUNCATED: 1, Decline.VERDICT_MISSING: 1})


def test_what_the_decoder_counts_about_the_reply_is_carried_over() -> None:
    """Labels unknown, missing or twice, stray elements, and counting from one."""
    told = {Told.UNKNOWN_LABEL: 1, Told.NO_LABEL: 2, Told.DUPLICATE_LABEL: 3, Told.STRAY: 4, Told.LABEL_SHIFT: 1}
    made = decide(inventory(), reply((said(0, Action.DROP), said(1, Action.DROP)), counters=told), "")
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
    made = decide(offered, reply((said(0, Action.DROP), said(1, Action.DROP))), "", index)
    assert labels(made) == ["t1"] and made.declines == Counter({Decline.DROP_ALL_KEPT_OPEN: 1})
    assert made.events[Event.DROPPED] == 1
    some = decide(offered, reply((said(0, Action.DROP), said(1, Action.KEEP, "keep"))), "", index)
    assert labels(some) == ["t0"]


def test_every_candidate_has_one_outcome() -> None:
    """Dropped, or one reason to stay: the counts sum to what was offered."""
    made = judged(
        said(0, Action.DROP), said(1, Action.KEEP, "keep"), said(2, Action.REFUSED, needed_by="a"), said(3, Action.UNUSABLE, "trim"),
        said(4, Action.CONFLICT), n=6,
    )  # fmt: skip
    assert made.events[Event.DROPPED] + made.declines.total() == made.events[Event.ADJUDICATED] == 6


def test_u24_drops_that_were_refused_count_as_judged_spent() -> None:
    """Twelve drops naming b: twelve judged spent, none became a drop, twelve refusals."""
    made = judged(*(said(i, "refused", needed_by="b") for i in range(12)), n=12)
    assert (made.spent_judged, len(made.drops), made.declines[Decline.DROP_REFUSED_OBLIGATION]) == (12, 0, 12)


def test_no_counter_stands_in_both_families() -> None:
    """A series of declines must not rise because the sweep works better."""
    assert not {str(name) for name in Event} & {str(name) for name in Decline}
    assert json.loads(json.dumps(judged(said(0, Action.DROP), n=1).counters)) == {
        "sweep_adjudicated": 1,
        "sweep_dropped": 1,
    }


# From the reply's own text, through the real decoder.

DROP_0 = '{"i":0,"needed_by":"none","verdict":"drop"}'
KEEP_1 = '{"i":1,"needed_by":"b","quote":"release notes are still owed","verdict":"keep"}'


def of_text(text: str, n: int = 2):
    read = transcript(user("the release notes are still owed"))
    return decide(inventory(n), decode(text, range(n)), haystack_of(read))


@pytest.mark.parametrize(
    "text",
    [
        f"[{DROP_0},{KEEP_1}]",
        f"Per criterion [a] the first is spent. [{DROP_0},{KEEP_1}]",
        f"[{DROP_0},{KEEP_1}] and see criterion [b].",
        f"Candidates: [0, 1].\n```json\n[{DROP_0},{KEEP_1}]\n```\nDone.",
        '{"verdicts": [' + DROP_0 + "," + KEEP_1 + "]}",
        f"{DROP_0}\n{KEEP_1}",
    ],
)
def test_u5_u12_prose_around_the_answer_and_wrappers_are_read(text: str) -> None:
    """With tool_choice none a model talks around its answer: the verdicts are the same."""
    made = of_text(text)
    assert labels(made) == ["t0"] and made.declines == Counter({Decline.KEPT: 1})


def test_u6_an_answer_without_a_verdict_parses_and_keeps() -> None:
    """Readable and unusable is not unreadable."""
    made = of_text('[{"i":1,"needed_by":"none","quote":""}]')
    assert not made.drops
    assert made.declines == Counter({Decline.VERDICT_UNUSABLE: 1, Decline.VERDICT_MISSING: 1})


@pytest.mark.parametrize("text", ["[{}]", '[{"needed_by":"none","verdict":"drop"}]', '[{"i":true,"verdict":"drop"}]'])
def test_u7_d1_what_has_no_label_acts_on_nothing(text: str) -> None:
    """An absent label is not label 0."""
    assert not of_text(text).drops


@pytest.mark.parametrize("text", ["", "   ", "I need all of them.", "null"])
def test_u13_a_reply_without_an_answer_is_unparseable_and_keeps(text: str) -> None:
    """Thinking, or a call of another tool, leaves no text: nothing of another tool's input is a verdict."""
    made = of_text(text)
    assert not made.drops and made.counters == Counter({Decline.UNPARSEABLE: 1})


@pytest.mark.parametrize("text", [f"[{{}},{DROP_0},{KEEP_1}]", f"[{DROP_0},{{}},{KEEP_1}]"])
def test_d2_an_empty_element_neither_shadows_nor_spoils_the_others(text: str) -> None:
    """Every element is looked at, not the first alone."""
    assert labels(of_text(text)) == ["t0"]


def test_d3_an_early_empty_array_is_not_the_answer() -> None:
    """A list in prose must not read as keep-all."""
    assert labels(of_text(f"Checked list [] first.\n[{DROP_0},{KEEP_1}]")) == ["t0"]


def test_an_array_cut_after_its_first_verdict_acts_on_that_one() -> None:
    """What was complete counts; the rest is missing and kept."""
    made = of_text(f"Per [a] first. [{DROP_0},{KEEP_1[:30]}")
    assert labels(made) == ["t0"] and made.declines[Decline.REPLY_TRUNCATED] == 1


def test_rule_1_holds_through_the_decoder() -> None:
    """A drop that names b stays, counted as refused."""
    made = of_text('[{"i":0,"needed_by":"b","quote":"still owed","verdict":"drop"}]', n=1)
    assert not made.drops and made.declines == Counter({Decline.DROP_REFUSED_OBLIGATION: 1})


def test_the_form_in_the_question_drops_nothing_if_it_is_echoed() -> None:
    """The model may repeat the form, alone or before its answer."""
    form = next(line for line in ask.REPLY.splitlines() if line.startswith("[{"))
    assert not of_text(form).drops
    assert labels(of_text(f"{form}\n[{DROP_0},{KEEP_1}]")) == ["t0"]


PIECES = st.sampled_from(
    ["[", "]", ",", "\n", "prose ", '{"i":0,"verdict":"keep"}', DROP_0, KEEP_1, '{"i":1,"needed_by":"none","verdict":"drop"}',
     '{"i":2,"needed_by":"c","verdict":"drop"}', '{"i":9,"verdict":"drop"}', "{}", '{"i":2,"verdict":"trim"}', "<think>"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join))
def test_whatever_the_reply_no_drop_is_invented_and_every_candidate_is_counted_once(text: str) -> None:
    """Drops are a part of the decoder's; the outcomes of an answer with verdicts sum to what was offered."""
    told = decode(text, range(3))
    made = decide(OFFERED, told, "")
    assert [OFFERED.index(one) for one in sorted(made.drops, key=OFFERED.index)] == list(told.drops)
    outcomes = {
        Decline.KEPT, Decline.DROP_REFUSED_OBLIGATION, Decline.VERDICT_UNUSABLE, Decline.VERDICT_CONFLICT,
        Decline.VERDICT_MISSING,
    }  # fmt: skip
    if told.verdicts:
        assert len(made.drops) + sum(made.declines[name] for name in outcomes) == 3


OFFERED = inventory(3)
