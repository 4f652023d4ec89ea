"""Will this wait end cold, and how many requests follow: a person's own waits, drawn towards recorded sessions.

A wait is the time between two requests of one history; it reaches `ttl - window` when an ask may be made, and ends cold
when it reaches `ttl`. Beta-binomial: the estimate is (s·p + cold) / (s + reached), where p is what 26,250 waits of 502
recorded sessions say and s how many waits of one's own weigh as much as that. Who the wait is for does not matter: of
the waits that reached 240 s, 83 % of those that a person ended and 82 % of those that a tool ended went past 300 s.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cg.replay.recordings.recording import Step
from cg.sweep.economics import COLD_1H, TURNS_LEFT

# Waits of at least so many seconds, of all 26,250. The count at 600 s is that of the sessions that log usage, scaled.
WAITED = (
    (3.7, 23_625),
    (7.2, 13_125),
    (14.9, 6_562),
    (60.0, 2_714),
    (120.0, 1_678),
    (180.0, 1_230),
    (210.0, 1_085),
    (240.0, 965),
    (270.0, 870),
    (300.0, 796),
    (600.0, 429),
    (1_800.0, 181),
    (3_000.0, 115),
    (3_300.0, 108),
    (3_540.0, 97),
    (3_600.0, 96),
    (35_048.0, 26),
)
ALL_WAITS = 26_250
# Of the twelve projects recorded, none is told apart by its share of cold ends (a beta-binomial fit grows without bound,
# from a log-likelihood of -452.5 at 2 to -447.0 at 20 and -446.1 at 1,000): what is one's own has to be seen often.
COLD_STRENGTH = 20.0
# How often a prefix is lost does differ, from one request in 9 to one in 190: a gamma-Poisson fit is best at 2.
LOSS_STRENGTH = 2.0
MAX_P = COLD_1H  # no wait is sure to end cold


def waited(age_s: float) -> float:
    """Share of recorded waits that lasted `age_s` seconds or more: straight lines between the logarithms of WAITED."""
    if age_s <= 0:
        return 1.0
    ages = [age for age, _ in WAITED]
    i = bisect_left(ages, age_s)
    if i == 0:
        first, count = WAITED[0]
        return 1.0 - (1.0 - count / ALL_WAITS) * age_s / first
    (a, before), (b, after) = WAITED[i - 1 : i + 1] if i < len(ages) else WAITED[-2:]
    along = math.log(age_s / a) / math.log(b / a)
    return before * math.pow(after / before, along) / ALL_WAITS


class Habits:
    """The waits of one person, as far as they are known; cheap to ask at every request."""

    def __init__(self, waits: Iterable[float] = ()) -> None:
        self._waits = sorted(waits)
        self._requests = len(self._waits)
        self._broken = 0

    def wait(self, seconds: float) -> None:
        """A request came so long after the one before it in its history."""
        insort(self._waits, seconds)
        self._requests += 1

    def broke(self) -> None:
        """A request lost its prefix for another reason, as after a compaction."""
        self._requests += 1
        self._broken += 1

    def learn(self, steps: Iterable[Step]) -> None:
        """Take in a recorded session; times that were made up must not come here."""
        for seconds in waits_of(steps):
            if seconds is None:
                self.broke()
            else:
                self.wait(seconds)

    def p_cold(self, ttl_s: float, window_s: float = 60.0) -> float:
        """Chance that a wait which has reached `ttl_s - window_s` goes past `ttl_s`, given that another request comes.

        Raises ValueError unless 0 < window_s <= ttl_s.
        """
        if not 0 < window_s <= ttl_s:
            raise ValueError(f"a window of {window_s} s; it is longer than 0 and at most the lifetime, {ttl_s} s")
        prior = waited(ttl_s) / waited(ttl_s - window_s)
        reached = self._lasting(ttl_s - window_s)
        return min(MAX_P, (COLD_STRENGTH * prior + self._lasting(ttl_s)) / (COLD_STRENGTH + reached))

    def turns_left(self, ttl_s: float) -> float:
        """Requests to expect before the prefix is next lost, drawn towards the economics' own guess."""
        lost = self._lasting(ttl_s) + self._broken
        return (LOSS_STRENGTH * TURNS_LEFT + self._requests) / (LOSS_STRENGTH + lost)

    def _lasting(self, seconds: float) -> int:
        return len(self._waits) - bisect_left(self._waits, seconds)


def waits_of(steps: Iterable[Step]) -> Iterator[float | None]:
    """Seconds between each request and the one before it; None where the history opened anew."""
    before: float | None = None
    for step in steps:
        if before is not None:
            yield None if step.opens else step.at - before
        before = step.at


@dataclass(frozen=True, slots=True)
class Bin:
    """Forecasts of about the same chance, and how often what they forecast came about."""

    n: int
    predicted: float  # mean
    observed: float  # share
    low: float  # Wilson's interval for the share, 95 %
    high: float


def forecasts(people: Iterable[Iterable[float]], ages: Sequence[tuple[float, float]]) -> Iterator[tuple[float, bool]]:
    """(chance, did it end cold) at every wait that reached ttl - window, foretold from the person's waits before it.

    `ages` are the pairs (ttl, window) to ask for.
    """
    for waits in people:
        habits = Habits()
        for wait in waits:
            for ttl_s, window_s in ages:
                if wait >= ttl_s - window_s:
                    yield habits.p_cold(ttl_s, window_s), wait >= ttl_s
            habits.wait(wait)


def calibration(forecast: Iterable[tuple[float, bool]], bins: int = 10) -> list[Bin]:
    """The forecasts in order of their chance, cut into bins of equal size (deciles): foretold against observed."""
    ordered = sorted(forecast)
    edges = [round(i * len(ordered) / bins) for i in range(bins + 1)]
    parts = (ordered[a:b] for a, b in zip(edges, edges[1:], strict=False))
    return [_bin(part) for part in parts if part]


def _bin(part: Sequence[tuple[float, bool]]) -> Bin:
    n, hits = len(part), sum(came for _, came in part)
    return Bin(n, sum(p for p, _ in part) / n, hits / n, *wilson(hits, n))


def wilson(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval for a share of `hits` in `n` (Wilson 1927); (0, 1) without trials."""
    if not n:
        return 0.0, 1.0
    p, zz = hits / n, z * z
    middle, half = p + zz / (2 * n), z * math.sqrt(p * (1 - p) / n + zz / (4 * n * n))
    return max(0.0, (middle - half) / (1 + zz / n)), min(1.0, (middle + half) / (1 + zz / n))
