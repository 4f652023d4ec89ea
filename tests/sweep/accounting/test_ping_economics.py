"""A ping is a bet: it is made where it is expected to pay, and where its loss is covered."""

from collections import Counter

import pytest
from sweeping import START, encoded, history, sweep_of

from cg.sweep.accounting.ping_economics import MAX_LOSS, billed, count_wait, is_fair, pinged
from cg.sweep.accounting.tally import Tally
from cg.sweep.counters import Decline, Event
from cg.sweep.economics import learnt_chance, ping_cost, ping_worth, units_of
from cg.sweep.history.branches import Continuation, Place
from cg.sweep.values import Branch, Usage

PREFIX = 80_000.0
RICH = {Event.BILLED_UNITS: 1e9}


def place(
    asked_at: float | None = None, standing: Continuation = Continuation.EXTENDS, ttl_s: int | None = 300
) -> Place:
    return Place(standing, Branch("b", b"", b"", b"", START, ttl_s, asked_at), 3, False)


def counted(wait: float, *, asked: bool = False, asks: bool = False, **where) -> Counter:
    tally = Tally()
    at = START if asked else None
    count_wait(tally, place(at, **where), START + wait, 60.0, 1000.0, asks=asks)
    return tally.events


def test_a_ping_costs_its_read_and_one_token() -> None:
    """80,000 tokens at the read price and one of output, in fresh tokens."""
    assert ping_cost(PREFIX) == 8_005.0


def test_a_ping_is_worth_the_rewrite_that_it_saves_less_the_removal_that_it_puts_off() -> None:
    """With nothing to remove P(w - r); with 20,000 tokens, w and fifteen reads of each are given up."""
    assert ping_worth(PREFIX, 0, 300, 0.25) == pytest.approx(0.25 * 80_000 * 1.15)
    assert ping_worth(PREFIX, 20_000, 300, 0.25) == pytest.approx(0.25 * (92_000 - 20_000 * 2.75))


def test_no_ping_keeps_what_a_cold_request_would_be_rid_of() -> None:
    """Where a third of the prefix would go at a cold request, keeping it alive is worth less than letting it die."""
    assert is_fair(PREFIX, 0, RICH)
    assert not is_fair(PREFIX, PREFIX / 3, RICH)


def test_a_person_who_never_comes_back_in_time_is_pinged_no_more() -> None:
    """The recorded chance, 22 %, gives way to a person's own waits: 60 without one that a renewal carries over."""
    assert learnt_chance(0.22, 0, 0) == pytest.approx(0.22)
    assert learnt_chance(0.22, 0, 60) == pytest.approx(0.055)
    assert is_fair(PREFIX, 0, RICH | {Event.WAITED: 20, Event.WAITED_RENEWABLE: 4})
    assert not is_fair(PREFIX, 0, RICH | {Event.WAITED: 60})


def test_pings_lose_no_more_than_their_share_of_the_bill() -> None:
    """One ping more is made as long as all that were lost are covered; what pings brought covers others."""
    price = ping_cost(PREFIX)
    enough = {Event.BILLED_UNITS: 2 * price / MAX_LOSS, Event.PING_UNITS: price}
    assert is_fair(PREFIX, 0, enough)
    assert not is_fair(PREFIX, 0, enough | {Event.PING_UNITS: price + 1})
    assert is_fair(PREFIX, 0, enough | {Event.PING_UNITS: price + 1, Event.PING_GAINED_UNITS: 1})
    assert not is_fair(PREFIX, 0, {})


@pytest.mark.parametrize(
    ("wait", "found"),
    [(239, {}), (240, {Event.WAITED: 1}), (299, {Event.WAITED: 1}), (540, {Event.WAITED: 1})]
    + [(wait, {Event.WAITED: 1, Event.WAITED_RENEWABLE: 1}) for wait in (300, 539)],
)
def test_a_wait_counts_once_it_reaches_the_window(wait: float, found: dict) -> None:
    """And as renewable if it ends behind the lifetime, but within one that was renewed at 240 s."""
    assert counted(wait) == found


def test_a_wait_that_an_ask_or_a_ping_renewed_is_counted_from_its_start() -> None:
    """240 s had gone by when the entry was renewed; a ping's wait was counted then, and what it kept is its gain."""
    assert counted(59, asked=True, asks=True) == {Event.WAITED: 1}
    assert counted(60, asked=True, asks=True) == {Event.WAITED: 1, Event.WAITED_RENEWABLE: 1}
    assert counted(59, asked=True) == {}
    assert counted(60, asked=True) == {Event.WAITED_RENEWABLE: 1, Event.PING_GAINED_UNITS: 1150}
    assert counted(300, asked=True) == {}


@pytest.mark.parametrize("standing", [Continuation.FIRST, Continuation.RETRY, Continuation.OPENS])
def test_only_a_request_that_goes_on_ends_a_wait(standing: Continuation) -> None:
    """A retry, a title call or a rewind says nothing of how long somebody was away; neither does a body without marks."""
    assert counted(400, standing=standing) == {}
    assert counted(400, ttl_s=None) == {}


def test_the_price_of_requests_and_pings_is_kept_in_fresh_tokens() -> None:
    """A unit is one fresh input token; reads, writes and output at their usual ratios."""
    usage = Usage(fresh=10, read=1000, write_5m=100, output=7)
    assert units_of(usage) == 10 + 100 + 125 + 35
    assert billed(usage).events == {Event.BILLED_UNITS: 270}
    assert pinged(usage).events == {Event.PINGED: 1, Event.WAITED: 1, Event.PING_UNITS: 270}


def test_a_session_that_cost_little_is_not_pinged_and_one_that_has_earned_it_is() -> None:
    """Through the driver: the decision is counted, a ping moves the clock, and its gain is booked at the next request."""
    sweep = sweep_of(preset="cold")
    sweep.process(encoded(history(3)), "t", START)
    (branch,) = sweep.state("t").branches
    assert not sweep.is_ping_fair("t", branch)
    assert sweep.totals()["declines"][Decline.PING_NOT_REPAID] == 1
    sweep.note("another thread", billed(Usage(fresh=10**7)))
    assert sweep.is_ping_fair("t", branch)
    renewed = sweep.renew("t", branch, START + 240, Usage(read=4000, output=1))
    assert renewed is not None and sweep.state("t").branches == (renewed,)
    assert renewed.clock == START + 240
    sweep.process(encoded(history(4)), "t", START + 400)
    events = sweep.totals()["events"]
    assert events[Event.PINGED] == events[Event.WAITED] == events[Event.WAITED_RENEWABLE] == 1
    assert events[Event.PING_UNITS] == 405
    assert events[Event.PING_GAINED_UNITS] > 4000


def test_a_ping_that_read_nothing_is_paid_for_and_renews_nothing() -> None:
    """The entry was gone: the price counts as lost, the clock stays."""
    sweep = sweep_of(preset="cold")
    sweep.process(encoded(history(3)), "t", START)
    (branch,) = sweep.state("t").branches
    assert sweep.renew("t", branch, START + 240, Usage(write_5m=4000, output=1)) is None
    assert sweep.state("t").branches == (branch,)
    assert sweep.totals()["events"][Event.PING_UNITS] == 5005
