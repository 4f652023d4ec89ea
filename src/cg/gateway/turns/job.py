"""One request in a worker's hands: its watch, which tells our own work from waiting, and the answer it owes."""

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

LET_GO_S = 0.05
PATIENCE = 10  # budgets: how long a request waits for its turn among others that go on, before it leaves without one


class Spell(Enum):
    """What a request's time goes into."""

    WAITING = auto()  # for a worker, or for another request of its thread
    OWN = auto()
    ASKING = auto()  # the model, in the middle of a turn


class Watch:
    """Where a request's time went, in seconds of `ticks`. One thread writes it while another reads: what belongs together
    is in one tuple."""

    def __init__(self, ticks: Callable[[], float]) -> None:
        self._ticks = ticks
        self._state = (Spell.WAITING, ticks(), 0.0, 0.0)  # spell, since when, own and waited before it

    def enter(self, spell: Spell) -> Spell:
        """Begin another spell; returns the one before."""
        before, since, own, waited = self._state
        now = self._ticks()
        own += now - since if before is Spell.OWN else 0.0
        waited += now - since if before is Spell.WAITING else 0.0
        self._state = (spell, now, own, waited)
        return before

    def ours_s(self) -> float:
        """Seconds that passed here, and not at the model."""
        spell, since, own, waited = self._state
        return own + waited + (self._ticks() - since if spell is not Spell.ASKING else 0.0)

    def left_s(self, budget_s: float, moved_on: float) -> float:
        """Seconds until the request is out of time, if nothing changes; none or less: it is.

        Its own work may take the budget. Waiting for others may take longer, as long as some request was done within
        the last budget (`moved_on` is when one was, by the same ticks): a queue is no fault, a standstill is.
        """
        spell, since, own, waited = self._state
        now = self._ticks()
        if spell is Spell.OWN:
            return budget_s - own - (now - since)
        if spell is Spell.ASKING:
            return budget_s
        return min(budget_s - (now - max(since, moved_on)), PATIENCE * budget_s - waited - (now - since))


@dataclass(slots=True)
class Job:
    """One request in a worker's hands. The loop reads it while the worker writes it: single words, each set once."""

    inbound: Inbound
    asker: Asker | None
    gaps: Callable[[str], Gap]
    watch: Watch
    transcript: Transcript | None = None
    thread: str | None = None
    is_wanted: bool = True
    answer: "Answer | None" = None

    def wanted(self) -> bool:
        return self.is_wanted


class Answer:
    """What a worker owes the loop: given once, from the worker's thread, as soon as it is known."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[PreparedRequest] = loop.create_future()
        self.timer: asyncio.TimerHandle
        self._is_given = False
        self._is_gone = threading.Lock()  # held until the loop has let the turn's request go
        self._is_gone.acquire()

    def give(self, turn: PreparedRequest) -> bool:
        """Hand a turn over; False if one was already."""
        if self._is_given:
            return False
        self._is_given = True
        self.loop.call_soon_threadsafe(_settle, self.future, turn, None)
        return True

    def gone(self) -> None:
        """The request is on its way: who waits for that may go on; for the loop's own thread, once."""
        self._is_gone.release()

    def wait_until_gone(self) -> None:
        """Let the loop go first: what a worker writes down now would only take the processor, and the interpreter's
        lock, from the request itself. Not for long, since the loop may be busy, or nobody may want the turn any more."""
        self._is_gone.acquire(timeout=LET_GO_S)

    def fail(self, error: Exception) -> None:
        """There will be none, unless one was given."""
        if not self._is_given:
            self._is_given = True
            self.loop.call_soon_threadsafe(_settle, self.future, None, error)

    def end(self, error: Exception) -> None:
        """Wait for it no longer; for the loop's own thread."""
        _settle(self.future, None, error)


def _settle(future: "asyncio.Future[Any]", turn: PreparedRequest | None, error: Exception | None) -> None:
    if future.done():  # nobody waits any more
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(turn)


class Pause:
    """An asker that lets a lock go, and stops a job's watch, for as long as the model takes."""

    def __init__(self, asker: Asker, job: Job, lock: Any) -> None:
        self._asker, self._job, self._lock = asker, job, lock

    def ask(self, body: bytes, timeout_s: float) -> Said | Failure:
        watch = self._job.watch
        before = watch.enter(Spell.ASKING)
        self._lock.release()
        try:
            return self._asker.ask(body, timeout_s)
        finally:
            watch.enter(Spell.WAITING)
            self._lock.acquire()
            watch.enter(before)
