"""One policy's figures as all outputs of a replay show them."""

from collections.abc import Mapping
from dataclasses import dataclass

from cg.replay.policies import NONE
from cg.replay.row import Row, less, plus
from cg.replay.settings import PLAN

Key = tuple[str, str]  # policy, lifetime
CLIENT = "client"  # the lifetime that the client asked for, as recorded or as --ttl says
UNTOUCHED = (NONE.name, CLIENT)


@dataclass(frozen=True, slots=True)
class Figures:
    """A policy at a lifetime. Dollars are None where no price is known; units are fresh input tokens of the model."""

    policy: str
    lifetime: str  # client, 5m, 1h, plan
    usd: float | None
    saved_usd: float | None  # against doing nothing at the client's lifetime
    units: float
    saved_units: float
    change: float | None  # of the bill, a share: -0.05 is five percent cheaper
    removal_usd: float | None  # of the saving: outputs that were taken out
    alive_usd: float | None  # entries that pings and asks kept alive
    lifetime_usd: float | None  # the other lifetime
    spent_usd: float | None  # on asks, pings and bringing back, which the three above do not have in them
    asks: int
    pings: int
    removals: int
    removed_tokens: int
    used_later: int  # removed outputs that the rest of the session used again
    expansions: int
    expansions_usd: float | None
    live: int
    live_kept: int
    spent: int
    spent_dropped: int
    rescued: int
    prefix_breaks: int
    cold_requests: int
    cold_excess: float  # units that cold requests wrote again, above what reading would have cost
    recovered: float | None  # share of that excess which doing nothing has and this policy has not


def plain_of(lifetime: str) -> Key:
    """Doing nothing as a row at this lifetime is split by: a plan's rows have measured what their lifetimes saved."""
    return UNTOUCHED if lifetime == PLAN else (NONE.name, lifetime)


def figures(key: Key, rows: Mapping[Key, Row], priced: Mapping[Key, Row] | None = None) -> Figures:
    """The figures of rows that were summed over the same sessions; `priced` holds the sums of those with dollars."""
    policy, lifetime = key
    untouched, plain = UNTOUCHED, plain_of(lifetime)
    row, none = rows[key], rows[untouched]
    money = priced if priced is not None else rows
    usd = saved = removal = alive = other = spent = expansions = None
    if key in money:
        paid = money[key]
        split = paid.split(money[untouched], money[plain])
        usd, removal, alive, other = paid.total.usd, split.removal.usd, split.alive.usd, split.lifetime.usd
        saved = less(money[untouched].total.usd, usd)
        expansions = paid.bills["expansion"].usd
        spent = plus(plus(paid.bills["ask"].usd, paid.bills["ping"].usd), expansions)
    units, base = row.total.units, none.total.units
    return Figures(
        policy,
        lifetime,
        usd,
        saved,
        units,
        base - units,
        (units - base) / base if base else None,
        removal,
        alive,
        other,
        spent,
        asks=row.bills["ask"].calls,
        pings=row.bills["ping"].calls,
        removals=row.removals,
        removed_tokens=round(row.removed_tokens),
        used_later=row.used_later,
        expansions=row.expansions,
        expansions_usd=expansions,
        live=row.live,
        live_kept=row.live_kept,
        spent=row.spent,
        spent_dropped=row.spent_dropped,
        rescued=row.rescued,
        prefix_breaks=row.prefix_breaks,
        cold_requests=row.cold_requests,
        cold_excess=row.cold_excess,
        recovered=1 - row.cold_excess / none.cold_excess if none.cold_excess else None,
    )
