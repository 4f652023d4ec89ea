"""The gateway's figures since it was started: bounded, in memory, safe between threads."""

import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from cg.gateway.telemetry.metric_families import ALL_FAMILIES, Family

LabelValues = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many observations lie at or below each bound and above the one before; the last count has no bound."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]  # [len(bounds) + 1]
    total: float

    @property
    def n(self) -> int:
        return sum(self.counts)

    def quantile(self, q: float) -> float | None:
        """An upper bound of the q-quantile: the bound of its bucket; None without observations, inf past the last."""
        need = q * self.n
        if not self.n:
            return None
        reached = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            reached += count
            if reached >= need:
                return bound
        return float("inf")


@dataclass(frozen=True, slots=True)
class MetricSnapshot:
    """All figures at one moment."""

    values: Mapping[Family, Mapping[LabelValues, float]]
    histograms: Mapping[Family, Mapping[LabelValues, Histogram]]

    def total(self, family: Family) -> float:
        """Over all labels."""
        return sum(self.values[family].values())

    def by_label(self, family: Family) -> dict[str, float]:
        """The values of a family by its last label."""
        return {labels[-1]: value for labels, value in self.values[family].items()}


class MetricRegistry:
    """Counters, gauges and histograms of the families, and no others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        scalar = [family for family in ALL_FAMILIES if family.kind != "histogram"]
        self._values: dict[Family, dict[LabelValues, float]] = {f: dict.fromkeys(f.series(), 0.0) for f in scalar}
        self._counts: dict[Family, dict[LabelValues, list[int]]] = {
            f: {labels: [0] * (len(f.bounds) + 1) for labels in f.series()}
            for f in ALL_FAMILIES
            if f.kind == "histogram"
        }
        self._sums: dict[tuple[Family, LabelValues], float] = {}

    def add(self, family: Family, *labels: str, amount: float = 1.0) -> None:
        """Count; a counter is never given a negative amount."""
        with self._lock:
            series = self._values[family]
            series[labels] = series.get(labels, 0.0) + amount

    def observe(self, family: Family, *labels: str, value: float) -> None:
        """One observation of a histogram."""
        with self._lock:
            self._counts[family][labels][bisect_left(family.bounds, value)] += 1
            self._sums[family, labels] = self._sums.get((family, labels), 0.0) + value

    def snapshot(self) -> MetricSnapshot:
        """All figures as they stand; later counts do not change it."""
        with self._lock:
            values = {family: dict(series) for family, series in self._values.items()}
            histograms = {
                family: {
                    labels: Histogram(family.bounds, tuple(counts), self._sums.get((family, labels), 0.0))
                    for labels, counts in series.items()
                }
                for family, series in self._counts.items()
            }
        return MetricSnapshot(values, histograms)
