"""Our own work on a request is one after the other, within its budget, and never counts the model's time."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("httpcore2")

from sweeping import sweep_of
from wired import ALL_SPENT, ASKED, VERDICTS, WORK, Live, Talk, live

from cg.gateway.events import Fault
from cg.sweep.drivers import REMEMBERED_THREADS
from cg.sweep.ledger import Reason

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
