"""Where a body stands in its thread's history: it extends a branch, repeats one, or opens another."""

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum

from cg.sweep.body.transcript import Transcript
from cg.sweep.values import DIGEST_BYTES, Branch, Thread

RETRY_S = 600  # an identical body within this time is the same turn again


class Continuation(StrEnum):
    """How a body relates to what its thread sent before."""

    FIRST = "first"  # nothing is known of the thread
    EXTENDS = "extends"
    RETRY = "retry"
    OPENS = "opens"  # a title call, a sub-agent, a compaction, a rewind


@dataclass(frozen=True, slots=True)
class Place:
    """A body's standing, the branch it continues (if any), and how many of its messages the provider may know."""

    standing: Continuation
    branch: Branch | None
    common: int  # messages shared with the branch, or with the nearest one for a body that opens another
    head_changed: bool  # tools, system or model differ from that branch's


def head_of(transcript: Transcript) -> bytes:
    """Digest of all that stands before the messages in the prompt, and of the model, whose cache is its own."""
    return hashlib.sha256(transcript.head + transcript.model.encode("utf-8", "surrogatepass")).digest()[:16]


def place(transcript: Transcript, thread: Thread, now: float) -> Place:
    """The longest branch that the body repeats or extends; without one, the branch with the longest common history."""
    if not thread.branches:
        return Place(Continuation.FIRST, None, 0, False)
    head = head_of(transcript)
    for branch in thread.branches:
        if branch.body == transcript.fingerprint and 0 <= now - branch.clock <= RETRY_S:
            return Place(Continuation.RETRY, branch, transcript.n_messages, False)
    extended = [b for b in thread.branches if transcript.chain.startswith(b.chain)]
    if extended:
        longest = max(extended, key=lambda b: (len(b.chain), b.clock))
        return Place(Continuation.EXTENDS, longest, len(longest.chain) // DIGEST_BYTES, longest.head != head)
    shared = [common_messages(b.chain, transcript.chain) for b in thread.branches]
    nearest = max(range(len(shared)), key=lambda i: (shared[i], thread.branches[i].clock))
    return Place(Continuation.OPENS, None, shared[nearest], thread.branches[nearest].head != head)


def common_messages(a: bytes, b: bytes) -> int:
    """Messages that two chains share; digests are cumulative, so one comparison decides all that stand before it."""
    if a[:DIGEST_BYTES] != b[:DIGEST_BYTES]:  # another conversation, as most branches of a busy thread are
        return 0
    low, high = 0, min(len(a), len(b)) // DIGEST_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        end = middle * DIGEST_BYTES
        if a[end - DIGEST_BYTES : end] == b[end - DIGEST_BYTES : end]:
            low = middle
        else:
            high = middle - 1
    return low


def advanced(place: Place, transcript: Transcript, now: float, ttl_s: int | None) -> Branch:
    """The branch as it stands once this body has been sent with marks of this lifetime; one that opens is named after its
    own digest."""
    body = transcript.fingerprint
    if place.branch is None:
        return Branch(body.hex()[:16], transcript.chain, head_of(transcript), body, now, ttl_s)
    return replace(place.branch, chain=transcript.chain, head=head_of(transcript), body=body, clock=now, ttl_s=ttl_s)
