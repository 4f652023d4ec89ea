"""What `cg-sweep replay` does with its arguments."""

import argparse
import contextlib
import json
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TextIO

from cg.errors import CgError
from cg.replay.batch import Result, replay
from cg.replay.policies import KEEP, Policy, parse
from cg.replay.reporting import table
from cg.replay.reporting.progress import Progress
from cg.replay.reporting.summary import Summary, session_dict
from cg.replay.sessions import find, open_all
from cg.replay.settings import TTLS, VERDICT_TOKENS, Settings
from cg.replay.simulation.askers import check_folder
from cg.sweep.prices import PriceTable

EXIT_SKIPPED = 3  # the rest was priced
EXIT_NOTHING = 2  # no session could be read

MAX_JOBS = 256
MAX_VERDICT_TOKENS = 100_000
DRAWN = 12  # sessions whose requests are plotted, those with the largest bills


def replay_command(arguments: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Price, print, and say by the exit code whether all was read. Raises CgError for a refused argument."""
    policies, settings = _policies(arguments), _settings(arguments)
    jobs: int = arguments.jobs
    if not 1 <= jobs <= MAX_JOBS:
        raise CgError(f"jobs is {jobs}; it must be 1 to {MAX_JOBS}")
    progress = None
    if err.isatty() and not arguments.no_progress:
        progress = Progress(_files(arguments.paths), err)
    report = _Report(arguments.html)
    with _executor(jobs) as executor:
        results = replay(open_all(arguments.paths), policies, settings, executor=executor, jobs=jobs)
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
        _print_table(report, settings, out)
    if report.failed:
        _say(table.skipped(report.failed), err)
    if arguments.html is not None and report.summary.sessions:
        _write_html(arguments.html, report, settings)
    if not report.summary.sessions:
        return EXIT_NOTHING
    return EXIT_SKIPPED if report.summary.skipped else 0


class _Report:
    """What is kept of the results: the sums, and of the sessions as many as are shown."""

    def __init__(self, html: Path | None) -> None:
        self.summary = Summary()
        self.listed: list[Result] = []
        self.drawn: list[Result] = []
        self.failed: list[Result] = []
        self._draws = html is not None

    def take(self, result: Result) -> None:
        self.summary.take(result)
        if result.error is not None:
            self.failed.append(result)
            return
        if len(self.listed) <= table.LISTED:
            self.listed.append(replace(result, traces={}))
        if self._draws:
            self.drawn = sorted([*self.drawn, result], key=lambda r: -r.rows["none"].total.units)[:DRAWN]

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
def _executor(jobs: int) -> Iterator[Executor | None]:
    if jobs == 1:
        yield None
        return
    others = set(active_children())
    # A fresh interpreter for each worker: forking a process that has threads is what breaks elsewhere. One ends at an
    # interrupt without a word, which is ours to say.
    interrupts = signal.SIGINT, signal.SIG_DFL
    with ProcessPoolExecutor(jobs, get_context("spawn"), signal.signal, interrupts) as pool:
        try:
            yield pool
        except BaseException:  # nobody waits for what is still being worked on
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


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
        ttl_s=TTLS[arguments.ttl],
        verdict_tokens=verdict,
        fixed_tokens=fixed,
        prices=prices,
        with_trace=arguments.html is not None,
    )


def _print_json(results: Iterator[Result], report: _Report, out: TextIO) -> None:
    """Sessions are written as they come: a report of ten thousand is never held whole."""
    out.write('{"sessions": [')
    for n, result in enumerate(results):
        out.write(",\n" if n else "\n")
        out.write(json.dumps(session_dict(result)))
        report.take(result)
    out.write(f'\n], "total": {json.dumps(report.summary.to_dict())}}}\n')


def _print_table(report: _Report, settings: Settings, out: TextIO) -> None:
    if not report.summary.sessions:
        return
    _say(table.totals(report.summary) + "\n", out)
    if 1 < report.summary.sessions <= table.LISTED:
        _say(table.by_session(report.listed) + "\n", out)
    _say(table.notes(report.summary, settings, report.listed), out)


def _say(text: str, stream: TextIO) -> None:
    """Print, with escapes for what the stream's encoding has no letters for."""
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def _write_html(path: Path, report: _Report, settings: Settings) -> None:
    from cg.replay.reporting.html import page

    try:
        path.write_text(page(report.summary, report.listed, report.drawn, settings), "utf-8")
    except OSError as error:
        raise CgError(f"{path}: cannot be written: {error.strerror}") from error
