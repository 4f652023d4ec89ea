"""Sums over sessions, with intervals over sessions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cg.replay.batch import Result
from cg.replay.policies import NONE
from cg.replay.reporting.figures import CLIENT, UNTOUCHED, Figures, Key, figures, plain_of
from cg.replay.reporting.resampling import bounds, sums
from cg.replay.row import Row
from cg.replay.settings import TTLS


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds under resampled sessions, 5 % and 95 %."""

    change: tuple[float, float]  # of the bill against doing nothing, a share
    saved_usd: tuple[float, float]  # of the sessions whose prices are known


@dataclass(slots=True)
class Kind:
    """What was removed of one tool's outputs."""

    removals: int = 0
    tokens: float = 0.0
    used_later: int = 0


class Summary:
    """The totals of a replay, taken in session by session; of each session only two numbers a policy stay."""

    def __init__(self) -> None:
        self.totals: dict[Key, Row] = {}  # by policy and lifetime; `client` is the lifetime that the client asked for
        self.sessions = 0
        self.requests = 0
        self.outputs = 0
        self.damaged_lines = 0  # of which something is lost
        self.damaged_logs = 0
        self.outside = 0  # sessions that began at another time than was asked for
        self.unpriced = 0  # sessions with a model of unknown price: not in the dollars
        self.undated = 0
        self.first: float | None = None  # when the first dated session began
        self.last: float | None = None
        self._lifetimes = {CLIENT}  # at which not every session was anyway
        self.kinds: dict[str, dict[str, Kind]] = {}  # by policy and tool, where requests were traced
        self._priced: dict[Key, Row] = {}  # of the sessions with known prices alone
        self._units: dict[Key, list[float]] = {}
        self._saved_usd: dict[Key, list[float]] = {}
        self._intervals: dict[Key, Interval] = {}

    def take(self, result: Result) -> None:
        """Add a session."""
        if result.error is not None:
            return
        if result.is_outside:
            self.outside += 1
            return
        self.sessions += 1
        self.requests += result.requests
        self.outputs += result.outputs
        self.damaged_lines += result.damaged
        self.damaged_logs += result.damaged > 0
        self._date(result)
        self._lifetimes.update(name for name in result.lifetimes if TTLS.get(name) != result.ttl_s)
        rows = rows_of(result)
        usd = {key: row.total.usd for key, row in rows.items()}
        is_priced = None not in usd.values()
        self.unpriced += not is_priced
        for key, row in rows.items():
            self.totals.setdefault(key, Row()).include(row)
            self._units.setdefault(key, []).append(row.total.units)
            if is_priced:
                self._priced.setdefault(key, Row()).include(row)
            saved = (usd[UNTOUCHED] or 0.0) - (usd[key] or 0.0) if is_priced else 0.0
            self._saved_usd.setdefault(key, []).append(saved)
        self._count_kinds(result)
        self._intervals.clear()

    def _date(self, result: Result) -> None:
        began, ended = result.about.started, result.about.ended
        if began is None or ended is None:
            self.undated += 1
            return
        self.first = began if self.first is None else min(self.first, began)
        self.last = ended if self.last is None else max(self.last, ended)

    def _count_kinds(self, result: Result) -> None:
        for policy, trace in result.traces.items():
            kinds = self.kinds.setdefault(policy, {})
            for removed in trace.removed:
                kind = kinds.setdefault(removed.tool, Kind())
                kind.removals += 1
                kind.tokens += removed.tokens
                kind.used_later += removed.used_at is not None

    @property
    def shown(self) -> list[Key]:
        """What there is to compare: a lifetime that all sessions had is none."""
        return [key for key in self.totals if key[1] in self._lifetimes]

    def figures(self, key: Key) -> Figures:
        """One policy at one lifetime; its dollars are those of the sessions whose prices are known."""
        return figures(key, self.totals, self._priced)

    def change(self, policy: str, lifetime: str = CLIENT) -> float | None:
        """The bill against that of doing nothing, as a share: -0.05 is five percent cheaper. None without a bill."""
        return self.figures((policy, lifetime)).change

    def interval(self, key: Key) -> Interval | None:
        """How far the saving varies between draws of as many sessions; None for fewer than two."""
        if not self._intervals:
            self._resample()
        return self._intervals.get(key)

    def _resample(self) -> None:
        if self.sessions < 2 or not sum(self._units[UNTOUCHED]):
            return
        import numpy

        keys = list(self._units)
        columns = numpy.array([*self._units.values(), *self._saved_usd.values()]).T
        columns = columns[numpy.lexsort(columns.T)]  # whatever the order in which the sessions came
        drawn = sums(columns)
        shares = drawn[:, : len(keys)] / drawn[:, [keys.index(UNTOUCHED)]] - 1
        saved = drawn[:, len(keys) :]
        self._intervals = {
            key: Interval(bounds(shares[:, n]), bounds(saved[:, n])) for n, key in enumerate(keys) if key != UNTOUCHED
        }

    def to_dict(self) -> dict[str, Any]:
        """Each policy's summed row at the client's lifetime, with its change, interval and recovered share."""
        return self._at(CLIENT)

    def lifetimes(self) -> dict[str, dict[str, Any]]:
        """The same at other lifetimes."""
        return {
            name: self._at(name) for name in dict.fromkeys(lifetime for _, lifetime in self.totals) if name != CLIENT
        }

    def _at(self, lifetime: str) -> dict[str, Any]:
        return {policy: self._dict((policy, own)) for policy, own in self.totals if own == lifetime}

    def _dict(self, key: Key) -> dict[str, Any]:
        plain = plain_of(key[1])
        found = self.totals[key].to_dict(self.totals[UNTOUCHED], self.totals[plain])
        if key in self._priced:
            priced = self._priced[key].to_dict(self._priced[UNTOUCHED], self._priced[plain])
            found |= {name: value for name, value in priced.items() if name.endswith("_usd") or name == "usd"}
        own, interval = self.figures(key), self.interval(key)
        return found | {
            "change": own.change,
            "change_interval": interval.change if interval else None,
            "cold_excess_recovered": own.recovered,
        }


def rows_of(result: Result) -> dict[Key, Row]:
    """A session's rows by policy and lifetime."""
    rows = {(policy, CLIENT): row for policy, row in result.rows.items()}
    return rows | {(policy, name): row for name, there in result.lifetimes.items() for policy, row in there.items()}


def session_dict(result: Result) -> dict[str, Any]:
    """A session as the JSON report holds it."""
    none: Row | None = result.rows.get(NONE.name)
    rows: Mapping[str, Row] = result.rows
    all_rows = rows_of(result)
    return {
        "name": result.name,
        "path": str(result.path),
        "error": result.error,
        "client": result.client,
        "project": result.about.project,
        "words": result.about.words,
        "model": result.about.model,
        "started": result.about.started,
        "requests": result.requests,
        "outputs": result.outputs,
        "damaged_lines": result.damaged,
        "ttl_s": result.ttl_s,
        "ttl_recorded": result.is_ttl_recorded,
        "policies": {name: row.to_dict(none) for name, row in rows.items()},
        "lifetimes": {
            name: {policy: row.to_dict(none, all_rows[plain_of(name)]) for policy, row in there.items()}
            for name, there in result.lifetimes.items()
        },
    }
