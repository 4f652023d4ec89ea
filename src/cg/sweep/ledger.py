"""What a turn and an ask are booked as: one reason a turn, one row an ask, savings net of what they cost."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from cg.sweep.counters import Decline, Event
from cg.sweep.prices import Price, cost_usd
from cg.sweep.values import PREFIX_LOST, Identity, Phase, Removal, Usage


class Reason(StrEnum):
    """Why a turn ended as it did: exactly one each, so that the reasons of a session sum to its turns."""

    # the request is none of the sweep's business
    UNREADABLE = "unreadable"  # not a body that is understood: forwarded untouched
    SERVER_THREAD = "server_thread"  # the provider holds the history; only new messages are here
    SIDE_CALL = "side_call"  # no tools: a title, a summary
    RETRY = "retry"  # the same body again: the same turn
    BYPASSED = "bypassed"
    PAUSED = "paused"  # a person has switched removal off: only what was removed before is
    OBSERVED = "observed"  # nothing is changed, what would be is projected
    TOOL_NAME_TAKEN = "tool_name_taken"
    NOT_DECLARED = "not_declared"  # the tool is not declared yet and declaring it now would break the prefix
    # the moment is not one to remove at
    WARM = "warm"
    PRE_EXPIRY = "pre_expiry"
    COLD = "cold"
    BROKEN = "broken"
    UNCACHED = "uncached"
    UNKNOWN = "unknown"
    # there is nothing to judge, or nobody who judges
    NO_CANDIDATES = "no_candidates"
    BELOW_INVENTORY = "below_inventory"
    NO_ASKER = "no_asker"
    ASK_FAILED = "ask_failed"
    ASK_NOT_REPAID = "ask_not_repaid"
    ASKING_LATCHED = "asking_latched"  # two asks of this thread missed the prefix
    JUDGED = "judged"  # an ask was answered; what it dropped waits
    NOTHING_JUDGED = "nothing_judged"
    NOTHING_SPENT = "nothing_spent"
    # something is spent
    WAITING = "waiting"
    NOT_REPAID = "not_repaid"
    REFUSED = "refused"  # the store could not keep an original, or a replacement would not be shorter
    UNSWEPT_TOO_BIG = "unswept_too_big"
    REMOVED = "removed"
    FAULT = "fault"  # a failure of ours: the last frozen form, else the client's bytes


class AskOutcome(StrEnum):
    """How an adjudication ended."""

    DROPPED = "dropped"
    KEPT_ALL = "kept_all"
    UNREADABLE = "unreadable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AskLeg:
    """One model call of an adjudication. `usage` is None when the provider did not say: its price is unknown then."""

    name: str  # "prefix_ask" or "fallback"
    usage: Usage | None
    milliseconds: float = 0.0
    answered: bool = True


@dataclass(frozen=True, slots=True)
class AskRow:
    """One adjudication, all its legs summed; `cost_usd` is None when a price or a usage is unknown."""

    thread: str
    asked_at: float  # seconds since the epoch
    model: str
    legs: tuple[str, ...]  # names of the legs that ran, in order
    usage: Usage
    cost_usd: float | None
    milliseconds: float
    offered: int  # candidates in the inventory
    judged_spent: int  # verdicts that drop, refused ones included
    dropped: int  # drops that stood
    outcome: AskOutcome

    def describe(self) -> str:
        """One line: what was judged and what came of it."""
        became = f"{self.dropped} became drops" if self.dropped else "none became a drop"
        return f"{self.offered} asked, {self.judged_spent} judged spent, {became}"

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        return {**asdict(self), "legs": list(self.legs), "outcome": self.outcome.value}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> "AskRow":
        """The row that `to_dict` gave."""
        values = dict(row)
        values["legs"] = tuple(values["legs"])
        values["usage"] = Usage(**values["usage"])
        values["outcome"] = AskOutcome(values["outcome"])
        return cls(**values)


def summed(usages: Iterable[Usage]) -> Usage:
    """Tier by tier."""
    total = Usage()
    for u in usages:
        total = Usage(
            total.fresh + u.fresh,
            total.read + u.read,
            total.write_5m + u.write_5m,
            total.write_1h + u.write_1h,
            total.output + u.output,
        )
    return total


def legs_usd(legs: Iterable[AskLeg], price: Price | None) -> float | None:
    """What all legs cost; None when the price is unknown or a leg was answered without usage."""
    legs = tuple(legs)
    if any(leg.answered and leg.usage is None for leg in legs):
        return None
    return cost_usd(summed(leg.usage for leg in legs if leg.usage is not None), price)


def ask_row(
    thread: str,
    asked_at: float,
    model: str,
    legs: Iterable[AskLeg],
    price: Price | None,
    *,
    offered: int,
    judged_spent: int = 0,
    dropped: int = 0,
    readable: bool = True,
) -> AskRow:
    """The row of an adjudication: every leg that ran counts, a failed one with its milliseconds.

    A leg that was answered without usage leaves the cost unknown; one that failed without usage was not charged as far
    as anybody knows and adds nothing.
    """
    legs = tuple(legs)
    usage = summed(leg.usage for leg in legs if leg.usage is not None)
    if dropped:
        outcome = AskOutcome.DROPPED
    elif not any(leg.answered for leg in legs):
        outcome = AskOutcome.FAILED
    else:
        outcome = AskOutcome.KEPT_ALL if readable else AskOutcome.UNREADABLE
    return AskRow(
        thread=thread,
        asked_at=asked_at,
        model=model,
        legs=tuple(leg.name for leg in legs),
        usage=usage,
        cost_usd=legs_usd(legs, price),
        milliseconds=sum(leg.milliseconds for leg in legs),
        offered=offered,
        judged_spent=judged_spent,
        dropped=dropped,
        outcome=outcome,
    )


@dataclass(frozen=True, slots=True)
class Removed:
    """One removal that was made in this turn, for the report."""

    tool_use_id: str
    block: int
    key: str
    bytes: int  # UTF-8 bytes saved


class Counts(Protocol):
    """A turn's counts in the two families."""

    @property
    def events(self) -> Mapping[Event, int]: ...

    @property
    def declines(self) -> Mapping[Decline, int]: ...

    @property
    def gaps(self) -> Mapping[str, int]: ...


class Legs(Protocol):
    """What a report needs of an adjudication: its legs, and how many candidates it judged."""

    @property
    def legs(self) -> Iterable[Any]: ...

    @property
    def offered(self) -> int: ...

    @property
    def judged_spent(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TurnReport:
    """What was done to one request and why."""

    reason: Reason
    phase: Phase = Phase.UNKNOWN
    removed: tuple[Removed, ...] = ()
    replayed: int = 0
    ask: Mapping[str, Any] | None = None
    events: Mapping[Event, int] = field(default_factory=dict)
    declines: Mapping[Decline, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)  # histogram of all tool outputs, before any filter
    savings: "Savings | None" = None
    gaps: Mapping[str, int] = field(
        default_factory=dict
    )  # the wait before it by its length, or that it begins a conversation
    lifetime: Mapping[str, Any] | None = None  # how long its marks ask for, where that is decided here

    @classmethod
    def of(
        cls,
        reason: Reason,
        *,
        phase: Phase = Phase.UNKNOWN,
        removed: Iterable[Removal] | Mapping[Any, Removal] = (),
        replayed: int = 0,
        asked: Legs | None = None,
        tally: Counts | None = None,
        sizes: Mapping[str, int] | None = None,
        savings: "Savings | None" = None,
    ) -> "TurnReport":
        """A report from what the core holds at the end of a turn."""
        removals = removed.values() if isinstance(removed, Mapping) else removed
        return cls(
            reason=reason,
            phase=phase,
            removed=tuple(_removed(r.identity, r.saved_bytes) for r in removals),
            replayed=replayed,
            ask=_ask(asked) if asked is not None else None,
            events={name: n for name, n in tally.events.items() if n} if tally else {},
            declines={name: n for name, n in tally.declines.items() if n} if tally else {},
            gaps=dict(tally.gaps) if tally else {},
            sizes=dict(sizes or {}),
            savings=savings,
        )

    def after(self, gap: Reason, asked: Legs | None, tally: Counts, *, ask_usd: float | None = 0.0) -> "TurnReport":
        """This report with the idle ask of the gap before it, its counts and what it cost, taken in.

        A turn with nothing to apply has for its reason why the gap brought nothing. `ask_usd` is None when unknown.
        """
        saved = self.savings
        if asked is not None and asked.legs:
            saved = (saved or NOTHING_SAVED).less(ask_usd)
        return replace(
            self,
            reason=gap if self.reason is Reason.NOTHING_JUDGED else self.reason,
            ask=_ask(asked) if asked is not None else self.ask,
            events=Counter(self.events) + Counter(tally.events),
            declines=Counter(self.declines) + Counter(tally.declines),
            savings=saved,
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, as `--report` writes it."""
        report: dict[str, Any] = {
            "reason": self.reason.value,
            "phase": self.phase.value,
            "removed": [asdict(r) for r in self.removed],
            "replayed": self.replayed,
            "ask": dict(self.ask) if self.ask is not None else None,
            "events": {str(name): n for name, n in sorted(self.events.items())},
            "declines": {str(name): n for name, n in sorted(self.declines.items())},
        }
        if self.lifetime is not None:
            report["lifetime"] = dict(self.lifetime)
        if self.sizes:
            report["sizes"] = dict(self.sizes)
        if self.savings is not None:
            report["savings"] = self.savings.to_dict()
        return report


def _removed(identity: Identity, saved_bytes: int) -> Removed:
    return Removed(identity.tool_use_id, identity.block, identity.key, saved_bytes)


def _ask(asked: Legs) -> dict[str, Any]:
    """How an adjudication stands in a report: its legs' tokens summed."""
    legs = tuple(asked.legs)
    usage = summed(leg.usage for leg in legs if leg.usage is not None)
    return {
        "legs": [leg.name for leg in legs],
        "offered": asked.offered,
        "judged_spent": asked.judged_spent,
        "milliseconds": sum(leg.milliseconds for leg in legs),
        "usage": asdict(usage) if any(leg.usage is not None for leg in legs) else None,
    }


@dataclass(frozen=True, slots=True)
class Savings:
    """What one sent body saved, less what it cost; every amount in USD is None as long as the price is unknown."""

    unique_bytes: int = 0  # removed for the first time in this body
    repeat_bytes: int = 0  # replayed
    charged_bytes: int = 0  # expansions and our declaration, carried by this body
    gross_usd: float | None = None
    charged_usd: float | None = None
    net_usd: float | None = None  # the headline

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def less(self, cost_usd: float | None) -> "Savings":
        """These savings with one more cost charged; an unknown one leaves every amount unknown."""
        if cost_usd is None or self.charged_usd is None or self.net_usd is None:
            return Savings(self.unique_bytes, self.repeat_bytes, self.charged_bytes)
        return replace(self, charged_usd=self.charged_usd + cost_usd, net_usd=self.net_usd - cost_usd)


NOTHING_SAVED = Savings(gross_usd=0.0, charged_usd=0.0, net_usd=0.0)


def savings(
    unique: Iterable[Removal],
    repeats: Iterable[Removal],
    *,
    phase: Phase,
    ttl_s: int | None,
    bytes_per_token: float,
    price: Price | None,
    is_marked: bool = False,
    charged_bytes: int = 0,
    ask_usd: float | None = 0.0,
) -> Savings:
    """The savings of a body that was really sent: no turn to come is projected.

    A first removal counts at the rate of its moment: the write rate where the prefix was written anyway, fresh where
    nothing is cached, the read rate at a warm request (the rewrite that it forced shows in the provider's own usage). A
    replay counts at the read rate, or fresh where nothing is cached. Something is cached where there is a lifetime, or
    a mark whose lifetime is not known here (`is_marked`). A replacement that is longer than what it replaced
    is a charge. `ask_usd` is what the asks of this turn cost, None when unknown.
    """
    first = [r.saved_bytes for r in unique]
    again = [r.saved_bytes for r in repeats]
    unique_bytes, repeat_bytes = (sum(n for n in sizes if n > 0) for sizes in (first, again))
    charged_bytes += -sum(n for n in first + again if n < 0)
    if price is None or ask_usd is None:
        return Savings(unique_bytes, repeat_bytes, charged_bytes)
    is_uncached = phase is Phase.UNCACHED or (ttl_s is None and not is_marked)
    repeat_rate = price.fresh if is_uncached else price.read
    unique_rate = price.fresh if is_uncached else price.write(ttl_s)
    if phase not in PREFIX_LOST:
        unique_rate = repeat_rate
    per_byte = 1e-6 / bytes_per_token
    gross = (unique_bytes * unique_rate + repeat_bytes * repeat_rate) * per_byte
    charged = charged_bytes * repeat_rate * per_byte + ask_usd
    return Savings(unique_bytes, repeat_bytes, charged_bytes, gross, charged, gross - charged)


# Upper ends in bytes, about 60, 250, 500, 1,000 ... tokens: the floors that the presets use lie on bounds.
SIZE_BOUNDS = (180, 725, 1450, 2900, 5800, 11600, 29000, 58000, 116000, 290000)
SIZE_NAMES = (*(f"le_{bound}" for bound in SIZE_BOUNDS), "more")


def size_histogram(sizes_bytes: Iterable[int]) -> dict[str, int]:
    """How many tool outputs have at most so many bytes; keys "le_N" and "more", each output in one of them."""
    counts = dict.fromkeys(SIZE_NAMES, 0)
    for size in sizes_bytes:
        counts[SIZE_NAMES[bisect_left(SIZE_BOUNDS, size)]] += 1
    return counts
