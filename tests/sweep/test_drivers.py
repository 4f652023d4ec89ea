"""The asynchronous driver: the same turns as the synchronous one, with nothing on the event loop that waits."""

import asyncio
import math
import re
import threading
from pathlib import Path

import pytest
from sweeping import START, Judge, encoded, history, removed_at_cold, sweep_of

from cg.sweep.core.idle_ask import Settled
from cg.sweep.core.outcome import Swept
from cg.sweep.drivers import Sweep
from cg.sweep.effects import Answer, Failure
from cg.sweep.ledger import Reason
from cg.sweep.store import StoreError
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Usage

READ = Usage(read=20_000, output=40)
IN_WINDOW = 260.0  # seconds after the request before: the last minute of a five-minute entry


class AsyncJudge:
    """An asker for an event loop over a synchronous judge; `before` is awaited first."""

    def __init__(self, judge: Judge, before=None) -> None:
        self.judge, self.before, self.timeouts = judge, before, []

    async def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        self.timeouts.append(timeout_s)
        await (self.before() if self.before else asyncio.sleep(0))
        return self.judge.ask(body, timeout_s)


def turns() -> list[tuple[bytes, float]]:
    """A session of the classic preset: an opening, outputs, a request in the last minute, replays, what is no body."""
    outputs = encoded(history(12, last="Go on.", size=8000))
    return [
        (encoded(history(0)), START),
        (encoded(history(12, size=8000)), START + 10),
        (outputs, START + 10 + IN_WINDOW),
        (outputs, START + 20 + IN_WINDOW),  # a retry
        (encoded(history(13, size=8000)), START + 30 + IN_WINDOW),
        (b"{", START + 40 + IN_WINDOW),
        (encoded(history(3, tools=None)), START + 50 + IN_WINDOW),
    ]


def run(sweep: Sweep, asker: AsyncJudge, requests: list[tuple[bytes, float]] | None = None) -> list[Swept]:
    async def all_turns() -> list[Swept]:
        sent = turns() if requests is None else requests
        return [await sweep.process_async(body, "t", now, asker=asker) for body, now in sent]

    return asyncio.run(all_turns())


def test_a_retry_at_another_process_leaves_the_body_there_too(tmp_path: Path) -> None:
    """Whichever of the two is there when the gap's ask falls due can make it."""
    body, later = encoded(history(3)), encoded(history(4))
    with (
        SqliteStore(tmp_path / "s.db", bodies_in_memory=True) as first,
        SqliteStore(tmp_path / "s.db", bodies_in_memory=True) as second,
    ):
        one, two = sweep_of(preset="paid", store=first), sweep_of(preset="paid", store=second)
        sent = one.process(body, "t", START)
        again = two.process(body, "t", START + 1)
        assert again.report.reason is Reason.RETRY and again.body == sent.body
        assert sent.branch is not None
        assert first.last_body("t", sent.branch.branch) == second.last_body("t", sent.branch.branch) == sent.body
        one.process(later, "t", START + 2)
        assert second.last_body("t", sent.branch.branch) is None


def test_both_drivers_send_the_same_bytes_and_say_the_same() -> None:
    """Body by body and report by report; the totals of their stores agree too."""
    one, two = sweep_of(preset="classic"), sweep_of(preset="classic")
    judge = Judge(keep={3}, usage=READ)
    plain = [one.process(body, "t", now, asker=judge) for body, now in turns()]
    awaited = run(two, AsyncJudge(Judge(keep={3}, usage=READ)))
    assert [swept.body for swept in awaited] == [swept.body for swept in plain]
    reasons = [swept.report.reason for swept in awaited]
    assert reasons == [swept.report.reason for swept in plain]
    assert Reason.REMOVED in reasons and Reason.RETRY in reasons and Reason.UNREADABLE in reasons
    assert one._store.totals() == two._store.totals()
    assert len(judge.bodies) == 1


def test_an_ask_has_the_configured_deadline() -> None:
    """Each leg its own."""
    asker = AsyncJudge(Judge("no verdict", usage=Usage(output=3)))
    run(sweep_of(preset="classic", ask_timeout_s=7, fallback_timeout_s=5), asker)
    assert asker.timeouts == [7, 5]


def test_without_an_asker_and_with_one_that_fails_nothing_is_removed() -> None:
    """Each says so in its own word."""

    class Failing(Judge):
        def ask(self, body: bytes, timeout_s: float) -> Failure:
            return Failure("timeout")

    assert run(sweep_of(preset="classic"), AsyncJudge(Failing()))[2].report.reason is Reason.ASK_FAILED
    body, now = turns()[2]
    sweep = sweep_of(preset="classic")
    run(sweep, AsyncJudge(Judge()), turns()[:2])
    swept = asyncio.run(sweep.process_async(body, "t", now))
    assert swept.report.reason is Reason.NO_ASKER and b"<<cg:" not in swept.body


def test_rule_10_an_asker_that_raises_is_a_fault_and_the_clients_bytes_leave(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of what it said is in the log."""

    async def fall_over() -> None:
        raise RuntimeError("a secret of the asker")

    requests = turns()[:3]
    swept = run(sweep_of(preset="classic"), AsyncJudge(Judge(), fall_over), requests)
    assert swept[-1].report.reason is Reason.FAULT and b"<<cg:" not in swept[-1].body
    assert "RuntimeError" in caplog.text and "secret" not in caplog.text


def test_rule_10_a_store_that_fails_sends_the_last_frozen_form() -> None:
    """As it left before, on this driver too."""

    class Broken(MemoryStore):
        is_broken = False

        def load(self, thread: str):
            if self.is_broken:
                raise StoreError("down")
            return super().load(thread)

    store = Broken()
    sweep = sweep_of(store, preset="classic")
    swept = run(sweep, AsyncJudge(Judge(usage=READ)))
    store.is_broken = True
    body, now = turns()[4]
    failed = asyncio.run(sweep.process_async(body, "t", now + 100))
    assert failed.report.reason is Reason.FAULT
    assert failed.body == swept[4].body and b"<<cg:" in failed.body


def test_a_turn_that_is_cancelled_in_its_ask_leaves_nothing_half_done() -> None:
    """The client went away: no marker is recorded, and the next request is an ordinary one."""
    sweep = sweep_of(preset="classic")
    run(sweep, AsyncJudge(Judge()), turns()[:2])
    body, now = turns()[2]

    async def give_up() -> None:
        asker = AsyncJudge(Judge(), lambda: asyncio.sleep(60))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sweep.process_async(body, "t", now, asker=asker), 0.05)

    asyncio.run(give_up())
    assert sweep.state("t").removals == {}
    swept = run(sweep, AsyncJudge(Judge(usage=READ)), [(body, now + 1)])
    assert swept[0].report.reason is Reason.REMOVED


def test_a_store_that_waits_does_not_hold_the_event_loop() -> None:
    """Other connections go on while a disk is slow."""

    ticked = threading.Event()

    class Slow(MemoryStore):
        def load(self, thread: str):
            assert ticked.wait(60), "the loop stood still"
            return super().load(thread)

    async def both() -> None:
        turn = asyncio.create_task(sweep_of(Slow()).process_async(encoded(history(0)), "t", START))
        for _ in range(5):
            await asyncio.sleep(0.005)
            assert not turn.done()
        ticked.set()
        await turn

    asyncio.run(both())


def test_turns_of_many_threads_at_once_are_each_their_own() -> None:
    """Interleaved at every wait, each conversation is swept as if it were alone."""
    alone = [swept.body for swept in run(sweep_of(preset="classic"), AsyncJudge(Judge(usage=READ)))]
    sweep = sweep_of(preset="classic")

    async def conversation(thread: str) -> list[bytes]:
        asker = AsyncJudge(Judge(usage=READ))
        return [(await sweep.process_async(body, thread, now, asker=asker)).body for body, now in turns()]

    async def all_at_once() -> list[list[bytes]]:
        return await asyncio.gather(*(conversation(f"t{n}") for n in range(6)))

    assert asyncio.run(all_at_once()) == [alone] * 6


NO_MOMENTS = (math.nan, math.inf, -math.inf, -1.0, -1e-9, 253_402_300_800.0, 1.8e12)
CALLS = {
    "process": lambda sweep, branch, now: sweep.process(encoded(history(2)), "t", now),
    "process_async": lambda sweep, branch, now: asyncio.run(sweep.process_async(encoded(history(2)), "t", now)),
    "settle": lambda sweep, branch, now: sweep.settle("t", branch, now),
    "settle_async": lambda sweep, branch, now: asyncio.run(sweep.settle_async("t", branch, now, asker=None)),
    "remember": lambda sweep, branch, now: sweep.remember("t", branch, Settled(Reason.NO_ASKER), now),
    "renew": lambda sweep, branch, now: sweep.renew("t", branch, now, Usage(read=1)),
    "expand": lambda sweep, branch, now: sweep.expand("t", "0" * 16, now),
    "revoke": lambda sweep, branch, now: sweep.revoke("t", (), now),
}


@pytest.mark.parametrize("now", NO_MOMENTS, ids=repr)
@pytest.mark.parametrize("call", CALLS)
def test_a_now_that_is_no_moment_is_refused_with_the_value_and_the_limit(call: str, now: float) -> None:
    """A ValueError before anything is read or written: such a clock would be remembered, and age other threads away."""
    sweep = sweep_of()
    sweep.process(encoded(history(1)), "t", START)
    (branch,) = before = sweep.state("t").branches
    with pytest.raises(ValueError, match=re.escape(f"now is {now!r}; it must be 0 to 253402300799 seconds")):
        CALLS[call](sweep, branch, now)
    assert sweep.state("t").branches == before


@pytest.mark.parametrize("now", [0, 0.0, 253_402_300_799])
def test_the_first_and_the_last_moment_are_moments(now: float) -> None:
    """Limits count."""
    assert sweep_of().process(encoded(history(1)), "t", now).report.reason is not Reason.FAULT


def test_a_store_that_cannot_write_an_expansion_down_still_answers_it() -> None:
    """The answer is worth more than the note that it stays whole."""

    class Unwritable(MemoryStore):
        def expand_mark(self, thread: str, sha256: str) -> None:
            raise StoreError("the disk is full")

    sweep = sweep_of(Unwritable())
    _, done = removed_at_cold(sweep)
    found = sweep.expand("t", done.report.removed[0].key, START + 1001)
    assert found.sha256 is not None and found.sha256.startswith(done.report.removed[0].key)
