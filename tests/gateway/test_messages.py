"""The sweep on live traffic: what leaves, what comes back, what is learnt."""

import asyncio

import pytest

pytest.importorskip("httpcore2")

from wired import ALL_SPENT, WORK, Talk, find_markers, live  # noqa: E402

from cg.sweep.ledger import Reason  # noqa: E402


def run(coroutine):
    return asyncio.run(coroutine)


def test_the_default_policy_asks_in_the_gap_and_applies_at_the_cold_request() -> None:
    """The ask rides on the cached prefix and writes nothing; the next cold request carries the removals."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk()
            await gateway.post(talk.body())
            talk.calls(14)
            await gateway.post(talk.body())
            await gateway.wait(241)
            (ask,) = [r for r in gateway.sent if r["route"] == "ask"]
            assert ask["usage"]["cache_read_input_tokens"] > 10_000
            assert ask["usage"]["cache_creation_input_tokens"] == 0
            await gateway.wait(1000)
            talk.say("And now?")
            answer = await gateway.post(talk.body())
            assert answer.status == 200
            assert gateway.recorder.turns[-1].reason is Reason.REMOVED
            assert len(find_markers(gateway.bodies("work")[-1].decode())) == 11
            assert gateway.recorder.rows[0].dropped == 11
            assert not gateway.recorder.faults

    run(session())
