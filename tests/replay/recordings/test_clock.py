"""Requests stand on one clock, whatever the recorder's clock did."""

from dataclasses import replace

import pytest

from cg.replay.recordings.clock import steady
from cg.replay.recordings.conversation import SPACING_S
from cg.replay.recordings.recording import Step

NOON = 1_800_000_000.0
HOUR = 3600.0


def waits(*times: float) -> list[float]:
    """Seconds between the requests of a session that were logged at these times."""
    step = Step(0, 0.0, None, "m", False, (), b"", None)
    steps = [replace(step, index=n, at=NOON + at, answered_at=NOON + at + 2) for n, at in enumerate(times)]
    found = list(steady(iter(steps)))
    assert all(one.answered_at == one.at + 2 or one.answered_at == one.at for one in found)
    return [after.at - before.at for before, after in zip(found, found[1:], strict=False)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((0, 400, 800, 1200), [400, 400, 400]),
        ((0, 400, 800 - HOUR, 1200 - HOUR), [400, 400, 400]),
        ((0, 400, 800 - 7, 1200 - 7), [400, 393, 400]),
        ((0, 400, 800 - 10 * HOUR, 1200 - 10 * HOUR, 1600 - 20 * HOUR, 2000 - 20 * HOUR), [400, 400, 400, 400, 400]),
        ((0, 400, 800 - HOUR, 1200 - HOUR, 1200 - HOUR + 5000), [400, 400, 400, 5000]),
        ((0, 7, 14, 1000, 1007 - HOUR, 2007 - HOUR), [7, 7, 986, 7, 1000]),
        ((0, 400, 370, 800), [400, 0, 400]),
        ((0, 400, -9000, 800), [400, 0, 400]),
        ((0, 400, -9000), [400, 0]),
        ((0, -9000, -8600, -8200), [SPACING_S, 400, 400]),
    ],
    ids=[
        "steady",
        "an hour",
        "a step",
        "twice",
        "and a wait",
        "the usual wait",
        "skew",
        "one stamp",
        "the last",
        "at once",
    ],
)
def test_a_clock_that_was_set_back_loses_the_wait_across_alone(times, expected):
    """It counts as the usual one. Not all waits until it has caught up; and one wrong stamp is no other clock."""
    assert waits(*times) == pytest.approx(expected)
