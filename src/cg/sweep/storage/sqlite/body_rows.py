"""The last bodies sent, in the SQLite state: what a process leaves there for the next one."""

import sqlite3
from collections.abc import Iterator

from cg.sweep.storage.last_bodies import Kept
from cg.sweep.storage.packing import blob


def made_of(db: sqlite3.Connection, thread: str, branch: str) -> bytes | None:
    """Digest of the last body that a client sent on a branch; None for a branch that is not known."""
    row = db.execute("SELECT body FROM branch WHERE thread = ? AND branch = ?", (thread, branch)).fetchone()
    return None if row is None else blob(row[0])


def write_down(db: sqlite3.Connection, bodies: Iterator[Kept], total_bytes: int) -> None:
    """Put bodies into the file, at most `total_bytes` in all; one whose branch has moved on, or is gone, stays out."""
    size, used = db.execute("SELECT coalesce(sum(size), 0), coalesce(max(used), 0) FROM body").fetchone()
    for thread, branch, body, of in bodies:
        if of is None or of != made_of(db, thread, branch):
            continue
        used += 1
        old = db.execute("SELECT size FROM body WHERE thread = ? AND branch = ?", (thread, branch)).fetchone()
        db.execute(
            "INSERT OR REPLACE INTO body (thread, branch, body, size, used, made_of) VALUES (?, ?, ?, ?, ?, ?)",
            (thread, branch, body, len(body), used, of),
        )
        size += len(body) - (old[0] if old else 0)
    while size > total_bytes:
        row, freed = db.execute("SELECT rowid, size FROM body ORDER BY used LIMIT 1").fetchone()
        db.execute("DELETE FROM body WHERE rowid = ?", (row,))
        size -= freed


def read_back(db: sqlite3.Connection, thread: str, branch: str, of: bytes | None) -> bytes | None:
    """The body in the file, if it is what the branch last sent."""
    row = db.execute(
        "SELECT body FROM body WHERE thread = ? AND branch = ? AND made_of = ?", (thread, branch, of)
    ).fetchone()
    return None if row is None else blob(row[0])
