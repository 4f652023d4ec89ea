"""How values lie in the SQLite state, and how a thread is read from it."""

import json
import sqlite3
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.storage.packing import blob, plain, raw, removal_checksum
from cg.sweep.store import StoreError
from cg.sweep.values import Branch, Ending, Identity, Pending, Removal, Thread, Usage

REMEMBERED_THREADS = 64
MATCH = "thread = ? AND tool_use_id = ? AND block = ? AND sha256 = ?"


def _number(stored: Any) -> Any:
    """A column's number, or its None. Raises ValueError for another type."""
    if stored is not None and not isinstance(stored, int | float):
        raise ValueError(f"a column holds {type(stored).__name__} where a number belongs")
    return stored


def _branch(row: tuple[Any, ...]) -> Branch:
    branch, chain, head, body, *numbers = row
    return Branch(branch, blob(chain), blob(head), blob(body), *map(_number, numbers))


def identity_columns(thread: str, identity: Identity) -> tuple[str, bytes, int, str]:
    """A thread's identity as the four key columns."""
    return thread, raw(identity.tool_use_id), identity.block, identity.sha256


ROW = (
    "SELECT version, touched, declaration, declared, bytes_per_token, usages, paid_misses FROM thread WHERE thread = ?"
)
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """A thread as it was read, and its row then: as long as the row is the same, so is all that hangs on its stamps."""

    row: Row
    thread: Thread

    @property
    def version(self) -> int:
        return self.row[0]  # type: ignore[no-any-return]

    @property
    def touched(self) -> int:
        return self.row[1]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Moved:
    """What writing a branch changed: the stamps before (None: a new thread) and after, the branches as they stand then
    if they are known, and the names of those that were let go."""

    before: int | None
    after: int
    branches: tuple[Branch, ...] | None
    old: tuple[str, ...]


class Records:
    """Reads threads; remembers the last few, under the stamps that any writer renews with what it changes."""

    def __init__(self) -> None:
        self._seen: BoundedCache[str, Seen] = BoundedCache(REMEMBERED_THREADS)

    def known(self, thread: str, row: Row | None) -> Thread | None:
        """The thread whose row this is, if it needs no further look; an empty one if it was never seen."""
        if row is None:
            return Thread()
        seen = self._seen.get(thread)
        return seen.thread if seen is not None and seen.row == row else None

    def thread(self, db: sqlite3.Connection, thread: str, path: Path) -> Thread:
        """The thread as it stands, in one view."""
        row = db.execute(ROW, (thread,)).fetchone()
        if row is None:
            return Thread()
        seen = self._seen.get(thread)
        version, touched, declaration, declared, ratio, usages, misses = row
        decided = seen.thread if seen is not None and seen.version == version else None
        standing = seen.thread if seen is not None and seen.touched == touched else None
        decisions = _read_decisions(db, thread, path) if decided is None else decided
        branches = _branches(db, thread) if standing is None else standing.branches
        found = replace(
            decisions,
            branches=branches,
            declaration=_declaration(declaration, declared, path),
            bytes_per_token=_number(ratio),
            usages=tuple(Usage(*tiers) for tiers in json.loads(usages)),
            paid_misses=_number(misses),
        )
        self._seen.put(thread, Seen(row, found))
        return found

    def branches(self, thread: str, touched: int) -> tuple[Branch, ...] | None:
        """The thread's branches under this stamp, if they are known."""
        seen = self._seen.get(thread)
        return seen.thread.branches if seen is not None and seen.touched == touched else None

    def moved(self, thread: str, moved: Moved) -> None:
        """Take in what was just committed: the branches under their new stamp, in place of those under the one before."""
        seen = self._seen.get(thread)
        if seen is not None and moved.branches is not None and seen.touched == moved.before:
            row = (seen.version, moved.after, *seen.row[2:])
            self._seen.put(thread, Seen(row, replace(seen.thread, branches=moved.branches)))

    def forget(self, thread: str | None) -> None:
        if thread is None:
            self._seen.clear()
        else:
            self._seen.pop(thread)


def in_order(branches: Iterable[Branch]) -> tuple[Branch, ...]:
    """Branches as a thread holds them: the one that was touched last at the end."""
    return tuple(sorted(branches, key=lambda b: (b.clock, b.branch)))


def _branches(db: sqlite3.Connection, thread: str) -> tuple[Branch, ...]:
    query = "SELECT branch, chain, head, body, clock, ttl_s, asked_at FROM branch WHERE thread = ?"
    return in_order(_branch(row) for row in db.execute(query, (thread,)))


def _declaration(stored: object, checksum: object, path: Path) -> bytes | None:
    if stored is None and checksum is None:
        return None
    declaration = blob(stored)
    if zlib.crc32(declaration) != checksum:
        raise StoreError(f"{path}: a recorded tool declaration does not match its checksum: the file is damaged")
    return declaration


def _read_decisions(db: sqlite3.Connection, thread: str, path: Path) -> Thread:
    """The part of a thread that changes seldom."""
    removals: dict[Identity, Removal] = {}
    ended: dict[Identity, Ending] = {}
    for row in db.execute(
        "SELECT tool_use_id, block, sha256, written, saved_bytes, decided_at, checksum, ending FROM removal"
        " WHERE thread = ? ORDER BY rowid",
        (thread,),
    ):
        removal, ending = _removal(row, path)
        if ending is None:
            removals[removal.identity] = removal
        else:
            ended[removal.identity] = ending
    pending = {}
    for tool_use_id, block, sha256, *verdict in db.execute(
        "SELECT tool_use_id, block, sha256, tokens, judged_at, messages, history FROM pending WHERE thread = ?",
        (thread,),
    ):
        identity = Identity(plain(tool_use_id), block, sha256)
        pending[identity] = Pending(identity, *verdict)
    expanded = frozenset(s for (s,) in db.execute("SELECT sha256 FROM expanded WHERE thread = ?", (thread,)))
    missing = missing_of(db, thread)
    return Thread(removals=removals, ended=ended, pending=pending, expanded=expanded, missing=missing)


def missing_of(db: sqlite3.Connection, thread: str) -> frozenset[Identity]:
    """Removals that are replayed but whose original is gone."""
    rows = db.execute(
        "SELECT r.tool_use_id, r.block, r.sha256 FROM removal r LEFT JOIN payload p"
        " ON p.thread = r.thread AND p.key = substr(r.sha256, 1, 16) AND p.sha256 = r.sha256 AND p.content IS NOT NULL"
        " WHERE r.thread = ? AND r.ending IS NULL AND p.key IS NULL",
        (thread,),
    )
    return frozenset(Identity(plain(tool_use_id), block, sha256) for tool_use_id, block, sha256 in rows)


def _removal(row: tuple[Any, ...], path: Path) -> tuple[Removal, Ending | None]:
    tool_use_id, block, sha256, written, saved_bytes, decided_at, checksum, ending = row
    removal = Removal(Identity(plain(tool_use_id), block, sha256), blob(written), saved_bytes, decided_at)
    if removal_checksum(removal) != checksum:
        raise StoreError(f"{path}: a recorded removal does not match its checksum: the file is damaged")
    return removal, Ending(ending) if ending is not None else None
