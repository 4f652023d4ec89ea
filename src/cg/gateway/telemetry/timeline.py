"""What was spent and done, minute by minute over the last day, for the page."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

MINUTES = 1440  # a day; at most some 300 KB as JSON, and only minutes in which something happened are kept
MINUTE_S = 60


class Timeline:
    """Amounts by minute and name; the oldest minutes go first, whatever the clock does."""

    def __init__(self, minutes: int = MINUTES) -> None:
        self._lock = threading.Lock()
        self._minutes = minutes
        self._rows: OrderedDict[int, dict[str, float]] = OrderedDict()

    def add(self, at: float, amounts: Mapping[str, float]) -> None:
        """Add amounts to the minute of `at`, seconds since the epoch. Names come from closed sets."""
        minute = int(at // MINUTE_S) * MINUTE_S
        with self._lock:
            row = self._rows.setdefault(minute, {})
            for name, amount in amounts.items():
                row[name] = row.get(name, 0.0) + amount
            while len(self._rows) > self._minutes:
                del self._rows[min(self._rows)]

    def rows(self) -> list[dict[str, Any]]:
        """One row a minute in which something happened, oldest first: `at` (seconds since the epoch) and amounts."""
        with self._lock:
            return [{"at": minute, **self._rows[minute]} for minute in sorted(self._rows)]
