"""The times of a session's requests on one clock: the recorder's may have been set back, and single stamps be wrong."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise
from statistics import median

from cg.replay.recordings.conversation import SPACING_S
from cg.replay.recordings.recording import Step

SLACK_S = 60.0  # a request this much before the one that it follows is one of several writers, not another clock


def steady(steps: Iterator[Step]) -> Iterator[Step]:
    """The steps with times that never go back.

    Where the clock was set back, so that a request and the next one too come before the last, all times from there on
    are put behind it: the wait across is unknown and taken to be the median of those before, those that follow are as
    recorded. A single early time is one wrong stamp.
    """
    offset, last = 0.0, float("-inf")
    waits: list[float] = []
    for step, following in pairwise(chain(steps, (None,))):
        assert step is not None
        is_set_back = step.at + offset < last - SLACK_S and (
            following is not None and following.at + offset < last - SLACK_S
        )
        if is_set_back:
            offset = last + (median(waits) if waits else SPACING_S) - step.at
        at = max(step.at + offset, last)
        answered = None if step.answered_at is None else max(step.answered_at + offset, at)
        yield step if (at, answered) == (step.at, step.answered_at) else replace(step, at=at, answered_at=answered)
        if step.index:
            waits.append(at - last)
        last = at
