"""How values lie on a Valkey or Redis server, and how they are read back: nothing is believed that does not fit."""

import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple

from cg.sweep.storage.packing import pack, plain, raw, removal_checksum, unpack
from cg.sweep.store import Expired, StoreError, is_intact
from cg.sweep.values import Branch, Ending, Identity, Payload, Pending, Removal, Usage

SHA_CHARS = 64


def thread_id(thread: str) -> str:
    """A thread's name in keys: of one length and alphabet whatever it was called."""
    return hashlib.sha256(raw(thread)).hexdigest()


def pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """A hash's fields with their values."""
    return zip(flat[::2], flat[1::2], strict=True)


# -- identities and decisions ------------------------------------------------------------------------------------------


def identity_field(identity: Identity) -> bytes:
    """An identity as the field of a hash; its digest stands first, where scripts look for it."""
    return b"%s:%d:%s" % (identity.sha256.encode(), identity.block, raw(identity.tool_use_id))


def as_identity(field: bytes) -> Identity:
    sha256, block, tool_use_id = field.split(b":", 2)
    if len(sha256) != SHA_CHARS:
        raise ValueError("an identity without its digest")
    return Identity(plain(tool_use_id), int(block), sha256.decode("ascii"))


def removal_value(removal: Removal) -> bytes:
    head = json.dumps([removal_checksum(removal), removal.saved_bytes, float(removal.decided_at) + 0.0])
    return head.encode() + b"\n" + removal.written


def as_removal(field: bytes, value: bytes) -> Removal:
    """The removal, or StoreError where its bytes are not the frozen ones."""
    head, _, written = value.partition(b"\n")
    checksum, saved_bytes, decided_at = json.loads(head)
    removal = Removal(as_identity(field), written, saved_bytes, decided_at)
    if removal_checksum(removal) != checksum:
        raise StoreError("a recorded removal does not match its checksum: the server's data are damaged")
    return removal


def as_removals(flat: Sequence[bytes]) -> dict[Identity, Removal]:
    """By identity, in the order in which they were decided."""
    removals = [as_removal(field, value) for field, value in pairs(flat)]
    removals.sort(key=lambda r: (r.decided_at, raw(r.identity.tool_use_id), r.identity.block))
    return {removal.identity: removal for removal in removals}


def as_ended(flat: Sequence[bytes]) -> dict[Identity, Ending]:
    return {as_identity(field): Ending(how.decode("ascii")) for field, how in pairs(flat)}


def pending_value(drop: Pending) -> str:
    return json.dumps([drop.tokens, drop.judged_at, drop.messages, drop.history])


def as_pending(flat: Sequence[bytes]) -> dict[Identity, Pending]:
    """By identity, in the order of their fields: a hash has none of its own."""
    pending = {}
    for field, value in sorted(pairs(flat)):
        identity = as_identity(field)
        tokens, judged_at, messages, history = json.loads(value)
        pending[identity] = Pending(identity, tokens, judged_at, messages, history)
    return pending


def declaration_value(declaration: bytes) -> bytes:
    return b"%d\n%s" % (zlib.crc32(declaration), declaration)


def as_declaration(value: bytes | None) -> bytes | None:
    """The declaration, or StoreError where its bytes are not the first ones."""
    if value is None:
        return None
    checksum, _, declaration = value.partition(b"\n")
    if zlib.crc32(declaration) != int(checksum):
        raise StoreError("a recorded declaration does not match its checksum: the server's data are damaged")
    return declaration


# -- branches ----------------------------------------------------------------------------------------------------------


def clock_text(clock: float) -> str:
    """A moment as it stands at the head of a branch, where scripts compare it."""
    return json.dumps(float(clock))


def branch_value(branch: Branch) -> bytes:
    head = json.dumps([float(branch.clock), branch.body.hex(), branch.head.hex(), branch.ttl_s, branch.asked_at])
    return head.encode() + b"\n" + branch.chain


def as_branch(name: bytes, value: bytes) -> Branch:
    head, _, chain = value.partition(b"\n")
    clock, body, before, ttl_s, asked_at = json.loads(head)
    return Branch(plain(name), chain, bytes.fromhex(before), bytes.fromhex(body), clock, ttl_s, asked_at)


def as_usages(text: bytes | None) -> tuple[Usage, ...]:
    return tuple(Usage(*tiers) for tiers in json.loads(text)) if text else ()


def usages_value(usages: Sequence[Usage]) -> str:
    return json.dumps([astuple(usage) for usage in usages])


# -- originals ---------------------------------------------------------------------------------------------------------


def payload_meta(payload: Payload) -> bytes:
    """Who made an original; scripts put its number in front, and look for the digest behind it."""
    tool_use_id, tool = raw(payload.identity.tool_use_id), raw(payload.tool)
    head = b"%s %d %d %d\n" % (payload.identity.sha256.encode(), payload.identity.block, len(tool_use_id), len(tool))
    return head + tool_use_id + tool + raw(payload.arguments)


def digest_in(meta: bytes) -> str:
    """The digest of the original that this is about."""
    return meta.split(b" ", 2)[1].decode("ascii")


def payload_content(payload: Payload) -> bytes:
    """The content, packed where that pays; the first byte says which."""
    content, is_packed = pack(payload.content)
    return (b"z" if is_packed else b"-") + content


def as_payload(meta: bytes, stored: bytes | None) -> Payload | Expired:
    """An original; one whose bytes are gone, or no longer hash to their name, is told with the call that made it."""
    head, _, rest = meta.partition(b"\n")
    _, sha256, block, id_bytes, tool_bytes = head.split(b" ")
    tool_at, arguments_at = int(id_bytes), int(id_bytes) + int(tool_bytes)
    tool, arguments = plain(rest[tool_at:arguments_at]), plain(rest[arguments_at:])
    content = unpack(stored[1:], stored[:1] == b"z") if stored else None
    if content is None or not is_intact(content, sha256.decode("ascii")):
        return Expired(tool, arguments)
    identity = Identity(plain(rest[:tool_at]), int(block), sha256.decode("ascii"))
    return Payload(identity, content, tool, arguments)
