"""The layout of the SQLite state, by version, and how an older one is brought up to date."""

import sqlite3
import zlib
from contextlib import closing
from functools import cache
from pathlib import Path

from cg.sweep.store import StoreError

APPLICATION_ID = 0x63677377  # "cgsw", in the file's header: another program's database is not ours to write to

# One script a version, never edited once released: a state of version n is brought up by scripts n, n+1, ...
# Everything that comes from a request is a BLOB: tool names and ids may hold what is no valid Unicode.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE thread (
        thread TEXT PRIMARY KEY, version INTEGER NOT NULL, used_at REAL NOT NULL, declaration BLOB,
        bytes_per_token REAL, usages TEXT NOT NULL DEFAULT '[]', paid_misses INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE branch (
        thread TEXT NOT NULL, branch TEXT NOT NULL, chain BLOB NOT NULL, head BLOB NOT NULL, body BLOB NOT NULL,
        clock REAL NOT NULL, ttl_s INTEGER, asked_at REAL, PRIMARY KEY (thread, branch)
    );
    CREATE TABLE payload (
        thread TEXT NOT NULL, key TEXT NOT NULL, sha256 TEXT NOT NULL, tool_use_id BLOB NOT NULL,
        block INTEGER NOT NULL, tool BLOB NOT NULL, arguments BLOB NOT NULL, content BLOB, is_packed INTEGER NOT NULL,
        stored_at REAL NOT NULL, PRIMARY KEY (thread, key)
    );
    CREATE INDEX payload_age ON payload (stored_at) WHERE content IS NOT NULL;
    CREATE TABLE removal (
        thread TEXT NOT NULL, tool_use_id BLOB NOT NULL, block INTEGER NOT NULL, sha256 TEXT NOT NULL,
        written BLOB NOT NULL, saved_bytes INTEGER NOT NULL, decided_at REAL NOT NULL, checksum INTEGER NOT NULL,
        ending TEXT, ended_at REAL, PRIMARY KEY (thread, tool_use_id, block, sha256)
    );
    CREATE TABLE pending (
        thread TEXT NOT NULL, tool_use_id BLOB NOT NULL, block INTEGER NOT NULL, sha256 TEXT NOT NULL,
        tokens REAL NOT NULL, judged_at REAL NOT NULL, messages INTEGER NOT NULL, ask TEXT NOT NULL,
        PRIMARY KEY (thread, tool_use_id, block, sha256)
    ) WITHOUT ROWID;
    CREATE TABLE expanded (thread TEXT NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (thread, sha256)) WITHOUT ROWID;
    CREATE TABLE body (
        thread TEXT NOT NULL, branch TEXT NOT NULL, body BLOB NOT NULL, size INTEGER NOT NULL, used INTEGER NOT NULL,
        PRIMARY KEY (thread, branch)
    );
    CREATE TABLE claim (
        thread TEXT NOT NULL, name TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (thread, name)
    ) WITHOUT ROWID;
    CREATE TABLE ask (id INTEGER PRIMARY KEY, thread TEXT NOT NULL, detail TEXT NOT NULL);
    CREATE INDEX ask_thread ON ask (thread);
    CREATE TABLE total (
        thread TEXT NOT NULL, family TEXT NOT NULL, name TEXT NOT NULL, amount REAL NOT NULL,
        PRIMARY KEY (thread, family, name)
    ) WITHOUT ROWID;
    CREATE TABLE meta (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
    INSERT INTO meta VALUES ('payload_bytes', 0), ('swept_at', -1e300);
    """,
    # A body is only good for as long as its branch stands where it stood when the body was sent.
    """
    DELETE FROM body;
    ALTER TABLE body ADD COLUMN made_of BLOB;
    """,
    # A stamp is renewed with each change of a thread's branches, as `version` is with its decisions. What is declared is
    # replayed, so that it is checked as removals are.
    """
    ALTER TABLE thread ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE thread ADD COLUMN declared INTEGER;
    UPDATE thread SET declared = cg_crc32(declaration);
    """,
    # A verdict says over which history it was given; one that does not say cannot be trusted, and is asked for again.
    """
    DELETE FROM pending;
    ALTER TABLE pending RENAME COLUMN ask TO history;
    """,
    # An answer in the place of a client's error may say that it is none, and a removal may have ended by `pause --all`:
    # nothing is laid out anew, but a program before that could replay neither.
    "",
)
THREAD_TABLES = ("thread", "branch", "payload", "removal", "pending", "expanded", "body", "claim", "ask", "total")


Layout = frozenset[tuple[str, str, str, str]]  # type, name, table and statement of all that a database declares


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the database to the current layout, or raise StoreError if it is not exactly one of ours.

    A trigger or a view that was planted in a state would run with each of our statements, or lie to them.
    """
    connection.execute("BEGIN IMMEDIATE")  # two processes that start together migrate one after the other
    try:
        _migrate(connection, path)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    found = _layout(connection)
    if found and application != APPLICATION_ID:
        raise StoreError(f"{path}: is a database of another program")
    newest = len(MIGRATIONS)
    if not 0 <= version <= newest or (found and version == 0):
        newer = "; a newer release wrote it: use that one, or move it away to start anew" if version > newest else ""
        raise StoreError(f"{path}: has schema version {version}; this program knows 1 to {newest}{newer}")
    _refuse_changed(found, _expected(MIGRATIONS[:version]), path)
    if version == newest:
        return
    _run(connection, MIGRATIONS[version:])
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {newest}")


def _run(connection: sqlite3.Connection, scripts: tuple[str, ...]) -> None:
    connection.create_function("cg_crc32", 1, lambda stored: None if stored is None else zlib.crc32(stored))
    for script in scripts:
        for statement in script.split(";"):  # executescript would commit: all or nothing is wanted here
            if statement.strip():
                connection.execute(statement)


def _layout(connection: sqlite3.Connection) -> Layout:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    # White space apart: an ALTER of another SQLite may put its columns in differently.
    return frozenset((kind, name, table, "".join((sql or "").split())) for kind, name, table, sql in rows)


@cache
def _expected(scripts: tuple[str, ...]) -> Layout:
    """What a database holds that was made by these scripts."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        _run(made, scripts)
        return _layout(made)


def _refuse_changed(found: Layout, expected: Layout, path: Path) -> None:
    added, lost = found - expected, expected - found
    if added or lost:
        # Names, and kinds that SQLite does not know, are whoever's wrote them.
        kinds = sorted({kind for kind, *_ in added or lost} & {"table", "index", "trigger", "view"}) or ["other"]
        how = "holds what this program never put there" if added else "lacks what this program put there"
        raise StoreError(
            f"{path}: {how} ({', '.join(kinds)}): it was changed by another hand; move it away to start anew"
        )
