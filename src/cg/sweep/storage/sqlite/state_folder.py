"""The folder of a state and the way to it: refused where somebody else could put another state in its place."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from cg.sweep.store import StoreError

IS_POSIX = os.name == "posix"  # elsewhere the mode bits say nothing about who may read
MOST_LINKS = 40  # on one way, as Linux counts
SYSTEM_GROUPS = 1000  # ids below are no person's: /var/log and the like are root's, and open to one of them


def secure_folder(folder: Path) -> None:
    """Make the folder if it is missing, and all missing above it (0700); raises StoreError unless it is safe.

    It belongs to us or to root, and so does every folder and link on the way to it, by whatever name it is reached; in
    none of them can others rename or replace what stands there. A sticky folder, as /tmp, lets others only add.
    """
    if not IS_POSIX:
        folder.mkdir(parents=True, exist_ok=True)
        return
    missing = [f for f in (folder, *folder.parents) if not os.path.lexists(f)]
    _refuse_shared(missing[-1].parent if missing else folder, is_above=bool(missing))
    for new in reversed(missing):
        try:
            new.mkdir(mode=0o700)
        except FileExistsError:  # another process that starts beside this one
            continue
        new.chmod(0o700)  # the mode given to mkdir is cut by the umask
    if missing:
        _refuse_shared(folder, is_above=False)


def _refuse_shared(folder: Path, *, is_above: bool) -> None:
    found = list(_way(folder))
    trusted = {0, os.geteuid(), found[0][1].st_uid}  # whoever has the root folder has all: in a container, nobody's id
    for n, (place, status) in enumerate(found):
        if status.st_uid not in trusted:
            raise StoreError(f"{place}: belongs to user {status.st_uid}, not to user {os.geteuid()}")
        if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:  # a link has no mode of its own
            continue
        by_group = status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid()
        if by_group and status.st_uid == 0 and status.st_gid < SYSTEM_GROUPS and (is_above or n < len(found) - 1):
            by_group = False
        if status.st_mode & stat.S_IWOTH or by_group:
            mode = stat.S_IMODE(status.st_mode)
            raise StoreError(
                f"{place}: others may write here (mode {mode:04o}); a state folder must be 0700, in folders"
                " where only you may write"
            )


def _way(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every folder and link that the system passes on its way to a folder, itself last; raises OSError if it ends."""
    absolute = folder.absolute()
    at = Path(absolute.anchor)
    yield at, at.lstat()
    waiting, links = list(reversed(absolute.parts[1:])), 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            at = at.parent
            continue
        place = at / part
        status = place.lstat()
        if not stat.S_ISLNK(status.st_mode):
            if not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            at = place
        yield place, status
        if at == place:
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = Path(os.readlink(place))
        if target.is_absolute():
            at = Path(target.anchor)
        waiting += reversed(target.parts[1:] if target.is_absolute() else target.parts)
