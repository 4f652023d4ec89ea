"""The store on disk: one SQLite file in WAL mode, shared by threads and processes."""

import json
import logging
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Protocol

from cg.sweep.accounting.tally import Tally
from cg.sweep.accounting.totals import FAMILIES, shares
from cg.sweep.economics import learn_ratio
from cg.sweep.ledger import AskRow, TurnReport
from cg.sweep.storage.last_bodies import LastBodies, kept_until
from cg.sweep.storage.packing import blob, named, removal_checksum
from cg.sweep.storage.sqlite.body_rows import made_of, read_back, write_down
from cg.sweep.storage.sqlite.connections import Connections
from cg.sweep.storage.sqlite.payload_rows import PAYLOAD, as_payload, is_kept, keep
from cg.sweep.storage.sqlite.schema import THREAD_TABLES
from cg.sweep.storage.sqlite.thread_records import MATCH, ROW, Moved, Records, identity_columns, missing_of
from cg.sweep.storage.sqlite.thread_rows import UNDATED, know, put_branch, renew_version, stands, use
from cg.sweep.store import MAX_ROWS, Expired, Limits, StoreError
from cg.sweep.values import Branch, Ending, Identity, Payload, Pending, Removal, Switch, Thread, Usage

log = logging.getLogger("cg.sweep")

SWEEP_EVERY_S = 3600.0  # ages are looked at with the first put of an hour


class Configured(Protocol):
    """The two limits, as a configuration holds them."""

    @property
    def payload_ttl_h(self) -> float: ...

    @property
    def store_max_mb(self) -> int: ...


class SqliteStore:
    """`cg.sweep.store.Store` in a file that only its owner can read.

    The last sent bodies are in memory, and in the file once the store is closed: a pipe's next process finds its own
    there, and no turn pays for writing a body that the next one replaces. `bodies_in_memory` keeps them out of the file
    altogether, as a long-running gateway does; there they go when their cache entry has ended, since nobody is asked
    about a prefix that is gone. With `must_exist` a file that is not there is a StoreError, and stays so.
    """

    def __init__(
        self,
        path: Path | str,
        config: Configured | None = None,
        *,
        limits: Limits | None = None,
        bodies_in_memory: bool = False,
        must_exist: bool = False,
    ) -> None:
        if limits is None and config is not None:
            limits = Limits(config.payload_ttl_h * 3600.0, config.store_max_mb * 1024 * 1024)
        self._limits = limits or Limits()
        self._file = Connections(Path(path), must_exist=must_exist)
        self._records = Records()
        self._bodies = LastBodies(total_bytes=self._limits.bodies_bytes)
        self._writes_bodies = not bodies_in_memory

    def __enter__(self) -> "SqliteStore":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def load(self, thread: str) -> Thread:
        known = self._records.known(thread, self._file.row(ROW, (thread,)))
        if known is not None:
            return known
        with self._file.reading() as db:
            return self._records.thread(db, thread, self._file.path)

    # -- originals ---------------------------------------------------------------------------------------------------

    def put(self, thread: str, payloads: Sequence[Payload], now: float) -> frozenset[Identity]:
        try:
            with self._file.writing(durable=True) as db:
                if _meta(db, "swept_at") + SWEEP_EVERY_S <= now:
                    self._expire(db, now)
                held = _meta(db, "payload_bytes")
                room = self._limits.max_bytes - held
                use(db, thread, now)
                written = []
                for payload in payloads:
                    grown = keep(db, thread, payload, now, room)
                    if grown is not None:
                        room -= grown
                        written.append(payload)
                _set_meta(db, "payload_bytes", self._limits.max_bytes - room)
                if self._limits.max_bytes - room != held:
                    renew_version(db, thread)  # what was missing may be back
        except StoreError as error:
            if _is_out_of_room(error.__cause__):
                return frozenset()  # nothing was stored, which is a full answer: the outputs stay whole
            raise
        # Asked for anew, as an expansion would, and past the page cache: what cannot be read back was not stored.
        with self._file.reading() as db:
            db.execute("PRAGMA shrink_memory")
            return frozenset(p.identity for p in written if is_kept(db, thread, p))

    def fetch(self, thread: str, key: str) -> Payload | Expired | None:
        with self._file.reading() as db:
            row = db.execute(f"SELECT {PAYLOAD} FROM payload WHERE thread = ? AND key = ?", (thread, key)).fetchone()
            return None if row is None else named(as_payload(row), key, row[2])

    def missing(self, thread: str) -> frozenset[Identity]:
        with self._file.reading() as db:
            return missing_of(db, thread)

    # -- decisions ---------------------------------------------------------------------------------------------------

    def freeze(self, thread: str, removals: Sequence[Removal]) -> tuple[Removal, ...]:
        with self._file.writing(durable=True) as db:
            standing = [_freeze(db, thread, removal) for removal in removals]
            renew_version(db, thread)
        return tuple(removal for removal in standing if removal is not None)

    def end(self, thread: str, identity: Identity, ending: Ending, now: float) -> bool:
        with self._file.writing(durable=True) as db:
            ended = db.execute(
                f"UPDATE removal SET ending = ?, ended_at = ? WHERE {MATCH} AND ending IS NULL",
                (ending.value, now, *identity_columns(thread, identity)),
            ).rowcount
            renew_version(db, thread)
        return bool(ended)

    def expand_mark(self, thread: str, sha256: str) -> None:
        with self._file.writing(durable=True) as db:
            db.execute("INSERT OR IGNORE INTO expanded VALUES (?, ?)", (thread, sha256))
            renew_version(db, thread)

    def pend(self, thread: str, pending: Sequence[Pending]) -> None:
        with self._file.writing() as db:
            for drop in pending:
                where = identity_columns(thread, drop.identity)
                if db.execute(f"SELECT 1 FROM removal WHERE {MATCH} AND ending IS NULL", where).fetchone() is None:
                    row = (*where, drop.tokens, drop.judged_at, drop.messages, drop.history)
                    db.execute("INSERT OR IGNORE INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            renew_version(db, thread)

    def unpend(self, thread: str, identities: Sequence[Identity]) -> None:
        with self._file.writing() as db:
            db.executemany(f"DELETE FROM pending WHERE {MATCH}", [identity_columns(thread, i) for i in identities])
            renew_version(db, thread)

    def declare(self, thread: str, declaration: bytes) -> bytes:
        with self._file.writing(durable=True) as db:
            know(db, thread)
            db.execute(
                "UPDATE thread SET declaration = ?, declared = ? WHERE thread = ? AND declaration IS NULL",
                (declaration, zlib.crc32(declaration), thread),
            )
            (standing,) = db.execute("SELECT declaration FROM thread WHERE thread = ?", (thread,)).fetchone()
        return blob(standing)

    # -- branches ----------------------------------------------------------------------------------------------------

    def touch(self, thread: str, branch: Branch, *, seen: Branch | None = None) -> bool:
        with self._file.writing() as db:
            if seen is not None and not stands(db, thread, seen):
                return False
            moved = put_branch(db, thread, branch, self._records)
        self._moved(thread, branch, moved)
        return True

    def turned(self, thread: str, turn: TurnReport, branch: Branch | None = None, body: bytes | None = None) -> None:
        with self._file.writing() as db:
            moved = put_branch(db, thread, branch, self._records) if branch is not None else None
            _count(db, thread, turn)
        if branch is not None and moved is not None:
            self._moved(thread, branch, moved, body)

    def _moved(self, thread: str, branch: Branch, moved: Moved, body: bytes | None = None) -> None:
        """Know what a transaction that was committed has changed."""
        self._records.moved(thread, moved)
        for name in moved.old:
            self._bodies.forget(thread, name)
        if body is not None:
            self._bodies.keep(thread, branch.branch, body, branch.body)
        self._age_bodies(thread, branch.branch, branch.clock, kept_until(branch.clock, branch.ttl_s))

    def learn(
        self,
        thread: str,
        *,
        usage: Usage | None = None,
        sent_bytes: int | None = None,
        bytes_per_token: float | None = None,
        paid_miss: bool = False,
    ) -> None:
        with self._file.writing() as db:
            know(db, thread)
            ratio, listed = db.execute(
                "SELECT bytes_per_token, usages FROM thread WHERE thread = ?", (thread,)
            ).fetchone()
            usages = json.loads(listed)
            if usage is not None:
                usages = [*usages, list(astuple(usage))][-2:]
                if sent_bytes is not None:
                    ratio = learn_ratio(ratio, sent_bytes, usage)
            ratio = ratio if bytes_per_token is None else bytes_per_token
            db.execute(
                "UPDATE thread SET bytes_per_token = ?, usages = ?, paid_misses = paid_misses + ? WHERE thread = ?",
                (ratio, json.dumps(usages), int(paid_miss), thread),
            )

    def keep_body(self, thread: str, branch: str, body: bytes) -> None:
        with self._file.reading() as db:
            row = db.execute(
                "SELECT body, clock, ttl_s FROM branch WHERE thread = ? AND branch = ?", (thread, branch)
            ).fetchone()
            of, clock, until = (None, 0.0, 0.0) if row is None else (blob(row[0]), float(row[1]), kept_until(*row[1:]))
        self._bodies.keep(thread, branch, body, of)
        if row is not None:
            self._age_bodies(thread, branch, clock, until)

    def _age_bodies(self, thread: str, branch: str, now: float, until: float) -> None:
        """A branch was touched: its body stays as long as its cache entry does, and what is older goes."""
        if self._writes_bodies:  # the next process makes the ask of a gap that is long over
            return
        self._bodies.keep_until(thread, branch, until)
        self._bodies.drop_past(now)

    def last_body(self, thread: str, branch: str) -> bytes | None:
        with self._file.reading() as db:
            of = made_of(db, thread, branch)
            body = self._bodies.last(thread, branch, of)
            return read_back(db, thread, branch, of) if body is None and self._writes_bodies else body

    def claim(self, thread: str, name: str, until: float, *, branch: Branch | None = None) -> bool:
        with self._file.writing() as db:
            if branch is not None and not stands(db, thread, branch):
                return False
            return bool(db.execute("INSERT OR IGNORE INTO claim VALUES (?, ?, ?)", (thread, name, until)).rowcount)

    # -- accounts ----------------------------------------------------------------------------------------------------

    def book(self, row: AskRow) -> None:
        with self._file.writing() as db:
            detail = json.dumps(row.to_dict())
            added = db.execute("INSERT INTO ask (thread, detail) VALUES (?, ?)", (row.thread, detail)).lastrowid or 0
            db.execute("DELETE FROM ask WHERE id <= ?", (added - MAX_ROWS,))

    def rows(self, thread: str | None = None) -> Iterator[AskRow]:
        with self._file.reading() as db:
            found = db.execute("SELECT detail FROM ask WHERE ? IS NULL OR thread = ? ORDER BY id", (thread, thread))
            return iter([AskRow.from_dict(json.loads(detail)) for (detail,) in found])

    def count(self, thread: str, turn: TurnReport | Tally) -> None:
        with self._file.writing() as db:
            _count(db, thread, turn)

    def totals(self, thread: str | None = None) -> Mapping[str, Mapping[str, float]]:
        totals: dict[str, dict[str, float]] = {family: {} for family in FAMILIES}
        # One thread's are found by its name; "any, or this one" would read those of all.
        where, values = ("", ()) if thread is None else (" WHERE thread = ?", (thread,))
        query = f"SELECT family, name, sum(amount) FROM total{where} GROUP BY family, name ORDER BY family, name"
        with self._file.reading() as db:
            for family, name, amount in db.execute(query, values):
                totals.setdefault(family, {})[name] = amount
        return totals

    def switch(self) -> Switch:
        row = self._file.row(_SWITCH, ())
        return _SWITCHES[int(row[0])] if row else Switch.ON

    def set_switch(self, switch: Switch) -> None:
        with self._file.writing(durable=True) as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('switch', ?)", (_SWITCHES.index(switch),))

    def status(self) -> Mapping[str, int]:
        with self._file.reading() as db:
            counted = {name: db.execute(query).fetchone()[0] for name, query in _STATUS.items()}
            counted["payload_bytes"] = int(_meta(db, "payload_bytes"))
            sizes = {(thread, branch): size for thread, branch, size in db.execute(_BODIES)} | self._bodies.sizes()
        return counted | {"bodies": len(sizes), "body_bytes": sum(sizes.values())}

    # -- the end -----------------------------------------------------------------------------------------------------

    def forget(self, thread: str | None) -> None:
        with self._file.writing(durable=True) as db:
            _erase(db, "? IS NULL OR thread = ?", (thread, thread))
        self._bodies.forget(thread)
        self._records.forget(thread)
        self._file.compact()

    def sweep_ages(self, now: float) -> None:
        self._bodies.drop_past(now)
        with self._file.writing() as db:
            self._expire(db, now)

    def _expire(self, db: sqlite3.Connection, now: float) -> None:
        """Let go of old threads, claims and contents; what a thread that is in use replays is not old."""
        # A thread that no request has dated yet starts to age now.
        db.execute("UPDATE thread SET used_at = ? WHERE used_at = ?", (now, UNDATED))
        _erase(db, "thread IN (SELECT thread FROM thread WHERE used_at <= ?)", (now - self._limits.thread_ttl_s,))
        db.execute("DELETE FROM claim WHERE until <= ?", (now,))
        before = now - self._limits.payload_ttl_s
        old = (
            "content IS NOT NULL AND stored_at <= ? AND NOT EXISTS ("
            " SELECT 1 FROM thread t JOIN removal r ON r.thread = t.thread WHERE t.thread = payload.thread"
            " AND t.used_at > ? AND r.sha256 = payload.sha256 AND r.ending IS NULL)"
        )
        robbed = db.execute(f"SELECT DISTINCT thread FROM payload WHERE {old}", (before, before)).fetchall()
        db.execute(f"UPDATE payload SET content = NULL WHERE {old}", (before, before))
        for (thread,) in robbed:
            renew_version(db, thread)
        _measure(db)
        _set_meta(db, "swept_at", now)

    def close(self) -> None:
        if self._writes_bodies and len(self._bodies):
            try:
                with self._file.writing() as db:
                    write_down(db, self._bodies.take(), self._limits.bodies_bytes)
            except StoreError as error:  # all that it costs is an ask: the next process has no prefix to ask about
                log.error("the last bodies were not kept: %s", error)
        self._file.close()


_SWITCH = "SELECT value FROM meta WHERE name = 'switch' AND value IN (0, 1, 2)"
_SWITCHES = (Switch.ON, Switch.PAUSED, Switch.PAUSED_ALL)  # by the number that is stored: never reordered

_STATUS = {
    "threads": "SELECT count(*) FROM thread",
    "branches": "SELECT count(*) FROM branch",
    "removals": "SELECT count(*) FROM removal WHERE ending IS NULL",
    "ended": "SELECT count(*) FROM removal WHERE ending IS NOT NULL",
    "pending": "SELECT count(*) FROM pending",
    "payloads": "SELECT count(*) FROM payload WHERE content IS NOT NULL",
    "expired": "SELECT count(*) FROM payload WHERE content IS NULL",
    "asks": "SELECT count(*) FROM ask",
}

_BODIES = "SELECT thread, branch, size FROM body"


def _meta(db: sqlite3.Connection, name: str) -> float:
    return float(db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0])


def _set_meta(db: sqlite3.Connection, name: str, value: float) -> None:
    db.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


def _count(db: sqlite3.Connection, thread: str, turn: TurnReport | Tally) -> None:
    db.executemany(
        "INSERT INTO total VALUES (?, ?, ?, ?)"
        " ON CONFLICT (thread, family, name) DO UPDATE SET amount = amount + excluded.amount",
        [(thread, *share) for share in shares(turn)],
    )


def _measure(db: sqlite3.Connection) -> None:
    (size,) = db.execute("SELECT coalesce(sum(length(content)), 0) FROM payload").fetchone()
    _set_meta(db, "payload_bytes", size)


def _erase(db: sqlite3.Connection, where: str, values: tuple[object, ...]) -> None:
    for table in reversed(THREAD_TABLES):  # `thread` last: the others are chosen by it
        db.execute(f"DELETE FROM {table} WHERE {where}", values)
    _measure(db)


def _freeze(db: sqlite3.Connection, thread: str, removal: Removal) -> Removal | None:
    """The removal that stands for this identity; None when none may."""
    where = identity_columns(thread, removal.identity)
    row = db.execute(f"SELECT written, saved_bytes, decided_at, ending FROM removal WHERE {MATCH}", where).fetchone()
    if row is not None:
        written, saved, decided_at, ending = row
        return Removal(removal.identity, blob(written), saved, decided_at) if ending is None else None
    sha256 = removal.identity.sha256
    stored = db.execute(
        "SELECT 1 FROM payload WHERE thread = ? AND key = ? AND sha256 = ? AND content IS NOT NULL",
        (thread, removal.identity.key, sha256),
    ).fetchone()
    expanded = db.execute("SELECT 1 FROM expanded WHERE thread = ? AND sha256 = ?", (thread, sha256)).fetchone()
    if stored is None or expanded is not None:
        return None
    row = (removal.written, removal.saved_bytes, removal.decided_at, removal_checksum(removal))
    db.execute("INSERT INTO removal VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)", (*where, *row))
    db.execute(f"DELETE FROM pending WHERE {MATCH}", where)
    return removal


def _is_out_of_room(error: BaseException | None) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_TOOBIG)
