"""The driver: one request after the other, whatever the asker and the store do."""

import asyncio
import math
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sweeping import START, Judge, encoded, history, removed_at_cold, sweep_of

from cg.sweep.core.idle_ask import Settled
from cg.sweep.core.outcome import Swept
from cg.sweep.drivers import Sweep
from cg.sweep.effects import Answer, Asker, Failure
from cg.sweep.ledger import Reason
from cg.sweep.store import StoreError
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Usage

READ = Usage(read=20_000, output=40)
IN_WINDOW = 260.0  # seconds after the request before: the last minute of a five-minute entry


class Timed:
    """A judge that writes down its deadlines."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.timeouts = judge, []

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        self.timeouts.append(timeout_s)
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


def run(sweep: Sweep, asker: Asker, requests: list[tuple[bytes, float]] | None = None) -> list[Swept]:
    return [sweep.process(body, "t", now, asker=asker) for body, now in (turns() if requests is None else requests)]


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


def test_a_session_of_the_classic_preset_asks_once_and_names_each_request() -> None:
    """The outputs go in the last minute; a retry, what is no body and a side call change nothing."""
    judge = Judge(keep={3}, usage=READ)
    reasons = [swept.report.reason for swept in run(sweep_of(preset="classic"), judge)]
    assert Reason.REMOVED in reasons and Reason.RETRY in reasons and Reason.UNREADABLE in reasons
    assert len(judge.bodies) == 1


def test_an_ask_has_the_configured_deadline() -> None:
    """Each leg its own."""
    asker = Timed(Judge("no verdict", usage=Usage(output=3)))
    run(sweep_of(preset="classic", ask_timeout_s=7, fallback_timeout_s=5), asker)
    assert asker.timeouts == [7, 5]


def test_without_an_asker_and_with_one_that_fails_nothing_is_removed() -> None:
    """Each says so in its own word."""

    class Failing(Judge):
        def ask(self, body: bytes, timeout_s: float) -> Failure:
            return Failure("timeout")

    assert run(sweep_of(preset="classic"), Failing())[2].report.reason is Reason.ASK_FAILED
    body, now = turns()[2]
    sweep = sweep_of(preset="classic")
    run(sweep, Judge(), turns()[:2])
    swept = sweep.process(body, "t", now)
    assert swept.report.reason is Reason.NO_ASKER and b"<<cg:" not in swept.body


def test_rule_10_an_asker_that_raises_is_a_fault_and_the_clients_bytes_leave(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of what it said is in the log."""

    class Falling(Judge):
        def ask(self, body: bytes, timeout_s: float) -> Answer:
            raise RuntimeError("a secret of the asker")

    requests = turns()[:3]
    swept = run(sweep_of(preset="classic"), Falling(), requests)
    assert swept[-1].report.reason is Reason.FAULT and b"<<cg:" not in swept[-1].body
    assert "RuntimeError" in caplog.text and "secret" not in caplog.text


def test_rule_10_a_store_that_fails_sends_the_last_frozen_form() -> None:
    """As it left before."""

    class Broken(MemoryStore):
        is_broken = False

        def load(self, thread: str):
            if self.is_broken:
                raise StoreError("down")
            return super().load(thread)

    store = Broken()
    sweep = sweep_of(store, preset="classic")
    swept = run(sweep, Judge(usage=READ))
    store.is_broken = True
    body, now = turns()[4]
    failed = sweep.process(body, "t", now + 100)
    assert failed.report.reason is Reason.FAULT
    assert failed.body == swept[4].body and b"<<cg:" in failed.body


def test_turns_of_many_threads_at_once_are_each_their_own() -> None:
    """Side by side, each conversation is swept as if it were alone."""
    alone = [swept.body for swept in run(sweep_of(preset="classic"), Judge(usage=READ))]
    sweep = sweep_of(preset="classic")

    def conversation(thread: str) -> list[bytes]:
        asker = Judge(usage=READ)
        return [sweep.process(body, thread, now, asker=asker).body for body, now in turns()]

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(conversation, [f"t{n}" for n in range(6)])) == [alone] * 6


NO_MOMENTS = (math.nan, math.inf, -math.inf, -1.0, -1e-9, 253_402_300_800.0, 1.8e12)
CALLS = {
    "process": lambda sweep, branch, now: sweep.process(encoded(history(2)), "t", now),
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
