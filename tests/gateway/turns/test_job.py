"""The watch over one request: its own work has the budget, a queue that moves has longer, a standstill has not."""

from cg.gateway.turns.job import QUEUE_BUDGETS, Activity, JobClock

BUDGET_S = 2.0


class Ticks:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_own_work_has_the_budget_however_long_it_waited_before() -> None:
    """Nothing that others took is charged to it."""
    ticks = Ticks()
    watch = JobClock(ticks)
    ticks.at = 15.0
    watch.enter(Activity.WORKING)
    ticks.at += 1.5
    assert watch.left_s(BUDGET_S, 0.0) == 0.5
    ticks.at += 0.5
    assert watch.left_s(BUDGET_S, ticks.at) <= 0


def test_own_work_is_added_up_over_its_spells() -> None:
    """What was worked before a wait counts after it; the model's time never does."""
    ticks = Ticks()
    watch = JobClock(ticks)
    for spell, seconds in (
        (Activity.WORKING, 0.5),
        (Activity.WAITING, 3.0),
        (Activity.WORKING, 0.25),
        (Activity.ASKING, 60.0),
    ):
        watch.enter(spell)
        ticks.at += seconds
        assert watch.left_s(BUDGET_S, ticks.at - 1.0) > 0
    watch.enter(Activity.WORKING)
    assert watch.left_s(BUDGET_S, 0.0) == 1.25
    assert watch.spent_s() == 3.75


def test_a_queue_that_moves_is_waited_for_and_a_standstill_is_not() -> None:
    """It has a budget's time from the last request that was done."""
    ticks = Ticks()
    watch = JobClock(ticks)
    ticks.at = 7.0
    assert watch.left_s(BUDGET_S, 6.0) == 1.0
    assert watch.left_s(BUDGET_S, 5.0) <= 0
    late = JobClock(ticks)  # one that has just come has that time too, whatever was before
    assert late.left_s(BUDGET_S, 0.0) == BUDGET_S


def test_patience_ends_also_in_a_queue_that_moves() -> None:
    """The client gets its answer at last, in the last form that is known."""
    ticks = Ticks()
    watch = JobClock(ticks)
    ticks.at = QUEUE_BUDGETS * BUDGET_S - 0.5
    assert watch.left_s(BUDGET_S, ticks.at) == 0.5
    ticks.at += 0.5
    assert watch.left_s(BUDGET_S, ticks.at) <= 0
