"""Python's cyclic collector, set for a process that serves."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Containers made and not yet freed before the young ones are looked through; 700 to 2,000 by default. One body of 200
# messages makes a thousand, all of them freed by their counts with the turn: looking for cycles among them once or twice a
# turn took a tenth of the time to a reply's first byte. Cycles that wait for it are a few megabytes at most.
YOUNG = 50_000


@contextmanager
def relaxed() -> Iterator[None]:
    """While it lasts the collector looks less often, and never at what stood before: code, classes, the gateway itself."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
