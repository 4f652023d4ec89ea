"""Moments as the sweep takes them: seconds since the epoch, checked where they come in."""

LATEST = 253_402_300_799  # the end of the year 9999; a time in milliseconds would age all other sessions away


def moment(now: float) -> float:
    """`now`, if it is a moment: 0 to the end of the year 9999. Raises ValueError for any other, not-a-number too.

    An infinite clock would be written into a branch that no request ever extends again, and age every thread away.
    """
    if not 0 <= now <= LATEST:
        raise ValueError(f"now is {now!r}; it must be 0 to {LATEST} seconds since the epoch")
    return now
