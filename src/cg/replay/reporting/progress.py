"""A line on stderr that says how far a long replay is."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from cg.replay.batch import Result

WIDTH = 30
SILENT_S = 1.0  # short work shows nothing


class Progress:
    """Redraws one line at most ten times a second; `clear` takes it away."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total, self._stream = total, stream
        self._start = self._drawn = time.monotonic()
        self._is_shown = False

    def watch(self, results: Iterator[Result]) -> Iterator[Result]:
        """Hand the results on, counting their files."""
        paths: set[Path] = set()
        for result in results:
            paths.add(result.path)
            self.show(len(paths))
            yield result

    def show(self, done: int) -> None:
        """Draw the line, if it is time to."""
        now = time.monotonic()
        if now - self._start < SILENT_S or (now - self._drawn < 0.1 and done < self._total):
            return
        self._drawn = now
        filled = WIDTH * done // max(done, self._total)
        left = (now - self._start) / done * max(0, self._total - done)
        bar = "#" * filled + "-" * (WIDTH - filled)
        self._stream.write(f"\r[{bar}] {done}/{self._total} files, {left:.0f} s left \x1b[K")
        self._stream.flush()
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._is_shown = False
