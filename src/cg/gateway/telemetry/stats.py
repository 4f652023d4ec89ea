"""All figures as plain values, for `/stats` and the page. No content, no thread's name, no credential is in them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cg import __version__
from cg.gateway.telemetry import metric_families
from cg.gateway.telemetry.metrics import Metrics
from cg.gateway.telemetry.registry import MetricSnapshot
from cg.sweep.ledger import AskRow

T = TypeVar("T")
_STATM = Path("/proc/self/statm")

Read = Callable[[], Mapping[str, Any]]  # raises when what it reads cannot be read


def _empty() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class GatewayInfo:
    """What the figures belong to."""

    started_at: float  # seconds since the epoch
    observing: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    upstream: str = ""  # scheme and host, without credentials or path


class Stats:
    """Reads the figures together. `store_status` and `store_totals` block, so `collect` runs in a worker thread."""

    def __init__(
        self,
        metrics: Metrics,
        about: GatewayInfo,
        now: Callable[[], float],
        *,
        store_status: Read = _empty,
        store_totals: Read = _empty,
        store_switch: Callable[[], str] = lambda: "on",
    ) -> None:
        self._metrics = metrics
        self._about = about
        self._now = now
        self._store_status = store_status
        self._store_totals = store_totals
        self._store_switch = store_switch

    def collect(self) -> dict[str, Any]:
        """Everything, as values that JSON can hold."""
        snapshot = self._metrics.figures.snapshot()
        now = self._now()
        return {
            "version": __version__,
            "now": now,
            "started_at": self._about.started_at,
            "uptime_s": max(0.0, now - self._about.started_at),
            "observing": self._about.observing,
            "switch": _or_none(self._store_switch),
            "upstream": self._about.upstream,
            "config": dict(self._about.config),
            "resident_bytes": resident_bytes(),
            "money": asdict(self._metrics.money(snapshot)),
            **_counts(snapshot),
            "last_asks": [_row(row) for row in self._metrics.last_asks],
            "stages": _stages(snapshot),
            "timeline": self._metrics.timeline.rows(),
            "projected": _projected(snapshot) if self._about.observing else None,
            "store": _or_none(self._store_status),
            "lifetime": _without_gaps(_or_none(self._store_totals)),
        }

    def gauges(self) -> dict[str, tuple[str, float]]:
        """What `/metrics` adds to the counters at the scrape: name to (help, value)."""
        gauges = {
            "process_start_time_seconds": ("Start of the process, seconds since the epoch.", self._about.started_at),
            "cg_observing": ("1 if nothing is changed and removals are only projected.", float(self._about.observing)),
        }
        if (resident := resident_bytes()) is not None:
            gauges["process_resident_memory_bytes"] = ("Resident memory.", float(resident))
        for name, value in (_or_none(self._store_status) or {}).items():
            gauges[f"cg_store_{name}"] = ("What the state holds.", float(value))
        return gauges

    @property
    def snapshot(self) -> MetricSnapshot:
        return self._metrics.figures.snapshot()


def _counts(snapshot: MetricSnapshot) -> dict[str, Any]:
    return {
        "in_flight": int(snapshot.total(metric_families.IN_FLIGHT)),
        "requests": _nested(snapshot, metric_families.REQUESTS),
        "refused": _without_zeros(snapshot.by_label(metric_families.REFUSED)),
        "upstream_responses": _without_zeros(snapshot.by_label(metric_families.UPSTREAM)),
        "turns": int(snapshot.total(metric_families.TURNS)),
        "reasons": _without_zeros(snapshot.by_label(metric_families.TURNS)),
        "phases": _without_zeros(snapshot.by_label(metric_families.PHASES)),
        "components": {
            "sweep": {
                "events": _without_zeros(snapshot.by_label(metric_families.EVENTS)),
                "gates": _without_zeros(snapshot.by_label(metric_families.GATES)),
            }
        },
        "sizes": _without_zeros(snapshot.by_label(metric_families.OUTPUTS)),
        "removed": {
            "outputs": int(snapshot.total(metric_families.REMOVED)),
            **_integers(snapshot.by_label(metric_families.BYTES)),
        },
        "tokens": _nested(snapshot, metric_families.TOKENS),
        "cost_usd": _nested(snapshot, metric_families.COST),
        "calls": _without_zeros(snapshot.by_label(metric_families.CALLS)),
        "unpriced_calls": _without_zeros(snapshot.by_label(metric_families.UNPRICED_CALLS)),
        "asks": {
            "outcomes": _without_zeros(snapshot.by_label(metric_families.ASKS)),
            **_integers(snapshot.by_label(metric_families.VERDICTS)),
        },
        "recoveries": {
            **_nested(snapshot, metric_families.RECOVERED),
            "rounds": int(snapshot.total(metric_families.ROUNDS)),
        },
        "resent": _without_zeros(snapshot.by_label(metric_families.RESENT)),
        "timers": _without_zeros(snapshot.by_label(metric_families.TIMERS)),
        "faults": {
            "ours": _without_zeros(snapshot.by_label(metric_families.FAULTS_OURS)),
            "outside": _without_zeros(snapshot.by_label(metric_families.FAULTS_WORLD)),
        },
    }


def _projected(snapshot: MetricSnapshot) -> dict[str, Any]:
    """What was only projected, with no real figure among it."""
    saved, charged = snapshot.total(metric_families.PROJECTED_SAVED), snapshot.total(metric_families.PROJECTED_CHARGED)
    is_priced = bool(saved or charged)
    return {
        "turns": int(snapshot.total(metric_families.PROJECTED_TURNS)),
        "reasons": _without_zeros(snapshot.by_label(metric_families.PROJECTED_TURNS)),
        "removed": {
            "outputs": int(snapshot.total(metric_families.PROJECTED_REMOVED)),
            **_integers(snapshot.by_label(metric_families.PROJECTED_BYTES)),
        },
        "saved_usd": saved if is_priced else None,
        "charged_usd": charged if is_priced else None,
        "net_usd": saved - charged if is_priced else None,
        "unpriced_turns": int(snapshot.total(metric_families.PROJECTED_UNPRICED)),
    }


def _stages(snapshot: MetricSnapshot) -> dict[str, Any]:
    """Mean and bucket bounds of the median and the 99th percentile, in seconds; null past the last bound."""
    stages = {}
    for (stage,), histogram in snapshot.histograms[metric_families.STAGES].items():
        if histogram.n:
            p50, p99 = histogram.quantile(0.5), histogram.quantile(0.99)
            stages[stage] = {
                "n": histogram.n,
                "mean_s": histogram.total / histogram.n,
                "p50_at_most_s": _finite(p50),
                "p99_at_most_s": _finite(p99),
            }
    return stages


def _finite(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else value


def _row(row: AskRow) -> dict[str, Any]:
    """An ask as the page shows it; the thread and the model's name, which a client can choose, stay out."""
    return {
        "asked_at": row.asked_at,
        "legs": list(row.legs),
        "outcome": row.outcome.value,
        "offered": row.offered,
        "judged_spent": row.judged_spent,
        "dropped": row.dropped,
        "usage": asdict(row.usage),
        "cost_usd": row.cost_usd,
        "milliseconds": row.milliseconds,
    }


def _without_zeros(values: Mapping[str, float]) -> dict[str, float]:
    """Without the zeros, which are most of the closed sets."""
    return {name: _int(value) for name, value in sorted(values.items()) if value}


def _integers(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _int(value) for name, value in values.items()}


def _nested(snapshot: MetricSnapshot, family: metric_families.Family) -> dict[str, dict[str, float]]:
    """A family of two labels, the first outside, without the zeros."""
    nested: dict[str, dict[str, float]] = {}
    for (outer, inner), value in sorted(snapshot.values[family].items()):
        if value:
            nested.setdefault(outer, {})[inner] = _int(value)
    return nested


def _int(value: float) -> float:
    return int(value) if value == int(value) else value


def _without_gaps(totals: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Totals but for waits: those stand in a store for each conversation and once more for its user."""
    return None if totals is None else {family: sums for family, sums in totals.items() if family != "gaps"}


def _or_none(read: Callable[[], T]) -> T | None:
    """What the store says, or None if it cannot be read: figures are shown without it."""
    try:
        return read()
    except Exception:
        return None


def resident_bytes() -> int | None:
    """Memory of this process that is in use now; None where the system does not say."""
    try:
        pages = int(_STATM.read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
