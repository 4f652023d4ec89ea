"""What is done in the gap between two requests, off the request path."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import ALL_SPENT, ASKED, HOUR_MARK, VERDICTS, WORK, Live, Talk, live, until

from cg.gateway.events import Fault, Spend, Timer
from cg.sweep.accounting.ping_economics import billed
from cg.sweep.ledger import Reason
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Branch, Usage


async def begun(gateway: Live, talk: Talk, n: int = 14, **headers: str) -> None:
    """Two requests, after which an ask is worth its price."""
    await gateway.post(talk.body(), **headers)
    await gateway.post(talk.calls(n).body(), **headers)


def asks(gateway: Live) -> list[dict[str, Any]]:
    return [r for r in gateway.sent if r.get("route") == "ask"]


@pytest.mark.parametrize(("ttl", "due"), [(None, 240), (HOUR_MARK, 3540)])
def test_the_ask_is_made_a_minute_before_the_entry_expires(ttl: Any, due: int) -> None:
    """Not a second earlier, once in the gap, and on the entry: all of it is read and nothing written."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            await begun(gateway, Talk(**({"mark": ttl} if ttl else {})))
            await gateway.wait(due - 1)
            assert asks(gateway) == []
            await gateway.wait(1)
            (ask,) = asks(gateway)
            assert ask["usage"]["cache_read_input_tokens"] > 0 == ask["usage"]["cache_creation_input_tokens"]
            await gateway.wait(due + 10)
            assert len(asks(gateway)) == 1 and not len(gateway.messages.timers._armed)

    asyncio.run(session())


def test_an_ask_carries_the_callers_credential_and_betas() -> None:
    """Another credential or beta set would be another cache; nothing of ours goes with it."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            await begun(gateway, Talk(), anthropic_beta="context-1m", x_cg_session="mine")
            await gateway.wait(241)
            sent = {name.lower(): value for name, value in asks(gateway)[0]["headers"]}
            assert sent["anthropic-beta"] == "context-1m" and "x-api-key" in sent
            assert not [name for name in sent if name.startswith("x-cg-")]
            body = json.loads(asks(gateway)[0]["body"])
            assert body["tool_choice"] == {"type": "none"} and "stream" not in body

    asyncio.run(session())


def test_the_next_request_cancels_the_ask() -> None:
    """Whoever works on asks nobody: one timer a branch, moved on by each request."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk()
            await begun(gateway, talk)
            for n in range(5):
                await gateway.wait(200)
                await gateway.post(talk.say(f"Step {n}.").body())
                assert len(gateway.messages.timers._armed) == 1
            assert asks(gateway) == []
            await gateway.wait(241)
            assert len(asks(gateway)) == 1

    asyncio.run(session())


def test_a_request_while_the_ask_is_under_way_does_not_wait_and_is_not_turned_back() -> None:
    """The ask ends by itself; the branch stays as the request left it, and the verdicts hold."""

    async def session() -> None:
        slow = {"verdicts": VERDICTS, "fault": {"kind": "slow_first_byte", "seconds": 3.0}}
        ask = {"name": "ask", "match": {"last_user~": ASKED}, "turns": [slow]}
        async with live([ask, WORK]) as gateway:
            talk = Talk()
            await begun(gateway, talk)
            gateway.clock.advance(241)
            while gateway.up.count < 3:
                await asyncio.sleep(0.01)
            gateway.clock.advance(5)
            await gateway.post(talk.say("Go on.").body())
            assert len(gateway.messages.timers._firing) == 1
            (thread,) = gateway.sweep._known
            clock = gateway.store.load(thread).branches[0].clock
            await gateway.wait(0)
            branch = gateway.store.load(thread).branches[0]
            assert branch.clock == clock and len(branch.chain) == 8 * len(talk.messages)
            assert len(gateway.store.load(thread).pending) == 11

    asyncio.run(session())


def test_nothing_is_asked_where_it_would_not_pay() -> None:
    """Too few outputs to compare: the next request's reason says so, and the upstream was not called."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk()
            await begun(gateway, talk, n=4)
            await gateway.wait(241)
            assert asks(gateway) == [] and gateway.recorder.timers[Timer.FIRED] == 1
            await gateway.post(talk.say("And now?").body())
            assert gateway.recorder.turns[-1].reason is Reason.BELOW_INVENTORY

    asyncio.run(session())


def test_after_two_paid_misses_a_thread_asks_no_more() -> None:
    """An upstream that never has the prefix is asked twice, with its fallback, and then left alone."""

    async def session() -> None:
        missed = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 9000}
        ask = {**ALL_SPENT, "turns": [{"text": "[]", "usage": missed}]}
        async with live([ask, WORK]) as gateway:
            talk = Talk()
            await begun(gateway, talk)
            for n in range(4):
                await gateway.wait(241)
                await gateway.post(talk.say(f"Step {n}.").body())
            (thread,) = gateway.sweep._known
            assert gateway.store.load(thread).paid_misses == 2
            assert sum("prefix_ask" in row.legs for row in gateway.recorder.rows) == 2
            assert Reason.ASKING_LATCHED in [turn.reason for turn in gateway.recorder.turns]

    asyncio.run(session())


def test_a_refused_credential_is_let_go() -> None:
    """401: nothing is kept of it, and the session goes on."""

    async def session() -> None:
        refused = {"kind": "http_error", "status": 401, "times": 2}
        ask = {**ALL_SPENT, "turns": [{"text": "[]", "fault": refused}]}
        async with live([ask, WORK]) as gateway:
            talk = Talk()
            await begun(gateway, talk)
            await gateway.wait(241)
            assert gateway.recorder.timers[Timer.CREDENTIAL_REFUSED] == 1
            assert not len(gateway.messages.timers._armed)
            answer = await gateway.post(talk.say("And now?").body())
            assert answer.status == 200 and gateway.recorder.turns[-1].reason is Reason.ASK_FAILED

    asyncio.run(session())


def test_after_a_restart_nothing_fires() -> None:
    """No credential is known then; the timer that was armed died with its gateway."""

    async def session() -> None:
        store = MemoryStore()
        async with live([ALL_SPENT, WORK], store=store) as gateway:
            await begun(gateway, Talk())
            await gateway.messages.timers.close()
            async with live(None, store=store, up=gateway.up) as again:
                await again.wait(241)
                assert asks(gateway) == []

    asyncio.run(session())


def test_a_gateway_without_the_body_leaves_the_gap_to_the_one_that_has_it() -> None:
    """It has served a retry of what another gateway has sent, say: it cannot ask, and so must not claim."""

    class Blind(MemoryStore):
        def last_body(self, thread: str, branch: str) -> bytes | None:
            return None

        def claim(self, thread: str, name: str, until: float, *, branch: Branch | None = None) -> bool:
            raise AssertionError("claimed what it cannot use")

    async def session() -> None:
        async with live([ALL_SPENT, WORK], store=Blind()) as gateway:
            talk = Talk()
            await begun(gateway, talk)
            await gateway.wait(241)
            assert asks(gateway) == [] and not gateway.recorder.faults
            assert (await gateway.post(talk.say("And now?").body())).status == 200

    asyncio.run(session())


def test_two_gateways_on_one_store_ask_once() -> None:
    """The first one to claim the gap makes the ask; a gateway whose branch was served elsewhere makes none."""

    async def session() -> None:
        store = MemoryStore()
        async with (
            live([ALL_SPENT, WORK], store=store) as one,
            live(None, store=store, up=one.up) as other,
        ):
            talk = Talk()
            await begun(one, talk)
            await other.post(talk.body())  # the retry of a client that was sent to the other one
            one.clock.advance(241)
            other.clock.advance(0)
            fired = [g.recorder.timers for g in (one, other)]
            await until(lambda: sum(t[Timer.FIRED] + t[Timer.CLAIMED_ELSEWHERE] for t in fired) == 2)
            await until(lambda: one.messages.timers._firing == other.messages.timers._firing == set())
            assert sum(t[Timer.FIRED] for t in fired) == 1 == sum(t[Timer.CLAIMED_ELSEWHERE] for t in fired)
            assert len(asks(one)) == 1
            await one.post(talk.say("Here.").body())
            await other.post(talk.say("There.").body())
            one.clock.advance(241)
            other.clock.advance(0)
            await until(lambda: one.recorder.timers[Timer.CANCELLED] > 0)
            assert one.recorder.timers[Timer.CANCELLED] == 1  # its branch was served by the other one

    asyncio.run(session())


def test_a_gateway_that_slept_through_the_lifetime_asks_nobody() -> None:
    """A suspended machine wakes up to a dead entry: an ask would pay for all of it."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            await begun(gateway, Talk())
            await gateway.wait(400)
            assert asks(gateway) == [] and gateway.recorder.timers[Timer.DROPPED] == 1

    asyncio.run(session())


def test_the_cold_preset_pings_once() -> None:
    """One token of reply renews a five-minute entry; a request within the renewed lifetime reads it."""

    async def session() -> None:
        async with live([WORK], preset="cold") as gateway:
            gateway.store.count("older", billed(Usage(fresh=10**8)))  # what this person has paid before covers a loss
            talk = Talk()
            await begun(gateway, talk)
            await gateway.wait(241)
            ping = gateway.sent[-1]
            assert json.loads(ping["body"])["max_tokens"] == 1
            assert ping["usage"]["cache_read_input_tokens"] > 0 == ping["usage"]["cache_creation_input_tokens"]
            await gateway.wait(250)
            assert len(gateway.sent) == 3
            await gateway.post(talk.say("And now?").body())
            assert gateway.sent[-1]["usage"]["cache_read_input_tokens"] > 0
            assert gateway.recorder.turns[-1].removed == ()
            assert [why for why, _ in gateway.recorder.usages].count(Spend.PING) == 1
            assert gateway.store.totals()["events"]["sweep_pinged"] == 1

    asyncio.run(session())


def test_a_ping_whose_loss_is_not_covered_is_not_made() -> None:
    """At the start nothing was paid yet that a lost ping could be a small share of."""

    async def session() -> None:
        async with live([WORK], preset="cold") as gateway:
            await begun(gateway, Talk())
            before = len(gateway.sent)
            await gateway.wait(250)
            assert len(gateway.sent) == before
            assert gateway.store.totals()["declines"]["econ_ping_not_repaid"] == 1

    asyncio.run(session())


def test_a_failing_store_costs_the_ask_and_nothing_else() -> None:
    """The fault is counted, and the next request is served."""

    class Broken(MemoryStore):
        is_broken = False

        def claim(self, thread: str, name: str, until: float, *, branch: Branch | None = None) -> bool:
            if self.is_broken:
                raise OSError("gone")
            return super().claim(thread, name, until, branch=branch)

    async def session() -> None:
        store = Broken()
        async with live([ALL_SPENT, WORK], store=store) as gateway:
            talk = Talk()
            await begun(gateway, talk)
            store.is_broken = True
            await gateway.wait(241)
            assert gateway.recorder.faults[Fault.TIMER] == 1
            assert (await gateway.post(talk.say("And now?").body())).status == 200

    asyncio.run(session())
