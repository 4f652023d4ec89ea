"""What `cg-sweep replay` does with its arguments."""

import argparse
import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from os import environ
from pathlib import Path
from typing import TextIO

from cg.errors import CgError
from cg.replay.batch import Result, replay, workers
from cg.replay.policies import KEEP, NONE, Policy, parse
from cg.replay.reporting import table
from cg.replay.reporting.answer import answer
from cg.replay.reporting.csv_rows import CsvRows
from cg.replay.reporting.figures import CLIENT
from cg.replay.reporting.groups import Groups
from cg.replay.reporting.progress import Progress
from cg.replay.reporting.report import LIFETIMES
from cg.replay.reporting.sentences import advice
from cg.replay.reporting.sources import beginning, default_paths, ending, ordered
from cg.replay.reporting.summary import Summary, session_dict
from cg.replay.sessions import find, open_all
from cg.replay.settings import TTLS, VERDICT_TOKENS, Settings
from cg.replay.simulation.askers import check_folder
from cg.sweep.prices import PriceTable

EXIT_SKIPPED = 3  # the rest was priced
EXIT_NOTHING = 2  # no session could be read

MAX_JOBS = 256
MAX_VERDICT_TOKENS = 100_000
MAX_LIMIT = 1_000_000
DRAWN = 12  # sessions whose requests are plotted, those with the largest bills
NAMED = 200  # results of which a remark is made by name


def replay_command(arguments: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Price, print, and say by the exit code whether all was read. Raises CgError for a refused argument."""
    policies, settings = _policies(arguments), _settings(arguments)
    jobs: int = arguments.jobs
    if not 1 <= jobs <= MAX_JOBS:
        raise CgError(f"jobs is {jobs}; it must be 1 to {MAX_JOBS}")
    if not 0 <= arguments.limit <= MAX_LIMIT:
        raise CgError(f"limit is {arguments.limit}; it must be 0 (all) to {MAX_LIMIT}")
    paths = ordered(arguments.paths or default_paths(environ, Path.home()))
    progress = Progress(_files(paths), err) if err.isatty() and not arguments.no_progress else None
    with workers(jobs) as executor, _csv(arguments.csv) as lines:
        report = Gathered(arguments.by, lines, draws=arguments.html is not None)
        results = replay(open_all(paths), policies, settings, executor=executor, jobs=jobs)
        if progress is not None:
            results = progress.watch(results)
        try:
            if arguments.json:
                _print_json(results, report, out)
            else:
                report.take_all(results)
        finally:
            if progress is not None:
                progress.clear()
    if not arguments.json:
        _print_table(report, settings, arguments, out)
    _print_left_out(report, err)
    if arguments.html is not None and report.summary.sessions:
        _write_html(arguments.html, report, settings)
    if not report.summary.sessions:
        return EXIT_NOTHING
    return EXIT_SKIPPED if report.failed else 0


class Gathered:
    """What is kept of the results: the sums, the groups, and of the sessions as many as are shown."""

    def __init__(self, by: str, lines: CsvRows | None = None, *, draws: bool = False) -> None:
        self.summary = Summary()
        self.groups, self.days = Groups(by), Groups("day")
        self.named: list[Result] = []  # of which a remark is made
        self.drawn: list[Result] = []
        self.failed: list[Result] = []
        self.empty: list[Result] = []
        self._lines, self._draws = lines, draws

    def take(self, result: Result) -> None:
        self.summary.take(result)
        if result.error is not None:
            (self.empty if result.is_empty else self.failed).append(result)
            return
        if result.is_outside:
            return
        self.groups.take(result)
        if self._lines is not None:
            self._lines.take(result)
        if (result.elsewhere or not result.is_ttl_recorded) and len(self.named) < NAMED:
            self.named.append(replace(result, traces={}, rows={}, lifetimes={}))
        if self._draws:
            self.days.take(result)
            self.drawn = sorted([*self.drawn, result], key=lambda r: (-r.rows[NONE.name].total.units, r.name))[:DRAWN]

    def take_all(self, results: Iterator[Result]) -> None:
        for result in results:
            self.take(result)


def _files(paths: Iterable[Path]) -> int:
    """How many files the progress line counts."""
    try:
        return sum(1 for _ in find(paths))
    except CgError:
        return 0


@contextlib.contextmanager
def _csv(path: Path | None) -> Iterator[CsvRows | None]:
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise CgError(f"{path}: cannot be written: {error.strerror}") from error
    with file:
        yield CsvRows(file)


def _policies(arguments: argparse.Namespace) -> tuple[Policy, ...]:
    if arguments.replies is not None:
        check_folder(arguments.replies)
    keep = KEEP if arguments.keep is None else arguments.keep
    return parse(arguments.policy, arguments.judge, keep=keep, replies=arguments.replies)


def _settings(arguments: argparse.Namespace) -> Settings:
    prices = PriceTable.default()
    if arguments.prices is not None:
        try:
            prices = prices.overridden(arguments.prices.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise CgError(f"{arguments.prices}: cannot be read: {type(error).__name__}") from error
    verdict = VERDICT_TOKENS if arguments.verdict_tokens is None else arguments.verdict_tokens
    if not 1 <= verdict <= MAX_VERDICT_TOKENS:
        raise CgError(f"verdict-tokens is {verdict}; it must be 1 to {MAX_VERDICT_TOKENS}")
    fixed = arguments.fixed_tokens
    if fixed is not None and not 0 <= fixed <= 1_000_000:
        raise CgError(f"fixed-tokens is {fixed}; it must be 0 to 1000000")
    return Settings(
        lifetime=arguments.lifetime,
        ttl_s=TTLS[arguments.ttl],
        verdict_tokens=verdict,
        fixed_tokens=fixed,
        prices=prices,
        with_trace=arguments.html is not None,
        lifetimes=LIFETIMES,
        since=None if arguments.since is None else beginning(arguments.since),
        until=None if arguments.until is None else ending(arguments.until),
    )


def _print_json(results: Iterator[Result], report: Gathered, out: TextIO) -> None:
    """Sessions are written as they come: a report of ten thousand is never held whole."""
    out.write('{"sessions": [')
    n = 0
    for result in results:
        report.take(result)
        if not result.is_outside:
            out.write(",\n" if n else "\n")
            out.write(json.dumps(session_dict(result)))
            n += 1
    summary = report.summary
    found = {
        "total": summary.to_dict(),
        "lifetimes": summary.lifetimes(),
        "answer": answer(summary).to_dict() if summary.sessions else None,
    }
    out.write(f"\n], {json.dumps(found)[1:]}\n")


def _print_table(report: Gathered, settings: Settings, arguments: argparse.Namespace, out: TextIO) -> None:
    summary, wide = report.summary, arguments.wide
    if not summary.sessions:
        return
    _say(table.totals(summary, wide=wide) + "\n", out)
    if summary.sessions > 1:
        names = [policy for policy, lifetime in summary.totals if lifetime == CLIENT]
        _say(table.groups(report.groups, names, arguments.limit, wide=wide) + "\n", out)
    _say(table.notes(summary, settings, report.named) + "\n", out)
    _say(table.answered(advice(answer(summary))), out)


def _print_left_out(report: Gathered, err: TextIO) -> None:
    """What gave no session: by name and reason where something may be lost, else in one line."""
    if report.failed:
        _say(table.skipped(report.failed), err)
    if report.empty:
        _say(table.empty(report.empty), err)


def _say(text: str, stream: TextIO) -> None:
    """Print, with escapes for what the stream's encoding has no letters for."""
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def _write_html(path: Path, report: Gathered, settings: Settings) -> None:
    from cg.replay.reporting.page.html import page

    try:
        html = page(report.summary, report.groups, report.days, report.drawn, settings, report.named)
        path.write_text(html, "utf-8")
    except OSError as error:
        raise CgError(f"{path}: cannot be written: {error.strerror}") from error
