"""The state file on disk: whose it is, who may read it, and refusing everything that is not plainly ours."""

import os
import stat
from pathlib import Path
from urllib.parse import quote_from_bytes

from cg.sweep.storage.sqlite.state_folder import IS_POSIX, secure_folder
from cg.sweep.store import StoreError

# What SQLite reads beside a state. A journal is played back into the state even where a log is kept.
_SIDE_FILES = ("-journal", "-wal", "-shm")


Place = tuple[int, int] | None  # (device, inode) of what stands at a name; None where nothing does
Places = tuple[Place, Place]  # of a state and its log


def address(path: Path) -> tuple[str, bool]:
    """What SQLite is to open for an absolute path, and whether that is a URI: no file is made where none is."""
    if not IS_POSIX:  # an open file cannot be deleted there, and a URI cannot name every path
        return os.fspath(path), False
    return f"file://{quote_from_bytes(os.fsencode(path))}?mode=rw", True


def places(path: Path) -> Places:
    """Which files stand at the state's name and at its log's, to be held against those that were opened."""
    return (_place(path), _place(_beside(path, "-wal"))) if IS_POSIX else (None, None)


def _place(path: Path) -> Place:
    try:
        found = path.lstat()
    except OSError:  # whatever the reason is: what is written would not be found again
        return None
    return found.st_dev, found.st_ino


def secure(path: Path) -> None:
    """Make sure that the state file and its folder are ours alone, creating what is missing (0700, 0600).

    Raises StoreError for a symlink, another owner, a file that others may read or write, a folder that is another's or
    in which others may put files in its place (here or above), and for anything that is no regular file.
    """
    if not path.name:
        raise StoreError(f"{path}: is not a regular file")
    try:
        secure_folder(path.parent)
        _create(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be used as state: {error.strerror or type(error).__name__}") from error
    for name in (path, *(_beside(path, suffix) for suffix in _SIDE_FILES)):
        _refuse_foreign(name)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _create(path: Path) -> None:
    """An empty file of mode 0600 unless something is there; SQLite gives its side files the same mode."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        os.close(os.open(path, flags, 0o600))
    except FileExistsError:
        return


def _refuse_foreign(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: cannot be used as state: {error.strerror or type(error).__name__}") from error
    if stat.S_ISLNK(found.st_mode):
        raise StoreError(f"{path}: is a symbolic link; a state must be a file of its own")
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path}: is not a regular file")
    if not IS_POSIX:
        return
    if found.st_uid != os.geteuid():
        raise StoreError(f"{path}: belongs to user {found.st_uid}, not to user {os.geteuid()}")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise StoreError(f"{path}: others may use it (mode {mode:04o}); a state must be 0600")
