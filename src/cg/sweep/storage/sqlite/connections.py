"""Connections to one SQLite file: lent to one thread at a time, one writer, readers never blocked."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cg.sweep.storage.sqlite.schema import prepare
from cg.sweep.storage.sqlite.state_file import Places, address, places, secure
from cg.sweep.store import StoreError

BUSY_TIMEOUT_S = 10.0  # how long a writer waits for another process before the call is refused
CACHE_KB = 512  # pages that a connection keeps; by default 2 MB each, of a file that the system has in memory anyway
POLL_S = 0.002  # between two looks for the writer's lock; a write takes about as long


class Handle(sqlite3.Connection):
    """A connection that remembers what was set on it: a PRAGMA costs more than most statements of a turn."""

    level = ""  # of `synchronous`
    waits = True  # for another process's lock, in SQLite; else it refuses at once
    places: Places = (None, None)  # of the files that it has open: the state and its log

    def wait(self, waits: bool) -> None:
        if waits != self.waits:
            self.execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT_S * 1000) if waits else 0}")
            self.waits = waits


class StateGone(StoreError):
    """The state is no longer where it was opened. What was opened can still be read, so its connections are kept."""


class Connections:
    """A pool for one file. Safe between threads; a forked child opens its own.

    Should the file be deleted or replaced while it is in use, what was opened is read on, nothing durable is written and
    no other file is opened in its place.
    """

    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        if must_exist and not path.exists():
            raise StoreError(f"{path}: there is no state here")
        self.path = path
        self._idle: list[Handle] = []
        self._writer = threading.Lock()  # fair between threads, where SQLite's own waiting polls
        self._pid = os.getpid()
        self._is_closed = False
        secure(path)
        self._file = path.absolute()  # wherever the process goes
        self._place = places(self._file)[0]
        with self.errors(), self._lent() as connection:
            connection.wait(True)
            prepare(connection, path)
            connection.places = places(self._file)  # a new state has its log only now

    def row(self, query: str, values: tuple[object, ...]) -> tuple[Any, ...] | None:
        """The first row of one statement, which is a view of its own; raises StoreError if the file cannot be read."""
        self._check_process()
        with self.errors(), self._lent() as connection:
            try:
                rows = connection.execute(query, values).fetchall()
            except sqlite3.OperationalError as error:
                if not _is_busy(error):
                    raise
                connection.wait(True)
                rows = connection.execute(query, values).fetchall()
        return rows[0] if rows else None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view; raises StoreError if the file cannot be read."""
        self._check_process()
        with self.errors(), self._lent() as connection:
            connection.wait(True)
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction, committed on leaving, undone on an exception; raises StoreError if it cannot be made.

        `durable`: on the disk, not only with the kernel, before it returns. Any commit survives the process; only a
        durable one survives the machine, and it is found again only in a file that still stands at its name.
        """
        self._check_process()
        with self.errors(), self._writer, self._lent() as connection:
            level = "FULL" if durable else "NORMAL"
            if connection.level != level:
                connection.execute(f"PRAGMA synchronous = {level}")
                connection.level = level
            _patiently(connection, "BEGIN IMMEDIATE")
            try:
                yield connection
                if durable:
                    self._check_places(connection.places)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def compact(self) -> None:
        """Write the file anew and empty its log, so that what was erased is in neither.

        Deleting overwrites what it frees, but not the copies that SQLite leaves behind when it moves rows between pages.
        Raises StoreError while another process reads an older view: what that one sees cannot be taken out of the log.
        """
        self._check_process()
        with self.errors(), self._writer, self._lent() as connection:
            _patiently(connection, "VACUUM")
            connection.wait(True)
            is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise StoreError(
                f"{self.path}: it is erased, but not yet from the log beside it: another process reads an older view of"
                " it; end that process, or wait for it, and forget again"
            )

    def close(self) -> None:
        """Close what is not lent out; what is lent closes on its return."""
        self._is_closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:  # asked by popping: two threads that close may both see the last one
                return
            connection.close()

    @contextmanager
    def _lent(self) -> Iterator[Handle]:
        if self._is_closed:
            raise StoreError(f"{self.path}: the store is closed")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            yield connection
        except StateGone:
            self._give_back(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)

    def _give_back(self, connection: Handle) -> None:
        self._idle.append(connection)
        if self._is_closed:  # looked at last: whoever closed in between either found it in the pool or is seen here
            self._close_idle()

    def _check_places(self, opened: Places) -> None:
        state, log = places(self._file)
        if state != self._place or opened[1] not in (None, log):  # None: no log was open, so there is none to miss
            raise StateGone(
                f"{self.path}: was deleted or replaced while it was in use; start again to use what is there now"
            )

    def _check_process(self) -> None:
        """SQLite's handles do not survive a fork, and our lock may have been held by a thread that is not here."""
        if self._pid == os.getpid():
            return
        _INHERITED.extend(self._idle)
        self._idle, self._writer, self._pid = [], threading.Lock(), os.getpid()

    def _open(self) -> Handle:
        self._check_places(Handle.places)  # before: to open another file is to play the log that stands here into it
        name, is_uri = address(self._file)
        connection = sqlite3.connect(
            name,
            uri=is_uri,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=Handle,
        )
        try:
            _patiently(connection, "PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA secure_delete = ON")  # what is forgotten does not linger in free pages
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
            connection.execute("PRAGMA journal_size_limit = 16777216")
            connection.places = places(self._file)
            self._check_places(connection.places)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """SQLite's errors, and values that this program never wrote, as StoreError; no content in the message."""
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise StoreError(f"{self.path}: {_plain(error)}") from error
        except (ValueError, TypeError, OverflowError) as error:
            # Flipped bits give other types and broken text, even in SQLite's own messages.
            raise StoreError(f"{self.path}: holds what does not belong there: {_DAMAGED}") from error


def _patiently(connection: Handle, statement: str) -> None:
    """Run a statement that another process may hold up, looking every few milliseconds until the time is up.

    SQLite's own waiting backs off to a tenth of a second, in which a busy process takes the lock again and again; and
    the switch to WAL, which two processes make when they open a new file together, does not wait at all.
    """
    connection.wait(False)
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute(statement).fetchone()
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(POLL_S)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


_DAMAGED = "it is damaged or not a database; move it away to start anew"
_INHERITED: list[Handle] = []  # a parent's connections, kept so that they are never finalised here


def _plain(error: BaseException) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _DAMAGED
    if code is not None and code & 0xFF == sqlite3.SQLITE_READONLY:
        return "cannot be written (read-only)"
    if code is not None and code & 0xFF == sqlite3.SQLITE_FULL:
        return "the disk is full"
    if code is not None and code & 0xFF == sqlite3.SQLITE_BUSY:
        return f"another process has held it for more than {BUSY_TIMEOUT_S:g} s"
    return f"{type(error).__name__}: {getattr(error, 'sqlite_errorname', 'error')}"
