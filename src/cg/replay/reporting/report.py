"""A replay as values, for notebooks and programs."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from os import environ
from pathlib import Path

from cg.replay.batch import Result, replay, workers
from cg.replay.policies import NONE, Policy, parse
from cg.replay.reporting.answer import Answer, answer
from cg.replay.reporting.figures import CLIENT, Figures, figures
from cg.replay.reporting.sentences import Advice, advice
from cg.replay.reporting.sources import beginning, default_paths, ending, ordered
from cg.replay.reporting.summary import Interval, Summary, rows_of
from cg.replay.sessions import open_all
from cg.replay.settings import PLAN, Settings

LIFETIMES = ("5m", "1h", PLAN)  # that are compared with what the client asked for


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session under all policies."""

    name: str
    path: Path
    project: str
    words: str  # the beginning of what the user said first
    model: str
    started: datetime | None  # UTC
    requests: int
    outputs: int
    ttl_s: int
    policies: tuple[Figures, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that gave no session, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy at one lifetime over all sessions; no interval for a single session, nor for doing nothing."""

    figures: Figures
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Report:
    """What `cg-sweep replay` says of some logs. Without a session `policies` is empty and there is no answer."""

    sessions: tuple[SessionRow, ...]
    policies: tuple[PolicyRow, ...]
    answer: Answer | None
    skipped: tuple[Skipped, ...]  # could not be read
    empty: tuple[Skipped, ...]  # hold no session of their own

    def policy(self, name: str, lifetime: str = CLIENT) -> PolicyRow:
        """The row of a policy. Raises KeyError for one that was not priced."""
        for row in self.policies:
            if (row.figures.policy, row.figures.lifetime) == (name, lifetime):
                return row
        raise KeyError((name, lifetime))

    @property
    def advice(self) -> Advice | None:
        """The answer in words."""
        return advice(self.answer) if self.answer is not None else None


def report(
    paths: Iterable[Path | str] | None = None,
    *,
    policies: Sequence[str | Policy] = (),
    settings: Settings | None = None,
    since: date | None = None,
    until: date | None = None,
    executor: Executor | None = None,
    jobs: int = 1,
) -> Report:
    """Price policies on the sessions under `paths` (default: Claude Code's logs) as `cg-sweep replay` does.

    `policies` are names as for `--policy`, or policies; `since` and `until` are days where the user is, both included.
    With `jobs` above 1 and no `executor`, so many processes work. Raises CgError for a refused argument.
    """
    found = list(_policies(policies))
    settings = replace(settings or Settings(), lifetimes=LIFETIMES)
    if since is not None:
        settings = replace(settings, since=beginning(since))
    if until is not None:
        settings = replace(settings, until=ending(until))
    places = ordered(default_paths(environ, Path.home()) if paths is None else paths)
    if executor is not None:
        return _report(replay(open_all(places), found, settings, executor=executor, jobs=jobs))
    with workers(jobs) as pool:
        return _report(replay(open_all(places), found, settings, executor=pool, jobs=jobs))


def _policies(policies: Sequence[str | Policy]) -> tuple[Policy, ...]:
    given = [policy for each in policies for policy in ([each] if isinstance(each, Policy) else parse([each]))]
    return tuple({policy.name: policy for policy in (NONE, *(given or parse()))}.values())


def _report(results: Iterator[Result]) -> Report:
    summary, sessions = Summary(), []
    skipped: list[Skipped] = []
    empty: list[Skipped] = []
    for result in results:
        if result.error is not None:
            (empty if result.is_empty else skipped).append(Skipped(result.path, result.error))
        elif not result.is_outside:
            sessions.append(_session(result))
        summary.take(result)
    return Report(
        tuple(sessions),
        tuple(PolicyRow(summary.figures(key), summary.interval(key)) for key in summary.totals),
        answer(summary) if summary.sessions else None,
        tuple(skipped),
        tuple(empty),
    )


def _session(result: Result) -> SessionRow:
    rows, known = rows_of(result), result.about
    return SessionRow(
        result.name,
        result.path,
        known.project,
        known.words,
        known.model,
        None if known.started is None else datetime.fromtimestamp(known.started, UTC),
        result.requests,
        result.outputs,
        result.ttl_s,
        tuple(figures(key, rows) for key in rows),
    )
