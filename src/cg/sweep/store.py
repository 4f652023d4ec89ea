"""The contract of a store: what is remembered of threads, and what may be relied on when it answers."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cg.errors import CgError
from cg.sweep.accounting.tally import Tally
from cg.sweep.ledger import AskRow, TurnReport
from cg.sweep.values import Branch, Ending, Identity, Payload, Pending, Removal, Switch, Thread, Usage

MAX_BRANCHES = 64  # lines of history per thread; title calls and sub-agents open them, the longest untouched goes
MAX_BODY_BYTES = 4 * 1024 * 1024  # last sent body, per branch; a larger one is not kept and its branch asks nothing
MAX_BODIES_BYTES = 256 * 1024 * 1024  # last sent bodies in all; the longest untouched go
MAX_ROWS = 100_000  # ask rows; the oldest go
THREAD_TTL_RATIO = 4  # a thread is forgotten whole after this many payload lifetimes without a request


class StoreError(CgError):
    """A state that cannot be used or written: the caller sends what it would send without one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a store keeps and how long."""

    payload_ttl_s: float = 168 * 3600.0
    max_bytes: int = 2048 * 1024 * 1024  # of payloads as stored
    bodies_bytes: int = MAX_BODIES_BYTES

    @property
    def thread_ttl_s(self) -> float:
        return self.payload_ttl_s * THREAD_TTL_RATIO


@dataclass(frozen=True, slots=True)
class Expired:
    """An original that was kept once and no longer is, with the call that made it."""

    tool: str
    arguments: str


def is_intact(content: bytes, sha256: str) -> bool:
    """The content is the one that the digest was taken of."""
    return hashlib.sha256(content).hexdigest() == sha256


def stands(thread: Thread, branch: Branch) -> bool:
    """No request, ask or ping has moved the branch since it was seen like this."""
    found = next((b for b in thread.branches if b.branch == branch.branch), None)
    return found is not None and (found.body, found.clock) == (branch.body, branch.clock)


class Store(Protocol):
    """What is remembered. Every call is atomic and safe between threads and, where the store is shared, processes.

    A thread is named by an opaque string, and nothing of one thread is ever found through another. Calls raise
    StoreError when the state cannot be used; a call that raises, but for `forget`, has changed nothing.
    """

    def load(self, thread: str) -> Thread:
        """All that is remembered of a thread; an empty Thread for one that was never seen. Not to be edited."""
        ...

    def put(self, thread: str, payloads: Sequence[Payload], now: float) -> frozenset[Identity]:
        """The identities whose originals are stored for good: written, read back, and found to hash to their name.

        An original is left out when its content does not hash to its identity, when its 16-digit key belongs to other
        bytes in this thread, when the size limit is reached, or when the disk refuses. Nothing live is evicted to make
        room: a marker that is on the wire keeps its original.
        """
        ...

    def freeze(self, thread: str, removals: Sequence[Removal]) -> tuple[Removal, ...]:
        """The removals that now stand, in the order given: the first writer's, whoever that was.

        A removal is left out when its original is not stored, when it was ended before, or when its text was expanded.
        """
        ...

    def end(self, thread: str, identity: Identity, ending: Ending, now: float) -> bool:
        """Stop replaying a removal, for good; True if this call ended it."""
        ...

    def expand_mark(self, thread: str, sha256: str) -> None:
        """Remember that a text was asked for: from now on it is never removed anew."""
        ...

    def pend(self, thread: str, pending: Sequence[Pending]) -> None:
        """Remember drops that wait; one that already waits keeps its first verdict."""
        ...

    def unpend(self, thread: str, identities: Sequence[Identity]) -> None:
        """Forget drops that wait."""
        ...

    def touch(self, thread: str, branch: Branch, *, seen: Branch | None = None) -> bool:
        """Remember a branch as it now stands, and renew the originals of its thread as of the branch's clock.

        With `seen`, only while it stands with that clock and that body: False, and nothing is changed, once a request
        has moved it, wherever that was served.
        """
        ...

    def learn(
        self,
        thread: str,
        *,
        usage: Usage | None = None,
        sent_bytes: int | None = None,
        bytes_per_token: float | None = None,
        paid_miss: bool = False,
    ) -> None:
        """Take in a provider's usage (with `sent_bytes`, the body's length, also the bytes per token), or a miss."""
        ...

    def declare(self, thread: str, declaration: bytes) -> bytes:
        """The tool declaration that stands: the first one given for this thread."""
        ...

    def fetch(self, thread: str, key: str) -> Payload | Expired | None:
        """The original behind a marker's 16 digits; Expired if it was kept once, None if it never was."""
        ...

    def missing(self, thread: str) -> frozenset[Identity]:
        """Removals that are replayed but whose original is gone: the next request that carries it can put it back."""
        ...

    def keep_body(self, thread: str, branch: str, body: bytes) -> None:
        """Keep the body that a branch last sent, in the place of the one before; an oversized one is not kept.

        Good for as long as the branch stands where `touch` has put it. Not durable before `close`: a process that is
        killed may take it along, which costs an ask.
        """
        ...

    def last_body(self, thread: str, branch: str) -> bytes | None:
        """The body that a branch last sent, if it is kept."""
        ...

    def claim(self, thread: str, name: str, until: float, *, branch: Branch | None = None) -> bool:
        """True for the first caller of a name, and for nobody else until `sweep_ages` has passed `until`.

        With `branch`, only while it stands with this clock and this body: a request that has moved it, wherever that
        was served, leaves the name unclaimed.
        """
        ...

    def book(self, row: AskRow) -> None:
        """Add a row to the ledger of asks."""
        ...

    def rows(self, thread: str | None = None) -> Iterator[AskRow]:
        """The ledger's rows, oldest first, of one thread or all."""
        ...

    def count(self, thread: str, turn: TurnReport | Tally) -> None:
        """Add a turn to the totals: its reason, events, declines, output sizes and savings; or what came between."""
        ...

    def turned(self, thread: str, turn: TurnReport, branch: Branch | None = None, body: bytes | None = None) -> None:
        """Remember the end of a turn in one write: `touch` and `keep_body` of the branch, if one is given, and `count`."""
        ...

    def totals(self, thread: str | None = None) -> Mapping[str, Mapping[str, float]]:
        """Totals by family (`reasons`, `events`, `declines`, `sizes`, `savings`) and name, of one thread or all."""
        ...

    def forget(self, thread: str | None) -> None:
        """Erase a thread, or everything when None: on return no file of the state holds any of it.

        Raises StoreError where that is not so, be it erased already; it is safe to call again. A server's own files, its
        log and its snapshots, are not ours to write.
        """
        ...

    def switch(self) -> Switch:
        """Whether anything is removed at all; another process's change is seen within a second."""
        ...

    def set_switch(self, switch: Switch) -> None:
        """Set it for every thread and process of this state, until it is set anew: `forget` leaves it."""
        ...

    def status(self) -> Mapping[str, int]:
        """How much is held: counts and bytes, no content."""
        ...

    def sweep_ages(self, now: float) -> None:
        """Let go of what is past its time.

        Originals go a payload lifetime after the last request of their thread (or after they were stored, if nothing
        replays them); the call that made them stays known. A whole thread goes after four such lifetimes.
        """
        ...

    def close(self) -> None:
        """Let go of files and memory; the store cannot be used afterwards."""
        ...
