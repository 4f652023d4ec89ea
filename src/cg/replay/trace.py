"""What a run did request by request, kept small, for plots."""

from dataclasses import dataclass, field

from cg.replay.reading import Recording
from cg.replay.run import Sent
from cg.sweep.economics import units_of
from cg.sweep.values import Usage


@dataclass(frozen=True, slots=True)
class Point:
    """One request."""

    index: int
    at: float  # seconds since the session's first request
    usage: Usage
    aside: float  # units spent on asks, pings and expansions since the request before
    is_cold: bool = False  # it came a lifetime or more after the one before


@dataclass(frozen=True, slots=True)
class Removed:
    """One output that went, and when the rest of the session used it again."""

    request: int
    tokens: float
    used_at: int | None
    tool: str = ""  # whose output it was


@dataclass(frozen=True, slots=True)
class Trace:
    """All requests of one run in order, and its removals."""

    points: tuple[Point, ...]
    removed: tuple[Removed, ...]


@dataclass(slots=True)
class Tracer:
    """Watches a run."""

    _points: list[Point] = field(default_factory=list)
    _gone: dict[str, int] = field(default_factory=dict)
    _aside: float = 0.0
    _start: float | None = None

    def __call__(self, sent: Sent) -> None:
        self._start = sent.turn.at if self._start is None else self._start
        aside = sum(bill.units for kind, bill in sent.row.bills.items() if kind != "request")
        self._points.append(
            Point(sent.turn.index, sent.turn.at - self._start, sent.usage, aside - self._aside, sent.is_cold)
        )
        self._aside = aside
        for tool_use_id in sent.removed - self._gone.keys():
            self._gone[tool_use_id] = sent.turn.index

    def trace(self, recording: Recording, bytes_per_token: float) -> Trace:
        """What was seen, with the later use of what went."""
        sizes = {o.identity.tool_use_id: o.size_bytes for t in recording.turns for m in t.messages for o in m.outputs}
        tools = {call.id: call.tool for t in recording.turns for m in t.messages for call in m.calls}
        gone = tuple(
            Removed(n, sizes.get(i, 0) / bytes_per_token, recording.hindsight.next_use(i, n), tools.get(i, ""))
            for i, n in self._gone.items()
        )
        return Trace(tuple(self._points), gone)


def context_tokens(point: Point) -> int:
    """Size of what a request carried."""
    return point.usage.fresh + point.usage.read + point.usage.write_5m + point.usage.write_1h


def cost(point: Point) -> float:
    """Units that a request and what was done beside it cost."""
    return units_of(point.usage) + point.aside
