"""What a study runs: one policy under one set of assumptions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

from cg.replay.policies import NONE, Mask, Oracle, Policy
from cg.replay.reading import Recording
from cg.replay.row import Row
from cg.replay.run import Run
from cg.replay.settings import VERDICT_TOKENS, Settings
from cg.replay.simulation.sweep_actor import THREAD, SweepActor
from cg.sweep.accounting.tally import Tally
from cg.sweep.config import Config, load
from cg.sweep.core.idle_ask import due_at, is_ping_fair
from cg.sweep.core.policy import Core
from cg.sweep.counters import Event
from cg.sweep.judging.inventory import Candidate, assemble

Way = Literal["", "ask 2", "ask 3", "mixed", "ping always", "ping by worth"]
PERFECT, FAIR = Oracle(), Oracle(0.8, 0.1)  # FAIR drops 80 % of the spent outputs and 10 % of the others
JUDGES = {"perfect": PERFECT, "80/10": FAIR}
LIFETIMES = {"5 min": 300, "1 h": 3600}


@dataclass(frozen=True, slots=True)
class Variant:
    """One run of every session; equal variants are run once."""

    config: Config | None = None  # None with no mask: nothing is touched
    judge: Oracle | None = None
    mask: Mask | None = None
    ttl_s: int | None = None  # None: as recorded
    verdict_tokens: int = VERDICT_TOKENS
    way: Way = ""  # a way of driving the sweep that no configuration has

    @property
    def untouched(self) -> "Variant":
        """What it is compared with: the same sessions and lifetime, and nothing done."""
        return Variant(ttl_s=self.ttl_s)

    def at(self, ttl_s: int | None) -> "Variant":
        return replace(self, ttl_s=ttl_s)

    def run(self, recording: Recording) -> Row:
        """What it costs on a session."""
        policy = NONE if self == self.untouched else Policy("studied", self.config, self.judge, self.mask)
        settings = Settings(ttl_s=self.ttl_s, verdict_tokens=self.verdict_tokens)
        return WAYS[self.way](recording, policy, settings, None).finish()


def paid(judge: Oracle = PERFECT, **keys: Any) -> Variant:
    """The preset `paid` with some keys set."""
    return Variant(replace(load(preset="paid"), **keys), judge)


def asked_in_request(judge: Oracle = PERFECT, **keys: Any) -> Variant:
    """`paid` in all but when it asks and applies: in a request that comes in the window, and at once."""
    return paid(judge, **({"ask": "on-request", "apply": "at-once", "rescue": False} | keys))


def cold(**keys: Any) -> Variant:
    """The preset `cold` with some keys set."""
    return Variant(replace(load(preset="cold"), **keys))


def pinged(pings: int) -> Variant:
    """Keep-alive reads and nothing else. More than the two that a configuration takes are a study's alone."""
    return replace(paid(ask="off", pings=pings), judge=None, way="ping always")


# -- ways of driving the sweep that only a study has ---------------------------------------------------------------------


class AskingAgain(SweepActor):
    """Asks more than once a gap, each time a lifetime less window after the ask before, about what is still undecided."""

    asks = 2

    def gap(self, until: float, request: int) -> None:
        super().gap(until, request)
        for _ in range(self.asks - 1):
            if self._branch is None or self._branch.asked_at is None:
                return
            again = replace(self._branch, clock=self._clock, asked_at=None)
            due = due_at(self._sweep.core, again)
            if due is None or due >= until:
                return
            self._branch = again
            self._ask(due, request)


class AskingThrice(AskingAgain):
    """The same with three asks."""

    asks = 3


class MixedCore(Core):
    """Takes half of an ask's candidates by age and fills up by size."""

    def inventory(self, candidates: Sequence[Candidate], tally: Tally) -> tuple[Candidate, ...]:
        cap = self.config.ask_cap
        oldest, rest = list(candidates[: cap // 2]), list(candidates[cap // 2 :])
        largest = sorted(rest, key=lambda c: -c.tokens)[: cap - len(oldest)]
        chosen = sorted([*oldest, *largest], key=lambda c: c.text.start)
        made = assemble(chosen, cap=cap, select="oldest", min_inventory=self.config.min_inventory)
        return made.offered if made.is_enough else ()


class SweptMixed(SweepActor):
    """The sweep with that core."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._sweep.core = MixedCore(self._sweep.core.config, self._sweep.core.prices)


class PingingAlways(SweepActor):
    """Pings whenever one is due."""

    def _is_ping_fair(self) -> bool:
        return True


class PingingByWorth(SweepActor):
    """Pings by the expected worth alone: a loss is covered by a bill without an end."""

    def _is_ping_fair(self) -> bool:
        assert self._branch is not None
        sent = self._sweep.read_sent(THREAD, self._branch)
        events = {**self._sweep.totals()["events"], Event.BILLED_UNITS: inf}
        return sent is not None and is_ping_fair(self._sweep.core, sent, self._sweep.state(THREAD), events)


class RunPingingAlways(Run):
    """A run that asks for no worth."""

    _swept = PingingAlways


class RunPingingByWorth(Run):
    """A run without a bound on what pings may lose."""

    _swept = PingingByWorth


class RunAskingAgain(Run):
    """A run that asks twice a gap."""

    _swept = AskingAgain


class RunAskingThrice(Run):
    """A run that asks three times a gap."""

    _swept = AskingThrice


class RunMixed(Run):
    """A run that asks about old and large outputs."""

    _swept = SweptMixed


WAYS: dict[Way, type[Run]] = {
    "": Run,
    "ask 2": RunAskingAgain,
    "ask 3": RunAskingThrice,
    "mixed": RunMixed,
    "ping always": RunPingingAlways,
    "ping by worth": RunPingingByWorth,
}
