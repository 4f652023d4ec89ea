"""Our own work on one request: one hop to a worker thread, one request of a thread at a time, and never longer than its
budget.

Only our own work is serialised and measured, never the upstream's time: a question to the model in the middle of a turn
lets the thread's lock go and stops the watch.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from cg.gateway.clock import Clock
from cg.gateway.events import Events, Fault, Stage
from cg.gateway.exchange import Inbound
from cg.gateway.identity import Naming
from cg.gateway.locks import Locks
from cg.sweep.asker import Asker
from cg.sweep.config import Config
from cg.sweep.drivers import Gap, Sweep, Swept
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.store import StoreError
from cg.sweep.transcript import Transcript, Unreadable
from cg.sweep.wants import Answer, Failure

T = TypeVar("T")
WORKERS = 8  # a turn takes a millisecond or two, so these wait for the disk, if for anything
ASKING_WORKERS = 32  # where a turn itself asks the model, a worker waits for it
SHORTEST_LOOK_S = 0.01
MAX_PASSED_BY = 1024  # threads whose changes were refused for good


@dataclass(frozen=True, slots=True)
class Turn:
    """What leaves for one request, and what it was made of. `transcript` is None for a body that was not read."""

    inbound: Inbound
    thread: str
    transcript: Transcript | None
    swept: Swept
    now: float

    @property
    def body(self) -> bytes:
        return self.swept.body

    @property
    def is_changed(self) -> bool:
        return self.swept.body != self.inbound.body

    def light(self) -> "Turn":
        """The turn without its bodies, for what only has to remember it."""
        inbound, swept = replace(self.inbound, body=b""), replace(self.swept, body=b"")
        return replace(self, inbound=inbound, swept=swept, transcript=None)


def as_it_came(inbound: Inbound, now: float, reason: Reason) -> Turn:
    """The client's own bytes, with nothing known about them."""
    return Turn(inbound, "", None, Swept(inbound.body, TurnReport.of(reason)), now)


@dataclass(slots=True)
class Job:
    """One request in a worker's hands. The loop reads it while the worker writes it: single words, each set once."""

    inbound: Inbound
    asker: Asker | None
    gaps: Callable[[str], Gap]
    started: float = field(default_factory=time.monotonic)
    transcript: Transcript | None = None
    thread: str | None = None
    is_wanted: bool = True
    asked_s: float = 0.0  # of its time, spent waiting for the model
    asking_since: float | None = None

    def wanted(self) -> bool:
        return self.is_wanted

    def own_s(self) -> float:
        """Seconds of our own work and waiting, so far."""
        now, since = time.monotonic(), self.asking_since
        return now - self.started - self.asked_s - (now - since if since is not None else 0.0)


class Pause:
    """An asker that lets a lock go, and stops a job's watch, for as long as the model takes."""

    def __init__(self, asker: Asker, job: Job, lock: Any) -> None:
        self._asker, self._job, self._lock = asker, job, lock

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        job = self._job
        job.asking_since = time.monotonic()
        self._lock.release()
        try:
            return self._asker.ask(body, timeout_s)
        finally:
            self._lock.acquire()
            since, job.asking_since = job.asking_since, None
            job.asked_s += time.monotonic() - since


class Turns:
    """Runs the sweep for a gateway. For use from one event loop."""

    def __init__(
        self, sweep: Sweep, naming: Naming, events: Events, clock: Clock, *, config: Config, budget_s: float
    ) -> None:
        self._sweep, self._naming, self._events, self._clock = sweep, naming, events, clock
        self._budget_s = budget_s
        self._passed_by: OrderedDict[str, None] = OrderedDict()
        self._asks = config.judge == "model" and config.ask == "on-request"
        self._threads, self._bodies = Locks(), Locks()
        self._workers = ThreadPoolExecutor(ASKING_WORKERS if self._asks else WORKERS, "cg-turn")
        self._spare = ThreadPoolExecutor(2, "cg-spare")  # never waits for a store, so it is there when those all do

    @property
    def asks(self) -> bool:
        """Whether a turn itself asks the model."""
        return self._asks

    def pass_by(self, thread: str) -> None:
        """Change nothing in this thread from now on, as long as this process lives."""
        self._passed_by[thread] = None
        while len(self._passed_by) > MAX_PASSED_BY:
            self._passed_by.popitem(last=False)

    async def take(self, inbound: Inbound, gaps: Callable[[str], Gap], asker: Asker | None = None) -> Turn:
        """What to send for a request; within the budget, or the last frozen form. `gaps` tells of a thread how the gap
        before its request was used."""
        job = Job(inbound, asker, gaps)
        future = asyncio.wrap_future(self._workers.submit(self._turn, job))
        try:
            turn = await self._within_budget(future, job)
        except BaseException as error:
            job.is_wanted = False  # the worker stops at its next step: what it would decide was not sent
            future.add_done_callback(_look_away)
            if not isinstance(error, Exception):
                raise
            self._events.fault(Fault.WATCHDOG if isinstance(error, TimeoutError) else Fault.SWEEP)
            turn = await self._last_form(job)
        if turn.swept.fault is not None:
            self._events.fault(Fault.STORE if isinstance(turn.swept.fault, StoreError) else Fault.SWEEP)
        self._events.took(Stage.SWEEP, job.own_s())
        return turn

    async def measured(self, inbound: Inbound) -> Turn:
        """The body that would be sent now in place of one that is only to be counted: nothing is decided for it."""
        future = asyncio.wrap_future(self._workers.submit(self._measured, inbound))
        try:
            return await asyncio.wait_for(future, self._budget_s)
        except Exception as error:
            self._events.fault(Fault.WATCHDOG if isinstance(error, TimeoutError) else Fault.SWEEP)
            return as_it_came(inbound, self._clock.now(), Reason.FAULT)

    async def run(self, work: Callable[[], T]) -> T:
        """Do something in a worker thread."""
        return await asyncio.wrap_future(self._workers.submit(work))

    def holding(self, thread: str) -> Any:
        """The thread's lock, for a worker that writes what did not come of a request."""
        return self._threads.holding(thread)

    def close(self) -> None:
        """Take no more work; what is under way ends by itself."""
        for pool in (self._workers, self._spare):
            pool.shutdown(wait=False, cancel_futures=True)

    # -- in a worker -------------------------------------------------------------------------------------------------

    def _turn(self, job: Job) -> Turn:
        transcript = self._read(job.inbound.body)
        thread = self._naming.thread(job.inbound.headers, transcript)
        job.transcript, job.thread = transcript, thread
        if transcript is None or thread in self._passed_by:
            reason = Reason.UNREADABLE if transcript is None else Reason.BYPASSED
            swept = self._sweep.passed(job.inbound.body, thread, reason)
            return Turn(job.inbound, thread, None, swept, self._clock.now())
        if not self._asks:
            return self._swept(job, transcript, thread)
        # The same body once more, while the first is being asked about, waits: it is the same turn.
        with self._bodies.holding((thread, transcript.chain[-8:], len(transcript.body))):
            return self._swept(job, transcript, thread)

    def _swept(self, job: Job, transcript: Transcript, thread: str) -> Turn:
        with self._threads.holding(thread) as lock:
            now = self._clock.now()
            asker = Pause(job.asker, job, lock) if job.asker is not None and self._asks else None
            swept = self._sweep.process(
                transcript, thread, now, asker=asker, settled=job.gaps(thread), is_wanted=job.wanted
            )
        return Turn(job.inbound, thread, transcript, swept, now)

    def _measured(self, inbound: Inbound) -> Turn:
        transcript = self._read(inbound.body)
        now = self._clock.now()
        if transcript is None or transcript.server_thread:
            return as_it_came(inbound, now, Reason.UNREADABLE)
        thread = self._naming.thread(inbound.headers, transcript)
        if thread in self._passed_by:
            return as_it_came(inbound, now, Reason.BYPASSED)
        return Turn(inbound, thread, transcript, self._sweep.frozen(transcript, thread, stored=True), now)

    def _read(self, body: bytes) -> Transcript | None:
        try:
            return self._sweep.read(body)
        except Unreadable:
            return None

    # -- on the loop -------------------------------------------------------------------------------------------------

    async def _within_budget(self, future: "asyncio.Future[Turn]", job: Job) -> Turn:
        while (left := self._budget_s - job.own_s()) > 0:
            done, _ = await asyncio.wait({future}, timeout=max(left, SHORTEST_LOOK_S))
            if done:
                return future.result()
        raise TimeoutError

    async def _last_form(self, job: Job) -> Turn:
        """What was decided before, made without the store; the client's bytes if even that takes too long."""
        future = asyncio.wrap_future(self._spare.submit(self._frozen, job))
        try:
            return await asyncio.wait_for(future, self._budget_s)
        except Exception:
            return as_it_came(job.inbound, self._clock.now(), Reason.FAULT)

    def _frozen(self, job: Job) -> Turn:
        transcript = job.transcript or self._read(job.inbound.body)
        if transcript is None:
            return as_it_came(job.inbound, self._clock.now(), Reason.UNREADABLE)
        thread = job.thread or self._naming.thread(job.inbound.headers, transcript)
        return Turn(job.inbound, thread, transcript, self._sweep.frozen(transcript, thread), self._clock.now())


def _look_away(future: "Future[Any] | asyncio.Future[Any]") -> None:
    """Nobody waits for it any more; its exception, if any, has been counted as the watchdog's."""
    if not future.cancelled():
        future.exception()
