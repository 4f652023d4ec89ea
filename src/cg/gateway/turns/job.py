"""One request in a worker's hands: its clock, which tells our own work from waiting, and the result it owes."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from cg.gateway.exchange import Inbound
from cg.gateway.turns.prepared_request import PreparedRequest
from cg.sweep.body.transcript import Transcript
from cg.sweep.core.outcome import Gap
from cg.sweep.effects import Answer as Said
from cg.sweep.effects import Asker, Failure

RELEASE_TIMEOUT_S = 0.05
# Budgets: how long a request waits for its turn among others that go on, before it leaves without one.
QUEUE_BUDGETS = 10


class Activity(Enum):
    """What a request's time goes into."""

    WAITING = auto()  # for a worker, or for another request of its thread
    WORKING = auto()
    ASKING = auto()  # the model, in the middle of a turn


class JobClock:
    """Where a request's time went, in seconds of `ticks`. One thread writes it while another reads: what belongs together
    is in one tuple."""

    def __init__(self, ticks: Callable[[], float]) -> None:
        self._ticks = ticks
        self._state = (Activity.WAITING, ticks(), 0.0, 0.0)  # activity, since when, worked and waited before it

    def enter(self, activity: Activity) -> Activity:
        """Begin another activity; returns the one before."""
        before, since, worked, waited = self._state
        now = self._ticks()
        worked += now - since if before is Activity.WORKING else 0.0
        waited += now - since if before is Activity.WAITING else 0.0
        self._state = (activity, now, worked, waited)
        return before

    def spent_s(self) -> float:
        """Seconds that passed here, and not at the model."""
        activity, since, worked, waited = self._state
        return worked + waited + (self._ticks() - since if activity is not Activity.ASKING else 0.0)

    def left_s(self, budget_s: float, last_done: float) -> float:
        """Seconds until the request is out of time, if nothing changes; none or less: it is.

        Its own work may take the budget. Waiting for others may take longer, as long as some request was done within
        the last budget (`last_done` is when one was, by the same ticks): a queue is no fault, a standstill is.
        """
        activity, since, worked, waited = self._state
        now = self._ticks()
        if activity is Activity.WORKING:
            return budget_s - worked - (now - since)
        if activity is Activity.ASKING:
            return budget_s
        return min(budget_s - (now - max(since, last_done)), QUEUE_BUDGETS * budget_s - waited - (now - since))


@dataclass(slots=True)
class Job:
    """One request in a worker's hands. The loop reads it while the worker writes it: single words, each set once."""

    inbound: Inbound
    asker: Asker | None
    gaps: Callable[[str], Gap]
    clock: JobClock
    transcript: Transcript | None = None
    thread: str | None = None
    is_wanted: bool = True
    result: "JobResult | None" = None

    def wanted(self) -> bool:
        return self.is_wanted


class JobResult:
    """What a worker owes the loop: given once, from the worker's thread, as soon as it is known."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[PreparedRequest] = loop.create_future()
        self.timer: asyncio.TimerHandle
        self._is_delivered = False
        self._sent = threading.Lock()  # held until the loop has let the turn's request go
        self._sent.acquire()

    def deliver(self, turn: PreparedRequest) -> bool:
        """Hand a turn over; False if one was already."""
        if self._is_delivered:
            return False
        self._is_delivered = True
        self.loop.call_soon_threadsafe(_settle, self.future, turn, None)
        return True

    def mark_sent(self) -> None:
        """The request is on its way: who waits for that may go on; for the loop's own thread, once."""
        self._sent.release()

    def wait_until_sent(self) -> None:
        """Let the loop go first: what a worker writes down now would only take the processor, and the interpreter's
        lock, from the request itself. Not for long, since the loop may be busy, or nobody may want the turn any more."""
        self._sent.acquire(timeout=RELEASE_TIMEOUT_S)

    def fail(self, error: Exception) -> None:
        """There will be none, unless one was given."""
        if not self._is_delivered:
            self._is_delivered = True
            self.loop.call_soon_threadsafe(_settle, self.future, None, error)

    def give_up(self, error: Exception) -> None:
        """Wait for it no longer; for the loop's own thread."""
        _settle(self.future, None, error)


def _settle(future: "asyncio.Future[Any]", turn: PreparedRequest | None, error: Exception | None) -> None:
    if future.done():  # nobody waits any more
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(turn)


class UnlockedAsker:
    """An asker that lets a lock go, and stops a job's clock, for as long as the model takes."""

    def __init__(self, asker: Asker, job: Job, lock: Any) -> None:
        self._asker, self._job, self._lock = asker, job, lock

    def ask(self, body: bytes, timeout_s: float) -> Said | Failure:
        clock = self._job.clock
        before = clock.enter(Activity.ASKING)
        self._lock.release()
        try:
            return self._asker.ask(body, timeout_s)
        finally:
            clock.enter(Activity.WAITING)
            self._lock.acquire()
            clock.enter(before)
