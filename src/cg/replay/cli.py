"""`cg-sweep`: the sweep's own commands, and `replay`, which prices policies on recorded sessions."""

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from cg.sweep import cli as sweep_cli

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `cg-sweep`; returns its exit code."""
    return sweep_cli.main(argv, (register,))


def register(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `replay`; what it needs is imported when it runs."""
    replay = commands.add_parser(
        "replay",
        help="what to switch on, by recorded sessions",
        description="Say what to switch on, and what it would bring, by pricing policies on recorded sessions:"
        " agent-session/1 files, Claude Code logs, or folders of them.",
        epilog="exit codes: 0 all was read; 2 nothing was, or a refused argument; 3 some was skipped and is named",
    )
    replay.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="a session file, or a folder that is searched for them (default: where Claude Code keeps its logs)",
    )
    _policy_arguments(replay)
    _output_arguments(replay)
    replay.set_defaults(command=_replay)


def _policy_arguments(replay: argparse.ArgumentParser) -> None:
    add = replay.add_argument
    add(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help="none, quiet, cold, paid, classic, mask-all-but-k, drop-all, lifetime-5m, lifetime-1h, lifetime-plan; repeat"
        " for several (default: the first four); paid/index names a judge",
    )
    add(
        "--judge",
        action="append",
        default=[],
        metavar="NAME",
        help="who judges for paid and classic: oracle (default), oracle:80/10, recency, index, replies; repeat for several",
    )
    add("--keep", type=int, default=None, metavar="K", help="newest outputs that a mask, or recency, keeps (10)")
    add("--replies", type=Path, metavar="DIR", help="recorded replies for the judge replies: DIR/SESSION/001.txt ...")
    add("--verdict-tokens", type=int, default=None, metavar="N", help="output tokens that a verdict costs (60)")
    add("--ttl", choices=("auto", "5m", "1h"), default="auto", help="cache lifetime (auto: as recorded, else 5m)")
    add(
        "--lifetime",
        choices=("client", "5m", "1h", "plan"),
        default="client",
        help="lifetime of the client's marks under every policy but none, the masks and drop-all (client: as they are)",
    )
    add("--prices", type=Path, metavar="FILE", help="TOML of prices by model, over the published ones")
    add("--fixed-tokens", type=int, metavar="N", help="size of tools and system prompt, where logs say none")


def _output_arguments(replay: argparse.ArgumentParser) -> None:
    add = replay.add_argument
    add("--since", type=_day, metavar="DATE", help="only sessions that began on this day or later, as 2026-08-01")
    add("--until", type=_day, metavar="DATE", help="only sessions that began on this day or earlier")
    by = ("session", "project", "day", "model")
    add("--by", choices=by, default="session", help="what has a line of its own (session)")
    add("--limit", type=int, default=20, metavar="N", help="lines of that table, 0 for all (20)")
    add("--wide", action="store_true", help="every column, whole names: lines may be longer than 100 letters")
    add("--jobs", type=int, default=1, metavar="N", help="worker processes (1: none)")
    add("--json", action="store_true", help="print JSON in place of the tables and the answer")
    add("--csv", type=Path, metavar="FILE", help="write a line for each session, policy and lifetime")
    add("--html", type=Path, metavar="FILE", help="write a report with plots, one file that needs nothing else")
    add("--no-progress", action="store_true", help="no progress line on stderr")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write it as 2026-08-01") from error


def _replay(arguments: argparse.Namespace) -> int:
    from cg.replay.reporting.command import replay_command

    return replay_command(arguments, sys.stdout, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
