"""The chance to resume: a prior from recorded sessions, one's own waits, and forecasts that come true as often as they say."""

import random

import pytest
from recordings import RECORDINGS
from studies.wait_forecast import (
    ALL_WAITS,
    COLD_STRENGTH,
    WAITED,
    Habits,
    calibration,
    forecasts,
    waited,
    waits_of,
    wilson,
)

from cg.replay.sessions import open_sessions
from cg.sweep.economics import COLD_1H, COLD_5M, TURNS_LEFT

AGES = [(60.0, 30.0), (120.0, 60.0), (300.0, 15.0), (300.0, 60.0), (600.0, 240.0), (3600.0, 240.0)]


def test_the_prior_is_the_economics_own() -> None:
    """Someone of whom nothing is known gets what recorded sessions say."""
    nobody = Habits()
    assert nobody.p_cold(300) == pytest.approx(COLD_5M, abs=0.01)
    assert nobody.p_cold(3600) == pytest.approx(COLD_1H, abs=0.001)
    assert nobody.turns_left(300) == TURNS_LEFT


def test_recorded_waits_fall_with_age_and_meet_every_count() -> None:
    """The curve goes through its points and never rises."""
    for age, count in WAITED:
        assert waited(age) == pytest.approx(count / ALL_WAITS)
    curve = [waited(age / 4) for age in range(0, 400_000, 7)]
    assert curve == sorted(curve, reverse=True) and curve[0] == 1.0 and curve[-1] > 0


def test_one_s_own_waits_weigh_more_the_more_there_are() -> None:
    """Beta-binomial: after as many as the prior's strength both weigh the same."""
    habits = Habits()
    prior = habits.p_cold(300)
    for _ in range(20):
        habits.wait(250.0)
    assert habits.p_cold(300) == pytest.approx(prior / 2)
    for _ in range(2000):
        habits.wait(250.0)
    assert habits.p_cold(300) < 0.01


def test_waits_that_say_nothing_about_an_age_change_nothing() -> None:
    """Only a wait that reached ttl - window bears on what happens past it."""
    assert Habits([5.0] * 100 + [239.9]).p_cold(300) == Habits().p_cold(300)


def test_no_wait_is_ever_sure_to_end_cold() -> None:
    """Nor is a chance past 0.99 worth anything."""
    assert Habits([4000.0] * 100_000).p_cold(300) == COLD_1H


def test_requests_left_follow_how_often_the_prefix_is_lost() -> None:
    """A gamma-Poisson mean: cold waits and compactions are losses."""
    habits = Habits([10.0] * 970)
    assert habits.turns_left(300) == pytest.approx((2 * 15 + 970) / 2)
    for _ in range(18):
        habits.wait(400.0)
    habits.broke()
    assert habits.turns_left(300) == pytest.approx((30 + 989) / (2 + 19))
    assert habits.turns_left(3600) > habits.turns_left(300)


@pytest.mark.parametrize("window", [0.0, -1.0, 301.0])
def test_a_window_that_cannot_be_is_refused(window: float) -> None:
    with pytest.raises(ValueError, match="window"):
        Habits().p_cold(300, window)


def person(rng: random.Random, waits: int, ttl_s: float, window_s: float) -> list[float]:
    """Someone's waits that reached ttl - window: their own odds are drawn around the recorded ones, as the prior says."""
    p = waited(ttl_s) / waited(ttl_s - window_s)
    odds = rng.betavariate(COLD_STRENGTH * p, COLD_STRENGTH * (1 - p))
    return [ttl_s + 1 if rng.random() < odds else ttl_s - window_s / 2 for _ in range(waits)]


def people(count: int) -> list[tuple[float, bool]]:
    rng = random.Random(11)
    made = []
    for age in AGES:
        made += forecasts((person(rng, 60, *age) for _ in range(count)), [age])
    return made


def test_forecasts_come_true_as_often_as_they_say() -> None:
    """By decile, with people who differ as much as the prior says that people do."""
    table = calibration(people(30))
    assert len(table) == 10 and sum(b.n for b in table) > 10_000
    for b in table:  # forecasts of one person are not independent: the interval is that of fewer
        low, high = wilson(round(b.observed * b.n / 10), b.n // 10, z=3.0)
        assert low <= b.predicted <= high, b
        assert abs(b.observed - b.predicted) < 0.05, b
    assert table[-1].observed - table[0].observed > 0.3


def test_wrong_forecasts_are_seen_to_be_wrong() -> None:
    """A calibration that could not fail would say nothing."""
    flat = [(0.99, cold) for _, cold in people(5)]
    assert any(not b.low <= b.predicted <= b.high for b in calibration(flat))


def test_a_foretold_chance_uses_nothing_that_came_later() -> None:
    """The forecast at a wait is the same whatever follows it."""
    waits = [250.0, 400.0, 20.0, 280.0]
    one = list(forecasts([waits], [(300.0, 60.0)]))
    two = list(forecasts([[*waits, 5000.0]], [(300.0, 60.0)]))
    assert len(one) == 3 and two[:3] == one


def test_waits_of_a_recording_are_those_of_its_times() -> None:
    """A history that opens anew has no wait before it."""
    path = next(p for p in RECORDINGS if p.stem == "entire-long-155")
    [session] = open_sessions(path)
    waits = list(waits_of(session.steps()))
    assert waits.count(None) == 1 and len(waits) == session.requests - 1
    known = [w for w in waits if w is not None]
    assert sum(w >= 300 for w in known) == 12 and sum(w >= 3600 for w in known) == 3


def test_the_interval_of_a_share_holds_it() -> None:
    """Wilson's interval at textbook values."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
