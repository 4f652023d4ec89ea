"""The answer in words, for somebody who has read nothing else."""

from dataclasses import dataclass

from cg.replay.policies import NONE
from cg.replay.reporting.answer import LEAST_SHARE, Answer, Choice, Sureness
from cg.replay.reporting.figures import CLIENT, Figures
from cg.replay.reporting.words import counted, dollars, share
from cg.replay.settings import PLAN

LIFETIMES = {
    "5m": "a lifetime of five minutes for cache entries",
    "1h": "a lifetime of one hour for cache entries",
    PLAN: "planned lifetimes of cache entries",
}
WHAT_A_PLAN_IS = (
    "Planned: whenever the beginning has to be paid anew anyway, the sweep chooses between five minutes and one hour by how long "
    "you have waited so far."
)
WHAT_QUIET_IS = (
    "quiet takes a tool output out of a request once nothing in the conversation leans on it any more, and only where the "
    "beginning has to be paid anew anyway. What it takes out can be brought back; it asks no model and sends nothing itself."
)
WHAT_A_LIFETIME_IS = (
    "The provider keeps the beginning of a conversation for five minutes or one hour after its last use, and reading it costs "
    "a tenth or less. A longer lifetime costs more to write, and survives longer waits."
)


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines to put somewhere."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer: a head line, what to put where, and the sentences that explain it."""

    head: str
    lines: tuple[Lines, ...]
    sentences: tuple[str, ...]


def advice(answer: Answer) -> Advice:
    """The answer in plain sentences."""
    chosen = answer.choice
    if chosen is None:
        why, cold, sure = _why_nothing(answer), _cold_requests(answer), _how_sure(answer)
        said = _said(why, cold, sure, _pace(answer), _cold_alone(answer), _best_case(answer))
        return Advice("Nothing here is worth switching on.", (), said)
    policy, lifetime = chosen.figures.policy, chosen.figures.lifetime
    what = [f'the preset "{policy}"'] if policy != NONE.name else []
    what += [LIFETIMES[lifetime]] if lifetime != CLIENT else []
    verb = "Try" if answer.sureness is Sureness.LITTLE else "Switch on"
    return Advice(
        f"{verb} {' and '.join(what)}.",
        _lines(policy, lifetime),
        _said(
            _saving(answer, chosen),
            _expectation(answer, chosen),
            _parts(chosen.figures),
            _cold_requests(answer),
            _how_sure(answer),
            _pace(answer),
            WHAT_QUIET_IS if policy == "quiet" else "",
            _wrong_removals(chosen.figures),
            WHAT_A_LIFETIME_IS if lifetime != CLIENT else "",
            WHAT_A_PLAN_IS if lifetime == PLAN else "",
            _beside(answer, chosen),
            _best_case(answer),
        ),
    )


def _said(*sentences: str) -> tuple[str, ...]:
    return tuple(sentence for sentence in sentences if sentence)


def _lines(policy: str, lifetime: str) -> tuple[Lines, ...]:
    """What to put where."""
    # without a preset that of the default would be in force: who asks a model and is never asked removes nothing
    own = [f'preset = "{policy}"'] if policy != NONE.name else ['judge = "model"']
    if lifetime != CLIENT:
        own.append(f'lifetime = "{lifetime}"')
    return (Lines("In the file that cg-proxy and cg-sweep take as --config:", "\n".join(["[sweep]", *own])),)


def _saving(answer: Answer, chosen: Choice) -> str:
    own, none = chosen.figures, answer.none
    saved = share(-(own.change or 0.0))
    over = f"these {counted(answer.sessions, 'session')}"
    if own.saved_usd is None or none.usd is None:
        return f"On {over} it would have saved {saved} of the bill."
    return f"On {over} it would have saved {dollars(own.saved_usd)} of {dollars(none.usd)} ({saved})."


def _expectation(answer: Answer, chosen: Choice) -> str:
    interval, usd = chosen.interval, chosen.figures.saved_usd
    assert interval is not None  # or it would not have been chosen
    range_ = f"{share(-interval.change[1])} to {share(-interval.change[0])} of the bill"
    how = "nine of ten draws of as many sessions from these gave a saving in this range"
    low, high = (answer.monthly(bound) for bound in interval.saved_usd)
    if usd is None or low is None or high is None:
        why = "without dates" if answer.days is None else "of less than two days"
        return (
            f"Expect {range_}: {how}. Logs {why} say nothing of a month."
            if usd is not None
            else f"Expect {range_}: {how}."
        )
    return (
        f"Expect {dollars(low)} to {dollars(high)} a month if you go on as in these {_days(answer)} ({range_}): {how}."
    )


def _pace(answer: Answer) -> str:
    usd = answer.none.usd
    month = None if usd is None else answer.monthly(usd)
    if usd is None or month is None:
        return ""
    return f"With nothing switched on the bill is {dollars(usd)} in {_days(answer)}, {dollars(month)} a month at this pace."


def _parts(own: Figures) -> str:
    if own.removal_usd is None or own.alive_usd is None or own.lifetime_usd is None:
        return ""
    parts = [
        (own.removal_usd, "by tool outputs that were taken out"),
        (own.alive_usd, "by entries kept alive while nobody was there"),
        (own.lifetime_usd, "by the other lifetime"),
        (-(own.spent_usd or 0.0), "for what the sweep sent itself and for bringing outputs back"),
    ]
    shown = [f"{dollars(usd)} {what}" for usd, what in parts if round(usd, 2)]
    return f"Where that comes from: {', '.join(shown)}." if len(shown) > 1 else ""


def _cold_requests(answer: Answer) -> str:
    none = answer.none
    if not none.cold_requests:
        return (
            "No request in these logs came after its cache entry had expired. Removing pays only at such requests, so there was "
            "nothing to save by it."
        )
    excess = share(none.cold_excess / none.units)
    return (
        f"{counted(none.cold_requests, 'request')} of {answer.requests:,} came cold, after the cache entry had expired, and paid the "
        f"whole conversation again: {excess} of the bill. Removing pays only there."
    )


def _how_sure(answer: Answer) -> str:
    seen = f"{counted(answer.sessions, 'session')}, {counted(answer.none.cold_requests, 'cold request')}"
    seen += f", {_days(answer)}" if answer.days is not None else ", without dates"
    grade = {Sureness.LITTLE: "little", Sureness.SOME: "somewhat", Sureness.FAIR: "fairly"}[answer.sureness]
    if answer.sureness is Sureness.LITTLE:
        return f"How sure: {grade} ({seen}). A single long wait can turn the answer; ask again with more logs."
    if answer.choice is None:
        return f"How sure: {grade} ({seen}), if you work as before. Ask again with more logs."
    if answer.sureness is Sureness.SOME:
        return f"How sure: {grade} ({seen}). The direction will hold if you work as before; the size may not."
    return f"How sure: {grade} ({seen}), if you work as before. The range does not allow for other work."


def _days(answer: Answer) -> str:
    return counted(max(1, round(answer.days or 0.0)), "day")


def _why_nothing(answer: Answer) -> str:
    near = answer.nearest
    if answer.sessions < 2:
        return "One session says nothing about the next: give the replay more of them."
    if near is None or near.figures.change is None:
        return "Neither removing tool outputs nor another lifetime would have made these sessions cheaper."
    saved, what = share(-near.figures.change), _named(near.figures)
    of = "of the bill" if near.figures.saved_usd is None else f"of the bill ({dollars(near.figures.saved_usd)})"
    if -near.figures.change < LEAST_SHARE:
        return f"The cheapest choice, {what}, would have saved {saved} {of}, which is too little to notice."
    return (
        f"The cheapest choice, {what}, would have saved {saved} {of}, but on these sessions that may be chance: in more "
        "than one of twenty draws of as many sessions it costs more than it saves."
    )


def _named(own: Figures) -> str:
    parts = [own.policy] if own.policy != NONE.name else []
    parts += [LIFETIMES[own.lifetime]] if own.lifetime != CLIENT else []
    return " with ".join(parts)


def _wrong_removals(own: Figures) -> str:
    if not own.removals:
        return ""
    what = f"Of {counted(own.removals, 'output')} that it took out, {own.used_later:,} {'was' if own.used_later == 1 else 'were'} used again later"
    if own.expansions and own.expansions_usd:
        each = own.expansions_usd / own.expansions
        return f"{what}; bringing one back costs about {dollars(each, cents=3)}, which is in the bill."
    return f"{what}. What a missing output does to an answer, no bill shows."


def _beside(answer: Answer, chosen: Choice) -> str:
    cold = answer.cold
    if cold is None or cold.figures.saved_units <= chosen.figures.saved_units or not cold.figures.removals:
        return ""
    own = cold.figures
    more = share((own.saved_units - chosen.figures.saved_units) / answer.none.units)
    return f"The preset cold in its place would save {more} of the bill more, but it judges nothing: {_what_cold_does(own)}."


def _cold_alone(answer: Answer) -> str:
    cold = answer.cold
    if cold is None or not cold.is_sure:
        return ""
    return (
        f"The preset cold would have saved {share(-(cold.figures.change or 0.0))} of the bill, but it judges nothing and is no advice: "
        f"{_what_cold_does(cold.figures)}."
    )


def _what_cold_does(own: Figures) -> str:
    return (
        f"it removes all outputs but the newest ten, and {own.used_later:,} of {counted(own.removals, 'output')} were used again "
        "later"
    )


def _best_case(answer: Answer) -> str:
    best = answer.best_case
    if best is None or best.figures.change is None:
        return ""
    change = share(best.figures.change, signed=True)
    return (
        f"Best case of asking a model: a judge that is always right would have changed the bill by {change}. Nobody has such a "
        "judge; a real one brings less."
    )
