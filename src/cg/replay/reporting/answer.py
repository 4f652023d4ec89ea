"""What to switch on: the cheapest choice that these sessions are sure enough about, or none."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from cg.replay.batch import SWITCHED_ON
from cg.replay.policies import NONE
from cg.replay.reporting.figures import CLIENT, UNTOUCHED, Figures, Key
from cg.replay.reporting.summary import Interval, Summary

# Below half a percent a saving is not worth a program between client and provider, nor larger than what reads that the
# cache model takes for sure and a bill lacks can cost.
LEAST_SHARE = 0.005
OFFERED = (NONE.name, "quiet")  # `cold` judges nothing: it is named with its risk, and not advised
DAY_S = 86_400.0
MONTH_DAYS = 30.0
LEAST_DAYS = 2.0  # a shorter time says nothing of a month


class Sureness(StrEnum):
    """How far sessions like these carry."""

    LITTLE = "little"
    SOME = "some"
    FAIR = "fair"


# (sessions, cold requests, days) that are needed. All that a sweep saves comes from cold requests: with fewer than ten, one
# long wait decides. Half of the published figures rest on about 200 sessions; 50 halve the width of 12.
NEEDED = {Sureness.FAIR: (50, 30, 14.0), Sureness.SOME: (10, 10, 3.0)}


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that could be switched on, with its range over resampled sessions."""

    figures: Figures
    interval: Interval | None

    @property
    def is_sure(self) -> bool:
        """Cheaper in 19 of 20 draws of the sessions, and by enough to matter."""
        change = self.figures.change
        return (
            change is not None and change <= -LEAST_SHARE and self.interval is not None and self.interval.change[1] < 0
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What these sessions say about switching something on."""

    choice: Choice | None  # None: nothing is worth it
    nearest: Choice | None  # the cheapest that is offered, sure or not; None: nothing is cheaper than doing nothing
    none: Figures
    cold: Choice | None  # what recency would bring beside it
    best_case: Choice | None  # a judge that is always right, which nobody has
    sureness: Sureness
    sessions: int
    requests: int
    days: float | None  # from the first request to the last; None: no session has a date

    def monthly(self, usd: float) -> float | None:
        """Dollars a month at the pace of these sessions; None where they have no dates or cover less than two days."""
        return None if self.days is None or self.days < LEAST_DAYS else usd / self.days * MONTH_DAYS

    def to_dict(self) -> dict[str, Any]:
        """As the JSON report holds it."""
        chosen = self.choice
        usd = chosen.figures.saved_usd if chosen else None
        bounds = chosen.interval.saved_usd if chosen and chosen.interval else None
        return {
            "preset": chosen.figures.policy if chosen else None,
            "lifetime": chosen.figures.lifetime if chosen else None,
            "saved_usd": usd,
            "saved_usd_month": None if usd is None else self.monthly(usd),
            "saved_usd_month_range": [self.monthly(bound) for bound in bounds] if bounds else None,
            "figures": asdict(chosen.figures) if chosen else None,
            "sureness": self.sureness.value,
            "sessions": self.sessions,
            "days": self.days,
            "cold_requests": self.none.cold_requests,
        }


def answer(summary: Summary) -> Answer:
    """The answer of at least one session."""
    offered = sorted(_choices(summary, OFFERED), key=lambda choice: choice.figures.units)
    cheaper = [choice for choice in offered if choice.figures.saved_units > 0]
    sure = next((choice for choice in cheaper if choice.is_sure), None)
    lifetime = sure.figures.lifetime if sure else CLIENT
    none = summary.figures(UNTOUCHED)
    days = None if summary.first is None or summary.last is None else (summary.last - summary.first) / DAY_S
    return Answer(
        choice=sure,
        nearest=cheaper[0] if cheaper else None,
        none=none,
        cold=_choice(summary, ("cold", lifetime)),
        best_case=_choice(summary, next((key for key in summary.totals if is_best_case(key[0])), None)),
        sureness=sureness(summary.sessions, none.cold_requests, days),
        sessions=summary.sessions,
        requests=summary.requests,
        days=days,
    )


def sureness(sessions: int, cold_requests: int, days: float | None) -> Sureness:
    """How far so much evidence carries; sessions without dates are judged by their number alone."""
    seen = (sessions, cold_requests, NEEDED[Sureness.FAIR][2] if days is None else days)
    return next(
        (grade for grade, needed in NEEDED.items() if all(a >= b for a, b in zip(seen, needed, strict=True))),
        Sureness.LITTLE,
    )


def is_best_case(policy: str) -> bool:
    """A judge that knows the rest of the session and never errs."""
    return policy.endswith("/oracle")


def _choices(summary: Summary, policies: Sequence[str]) -> list[Choice]:
    assert set(policies) <= set(SWITCHED_ON)
    keys = [key for key in summary.shown if key[0] in policies and key != UNTOUCHED]
    return [Choice(summary.figures(key), summary.interval(key)) for key in keys]


def _choice(summary: Summary, key: Key | None) -> Choice | None:
    return Choice(summary.figures(key), summary.interval(key)) if key in summary.totals else None
