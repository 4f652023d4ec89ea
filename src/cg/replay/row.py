"""What one policy cost on one session, and on all of them."""

from dataclasses import dataclass, field, fields
from typing import Any

from cg.sweep.economics import units_of
from cg.sweep.prices import Price, cost_usd
from cg.sweep.values import Usage

TIERS = ("fresh", "read", "write_5m", "write_1h", "output")


@dataclass(slots=True)
class Bill:
    """Calls of one kind: how many, their tokens, their price. `usd` is None once a price in it was unknown."""

    calls: int = 0
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TIERS, 0))
    units: float = 0.0
    usd: float | None = 0.0

    def add(self, usage: Usage, price: Price | None) -> None:
        self.calls += 1
        for tier in TIERS:
            self.tokens[tier] += getattr(usage, tier)
        self.units += units_of(usage)
        self.usd = plus(self.usd, cost_usd(usage, price))

    def include(self, other: "Bill") -> None:
        self.calls += other.calls
        for tier in TIERS:
            self.tokens[tier] += other.tokens[tier]
        self.units += other.units
        self.usd = plus(self.usd, other.usd)


def plus(a: float | None, b: float | None) -> float | None:
    """A sum in which what is unknown stays unknown."""
    return None if a is None or b is None else a + b


def less(a: float | None, b: float | None) -> float | None:
    """A difference in which what is unknown stays unknown."""
    return None if a is None or b is None else a - b


KINDS = ("request", "ask", "ping", "expansion")


@dataclass(slots=True)
class Saved:
    """What something saved; `usd` is None once a price in it was unknown."""

    units: float = 0.0
    usd: float | None = 0.0

    def include(self, units: float, usd: float | None) -> None:
        self.units += units
        self.usd = plus(self.usd, usd)

    def beside(self, units: float, usd: float | None) -> "Saved":
        """What is left of it when this much is taken out."""
        return Saved(self.units - units, less(self.usd, usd))


@dataclass(frozen=True, slots=True)
class Split:
    """Where a policy's saving on its requests comes from: the three less its own calls are its net."""

    removal: Saved  # outputs that requests no longer carry, less what declaring a tool and markers cost
    alive: Saved  # entries that pings and asks kept
    lifetime: Saved  # another lifetime than the client's: as asked for without any removal, or as the sweep wrote it


@dataclass(slots=True)
class Row:
    """One policy on one session: all of its calls, and what became of the outputs."""

    bills: dict[str, Bill] = field(default_factory=lambda: {kind: Bill() for kind in KINDS})
    after_end: Bill = field(default_factory=Bill)  # asks and pings in a wait behind the last request that never ends
    removals: int = 0
    removed_tokens: float = 0.0
    used_later: int = 0  # removed outputs that the rest of the session used, brought back or not
    live: int = 0  # outputs that were up for a decision and were used after it
    live_kept: int = 0
    unsure: int = 0
    unsure_kept: int = 0
    spent: int = 0
    spent_dropped: int = 0
    rescued: int = 0
    expansions: int = 0  # outputs brought back
    prefix_breaks: int = 0
    cold_requests: int = 0  # requests after a wait as long as the lifetime, by the recording's clock
    cold_excess: float = 0.0  # units: what such requests wrote again, above what reading it would have cost
    lifetime: Saved = field(default_factory=Saved)  # by lifetimes that the sweep wrote in place of the client's own
    alive: Saved = field(default_factory=Saved)  # by reads that without a renewal would have been writes

    @property
    def total(self) -> Bill:
        """All that was paid inside the recording."""
        total = Bill()
        for bill in self.bills.values():
            total.include(bill)
        return total

    def include(self, other: "Row") -> None:
        """Add another session's row of the same policy."""
        for kind in KINDS:
            self.bills[kind].include(other.bills[kind])
        self.after_end.include(other.after_end)
        for each in fields(self):
            if each.name not in ("bills", "after_end", "alive", "lifetime"):
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        self.alive.include(other.alive.units, other.alive.usd)
        self.lifetime.include(other.lifetime.units, other.lifetime.usd)

    def split(self, none: "Row", untouched: "Row | None" = None) -> Split:
        """The saving against `none`, by where it comes from; `untouched` is doing nothing at this row's own lifetime."""
        base, plain, own = none.total, (untouched or none).total, self.bills["request"]
        lifetime = Saved(base.units - plain.units, less(base.usd, plain.usd))
        lifetime.include(self.lifetime.units, self.lifetime.usd)
        gross = Saved(plain.units - own.units, less(plain.usd, own.usd))
        gross = gross.beside(self.lifetime.units, self.lifetime.usd)
        return Split(gross.beside(self.alive.units, self.alive.usd), self.alive, lifetime)

    def to_dict(self, none: "Row | None", untouched: "Row | None" = None) -> dict[str, Any]:
        """The row as plain values; `none` is the untouched session's, against which the net stands, and `untouched` the
        same at this row's lifetime, where that is another."""
        total, base = self.total, none.total if none else None
        asks, pings, expansions = (self.bills[kind] for kind in KINDS[1:])
        split = self.split(none, untouched) if none else None
        return {
            "usd": total.usd,
            "net_usd": less(base.usd, total.usd) if base else None,
            "units": round(total.units, 1),
            "net_units": round(base.units - total.units, 1) if base else None,
            "saved_removal_usd": split.removal.usd if split else None,
            "saved_removal_units": round(split.removal.units, 1) if split else None,
            "saved_alive_usd": split.alive.usd if split else None,
            "saved_alive_units": round(split.alive.units, 1) if split else None,
            "saved_lifetime_usd": split.lifetime.usd if split else None,
            "saved_lifetime_units": round(split.lifetime.units, 1) if split else None,
            "tokens": total.tokens,
            "asks": asks.calls,
            "ask_usd": asks.usd,
            "ask_units": round(asks.units, 1),
            "pings": pings.calls,
            "ping_usd": pings.usd,
            "ping_units": round(pings.units, 1),
            "removals": self.removals,
            "removed_tokens": round(self.removed_tokens),
            "used_later": self.used_later,
            "live": self.live,
            "live_kept": self.live_kept,
            "unsure": self.unsure,
            "unsure_kept": self.unsure_kept,
            "spent": self.spent,
            "spent_dropped": self.spent_dropped,
            "rescued": self.rescued,
            "expansions": self.expansions,
            "expansion_usd": expansions.usd,
            "expansion_units": round(expansions.units, 1),
            "prefix_breaks": self.prefix_breaks,
            "cold_requests": self.cold_requests,
            "cold_excess_units": round(self.cold_excess, 1),
            "after_end_usd": self.after_end.usd,
            "after_end_units": round(self.after_end.units, 1),
        }
