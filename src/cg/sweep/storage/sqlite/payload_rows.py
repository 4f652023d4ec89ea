"""Originals in the SQLite state: kept once per thread and key, packed when that pays, believed only if they hash."""

import sqlite3

from cg.sweep.storage.packing import pack, plain, raw, unpack
from cg.sweep.store import Expired, is_intact
from cg.sweep.values import Identity, Payload

PAYLOAD = "tool_use_id, block, sha256, tool, arguments, content, is_packed"  # what `as_payload` reads
StoredPayload = tuple[bytes, int, str, bytes, bytes, bytes | None, int]


def keep(db: sqlite3.Connection, thread: str, payload: Payload, now: float, room: float) -> int | None:
    """Bytes that storing the original took (0: it was there); None when it is refused."""
    identity = payload.identity
    if not is_intact(payload.content, identity.sha256):
        return None
    where = (thread, identity.key)
    found = db.execute(f"SELECT {PAYLOAD} FROM payload WHERE thread = ? AND key = ?", where).fetchone()
    if found is not None and found[2] != identity.sha256:
        return None
    if found is not None and isinstance(as_payload(found), Payload):
        db.execute("UPDATE payload SET stored_at = max(stored_at, ?) WHERE thread = ? AND key = ?", (now, *where))
        return 0
    content, is_packed = pack(payload.content)
    freed = len(found[5] or b"") if found is not None else 0  # a damaged one is written over
    if len(content) - freed > room:
        return None
    db.execute(
        "INSERT OR REPLACE INTO payload VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            thread,
            identity.key,
            identity.sha256,
            raw(identity.tool_use_id),
            identity.block,
            raw(payload.tool),
            raw(payload.arguments),
            content,
            is_packed,
            now,
        ),
    )
    return len(content) - freed


def is_kept(db: sqlite3.Connection, thread: str, payload: Payload) -> bool:
    where = (thread, payload.identity.key)
    row = db.execute(f"SELECT {PAYLOAD} FROM payload WHERE thread = ? AND key = ?", where).fetchone()
    found = None if row is None else as_payload(row)
    return isinstance(found, Payload) and found.identity.sha256 == payload.identity.sha256


def as_payload(row: StoredPayload) -> Payload | Expired:
    """A row as an original; one whose bytes no longer hash to their name is as good as gone."""
    tool_use_id, block, sha256, tool, arguments, packed, is_packed = row
    content = None if packed is None else unpack(packed, bool(is_packed))
    if content is None or not is_intact(content, sha256):
        return Expired(plain(tool), plain(arguments))
    return Payload(Identity(plain(tool_use_id), block, sha256), content, plain(tool), plain(arguments))
