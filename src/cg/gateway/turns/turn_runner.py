"""Our own work on one request: one hop to a worker thread, one request of a thread at a time, and never longer than its
budget.

Only our own work is serialised and measured, never the upstream's time: a question to the model in the middle of a turn
lets the thread's lock go and stops the clock. What leaves is handed over as soon as it is known; the worker then writes
down that it did, before the thread's next request has its turn.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from cg.gateway.events import Events, Fault, Stage, StageTimed
from cg.gateway.exchange import Inbound
from cg.gateway.state.clock import Clock
from cg.gateway.turns.job import QUEUE_BUDGETS, Activity, Job, JobClock, JobResult, UnlockedAsker
from cg.gateway.turns.keyed_locks import KeyedLocks
from cg.gateway.turns.prepared_request import PreparedRequest, as_it_came
from cg.gateway.turns.thread_naming import ThreadNaming
from cg.gateway.turns.worker_pool import WorkerPool
from cg.sweep.body.transcript import Transcript, Unreadable
from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.config import Config
from cg.sweep.core.outcome import Gap, Swept
from cg.sweep.drivers import Sweep
from cg.sweep.effects import Asker
from cg.sweep.ledger import Reason
from cg.sweep.planning.gaps import Client
from cg.sweep.store import StoreError

T = TypeVar("T")
WORKERS = 8  # a turn takes a millisecond or two, so these wait for the disk, if for anything
ASKING_WORKERS = 32  # where a turn itself asks the model, a worker waits for it
SHORTEST_CHECK_S, LONGEST_CHECK_S = 0.01, 0.25
MAX_BYPASSED = 1024  # threads whose changes were refused for good


class TurnRunner:
    """Runs the sweep for a gateway. For use from one event loop."""

    def __init__(
        self,
        sweep: Sweep,
        naming: ThreadNaming,
        events: Events,
        clock: Clock,
        *,
        config: Config,
        budget_s: float,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sweep, self._naming, self._events, self._clock = sweep, naming, events, clock
        self._budget_s, self._ticks = budget_s, ticks
        self._last_done = ticks()  # when a worker was last done with a job
        self._unwritten: set[JobResult] = set()  # whose turns have left and are not written down yet
        self._bypassed: BoundedCache[str, bool] = BoundedCache(MAX_BYPASSED)
        self._asks = config.judge == "model" and config.ask == "on-request"
        self._threads, self._bodies = KeyedLocks(), KeyedLocks()
        self._workers = WorkerPool(ASKING_WORKERS if self._asks else WORKERS, "cg-turn")
        self._fallback_workers = WorkerPool(2, "cg-spare")  # never waits for a store, so it is there when those all do

    @property
    def asks(self) -> bool:
        """Whether a turn itself asks the model."""
        return self._asks

    def bypass(self, thread: str) -> None:
        """Change nothing in this thread from now on, as long as this process lives."""
        self._bypassed.put(thread, True)

    async def prepare(
        self, inbound: Inbound, gaps: Callable[[str], Gap], asker: Asker | None = None
    ) -> PreparedRequest:
        """What to send for a request; within the budget, or the last frozen form. It is to be sent at once: writing it
        down waits for that. `gaps` tells of a thread how the gap before its request was used."""
        job = Job(inbound, asker, gaps, JobClock(self._ticks))
        try:
            turn = await self._within_budget(job, self._turn)
            if job.result is not None:  # once whoever awaits the turn has sent it, and waits for something else
                job.result.loop.call_soon(job.result.mark_sent)
        except Exception as error:
            self._events.tell(Fault.WATCHDOG if isinstance(error, TimeoutError) else Fault.SWEEP)
            turn = await self._last_form(job)
        self._tell_fault(turn.swept.fault)
        self._events.tell(StageTimed(Stage.SWEEP, job.clock.spent_s()))
        return turn

    async def prepare_count(self, inbound: Inbound) -> PreparedRequest:
        """The body that would be sent now in place of one that is only to be counted: nothing is decided for it."""
        try:
            return await self._within_budget(Job(inbound, None, _no_gap, JobClock(self._ticks)), self._counted)
        except Exception as error:
            self._events.tell(Fault.WATCHDOG if isinstance(error, TimeoutError) else Fault.SWEEP)
            return as_it_came(inbound, self._clock.now(), Reason.FAULT)

    async def wait_written(self) -> None:
        """Wait until the turns that have left are written down."""
        while self._unwritten:
            await asyncio.sleep(SHORTEST_CHECK_S)

    async def run(self, work: Callable[[], T]) -> T:
        """Do something in a worker thread."""
        return await asyncio.wrap_future(self._workers.submit(work))

    def client(self, inbound: Inbound) -> Client:
        """Whose waits a request shows."""
        return self._naming.client(inbound.headers)

    async def run_or(self, work: Callable[[], T], spare: Callable[[], T]) -> T:
        """Do something in a worker thread; once it fails, or has taken the budget, what `spare` makes, which must wait
        for no store. Where `spare` fails too, the work may take as long as a request may wait for others."""
        doing = asyncio.ensure_future(self.run(work))
        try:
            await asyncio.wait({doing}, timeout=self._budget_s)
            if doing.done() and doing.exception() is None:
                return doing.result()
            try:
                return await asyncio.wrap_future(self._fallback_workers.submit(spare))
            except Exception:
                return await asyncio.wait_for(asyncio.shield(doing), QUEUE_BUDGETS * self._budget_s)
        finally:
            doing.add_done_callback(_heard)
            doing.cancel()

    def thread_lock(self, thread: str) -> Any:
        """The thread's lock, for a worker that writes what did not come of a request."""
        return self._threads.holding(thread)

    def close(self) -> None:
        """Take no more work; what is under way ends by itself."""
        for pool in (self._workers, self._fallback_workers):
            pool.close()

    # -- in a worker -------------------------------------------------------------------------------------------------

    def _work(self, job: Job, work: Callable[[Job], PreparedRequest], result: JobResult) -> None:
        """Do it, and hand over what came of it, unless that was done on the way."""
        try:
            if not job.is_wanted:
                return
            job.clock.enter(Activity.WORKING)
            turn = work(job)
            if not result.deliver(turn):
                # In what came after it was handed over.
                result.loop.call_soon_threadsafe(self._tell_fault, turn.swept.fault)
        except Exception as error:
            result.fail(error)
        finally:
            self._last_done = self._ticks()
            self._unwritten.discard(result)

    def _turn(self, job: Job) -> PreparedRequest:
        transcript = self._read(job.inbound.body)
        thread = self._naming.thread(job.inbound.headers, transcript)
        job.transcript, job.thread = transcript, thread
        if transcript is None or thread in self._bypassed:
            reason = Reason.UNREADABLE if transcript is None else Reason.BYPASSED
            swept = self._sweep.passed(job.inbound.body, thread, reason)
            return PreparedRequest(job.inbound, thread, None, swept, self._clock.now())
        if not self._asks:
            return self._swept(job, transcript, thread)
        # The same body once more, while the first is being asked about, waits: it is the same turn.
        with self._bodies.holding((thread, transcript.chain[-8:], len(transcript.body))):
            return self._swept(job, transcript, thread)

    def _swept(self, job: Job, transcript: Transcript, thread: str) -> PreparedRequest:
        job.clock.enter(Activity.WAITING)
        with self._threads.holding(thread) as lock:
            job.clock.enter(Activity.WORKING)
            now = self._clock.now()

            def leave(swept: Swept) -> None:
                if job.result is not None:
                    self._unwritten.add(job.result)
                    job.result.deliver(PreparedRequest(job.inbound, thread, transcript, swept, now))
                    job.result.wait_until_sent()

            asker = UnlockedAsker(job.asker, job, lock) if job.asker is not None and self._asks else None
            swept = self._sweep.process(
                transcript,
                thread,
                now,
                asker=asker,
                settled=job.gaps(thread),
                is_wanted=job.wanted,
                leave=leave,
                client=self.client(job.inbound),
                session=self._naming.session(job.inbound.headers, transcript),
            )
        return PreparedRequest(job.inbound, thread, transcript, swept, now)

    def _counted(self, job: Job) -> PreparedRequest:
        inbound = job.inbound
        transcript = self._read(inbound.body)
        now = self._clock.now()
        if transcript is None or transcript.server_thread:
            return as_it_came(inbound, now, Reason.UNREADABLE)
        thread = self._naming.thread(inbound.headers, transcript)
        if thread in self._bypassed:
            return as_it_came(inbound, now, Reason.BYPASSED)
        return PreparedRequest(inbound, thread, transcript, self._sweep.counted(transcript, thread, now), now)

    def _read(self, body: bytes) -> Transcript | None:
        try:
            return self._sweep.read(body)
        except Unreadable:
            return None

    # -- on the loop -------------------------------------------------------------------------------------------------

    async def _within_budget(self, job: Job, work: Callable[[Job], PreparedRequest]) -> PreparedRequest:
        """What a worker makes of a job. Raises TimeoutError once it is out of time."""
        result = job.result = JobResult(asyncio.get_running_loop())
        self._check_budget(job, result)
        self._workers.do(partial(self._work, job, work, result))
        try:
            return await result.future
        except BaseException:
            job.is_wanted = False  # the worker stops at its next step: what it would decide was not sent
            raise
        finally:
            result.timer.cancel()

    def _check_budget(self, job: Job, result: JobResult) -> None:
        """End a job that is out of time; else look again when it would be."""
        left = job.clock.left_s(self._budget_s, self._last_done)
        if left <= 0:
            result.give_up(TimeoutError())
        else:
            again = min(max(left, SHORTEST_CHECK_S), LONGEST_CHECK_S)
            result.timer = result.loop.call_later(again, self._check_budget, job, result)

    def _tell_fault(self, fault: Exception | None) -> None:
        if fault is not None:
            self._events.tell(Fault.STORE if isinstance(fault, StoreError) else Fault.SWEEP)

    async def _last_form(self, job: Job) -> PreparedRequest:
        """What was decided before, made without the store; the client's bytes if even that takes too long."""
        try:
            future = asyncio.wrap_future(self._fallback_workers.submit(partial(self._frozen, job)))
            return await asyncio.wait_for(future, self._budget_s)
        except Exception:  # closed in the meantime is one
            return as_it_came(job.inbound, self._clock.now(), Reason.FAULT)

    def _frozen(self, job: Job) -> PreparedRequest:
        transcript = job.transcript or self._read(job.inbound.body)
        if transcript is None:
            return as_it_came(job.inbound, self._clock.now(), Reason.UNREADABLE)
        thread = job.thread or self._naming.thread(job.inbound.headers, transcript)
        return PreparedRequest(
            job.inbound, thread, transcript, self._sweep.frozen(transcript, thread), self._clock.now()
        )


def _heard(done: "asyncio.Future[Any]") -> None:
    """What came of work that nobody waits for any more is no error that nobody has seen."""
    if not done.cancelled():
        done.exception()


def _no_gap(thread: str) -> Gap:
    return lambda branch: None
