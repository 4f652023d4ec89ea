"""Our own work on a request is one after the other, within its budget, and never counts the model's time."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from sweeping import sweep_of
from wired import ALL_SPENT, ASKED, VERDICTS, WORK, Live, Talk, inbound, live, read_out, until

from cg.gateway.events import Fault
from cg.gateway.turns.turn_runner import WORKERS
from cg.sweep.driver.effect_runner import REMEMBERED_THREADS
from cg.sweep.ledger import Reason
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Thread

SLOW_ASK = {
    "name": "ask",
    "match": {"last_user~": ASKED},
    "turns": [{"verdicts": VERDICTS, "fault": {"kind": "slow_first_byte", "seconds": 1.5}}],
    "then": "repeat",
}


async def begun(gateway: Live, talk: Talk) -> None:
    await gateway.post(talk.body())
    await gateway.post(talk.calls(14, size=7000).body())
    await gateway.wait(250)


def test_a_question_in_the_middle_of_a_turn_is_not_our_own_time() -> None:
    """A model that takes longer than our budget to judge trips no watchdog, and its answer is applied."""

    async def session() -> None:
        async with live([SLOW_ASK, WORK], preset="classic", budget_ms=900) as gateway:
            talk = Talk()
            await begun(gateway, talk)
            await gateway.post(talk.say("And now?").body())
            assert gateway.recorder.turns[-1].reason is Reason.REMOVED
            assert not gateway.recorder.faults

    asyncio.run(session())


def test_while_one_request_asks_another_of_its_thread_goes_on_and_a_retry_of_it_waits() -> None:
    """The thread is locked for our work alone; the same body once more is the same turn, and asks nothing again."""

    async def session() -> None:
        async with live([SLOW_ASK, WORK], preset="classic") as gateway:
            talk = Talk()
            await begun(gateway, talk)
            title = Talk(messages=[{"role": "user", "content": "A title, please."}], top={"tools": []}, mark=None)
            body = talk.say("And now?").body()
            asking = asyncio.create_task(gateway.post(body))
            while gateway.up.count < 3:
                await asyncio.sleep(0.01)
            again = asyncio.create_task(gateway.post(body))
            assert (await gateway.post(title.body())).status == 200
            assert not asking.done() and not again.done()
            assert {(await asking).status, (await again).status} == {200}
            routes = [record["route"] for record in gateway.sent]
            assert routes.count("ask") == 1
            sent = [b for b in gateway.bodies("work") if b"<<cg:" in b]
            assert len(sent) == 2 and sent[0] == sent[1]
            assert [turn.reason for turn in gateway.recorder.turns].count(Reason.RETRY) == 1

    asyncio.run(session())


def test_many_requests_of_one_thread_at_one_time_are_all_served() -> None:
    """Branches of one history, sent together: each is answered, nothing is lost, nothing fails."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talks = [Talk().say(f"Branch {n}.") for n in range(24)]
            answers = await asyncio.gather(*(gateway.post(talk.body()) for talk in talks))
            assert {answer.status for answer in answers} == {200}
            (thread,) = gateway.sweep._known
            assert len(gateway.store.load(thread).branches) == 24
            assert len(gateway.recorder.turns) == 24 and not gateway.recorder.faults[Fault.WATCHDOG]
            assert len(gateway.messages._turns._threads) == 0

    asyncio.run(session())


class Crowded(MemoryStore):
    """A store at which each request waits until it is let through, itself and no other in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[threading.Event] = []
        self._is_open = False
        self._lock_of_held = threading.Lock()

    def load(self, thread: str) -> Thread:
        gate = threading.Event()
        with self._lock_of_held:
            if not self._is_open:
                self.held.append(gate)
            else:
                gate.set()
        assert gate.wait(60)
        return super().load(thread)

    def let_through(self, *, stay_open: bool = False) -> None:
        """Those that wait now may go on; with `stay_open` all that come later too."""
        with self._lock_of_held:
            gates, self.held, self._is_open = self.held, [], stay_open
        for gate in gates:
            gate.set()


class Ticks:
    """A clock that is set, and knows how often the loop has looked at it."""

    def __init__(self) -> None:
        self.at, self.looks = 0.0, 0
        self._loop = threading.get_ident()

    def __call__(self) -> float:
        self.looks += threading.get_ident() == self._loop
        return self.at


@asynccontextmanager
async def crowd(n: int) -> AsyncIterator[tuple[Live, Crowded, Ticks, list[asyncio.Task[Any]]]]:
    """New conversations that arrive together, as many as there are workers at the store, by a clock that is set."""
    store, ticks = Crowded(), Ticks()
    async with live([WORK], store=store, budget_ms=2000) as gateway:
        turns = gateway.messages._turns
        turns._ticks, turns._moved_on = ticks, 0.0
        sent = [asyncio.create_task(asked(gateway, f"session {i}")) for i in range(n)]
        try:
            await until(lambda: len(store.held) == WORKERS)
            yield gateway, store, ticks, sent
        finally:
            store.let_through(stay_open=True)


async def asked(gateway: Live, session: str) -> Any:
    """A request and its answer, whatever is still being written down then."""
    return await read_out(await gateway.messages.handle(inbound(Talk().body(), x_cg_session=session)))


async def pass_time(ticks: Ticks, seconds: float, n: int) -> None:
    """Set the clock on, and wait until each of `n` requests that wait has been looked at by it."""
    ticks.at += seconds
    seen = ticks.looks
    await until(lambda: ticks.looks >= seen + 2 * n)


def test_a_crowd_of_new_conversations_trips_no_watchdog() -> None:
    """64 at once: each is within its own budget, and the last ones wait for six budgets while the others are served."""

    async def session() -> None:
        async with crowd(8 * WORKERS) as (gateway, store, ticks, sent):
            for round_n in range(8):
                left = 8 - round_n
                await pass_time(ticks, 1.5, left * WORKERS)
                store.let_through()
                if left > 1:
                    await until(lambda: len(store.held) == WORKERS)
            assert {answer.status for answer in await asyncio.gather(*sent)} == {200}
            assert not gateway.recorder.faults
            assert {turn.reason for turn in gateway.recorder.turns} == {Reason.NOTHING_JUDGED}

    asyncio.run(session())


def test_a_crowd_before_a_store_that_hangs_waits_for_one_budget() -> None:
    """Those that wait behind others do not wait for longer than those: nothing moves on."""

    async def session() -> None:
        async with crowd(3 * WORKERS) as (gateway, _, ticks, sent):
            ticks.at += 2.5
            assert {answer.status for answer in await asyncio.gather(*sent)} == {200}
            assert gateway.recorder.faults == {Fault.WATCHDOG: 3 * WORKERS}
            assert {turn.reason for turn in gateway.recorder.turns} == {Reason.FAULT}

    asyncio.run(session())


def test_a_request_that_meets_the_end_leaves_as_it_came() -> None:
    """Whether it comes when the workers have been let go of, or waits for one of them when that happens."""

    async def session() -> None:
        async with crowd(WORKERS + 1) as (gateway, store, ticks, sent):
            await until(lambda: len(gateway.messages._turns._workers._waiting) == 1)
            gateway.messages._turns.close()
            late = Talk().body()
            turn = await gateway.messages._turns.take(inbound(late, x_cg_session="late"), lambda thread: lambda b: None)
            assert (turn.body, turn.swept.report.reason) == (late, Reason.FAULT)
            store.let_through(stay_open=True)
            ticks.at += 100.0
            assert {answer.status for answer in await asyncio.gather(*sent)} == {200}

    asyncio.run(session())


def test_more_conversations_than_are_remembered_disturb_nobody() -> None:
    """What is kept for the case that the store fails is bounded, and many threads may push each other's out at once."""
    sweep, names = sweep_of(), [f"t{n}" for n in range(REMEMBERED_THREADS + 60)]
    body = Talk().body()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            swept = list(pool.map(lambda name: sweep.process(body, name, 1_800_000_000.0), names * 3))
    finally:
        sys.setswitchinterval(before)
    assert {one.report.reason for one in swept} == {Reason.NOTHING_JUDGED, Reason.RETRY}
    assert len(sweep._known) == REMEMBERED_THREADS
