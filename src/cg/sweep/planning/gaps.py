"""How long a user's clients wait between two requests of a conversation: counts of waits by length.

A store keeps them as totals of the family `gaps`, for each thread and for each user, so their size is fixed however long
somebody works; a user's have the stake of the planned lifetimes beside them. Every conversation has one last wait, which never ends; it is counted when the conversation begins.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cg.sweep.counters import Event

# Lower ends of the bins, in seconds; a shorter wait loses no entry and is not counted. The lifetimes are among them, and
# so is the moment at which an ask or a ping is due on a five-minute entry.
BOUNDS_S = (60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600, 7200, 21600, 86400)
NAMES = tuple(f"from_{bound}" for bound in BOUNDS_S)
CONVERSATIONS = "conversations"
SUMS = (Event.BILLED_UNITS, Event.LIFETIME_COST_UNITS, Event.LIFETIME_GAINED_UNITS)  # of a user's stake
LARGEST = 1e15  # a larger number counts nothing: whoever wrote it, it is passed over

LONG_WAIT_S = 300.0  # what a wait has to reach to lose an entry
PRIOR_WAITS = 20.0  # such waits of a user's own that weigh as much as the recorded ones
THREAD_WAITS = 3.0  # such waits of one conversation that weigh as much as all that is known of its user


@dataclass(frozen=True, slots=True)
class Client:
    """Whose waits these are: `user` names what is learnt in a store (None: nothing is), and whether somebody is at the
    other end at all. A sub-agent's conversation never resumes, and a program does not go for lunch."""

    user: str | None = None
    is_person: bool = True


NOBODY = Client()


@dataclass(frozen=True, slots=True)
class Gaps:
    """Counts of waits by bin, and of conversations, each of which has a last wait that never ends."""

    conversations: float = 0.0
    waits: tuple[float, ...] = (0.0,) * len(BOUNDS_S)

    @classmethod
    def of(cls, counts: Mapping[str, float]) -> "Gaps":
        """The gaps that a store has counted; what is no count is none."""
        return cls(_count(counts.get(CONVERSATIONS)), tuple(_count(counts.get(name)) for name in NAMES))

    def counts(self) -> Counter[str]:
        """The counts by name, as a store takes them."""
        return Counter({CONVERSATIONS: self.conversations, **dict(zip(NAMES, self.waits, strict=True))})

    def plus(self, other: "Gaps", weight: float = 1.0) -> "Gaps":
        """Both together, the other at a weight; no count goes below zero."""
        waits = (max(0.0, mine + weight * theirs) for mine, theirs in zip(self.waits, other.waits, strict=True))
        return Gaps(max(0.0, self.conversations + weight * other.conversations), tuple(waits))

    def between(self, low_s: float, high_s: float = math.inf) -> float:
        """Waits of `low_s` and more, below `high_s`; inside of a bin they lie evenly."""
        ends = (*BOUNDS_S[1:], math.inf)
        return sum(n * _share(low_s, high_s, *bin) for n, *bin in zip(self.waits, BOUNDS_S, ends, strict=True))

    def outlasting(self, low_s: float) -> float:
        """Waits that reach `low_s`, the last ones of the conversations included."""
        return self.between(low_s) + self.conversations

    def chance(self, low_s: float, high_s: float) -> float:
        """The chance that a wait which has reached `low_s` ends before `high_s`."""
        reached = self.outlasting(low_s)
        return self.between(low_s, high_s) / reached if reached else 0.0


def _count(value: object) -> float:
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST
    return float(value) if is_count else 0.0  # type: ignore[arg-type]


def _share(low_s: float, high_s: float, start: float, end: float) -> float:
    """The part of a bin that lies between two lengths."""
    inside = min(high_s, end) - max(low_s, start)
    if inside <= 0:
        return 0.0
    return 1.0 if math.isinf(end) else inside / (end - start)


def bin_of(wait_s: float) -> str | None:
    """The name under which a wait is counted; None for one that is too short, or no length of time."""
    at = bisect_right(BOUNDS_S, wait_s)
    return NAMES[at - 1] if at and math.isfinite(wait_s) else None


# 102 recorded sessions of people at a terminal, the half of those that the studies choose on: waits of each bin.
PERSON = Gaps(102.0, (197, 76, 50, 30, 30, 21, 19, 28, 15, 9, 11, 10, 4, 5, 7, 0))
PROGRAM = Gaps(20.0, (20, 8, 5, 3, *(0,) * 12))  # assumed: tools take minutes now and then, nobody leaves and returns


@dataclass(frozen=True, slots=True)
class Stake:
    """What a user's requests have cost since their lifetimes are planned, in units of one fresh input token, and what the
    choices have cost beyond the clients' own so far; below zero: saved."""

    billed: float = 0.0
    lost: float = 0.0

    @classmethod
    def of(cls, counts: Mapping[str, float]) -> "Stake":
        """The stake that a store has counted; what is no sum is none."""
        cost, gained = (_count(counts.get(name)) for name in (Event.LIFETIME_COST_UNITS, Event.LIFETIME_GAINED_UNITS))
        return cls(_count(counts.get(Event.BILLED_UNITS)), cost - gained)


@dataclass(frozen=True, slots=True)
class Habits:
    """What a store has counted of a user and of one of their conversations, which the user's counts hold too."""

    user: Gaps = Gaps()
    thread: Gaps = Gaps()
    stake: Stake = Stake()

    def known(self, client: Client) -> Gaps:
        """Recorded waits, and the user's own but for those of this conversation."""
        prior = PERSON if client.is_person else PROGRAM
        return Gaps().plus(prior, PRIOR_WAITS / prior.outlasting(LONG_WAIT_S)).plus(self.user).plus(self.thread, -1.0)

    def expected(self, client: Client) -> Gaps:
        """The waits to reckon with in this conversation: those that are known, at a fixed weight, and its own.

        What is nearer prevails as it grows: the recorded ones by the user's, and these by the conversation's.
        """
        known, own = self.known(client), Gaps(0.0, self.thread.waits)  # it has not ended yet
        return Gaps().plus(known, THREAD_WAITS / known.outlasting(LONG_WAIT_S)).plus(own)
