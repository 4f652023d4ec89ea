"""One daemon thread with an event loop, for work that has to go on while a program's own threads do something else."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(RuntimeError):
    """The thread takes no more work."""


class LoopThread:
    """Runs coroutines until it is stopped."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._guard = threading.Lock()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: "Coroutine[Any, Any, T]") -> "Future[T]":
        """Run a coroutine there. Raises Stopped."""
        with self._guard:  # nothing is put behind the call that ends the loop, where nobody would look at it
            if self._is_stopped:
                work.close()
                raise Stopped("the thread has been stopped")
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self, wait_s: float) -> None:
        """Cancel what still runs, and end; may be repeated."""
        with self._guard:
            is_first, self._is_stopped = not self._is_stopped, True
            if is_first:
                self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(wait_s)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            while tasks := asyncio.all_tasks(self._loop):
                for task in tasks:
                    task.cancel()
                self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
