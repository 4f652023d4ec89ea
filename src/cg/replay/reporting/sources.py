"""Where the sessions of a replay come from: the user's own logs, in one order, from one day to another."""

import os
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path

from cg.errors import CgError


def default_paths(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Where Claude Code keeps its logs. Raises CgError if there is no such folder."""
    named = environment.get("CLAUDE_CONFIG_DIR")
    folder = (Path(named) if named else home / ".claude") / "projects"
    if not folder.is_dir():
        raise CgError(f"no path was given, and Claude Code keeps no logs in {folder}; name a file or a folder of logs")
    return [folder]


def ordered(paths: Iterable[Path | str]) -> list[Path]:
    """The paths in the order in which a folder is searched, files first, whatever the order in which they were given.

    Of logs that hold the same requests the first counts them, so another order would give other sums.
    """
    return sorted(map(Path, paths), key=_place)


def _place(path: Path) -> tuple[tuple[int, str], ...]:
    *above, name = Path(os.path.abspath(path)).parts
    return (*((1, part) for part in above), (int(path.is_dir()), name))


def beginning(day: date) -> float:
    """The first moment of a day where the user is, seconds since the epoch. Raises CgError for one before 1970."""
    try:
        return datetime(day.year, day.month, day.day).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise CgError(f"{day}: no log was written on such a day") from error


def ending(day: date) -> float:
    """The first moment after a day."""
    try:
        return beginning(day + timedelta(days=1))
    except OverflowError as error:
        raise CgError(f"{day}: no log was written on such a day") from error
