"""Keeping a five-minute entry alive while its client is idle: what a wait was good for, and when a ping is a fair bet.

All that is learnt are counts in the totals of a store, over all of its threads: how many waits outlasted the lifetime less
the window, how many of them one renewal carries over, and what requests and pings have cost and brought, in units of one
fresh input token.
"""

from collections.abc import Mapping

from cg.sweep.accounting.tally import Tally
from cg.sweep.counters import Event
from cg.sweep.economics import RELATIVE, RENEWAL_5M, learnt_chance, ping_cost, ping_worth, units_of
from cg.sweep.history.branches import Continuation, Place
from cg.sweep.values import Usage

PING_TTL_S = 300  # a one-hour entry is renewed by no ping: it was never repaid on recorded sessions

# What pings may have lost at any time, as a share of all that requests have cost: whoever never comes back, or comes just
# before the entry dies, has lost no more than this by them. With what the declared tool costs in a short session (0.2 %
# measured) the rule that asks nobody stays within one per cent of doing nothing.
MAX_LOSS = 0.0075


def billed(usage: Usage) -> Tally:
    """What a request cost: the stake that pings may be paid from grows with it."""
    tally = Tally()
    tally.event(Event.BILLED_UNITS, round(units_of(usage)))
    return tally


def pinged(usage: Usage) -> Tally:
    """A ping and its price. Its wait counts from here on, since it may never end."""
    tally = Tally()
    tally.event(Event.PINGED)
    tally.event(Event.WAITED)
    tally.event(Event.PING_UNITS, round(units_of(usage)))
    return tally


def count_wait(tally: Tally, where: Place, now: float, window_s: float, prefix: float, *, asks: bool) -> None:
    """Note the wait that a request ends, if it reached the lifetime less the window.

    `prefix` tokens are what the branch sent before. Where the branch was renewed in this wait (by an ask if it `asks`, else
    by a ping, which was counted then), it had waited to that moment already.
    """
    branch = where.branch
    if branch is None or where.standing is not Continuation.EXTENDS or branch.ttl_s is None:
        return
    reached = PING_TTL_S - window_s
    is_renewed = branch.asked_at == branch.clock
    wait = now - branch.clock + (branch.ttl_s - window_s if is_renewed else 0.0)
    if wait < reached:
        return
    is_pinged = is_renewed and not asks
    tally.event(Event.WAITED, int(not is_pinged))
    if PING_TTL_S <= wait < PING_TTL_S + reached:
        tally.event(Event.WAITED_RENEWABLE)
        if is_pinged:
            tally.event(Event.PING_GAINED_UNITS, round(prefix * (RELATIVE.write(PING_TTL_S) - RELATIVE.read)))


def is_covered(prefix: float, events: Mapping[str, float]) -> bool:
    """Whether one more lost ping over `prefix` tokens, with the pings so far less what they brought, is within bounds."""
    lost = events.get(Event.PING_UNITS, 0) - events.get(Event.PING_GAINED_UNITS, 0)
    return lost + ping_cost(prefix) <= MAX_LOSS * events.get(Event.BILLED_UNITS, 0)


def is_fair(prefix: float, removable: float, events: Mapping[str, float]) -> bool:
    """Whether a ping over `prefix` tokens, of which `removable` would go at a cold request, should be made.

    Its expected worth, by the waits counted in `events`, covers its price, and its loss is covered.
    """
    chance = learnt_chance(RENEWAL_5M, events.get(Event.WAITED_RENEWABLE, 0), events.get(Event.WAITED, 0))
    is_paying = ping_worth(prefix, removable, PING_TTL_S, chance) >= ping_cost(prefix)
    return is_paying and is_covered(prefix, events)
