"""When a removal or an ask pays: pure arithmetic in units of one fresh input token of the request's model."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cg.sweep.prices import ONE_HOUR_S, Price, cost_usd
from cg.sweep.values import Usage

RELATIVE = Price.of(1.0)  # the usual ratios: output 5, read 0.1, write 1.25 (five minutes) and 2 (one hour)
TURNS_LEFT = 15.0  # requests before the next cold or broken one, until it is learnt
COLD_5M, COLD_1H = 0.82, 0.99  # P(the wait ends cold | it reached ttl - window), on 502 recorded sessions

# Share of waits that reach ttl - window in which one renewal keeps the entry alive until the next request. At five
# minutes measured on recorded sessions: 22 % if every log's end counts as a wait that never resumes. At one hour no
# keep-alive read was repaid, so none is assumed.
RENEWAL_5M, RENEWAL_1H = 0.22, 0.0

START_BYTES_PER_TOKEN = 2.9  # measured on prompt growth across 553 outputs: quartiles 2.67 and 3.04, median 2.89
MIN_RATIO, MAX_RATIO = 0.5, 20.0  # outside, a usage belongs to another body or counts images: not believed
LEARNING_RATE = 0.3  # share of a new observation: follows a change of model in a few requests, smooths the rest


def learn_ratio(before: float | None, sent_bytes: int, usage: Usage) -> float | None:
    """Bytes per token after one more usage; unchanged when the usage is empty or not believable."""
    tokens = usage.fresh + usage.read + usage.write_5m + usage.write_1h
    if tokens <= 0 or sent_bytes <= 0:
        return before
    seen = sent_bytes / tokens
    if not MIN_RATIO <= seen <= MAX_RATIO:
        return before
    return seen if before is None else before + LEARNING_RATE * (seen - before)


def p_cold(ttl_s: int) -> float:
    """Chance that a wait which reached ttl - window ends cold."""
    return COLD_1H if ttl_s >= ONE_HOUR_S else COLD_5M


def units_of(usage: Usage) -> float:
    """A call's price in fresh input tokens of its own model, at the usual ratios of the tiers."""
    return 1e6 * (cost_usd(usage, RELATIVE) or 0.0)


def net_worth(removed: float, behind: float, ttl_s: int, turns: float = TURNS_LEFT, price: Price = RELATIVE) -> float:
    """What removing at a warm request is worth: the reads saved less the rewrite forced, S·T·r - (w - r)·W.

    `removed` S tokens, `behind` W cached tokens behind the first removed one less S, `turns` T with this one. Removing
    nothing is worth nothing and never more.
    """
    return removed * turns * price.read - (price.write(ttl_s) - price.read) * max(behind, 0.0)


def repaid(removed: float, turns: float, behind: float, ttl_s: int, price: Price = RELATIVE) -> bool:
    """A removal at a warm request pays its rewrite back: S·T·r >= (w - r)·W, and there is something to remove."""
    return removed > 0 and net_worth(removed, behind, ttl_s, turns, price) >= 0


def turns_needed(
    removed: float,
    behind: float,
    ttl_s: int,
    *,
    ask: float = 0.0,
    accepted: float = 1.0,
    price: Price = RELATIVE,
) -> int | None:
    """Requests after which a warm removal, with the ask that authorised it, is paid back; None: never.

    `ask` is the ask's cost (fresh tokens), `accepted` the share of `removed` that is expected to go.
    """
    gain = removed * accepted * price.read
    if gain <= 0:
        return None
    cost = (price.write(ttl_s) - price.read) * max(behind, 0.0) + ask * price.fresh
    needed = cost / gain
    if math.isinf(needed):
        return None
    return math.ceil(needed - 1e-9)  # exact multiples must not be pushed up by rounding


def turns_left(window_tokens: int | None, request: float, turns_so_far: int, removed: float = 0.0) -> int | None:
    """Requests until the window is full, at the growth seen so far, counted from the size after the removal.

    Only tokens that really leave may stand in `removed`: a bonus there would invent turns. None: the window is unknown.
    """
    if window_tokens is None:
        return None
    after = max(request - math.floor(removed), 1.0)
    if turns_so_far <= 0 or request <= 0 or after >= window_tokens:
        return 0
    growth = request // turns_so_far
    return int((window_tokens - after) // growth) if growth else 0


def saving_when_free(removed: float, turns: float, ttl_s: int | None, price: Price = RELATIVE) -> float:
    """What removing at a cold or broken request saves: w·S at once, which is not written, and r·S·T after.

    `ttl_s` None: nothing is cached, and every one of the requests pays fresh.
    """
    if ttl_s is None:
        return removed * price.fresh * max(turns, 1.0)
    return removed * (price.write(ttl_s) + price.read * turns)


CHANCE_STRENGTH = 20.0  # waits of one's own that weigh as much as the recorded ones; twelve projects did not differ


def learnt_chance(prior: float, came: float, of: float, strength: float = CHANCE_STRENGTH) -> float:
    """A chance after `came` in `of` own trials, drawn towards the `prior` with the weight of `strength` trials."""
    return (strength * prior + came) / (strength + of)


def ping_cost(prefix: float, price: Price = RELATIVE) -> float:
    """What it costs to send a body again for one token of reply, its prefix being cached."""
    return prefix * price.read + price.output


def ping_worth(
    prefix: float, removable: float, ttl_s: int, chance: float, turns: float = TURNS_LEFT, price: Price = RELATIVE
) -> float:
    """What a ping is expected to be worth: with the `chance` the next request reads `prefix` instead of writing it.

    It then keeps the `removable` tokens too, which a cold request would have been rid of for nothing: that is given up.
    """
    return chance * (prefix * (price.write(ttl_s) - price.read) - saving_when_free(removable, turns, ttl_s, price))


def ask_cost(prefix: float, fresh: float, reply: float, price: Price = RELATIVE) -> float:
    """What an ask costs: it reads the prefix, pays the question and the tail behind the last breakpoint fresh, and the
    reply as output. All in tokens."""
    return prefix * price.read + fresh * price.fresh + reply * price.output


def ask_worth(
    removed: float,
    ttl_s: int,
    *,
    prefix: float = 0.0,
    turns: float = TURNS_LEFT,
    cold: float | None = None,
    rescued_by_renewal: float | None = None,
    price: Price = RELATIVE,
) -> float:
    """What an idle ask is expected to be worth.

    `removed` tokens are expected to be dropped. With the chance `cold` the wait would end cold without the ask. The ask
    reads the prefix, which renews its entry: in the share `rescued_by_renewal` of all waits the next request comes
    within the renewed lifetime and reads `prefix` instead of writing it; in the rest the removal is free when it comes.
    """
    cold = p_cold(ttl_s) if cold is None else cold
    if rescued_by_renewal is None:
        rescued_by_renewal = RENEWAL_1H if ttl_s >= ONE_HOUR_S else RENEWAL_5M
    rescued = min(rescued_by_renewal, cold)
    renewal = rescued * prefix * (price.write(ttl_s) - price.read)
    return renewal + (cold - rescued) * saving_when_free(removed, turns, ttl_s, price)


@dataclass(frozen=True, slots=True)
class Booking:
    """What one ask offered and what really left the wire because of it, in tokens."""

    offered: float
    removed: float
    inventory: int


@dataclass(frozen=True, slots=True)
class ReplyLength:
    """How long an ask's reply was: output tokens, thinking included, for so many offered outputs."""

    verdicts: int
    output: int


VERDICT_TOKENS = 20.0  # a label, a letter, and seldom a quote: what the question asks for, until a reply was seen
PRIOR_VERDICTS = 4.0  # weight of that prior: a third of a full ask, so that the first reply already decides
REPLIES_LOOKED_AT = 8  # the newest; a model that is told to think longer, or a new prompt, shows within a few asks
MIN_VERDICT_TOKENS, MAX_VERDICT_TOKENS = 10.0, 2000.0  # no readable verdict is shorter; past it one reply says little


def verdict_tokens(replies: Sequence[ReplyLength]) -> float:
    """Output tokens that a verdict may be expected to take, between 10 and 2,000, from past replies, oldest first.

    The mean over all verdicts of the newest eight replies, drawn towards 20. A reply without a usage says nothing.
    """
    seen = [r for r in replies if r.verdicts > 0 and r.output > 0][-REPLIES_LOOKED_AT:]
    output, verdicts = sum(r.output for r in seen), sum(r.verdicts for r in seen)
    learnt = (output + VERDICT_TOKENS * PRIOR_VERDICTS) / (verdicts + PRIOR_VERDICTS)
    return min(MAX_VERDICT_TOKENS, max(MIN_VERDICT_TOKENS, learnt))


SHRINKAGE_TOKENS = 1_000_000.0  # weight of the prior: a few thin asks must not decide for good
MIN_ACCEPTED = 0.05


def accepted_share(bookings: Iterable[Booking], inventory: int) -> float:
    """Share of the offered tokens that an ask of this many candidates may expect to remove, between 0.05 and 1.

    Three groups by inventory (below 7, 7 to 9, 10 and more) since small asks keep more; each is drawn towards the
    pooled share, and that towards 1.
    """
    booked = [b for b in bookings if b.offered > 0]
    alike = [b for b in booked if _group(b.inventory) == _group(inventory)]
    pooled = _shrunk(booked, 1.0)
    return min(1.0, max(MIN_ACCEPTED, _shrunk(alike, pooled)))


def _shrunk(bookings: list[Booking], prior: float) -> float:
    offered, removed = sum(b.offered for b in bookings), sum(b.removed for b in bookings)
    return (removed + SHRINKAGE_TOKENS * prior) / (offered + SHRINKAGE_TOKENS)


def _group(inventory: int) -> int:
    return (inventory >= 7) + (inventory >= 10)
