"""Every variant on every session, by any executor, and what the rows say together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from itertools import islice

import numpy

from cg.errors import CgError
from cg.replay.reading import record
from cg.replay.recordings.recording import Damaged, Session
from cg.replay.reporting.resampling import bounds, sums
from cg.replay.row import Row
from studies.moments import Moment, moments
from studies.variants import Variant

CHUNK = 40  # variants in one piece of work: a session is read once for each
TTL_5M_S = 300


@dataclass(frozen=True, slots=True)
class About:
    """A session in figures."""

    name: str
    requests: int
    outputs: int
    timed: bool
    ttl_s: int | None
    moments: tuple[Moment, ...] = ()


@dataclass(slots=True)
class Results:
    """The rows of all variants, each a list in the order of the sessions."""

    sessions: list[About] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    rows: dict[Variant, list[Row]] = field(default_factory=dict)

    def total(self, variant: Variant) -> Row:
        """All sessions' rows in one."""
        total = Row()
        for row in self.rows[variant]:
            total.include(row)
        return total

    def units(self, variant: Variant) -> list[float]:
        """Each session's bill, in fresh input tokens."""
        return [row.total.units for row in self.rows[variant]]

    def change(self, variant: Variant, base: Variant | None = None) -> float:
        """The bill against that of `base` (default: untouched), as a share of the untouched bill."""
        none = sum(self.units(variant.untouched))
        return (sum(self.units(variant)) - sum(self.units(base or variant.untouched))) / none if none else 0.0

    def interval(self, variant: Variant, base: Variant | None = None) -> tuple[float, float] | None:
        """Bounds of `change` under resampled sessions, 5 % and 95 %; the two stay paired."""
        none = self.units(variant.untouched)
        if len(none) < 2 or not sum(none):
            return None
        triples = zip(self.units(variant), self.units(base or variant.untouched), none, strict=True)
        drawn = sums(numpy.array([(own - other + n, n) for own, other, n in triples]))
        return bounds(drawn[:, 0] / drawn[:, 1] - 1)

    def net_usd(self, variant: Variant) -> float | None:
        """Dollars saved against doing nothing on the sessions whose models have a known price; None if none has."""
        pairs = zip(self.rows[variant.untouched], self.rows[variant], strict=True)
        bills = [(none.total.usd, own.total.usd) for none, own in pairs]
        saved = [none - own for none, own in bills if none is not None and own is not None]
        return sum(saved) if saved else None

    def at_work(self, variant: Variant) -> int:
        """Sessions in which anything was asked, pinged or removed: the others say nothing about the variant."""
        return sum(
            bool(row.removals or row.bills["ask"].calls or row.bills["ping"].calls) for row in self.rows[variant]
        )

    def worst(self, variant: Variant) -> float:
        """The change of the session that fares worst."""
        pairs = zip(self.units(variant), self.units(variant.untouched), strict=True)
        return max((own / none - 1 for own, none in pairs if none), default=0.0)

    def recovered(self, variant: Variant) -> float | None:
        """The share of what cold requests write again that is avoided; None where there is none."""
        excess = self.total(variant.untouched).cold_excess
        return 1 - self.total(variant).cold_excess / excess if excess else None


Piece = tuple[About, list[Row]]


def work(session: Session, variants: Sequence[Variant], with_moments: bool) -> Piece | str:
    """One session under some variants, or why it was skipped."""
    try:
        recording = record(session)
        rows = [variant.run(recording) for variant in variants]
        seen = moments(recording) if with_moments else ()
    except CgError as error:
        return f"{session.path}: {error}"
    outputs = sum(len(m.outputs) for turn in recording.turns if not turn.opens for m in turn.messages)
    return About(session.name, len(recording.turns), outputs, session.timed, session.ttl_s, seen), rows


def measure(
    sessions: Iterable[Session | Damaged],
    variants: Iterable[Variant],
    *,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """All variants, and what each is compared with, on all sessions. Raises CgError if no session could be read."""
    every = list(dict.fromkeys(v for variant in variants for v in (variant.untouched, variant)))
    chunks = [every[i : i + CHUNK] for i in range(0, len(every), CHUNK)]
    results = Results(rows={variant: [] for variant in every})
    good: list[Session] = []
    for session in sessions:
        if isinstance(session, Damaged):
            results.skipped.append(f"{session.path}: {session.reason}")
        else:
            good.append(session)
    pieces = _pieces(good, chunks, executor)
    for n in range(len(good)):
        _take(results, list(islice(pieces, len(chunks))), chunks)
        if progress is not None:
            progress(n + 1, len(good))
    if not results.sessions:
        raise CgError("no session could be read")
    return results


def _take(results: Results, found: list[Piece | str], chunks: list[list[Variant]]) -> None:
    """One session's pieces; it counts whole or not at all."""
    pieces = [piece for piece in found if not isinstance(piece, str)]
    if len(pieces) < len(found):
        results.skipped.append(next(piece for piece in found if isinstance(piece, str)))
        return
    results.sessions.append(pieces[0][0])
    for (_, rows), chunk in zip(pieces, chunks, strict=True):
        for variant, row in zip(chunk, rows, strict=True):
            results.rows[variant].append(row)


def _pieces(sessions: list[Session], chunks: list[list[Variant]], executor: Executor | None) -> Iterator[Piece | str]:
    jobs = [(session, chunk, n == 0) for session in sessions for n, chunk in enumerate(chunks)]
    if executor is None:
        yield from (work(*job) for job in jobs)
        return
    waiting: list[Future[Piece | str]] = [executor.submit(work, *job) for job in jobs]
    for future in waiting:
        yield future.result()
