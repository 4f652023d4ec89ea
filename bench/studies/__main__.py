"""`python bench/studies PATH... --into FOLDER`: run every study, write its tables and its plot."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

from cg.errors import CgError
from cg.replay.sessions import open_all

sys.path.append(str(Path(__file__).parents[1]))  # as a folder that is run, this one alone would stand there

from studies import questions
from studies.measure import measure
from studies.pages import write

EXIT_NOTHING, EXIT_SKIPPED = 2, 3  # as in `cg-sweep replay`
MAX_JOBS = 256


def main(argv: Sequence[str] | None = None) -> int:
    """Run the studies; returns 0, 3 when sessions were skipped (they are named), 2 when nothing could be read."""
    given = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser().parse_args(given)
    try:
        return _run(arguments)
    except CgError as error:
        print(f"studies: {error}", file=sys.stderr)
        return EXIT_NOTHING


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python bench/studies",
        description="Vary the sweep's settings one at a time on recorded sessions, and write tables and a plot of each.",
        epilog="A page of conclusions that is there is kept; so is what stands outside the marks of the figures.",
    )
    names = [study.name for study in questions.every()]
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="session files, or folders of them")
    parser.add_argument(
        "--into", type=Path, required=True, metavar="FOLDER", help="where plots and conclusions are written"
    )
    parser.add_argument(
        "--tables", type=Path, metavar="FOLDER", help="where the tables are written (default: tables/ in --into)"
    )
    parser.add_argument("--study", action="append", choices=names, help="only this one; repeat for several")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="worker processes (1: none)")
    return parser


def command_of(arguments: argparse.Namespace) -> str:
    """The words that make the same figures again, whatever the number of workers."""
    paths = [path.as_posix() for path in arguments.paths]
    words = ["python", "bench/studies", *paths, "--into", arguments.into.as_posix()]
    return shlex.join(words if arguments.tables is None else [*words, "--tables", arguments.tables.as_posix()])


def _run(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.jobs <= MAX_JOBS:
        raise CgError(f"jobs is {arguments.jobs}; it must be 1 to {MAX_JOBS}")
    studies = [study for study in questions.every() if not arguments.study or study.name in arguments.study]
    variants = [variant for study in studies for variant in study.variants()]
    with ExitStack() as stack:
        pool = None
        if arguments.jobs > 1:
            pool = stack.enter_context(ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")))
        results = measure(open_all(arguments.paths), variants, executor=pool, progress=_progress())
    tables: Path = arguments.tables or arguments.into / "tables"
    for folder in (arguments.into, tables):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CgError(f"{folder}: cannot be made: {error.strerror}") from error
    for study in studies:
        for path in write(study, results, arguments.into, tables, command_of(arguments)):
            print(path)
    for line in results.skipped:
        print(f"skipped {line}", file=sys.stderr)
    return EXIT_SKIPPED if results.skipped else 0


class _Line:
    """One line on a terminal that says how many sessions are done."""

    def __call__(self, done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} sessions", end=end, file=sys.stderr, flush=True)


def _progress() -> _Line | None:
    return _Line() if sys.stderr.isatty() else None


if __name__ == "__main__":
    sys.exit(main())
