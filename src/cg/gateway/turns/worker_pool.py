"""Threads that do what blocks, and that the end of the process does not wait for; the one that was busy last goes first.

`ThreadPoolExecutor` joins its threads when the interpreter ends, so a store that hangs would hold up the end for ever. That
is why this file stands: by time alone an executor would do (2026-12-01, 300 rounds beside this one: first byte 1.01 to 1.04
times, processor 1.02 to 1.06 times). To be deleted once the standard library has an executor that does not wait.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

log = logging.getLogger("cg.gateway")
T = TypeVar("T")
Work = Callable[[], object]


class _Worker:
    """One thread's mailbox; it has work when it is woken, or is to end."""

    __slots__ = ("wake", "work")

    def __init__(self) -> None:
        self.wake = threading.Lock()
        self.wake.acquire()
        self.work: Work | None = None


class WorkerPool:
    """At most `limit` threads, started as they are needed; what comes while all are busy waits in order."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit, self._name = limit, name
        self._guard = threading.Lock()
        self._idle: list[_Worker] = []
        self._waiting: deque[tuple[Work, Future[object] | None]] = deque()
        self._started = 0
        self._is_closed = False

    def do(self, work: Work) -> None:
        """Have it done. Raises RuntimeError once closed."""
        self._assign(work, None)

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Have it done; its result, or what it raised."""
        future: Future[T] = Future()

        def fill() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        self._assign(fill, future)  # type: ignore[arg-type]
        return future

    def close(self) -> None:
        """Take no more; what waits is left undone, what is under way ends by itself, and the threads with it."""
        with self._guard:
            self._is_closed = True
            idle, self._idle = self._idle, []
            waiting, self._waiting = self._waiting, deque()
        for worker in idle:
            worker.wake.release()
        for _, future in waiting:
            if future is not None:
                future.cancel()

    def _assign(self, work: Work, future: "Future[object] | None") -> None:
        with self._guard:
            if self._is_closed:
                raise RuntimeError("the workers were closed")
            if self._idle:
                worker = self._idle.pop()
                worker.work = work
                worker.wake.release()
                return
            if self._started >= self._limit:
                self._waiting.append((work, future))
                return
            self._started += 1
            number = self._started
        worker = _Worker()
        worker.work = work
        threading.Thread(target=self._run, args=(worker,), name=f"{self._name}_{number}", daemon=True).start()

    def _run(self, worker: _Worker) -> None:
        while (work := worker.work) is not None:
            worker.work = None
            try:
                work()
            except BaseException as error:  # whoever wanted it has said what is to become of it
                log.error("a worker's work failed: %s", type(error).__name__)
            del work  # it holds a request's body, and the next one may be long in coming
            with self._guard:
                if self._waiting:
                    worker.work, _ = self._waiting.popleft()
                    continue
                if self._is_closed:
                    return
                self._idle.append(worker)
            worker.wake.acquire()
