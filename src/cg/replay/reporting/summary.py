"""Sums over sessions, with intervals over sessions."""

from collections.abc import Mapping, Sequence
from typing import Any

from cg.replay.batch import Result
from cg.replay.policies import NONE
from cg.replay.row import Row

RESAMPLES = 2000
LEVEL = 0.9
SEED = 20261130  # the same sessions give the same interval
CHUNK = 4_000_000  # numbers held at once while resampling


class Summary:
    """The totals of a replay, taken in session by session; of each session only two numbers a policy stay."""

    def __init__(self) -> None:
        self.totals: dict[str, Row] = {}
        self.sessions = 0
        self.requests = 0
        self.outputs = 0
        self.skipped = 0
        self.unpriced = 0  # sessions with a model of unknown price: not in the dollars
        self._units: dict[str, list[float]] = {}
        self._usd: dict[str, float] = {}

    def take(self, result: Result) -> None:
        """Add a session."""
        if result.error is not None:
            self.skipped += 1
            return
        self.sessions += 1
        self.requests += result.requests
        self.outputs += result.outputs
        totals = {name: row.total for name, row in result.rows.items()}
        is_priced = all(total.usd is not None for total in totals.values())
        self.unpriced += not is_priced
        for name, row in result.rows.items():
            self.totals.setdefault(name, Row()).include(row)
            self._units.setdefault(name, []).append(totals[name].units)
            if is_priced:
                self._usd[name] = self._usd.get(name, 0.0) + (totals[name].usd or 0.0)

    def usd(self, name: str) -> float | None:
        """The bill of the sessions whose prices are known; None if that is none of them."""
        return self._usd.get(name)

    def change(self, name: str) -> float | None:
        """The bill against that of doing nothing, as a share: -0.05 is five percent cheaper. None without a bill."""
        none, own = self.totals[NONE.name].total.units, self.totals[name].total.units
        return (own - none) / none if none else None

    def interval(self, name: str) -> tuple[float, float] | None:
        """Bounds of `change` under resampled sessions, 5 % and 95 %; None for fewer than two sessions."""
        return resampled(self._units[name], self._units[NONE.name])

    def recovered(self, name: str) -> float | None:
        """Share of what cold requests write again that this policy avoids; None where there is none."""
        excess = self.totals[NONE.name].cold_excess
        return 1 - self.totals[name].cold_excess / excess if excess else None

    def to_dict(self) -> dict[str, Any]:
        """Each policy's summed row, with its change, interval and recovered share."""
        none = self.totals.get(NONE.name)
        found = {}
        for name, row in self.totals.items():
            usd, base = self.usd(name), self.usd(NONE.name)
            found[name] = row.to_dict(none) | {
                "usd": usd,
                "net_usd": None if usd is None or base is None else base - usd,
                "change": self.change(name),
                "change_interval": self.interval(name),
                "cold_excess_recovered": self.recovered(name),
            }
        return found


def resampled(own: Sequence[float], none: Sequence[float]) -> tuple[float, float] | None:
    """Bounds of sum(own) / sum(none) - 1 over resamples of the sessions."""
    n = len(own)
    if n < 2 or not sum(none):
        return None
    import numpy

    rng = numpy.random.default_rng(SEED)
    pairs = numpy.array([own, none]).T
    shares = []
    for start in range(0, RESAMPLES, step := max(1, CHUNK // n)):
        counts = rng.multinomial(n, [1 / n] * n, size=min(step, RESAMPLES - start))
        sums = counts @ pairs
        shares.append(sums[:, 0] / sums[:, 1] - 1)
    low, high = numpy.quantile(numpy.concatenate(shares), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def session_dict(result: Result) -> dict[str, Any]:
    """A session as the JSON report holds it."""
    none: Row | None = result.rows.get(NONE.name)
    rows: Mapping[str, Row] = result.rows
    return {
        "name": result.name,
        "path": str(result.path),
        "error": result.error,
        "client": result.client,
        "requests": result.requests,
        "outputs": result.outputs,
        "ttl_s": result.ttl_s,
        "ttl_recorded": result.is_ttl_recorded,
        "policies": {name: row.to_dict(none) for name, row in rows.items()},
    }
