"""Which lifetime a prompt's entries should have, chosen where the prefix is written anyway: pure arithmetic.

A five-minute entry is lost by every wait of five minutes; if the wait ends within the hour, an entry of one hour would
have been read. So all that counts is the chance q that the next wait which outlasts five minutes, the last one of the
conversation included, ends within the hour. Writing P tokens for an hour costs (w1 - w5)·P more. At five minutes such a
wait costs (w5 - r)·P, and then the same choice comes again; taking one hour then costs (w1 - r)·P together. So one hour
is cheaper where q·(w1 - r) >= w1 - w5: from q = 0.39 on at the usual prices, whatever P is and however it grows.

Single waits cannot be told apart, so a session may cost much more than at its client's own lifetime, and a bound for each
session leaves nothing of the gain (docs/studies). What is bounded is the sum: the client's lifetime is left only where the
habit is known well enough, and never for more than a share of all that was paid.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from cg.shape import content_key
from cg.sweep.body.transcript import Transcript
from cg.sweep.config import Config
from cg.sweep.economics import RELATIVE
from cg.sweep.planning.gaps import Client, Gaps, Habits
from cg.sweep.prices import ONE_HOUR_S
from cg.sweep.values import Branch, Thread

FIVE_MINUTES_S = 300
CONSTANTS = {"5m": FIVE_MINUTES_S, "1h": ONE_HOUR_S}
SHORT, LONG = RELATIVE.write(FIVE_MINUTES_S), RELATIVE.write(ONE_HOUR_S)
NEEDED = (LONG - SHORT) / (LONG - RELATIVE.read)  # chance from which on one hour is cheaper
SURE = 1.0  # standard errors between the chance and what is needed, for the client's own lifetime to be left
# What choices of lifetimes may have lost at any time, as a share of all that requests have cost.
MAX_LOSS = 0.05

# Stands among the digests of what was expanded, which every store keeps for good: no content has this one.
REFUSED_LIFETIME = content_key("the provider refuses the lifetimes that are written here")


class Why(StrEnum):
    """Why a request's marks have the lifetime that they have."""

    KEPT = "kept"  # the prefix holds: what was decided stays
    SET = "set"  # the configuration says so
    CHEAPER = "cheaper"
    UNSURE = "unsure"  # the client's own, since the habit is not known well enough to leave it
    NOT_COVERED = "not_covered"  # the client's own, since the other could lose more than the bound
    LEFT = "left"  # these marks are not to be changed


@dataclass(frozen=True, slots=True)
class Choice:
    """A lifetime for a request's marks, why, and by which chance that a wait ends within the hour."""

    ttl_s: int
    why: Why
    chance: float | None = None


class Planner:
    """Decides lifetimes by one configuration; holds no state."""

    def __init__(self, config: Config) -> None:
        self._lifetime = config.lifetime
        self.is_active = config.lifetime != "client"
        self.learns = config.lifetime == "plan"

    def may_write(self, transcript: Transcript, thread: Thread) -> bool:
        """Whether the lifetimes of this body's marks may be changed: all are known here, and so is the route.

        Other clouds take the same body with a version of their own in it, and their own rules for lifetimes; and what a
        provider has refused once is not tried again in that thread.
        """
        is_known = transcript.ttl_s is not None and transcript.member("anthropic_version") is None
        return self.is_active and is_known and REFUSED_LIFETIME not in thread.expanded

    def kept(self, transcript: Transcript, thread: Thread, branch: Branch | None) -> int | None:
        """The lifetime that the marks have while the prefix holds."""
        if branch is None or branch.ttl_s is None or not self.may_write(transcript, thread):
            return transcript.ttl_s
        return branch.ttl_s

    def choose(self, client_s: int, prefix: float, habits: Habits, client: Client) -> Choice:
        """The lifetime for a request that writes `prefix` tokens anew; `client_s` is the one that its client asks for."""
        if self._lifetime in CONSTANTS:
            return Choice(CONSTANTS[self._lifetime], Why.SET)
        known, expected = habits.known(client), habits.expected(client)
        chance = expected.chance(FIVE_MINUTES_S, ONE_HOUR_S)
        cheaper = ONE_HOUR_S if chance >= NEEDED else FIVE_MINUTES_S
        if cheaper == client_s:
            return Choice(cheaper, Why.CHEAPER, chance)
        if abs(chance - NEEDED) < SURE * _error(known):
            return Choice(client_s, Why.UNSURE, chance)
        if habits.stake.lost + _risk(cheaper) * prefix > MAX_LOSS * habits.stake.billed:
            return Choice(client_s, Why.NOT_COVERED, chance)
        return Choice(cheaper, Why.CHEAPER, chance)


def _error(known: Gaps) -> float:
    """Standard error of the chance, by all waits that are known."""
    chance = known.chance(FIVE_MINUTES_S, ONE_HOUR_S)
    return math.sqrt(chance * (1 - chance) / known.outlasting(FIVE_MINUTES_S))


def _risk(ttl_s: int) -> float:
    """What leaving the client's own lifetime for this one costs a token if the next long wait is of the wrong kind."""
    dearer = LONG - SHORT
    return dearer if ttl_s == ONE_HOUR_S else SHORT - RELATIVE.read - dearer


def bill(prefix: float, behind: float, ttl_s: int, *, is_read: bool) -> float:
    """What a prompt costs in units: `prefix` tokens read or written again, and those `behind` written."""
    write = RELATIVE.write(ttl_s)
    return prefix * (RELATIVE.read if is_read else write) + behind * write
