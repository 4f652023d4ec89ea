"""One bounded memory of values by key, for all that is remembered only to be quicker or to outlive a failing store."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def one(value: object) -> int:
    """The size of a value where values are counted."""
    return 1


class BoundedCache(Generic[K, V]):
    """Values of `capacity` in all, by `size_of`; past it the longest unused go. Safe between threads."""

    def __init__(self, capacity: int, size_of: Callable[[V], int] = one) -> None:
        self._capacity, self._size_of = capacity, size_of
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0  # of all values

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        """The keys, the longest unused first."""
        return iter(list(self._values))

    def items(self) -> list[tuple[K, V]]:
        """The longest unused first; none counts as used by it."""
        with self._lock:
            return list(self._values.items())

    def get(self, key: K) -> V | None:
        """The value of a key, which is the last used then; None if it is not kept."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Keep a value in the place of an older one of its key."""
        with self._lock:
            self._drop(key)
            self._values[key] = value
            self.size += self._size_of(value)
            while self.size > self._capacity:
                self._drop(next(iter(self._values)))

    def change(self, key: K, change: Callable[[V], V]) -> None:
        """Replace a value that is kept, in one step."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values[key] = changed = change(value)
                self.size += self._size_of(changed) - self._size_of(value)

    def take(self, key: K) -> V | None:
        """The value of a key, which is kept no more; of several threads one gets it."""
        with self._lock:
            value = self._values.get(key)
            self._drop(key)
            return value

    def pop(self, key: K) -> None:
        """Drop a key's value, if there is one."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._values.clear()
            self.size = 0

    def _drop(self, key: K) -> None:
        if key in self._values:
            self.size -= self._size_of(self._values.pop(key))
