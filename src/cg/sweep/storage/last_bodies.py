"""The last bodies sent, in memory: bounded per body, in all and in time, the longest untouched go first."""

import threading
from collections.abc import Iterator
from heapq import heappop, heappush

from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.store import MAX_BODIES_BYTES, MAX_BODY_BYTES

Kept = tuple[str, str, bytes, bytes | None]  # thread, branch, body, digest of the client's body that it was made of

UNMARKED_S = 3600.0  # of a body without a mark: the longest lifetime that there is
LATE_S = 60.0  # past the lifetime: an ask or a ping that is under way then still reads what it is about


def kept_until(clock: float, ttl_s: int | None) -> float:
    """When nobody can be asked any more about the entry of a branch that was touched at `clock`."""
    return clock + (UNMARKED_S if ttl_s is None else ttl_s) + LATE_S


class LastBodies:
    """A bounded map from (thread, branch) to bytes. Safe between threads.

    With each body goes the digest of the client's body that it was made of, which the branch holds too: when another
    process has moved the branch on, the body here is no longer what was last sent.
    """

    def __init__(self, *, body_bytes: int = MAX_BODY_BYTES, total_bytes: int = MAX_BODIES_BYTES) -> None:
        self._body_bytes = body_bytes
        self._bodies: BoundedCache[tuple[str, str], tuple[bytes, bytes | None]]
        self._bodies = BoundedCache(total_bytes, lambda kept: len(kept[0]))
        self._until: dict[tuple[str, str], float] = {}  # seconds since the epoch; only of bodies that end
        self._ends: list[tuple[float, tuple[str, str]]] = []  # a heap with one entry for each name in `_until`
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        return self._bodies.size

    def __len__(self) -> int:
        return len(self._bodies)

    def keep(self, thread: str, branch: str, body: bytes, made_of: bytes | None = None) -> None:
        """Keep a body; an oversized one only drops the older one, which is no longer what was last sent."""
        with self._lock:
            if len(body) > self._body_bytes:
                self._bodies.pop((thread, branch))
            else:
                self._bodies.put((thread, branch), (body, made_of))

    def keep_until(self, thread: str, branch: str, until: float) -> None:
        """Let a body that is kept go at this time; a later word overrules an earlier one."""
        name = thread, branch
        with self._lock:
            if name not in self._bodies:
                return
            if name not in self._until:
                heappush(self._ends, (until, name))
            self._until[name] = until

    def drop_past(self, now: float) -> None:
        """Let go of the bodies whose time is over."""
        with self._lock:
            while self._ends and self._ends[0][0] <= now:
                _, name = heappop(self._ends)
                until = self._until.get(name, now)
                if name not in self._bodies:
                    self._until.pop(name, None)
                elif until > now:  # it was put off since
                    heappush(self._ends, (until, name))
                else:
                    self._bodies.pop(name)
                    del self._until[name]

    def last(self, thread: str, branch: str, made_of: bytes | None = None) -> bytes | None:
        with self._lock:
            kept = self._bodies.get((thread, branch))
            return kept[0] if kept is not None and kept[1] == made_of else None

    def forget(self, thread: str | None, branch: str | None = None) -> None:
        """Drop one branch's body, a thread's, or all."""
        with self._lock:
            for name in self._bodies:
                if thread in (None, name[0]) and branch in (None, name[1]):
                    self._bodies.pop(name)

    def sizes(self) -> dict[tuple[str, str], int]:
        """Bytes of each body."""
        with self._lock:
            return {name: len(body) for name, (body, _) in self._bodies.items()}

    def take(self) -> Iterator[Kept]:
        """All bodies, the longest untouched first; none is left."""
        with self._lock:
            bodies = self._bodies.items()
            self._bodies.clear()
        return ((thread, branch, body, of) for (thread, branch), (body, of) in bodies)
