"""The last bodies sent, in memory: bounded per body and in all, the longest untouched go first."""

import threading
from collections import OrderedDict

from cg.sweep.store import MAX_BODIES_BYTES, MAX_BODY_BYTES


class LastBodies:
    """A bounded map from (thread, branch) to bytes. Safe between threads."""

    def __init__(self, *, body_bytes: int = MAX_BODY_BYTES, total_bytes: int = MAX_BODIES_BYTES) -> None:
        self._body_bytes, self._total_bytes = body_bytes, total_bytes
        self._bodies: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        return self._size

    def __len__(self) -> int:
        return len(self._bodies)

    def keep(self, thread: str, branch: str, body: bytes) -> None:
        """Keep a body; an oversized one only drops the older one, which is no longer what was last sent."""
        with self._lock:
            self._drop((thread, branch))
            if len(body) > self._body_bytes:
                return
            self._bodies[thread, branch] = body
            self._size += len(body)
            while self._size > self._total_bytes:
                self._drop(next(iter(self._bodies)))

    def last(self, thread: str, branch: str) -> bytes | None:
        with self._lock:
            body = self._bodies.get((thread, branch))
            if body is not None:
                self._bodies.move_to_end((thread, branch))
            return body

    def forget(self, thread: str | None, branch: str | None = None) -> None:
        """Drop one branch's body, a thread's, or all."""
        with self._lock:
            for name in list(self._bodies):
                if thread in (None, name[0]) and branch in (None, name[1]):
                    self._drop(name)

    def _drop(self, name: tuple[str, str]) -> None:
        body = self._bodies.pop(name, None)
        self._size -= len(body or b"")
