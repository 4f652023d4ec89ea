"""What is learnt of waits: counts by length, validated where they come back from a store, mixed by what is nearer."""

import math

import pytest

from cg.sweep.counters import Event
from cg.sweep.planning.gaps import (
    BOUNDS_S,
    CONVERSATIONS,
    NAMES,
    NOBODY,
    PERSON,
    PRIOR_WAITS,
    PROGRAM,
    Client,
    Gaps,
    Habits,
    Stake,
    bin_of,
)


def gaps(conversations: float = 0, **waits: float) -> Gaps:
    return Gaps.of({CONVERSATIONS: conversations, **waits})


@pytest.mark.parametrize("wait", [0, 59.9, -5, math.nan, math.inf])
def test_a_wait_that_loses_nothing_or_is_none_is_not_counted(wait: float) -> None:
    """Below a minute, before the request, or no number."""
    assert bin_of(wait) is None


@pytest.mark.parametrize("bound", BOUNDS_S)
def test_a_wait_is_counted_under_the_largest_bound_that_it_reaches(bound: int) -> None:
    """From the bound itself on."""
    assert bin_of(bound) == f"from_{bound}"
    assert bin_of(bound - 0.001) != f"from_{bound}"


def test_a_chance_counts_the_last_wait_of_each_conversation() -> None:
    """Which never ends: two of three long waits ended within the hour, and one conversation was left."""
    seen = gaps(1, from_300=1, from_1800=1)
    assert seen.chance(300, 3600) == pytest.approx(2 / 3)
    assert seen.outlasting(300) == 3 and Gaps().chance(300, 3600) == 0


def test_waits_of_a_bin_lie_evenly_in_it() -> None:
    """Also where a bound cuts it, and in the open one all are as long as asked for."""
    seen = gaps(from_240=4, from_86400=2)
    assert seen.between(270, 300) == pytest.approx(2)
    assert seen.between(0) == 6 and seen.between(10**6) == 2


@pytest.mark.parametrize("hostile", [-1, math.nan, math.inf, 1e16, "7", None, True, [1]])
def test_what_is_no_count_is_passed_over(hostile: object) -> None:
    """A store that was written by another hand teaches nothing."""
    assert Gaps.of({NAMES[0]: hostile, CONVERSATIONS: hostile}) == Gaps()  # type: ignore[dict-item]


def test_a_stake_is_what_a_stores_totals_say() -> None:
    """And nothing where they say nothing that can be true."""
    events = {Event.BILLED_UNITS: 100.0, Event.LIFETIME_COST_UNITS: 7.0, Event.LIFETIME_GAINED_UNITS: 9.0}
    assert Stake.of(events) == Stake(100.0, -2.0)
    assert Stake.of(dict.fromkeys(events, math.inf)) == Stake.of({}) == Stake()


def test_counts_are_what_a_store_gives_back() -> None:
    """All of them, by name."""
    assert Gaps.of(PERSON.counts()) == PERSON


def test_nobody_known_is_reckoned_with_by_recorded_waits() -> None:
    """People's, or a program's, which goes nowhere."""
    recorded = PERSON.chance(300, 3600)
    assert Habits().expected(NOBODY).chance(300, 3600) == pytest.approx(recorded)
    assert Habits().expected(Client(is_person=False)).chance(300, 3600) == PROGRAM.chance(300, 3600) == 0


def test_a_users_own_waits_prevail_over_recorded_ones() -> None:
    """At twenty long waits both weigh the same."""
    own = gaps(0, from_7200=PRIOR_WAITS)  # never within the hour
    mixed = Habits(user=own).expected(NOBODY).chance(300, 3600)
    assert mixed == pytest.approx(PERSON.chance(300, 3600) / 2)


def test_a_conversations_waits_count_once_and_weigh_more() -> None:
    """They are among the user's, and are taken out there."""
    thread = gaps(1, from_600=3)
    habits = Habits(user=thread, thread=thread)
    recorded = PERSON.chance(300, 3600)
    assert habits.known(NOBODY).chance(300, 3600) == pytest.approx(recorded)
    assert habits.expected(NOBODY).chance(300, 3600) == pytest.approx((3 * recorded + 3) / 6)
