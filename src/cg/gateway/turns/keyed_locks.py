"""One lock a name, made when somebody wants it and let go of when nobody does."""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class KeyedLocks:
    """Locks by name, for worker threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[Hashable, tuple[threading.Lock, int]] = {}  # with how many hold or want it

    @contextmanager
    def holding(self, name: Hashable) -> Iterator[threading.Lock]:
        """Hold the lock of a name; it may be let go and taken again in between."""
        with self._guard:
            lock, wanted = self._held.get(name, (threading.Lock(), 0))
            self._held[name] = lock, wanted + 1
        lock.acquire()
        try:
            yield lock
        finally:
            lock.release()
            with self._guard:
                lock, wanted = self._held[name]
                if wanted == 1:
                    del self._held[name]
                else:
                    self._held[name] = lock, wanted - 1
