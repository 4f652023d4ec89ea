"""How far sums over sessions vary: the bootstrap of Efron (1979), with sessions as what is drawn."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy

RESAMPLES = 2000
LEVEL = 0.9
SEED = 20261130  # the same sessions give the same interval
CHUNK = 4_000_000  # numbers held at once


def sums(columns: "numpy.ndarray") -> "numpy.ndarray":
    """Sums of the columns over draws of as many lines, with replacement: a line a draw."""
    import numpy

    n = len(columns)
    rng, found = numpy.random.default_rng(SEED), []
    for start in range(0, RESAMPLES, step := max(1, CHUNK // n)):
        found.append(rng.multinomial(n, [1 / n] * n, size=min(step, RESAMPLES - start)) @ columns)
    return numpy.concatenate(found)


def bounds(values: "numpy.ndarray") -> tuple[float, float]:
    """What LEVEL of the values lie between, as many below it as above."""
    import numpy

    low, high = numpy.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
