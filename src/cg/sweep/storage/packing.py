"""How texts and bytes lie in a store: packed where that saves, and checked where they are replayed."""

import json
import zlib

from cg.sweep.store import Expired
from cg.sweep.values import Identity, Payload, Removal

MAX_CONTENT_BYTES = 100 * 1024 * 1024  # no text is larger than the largest body: a bomb unpacks no further
PACK_FROM_BYTES = 512  # below, packing saves less than a page
PACK_GAIN = 0.9  # packed only if a tenth is saved: unpacking is paid at every read


def raw(text: str) -> bytes:
    """Text as bytes, lone surrogates passed through."""
    return text.encode("utf-8", "surrogatepass")


def plain(stored: bytes) -> str:
    """The text that `raw` stored. Raises ValueError for anything else."""
    return blob(stored).decode("utf-8", "surrogatepass")


def blob(stored: object) -> bytes:
    """A column's bytes. Raises ValueError for another type: a damaged row can hold a number, which `bytes` would take
    for a size."""
    if not isinstance(stored, bytes):
        raise ValueError(f"a column holds {type(stored).__name__} where bytes belong")
    return stored


def pack(content: bytes) -> tuple[bytes, bool]:
    """(bytes to store, whether they are packed)."""
    if len(content) >= PACK_FROM_BYTES:
        packed = zlib.compress(content, 1)
        if len(packed) < PACK_GAIN * len(content):
            return packed, True
    return content, False


def unpack(stored: bytes, is_packed: bool) -> bytes | None:
    """The content, or None when the stored bytes do not unpack to one."""
    if not is_packed:
        return blob(stored)
    opened = zlib.decompressobj()
    try:
        content = opened.decompress(blob(stored), MAX_CONTENT_BYTES)
    except zlib.error:
        return None
    return content if opened.eof and not opened.unused_data else None


def named(found: Payload | Expired, key: str, sha256: object) -> Payload | Expired:
    """What was found under a key, if the digest is the one that the key begins. Raises ValueError for anything else: a
    damaged index leads to another original, which hashes to its own name."""
    if Identity("", 0, str(sha256)).key != key:
        raise ValueError("a key that leads to another original")
    return found


def removal_checksum(removal: Removal) -> int:
    """CRC-32 over all that is replayed or counted: a damaged row must not be replayed."""
    identity = removal.identity
    decided_at = float(removal.decided_at) + 0.0  # as the column gives it back: a whole number and -0.0 become 0.0
    head = json.dumps([identity.block, identity.sha256, removal.saved_bytes, decided_at]).encode()
    return zlib.crc32(removal.written, zlib.crc32(raw(identity.tool_use_id), zlib.crc32(head)))
