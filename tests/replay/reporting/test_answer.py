"""The answer: what is advised, what is not, and how sure it is said to be."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from cg.replay.about import About
from cg.replay.batch import Result
from cg.replay.reporting.answer import LEAST_SHARE, Answer, Sureness, answer, sureness
from cg.replay.reporting.sentences import Advice, advice
from cg.replay.reporting.summary import Summary
from cg.replay.reporting.table import WIDTH, answered
from cg.replay.row import Row
from cg.sweep.config import Config, load
from cg.sweep.prices import PriceTable
from cg.sweep.values import Usage

PRICE = PriceTable.default().price("claude-opus-4-6")
DAY = 86_400.0


def row(units: float, **counts: Any) -> Row:
    """A row of one call at this price: 5 units an output token."""
    made = Row(**counts)
    made.bills["request"].add(Usage(output=round(units / 5)), PRICE)
    return made


def session(
    n: int, costs: dict[tuple[str, str], float], *, days: float | None = 1.0, cold: int = 1, **counts: Any
) -> Result:
    """One session with a bill for each policy and lifetime; a session a day, unless it has no date."""
    began = None if days is None else n * days * DAY + 1e9
    at = {
        (policy, lifetime): row(units, cold_requests=cold, cold_excess=units / 10, **counts)
        for (policy, lifetime), units in costs.items()
    }
    return Result(
        f"s{n}",
        Path(f"s{n}.json"),
        about=About(started=began, ended=began),
        requests=10,
        ttl_s=300,
        rows={policy: found for (policy, lifetime), found in at.items() if lifetime == "client"},
        lifetimes={
            name: {policy: found for (policy, lifetime), found in at.items() if lifetime == name}
            for name in ("5m", "1h", "plan")
            if ("none", name) in at
        },
    )


def answered_over(n: int, costs: dict[tuple[str, str], float], **named: Any) -> Answer:
    summary, spread = Summary(), random.Random(7)
    for i in range(n):
        scale = spread.uniform(0.5, 2)
        summary.take(
            session(i, {key: units * scale * spread.uniform(0.97, 1.03) for key, units in costs.items()}, **named)
        )
    return answer(summary)


BILLS = {
    ("none", "client"): 1e6,
    ("quiet", "client"): 0.9e6,
    ("cold", "client"): 0.7e6,
    ("paid/oracle", "client"): 0.5e6,
}
LIFETIMES = {("none", "1h"): 0.95e6, ("quiet", "1h"): 0.8e6, ("cold", "1h"): 0.6e6}
LOSING = {("mask-all-but-k", "client"): 0.2e6, ("drop-all", "client"): 0.1e6}


def test_the_cheapest_that_judges_and_brings_back_is_advised() -> None:
    """Never a rule that loses content, one that judges nothing, or a judge that nobody has, cheaper as they are."""
    found = answered_over(60, BILLS | LIFETIMES | LOSING, removals=5)
    assert found.choice is not None
    assert (found.choice.figures.policy, found.choice.figures.lifetime) == ("quiet", "1h")
    words = "\n".join([*advice(found).sentences, advice(found).head])
    assert "mask" not in words and "drop-all" not in words
    assert "cold in its place" in words and "Best case" in words


def test_lifetime_alone_is_advised_where_removing_makes_it_dearer() -> None:
    """There is no preset to write then."""
    found = answered_over(60, BILLS | LIFETIMES | {("quiet", "1h"): 1.1e6, ("quiet", "client"): 1.2e6})
    assert found.choice is not None and found.choice.figures.policy == "none"
    assert found.choice.figures.lifetime == "1h"
    assert advice(found).head == "Switch on a lifetime of one hour for cache entries."
    [lines] = advice(found).lines
    assert load(lines.text) == Config(judge="model", lifetime="1h") and not load(lines.text).removes


def test_little_evidence_is_reason_to_try() -> None:
    """A saving in each of four sessions is no more than that."""
    found = answered_over(4, BILLS)
    assert found.choice is not None and advice(found).head == 'Try the preset "quiet".'


@pytest.mark.parametrize(
    ("costs", "n"),
    [
        (BILLS | {("quiet", "client"): 1.01e6}, 60),
        (BILLS | {("quiet", "client"): 1e6 * (1 - LEAST_SHARE / 3)}, 60),
        (BILLS, 1),
    ],
)
def test_nothing_is_advised_for_a_loss_a_trifle_or_one_session(costs: dict[tuple[str, str], float], n: int) -> None:
    """And the sentence says which of them it was."""
    found = answered_over(n, costs)
    said = advice(found)
    assert found.choice is None and said.lines == () and said.head == "Nothing here is worth switching on."
    assert len(said.sentences) >= 3


def test_a_saving_is_a_trifle_however_sure_it_is() -> None:
    """The same share in every session has no width: below half a percent it is not advised, above it is."""
    for share, is_advised in ((LEAST_SHARE * 0.9, False), (LEAST_SHARE * 1.1, True)):
        summary = Summary()
        for n in range(12):
            summary.take(
                session(n, {("none", "client"): 1e6 * (n + 1), ("quiet", "client"): 1e6 * (n + 1) * (1 - share)})
            )
        found = answer(summary)
        assert (found.choice is not None) is is_advised
        assert is_advised or "too little to notice" in advice(found).sentences[0]


def test_the_range_does_not_hang_on_the_order_of_the_sessions() -> None:
    """What is drawn are sessions, not places."""
    spread = random.Random(3)
    sessions = [session(n, {key: units * spread.uniform(0.5, 2) for key, units in BILLS.items()}) for n in range(9)]
    one, other = Summary(), Summary()
    for result in sessions:
        one.take(result)
    for result in spread.sample(sessions, 9):
        other.take(result)
    assert one.interval(("quiet", "client")) == other.interval(("quiet", "client")) is not None


def test_a_saving_of_few_sessions_that_others_outweigh_is_called_chance() -> None:
    """Cheaper in sum and not in nineteen of twenty draws is not advised."""
    summary = Summary()
    for n in range(12):
        own = 0.2e6 if n == 0 else 1.03e6
        summary.take(session(n, BILLS | {("quiet", "client"): own}))
    found = answer(summary)
    assert found.choice is None and found.nearest is not None
    assert "chance" in advice(found).sentences[0]


def test_the_lines_are_a_configuration_that_is_accepted() -> None:
    """As they stand, in the file; the lifetime too, which the sweep sets."""
    [lines] = advice(answered_over(60, BILLS | LIFETIMES)).lines
    assert load(lines.text) == Config(lifetime="1h")
    assert lines.text.splitlines() == ["[sweep]", 'preset = "quiet"', 'lifetime = "1h"']


def test_a_plan_is_advised_where_it_is_cheapest() -> None:
    """It says what a plan is, and its line is accepted."""
    found = answered_over(
        60, BILLS | LIFETIMES | {("none", "plan"): 0.8e6, ("quiet", "plan"): 0.7e6, ("cold", "plan"): 0.6e6}
    )
    said = advice(found)
    assert said.head == 'Switch on the preset "quiet" and planned lifetimes of cache entries.'
    assert load(said.lines[0].text) == Config(lifetime="plan")
    assert any(sentence.startswith("Planned: ") for sentence in said.sentences)


def test_a_month_is_thirty_days_at_the_pace_of_the_logs() -> None:
    """No figure a month from logs of less than two days, nor from logs without dates."""
    found = answered_over(61, BILLS)
    assert found.days == pytest.approx(60.0)
    assert found.monthly(10.0) == pytest.approx(5.0)
    none = found.none.usd
    assert none is not None
    pace = f"the bill is ${none:,.2f} in 60 days, ${none / 2:,.2f} a month at this pace."
    for each in (found, answered_over(61, BILLS | {("quiet", "client"): 1.1e6})):
        assert "a month at this pace" in " ".join(advice(each).sentences)
    assert pace in " ".join(advice(found).sentences)
    for few in (answered_over(60, BILLS, days=None), answered_over(60, BILLS, days=0.01)):
        assert few.monthly(10.0) is None and "say nothing of a month" in "".join(advice(few).sentences)
        assert "pace" not in "".join(advice(few).sentences)


def test_the_range_a_month_is_that_of_the_dollars_saved() -> None:
    """Nine of ten draws of the sessions lie in it, and it holds what the sessions themselves gave."""
    found = answered_over(61, BILLS)
    chosen = found.choice
    assert chosen is not None and chosen.interval is not None and chosen.figures.saved_usd is not None
    low, high = chosen.interval.saved_usd
    assert low < chosen.figures.saved_usd < high
    assert f"${low / 2:,.2f} to ${high / 2:,.2f} a month" in "".join(advice(found).sentences)


@pytest.mark.parametrize(
    ("sessions", "cold", "days", "grade"),
    [
        (49, 99, 99.0, Sureness.SOME),
        (50, 30, 14.0, Sureness.FAIR),
        (50, 29, 14.0, Sureness.SOME),
        (50, 30, 13.9, Sureness.SOME),
        (9, 99, 99.0, Sureness.LITTLE),
        (99, 9, 99.0, Sureness.LITTLE),
        (99, 99, 2.9, Sureness.LITTLE),
        (99, 99, None, Sureness.FAIR),
    ],
)
def test_sureness_needs_sessions_cold_requests_and_days(
    sessions: int, cold: int, days: float | None, grade: Sureness
) -> None:
    """The least of the three decides."""
    assert sureness(sessions, cold, days) is grade


def every_sentence() -> list[Advice]:
    few = [
        answered_over(n, BILLS | LIFETIMES, days=days, cold=cold)
        for n in (2, 12, 60)
        for days in (None, 3.0)
        for cold in (0, 3)
    ]
    lost = answered_over(60, BILLS | {("quiet", "client"): 1.2e6})
    removed = answered_over(60, BILLS | LIFETIMES, removals=5, used_later=1)
    return [advice(found) for found in (*few, lost, removed)]


def test_the_answer_is_whole_sentences_that_fit_a_terminal() -> None:
    """Each ends, none is empty, no line is longer than 100 letters."""
    for said in every_sentence():
        for sentence in (said.head, *said.sentences):
            assert re.search(r"[.:]$", sentence) and sentence == sentence.strip() and "  " not in sentence
        assert max(map(len, answered(said).splitlines())) <= WIDTH
