"""Rows of threads and branches in the SQLite state, written with the stamps by which readers know what has changed."""

import secrets
import sqlite3

from cg.sweep.storage.sqlite.thread_records import Moved, Records, in_order
from cg.sweep.store import MAX_BRANCHES
from cg.sweep.values import Branch

UNDATED = -1e300  # seconds; before every request


def know(db: sqlite3.Connection, thread: str) -> None:
    """The thread's row, if it is new."""
    row = (thread, new_stamp(), UNDATED)
    db.execute("INSERT OR IGNORE INTO thread (thread, version, used_at) VALUES (?, ?, ?)", row)


def use(db: sqlite3.Connection, thread: str, now: float) -> None:
    know(db, thread)
    db.execute("UPDATE thread SET used_at = max(used_at, ?) WHERE thread = ?", (now, thread))


def renew_version(db: sqlite3.Connection, thread: str) -> None:
    """Tell every process that decisions of the thread have changed."""
    know(db, thread)
    db.execute("UPDATE thread SET version = ? WHERE thread = ?", (new_stamp(), thread))


def new_stamp() -> int:
    """Random, so that no old stamp ever comes back."""
    return secrets.randbits(62)


def stands(db: sqlite3.Connection, thread: str, branch: Branch) -> bool:
    """The branch has still this clock and this body."""
    where = (thread, branch.branch, branch.clock, branch.body)
    query = "SELECT 1 FROM branch WHERE thread = ? AND branch = ? AND clock = ? AND body = ?"
    return db.execute(query, where).fetchone() is not None


def put_branch(db: sqlite3.Connection, thread: str, branch: Branch, records: Records) -> Moved:
    """Write a branch as it now stands, and let go of those touched longest ago past the limit."""
    before, after = _touch(db, thread, branch.clock)
    # By hand: astuple copies each value, which took as long as the statement.
    row = (branch.branch, branch.chain, branch.head, branch.body, branch.clock, branch.ttl_s, branch.asked_at)
    db.execute(
        "INSERT INTO branch VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (thread, branch) DO UPDATE SET"
        " chain = excluded.chain, head = excluded.head, body = excluded.body, clock = excluded.clock,"
        " ttl_s = excluded.ttl_s, asked_at = excluded.asked_at",
        (thread, *row),
    )
    known = None if before is None else records.branches(thread, before)
    if known is None:
        branches, old = None, _past_the_limit(db, thread)
    else:
        all_of_them = in_order([*(b for b in known if b.branch != branch.branch), branch])
        branches, old = all_of_them[-MAX_BRANCHES:], tuple(b.branch for b in all_of_them[:-MAX_BRANCHES])
    for name in old:
        db.execute("DELETE FROM branch WHERE thread = ? AND branch = ?", (thread, name))
        db.execute("DELETE FROM body WHERE thread = ? AND branch = ?", (thread, name))
    return Moved(before, after, branches, old)


def _touch(db: sqlite3.Connection, thread: str, now: float) -> tuple[int | None, int]:
    """The stamps of the thread's branches before and after a change; None before for a new thread."""
    after = new_stamp()
    row = db.execute("SELECT touched FROM thread WHERE thread = ?", (thread,)).fetchone()
    if row is None:
        new = (thread, new_stamp(), now, after)
        db.execute("INSERT INTO thread (thread, version, used_at, touched) VALUES (?, ?, ?, ?)", new)
        return None, after
    db.execute("UPDATE thread SET used_at = max(used_at, ?), touched = ? WHERE thread = ?", (now, after, thread))
    return row[0], after


def _past_the_limit(db: sqlite3.Connection, thread: str) -> tuple[str, ...]:
    query = "SELECT branch FROM branch WHERE thread = ? ORDER BY clock DESC, branch DESC LIMIT -1 OFFSET ?"
    return tuple(name for (name,) in db.execute(query, (thread, MAX_BRANCHES)).fetchall())
