"""What a live run of this design has to show, one test each, by the upstream's own records and on its clock.

The first seven were shown by the first publication against the real API; here the upstream is scripted and its cache is
a model. `python -m pytest tests/end_to_end/test_live_behaviours.py -v` reads as the list.
"""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import (
    ALL_SPENT,
    ASKED,
    EXPAND_TOOL,
    VERDICTS,
    WORK,
    Live,
    Talk,
    cost_of,
    expands,
    find_markers,
    live,
    scripted,
)

from cg.gateway.events import ExpandMode, ExpandOutcome
from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import Reason

SIZE = 7000  # bytes: above a thousand tokens at four bytes each, which the preset `classic` asks for


def asks(gateway: Live) -> list[dict[str, Any]]:
    return [r for r in gateway.sent if r.get("route") == "ask"]


async def in_window(gateway: Live, talk: Talk, idle_s: float, **how: Any) -> None:
    """Fourteen outputs, a wait, and the request that comes after it; under `classic` it may ask."""
    await gateway.post(talk.body())
    await gateway.post(talk.calls(14, size=SIZE, **how).body())
    await gateway.wait(idle_s)
    await gateway.post(talk.say("And now?").body())


def test_1_asks_read_the_cache_and_write_nothing() -> None:
    """Under both policies that ask: everything that was sent before is read, and only the question is fresh."""

    async def session(preset: str, idle_s: float) -> None:
        async with live([ALL_SPENT, WORK], preset=preset) as gateway:
            await in_window(gateway, Talk(), idle_s)
            (ask,) = asks(gateway)
            usage, before = ask["usage"], gateway.bodies("work")[1]
            assert usage["cache_creation_input_tokens"] == 0
            assert usage["cache_read_input_tokens"] > 0.95 * len(before) / 4.0
            assert usage["input_tokens"] < 1500

    asyncio.run(session("classic", 250))
    asyncio.run(session("paid", 241))


@pytest.mark.parametrize(("idle_s", "fires"), [(250, True), (0, False), (15, False)])
def test_2_classic_fires_at_250_seconds_and_not_at_0_or_15(idle_s: float, fires: bool) -> None:
    """A request in the last minute of the entry asks and applies; an earlier one says why it does not."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK], preset="classic") as gateway:
            await in_window(gateway, Talk(), idle_s)
            report = gateway.recorder.turns[-1]
            assert len(asks(gateway)) == fires
            if fires:
                assert report.reason is Reason.REMOVED and len(report.removed) == 11
            else:
                assert report.reason is Reason.WARM and report.declines[Decline.NOT_IN_WINDOW] == 1

    asyncio.run(session())


def test_3_turns_that_carry_removals_are_taken_and_no_role_is_invented() -> None:
    """Every body is a 200, and its messages have the client's own roles in the client's own order."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK], preset="classic") as gateway:
            talk = Talk()
            await in_window(gateway, talk, 250)
            for n in range(10):
                talk.call(size=SIZE)
                await gateway.post(talk.body() if n % 2 else talk.say("Go on.").body())
                sent = json.loads(gateway.bodies("work")[-1])
                assert [m["role"] for m in sent["messages"]] == [m["role"] for m in talk.messages]
                assert gateway.recorder.turns[-1].replayed == 11
            assert {record["status"] for record in gateway.sent} == {200}

    asyncio.run(session())


def test_4_an_expansion_recovers_104_lines_byte_for_byte() -> None:
    """What the model reads again is what the tool said."""
    lines = [
        f'{n:3}\tcf_{n * 7919:08} = "é\\n{n}"  # 行 {n} of a file that was read once, long ago' for n in range(104)
    ]
    text = "\n".join(lines)

    async def session() -> None:
        async with live(scripted(expands(), {"text": "Read again."}), preset="classic") as gateway:
            talk = Talk()
            await gateway.post(talk.body())
            talk.call(text, path="src/first.py")
            await gateway.post(talk.calls(13, size=5000).body())
            await gateway.wait(250)
            await gateway.post(talk.say("And now?").body())
            assert gateway.recorder.turns[-1].removed[0].tool_use_id == "toolu_000"
            assert text not in str(json.loads(gateway.bodies("work")[-1]))
            await gateway.post(talk.say("Show me the first.").body())
            (result,) = json.loads(gateway.bodies("work")[-1])["messages"][-1]["content"]
            assert result["content"] == text and result["content"].count("\n") == 103
            assert gateway.recorder.recoveries == [(ExpandMode.HIDDEN, ExpandOutcome.ORIGINAL, 1)]

    asyncio.run(session())


def test_5_a_removal_is_replayed_36_times_with_the_same_bytes() -> None:
    """At warm and at cold requests, with the upstream reading what it wrote."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK], preset="classic") as gateway:
            talk = Talk()
            await in_window(gateway, talk, 250)
            removed = tokens(gateway.bodies("work")[-1])
            assert len(removed) == 11
            for n in range(36):
                await gateway.wait(400 if n % 12 == 11 else 5)
                await gateway.post(talk.say(f"Step {n}.").body())
                assert tokens(gateway.bodies("work")[-1]) == removed
                if n % 12 != 11:
                    assert gateway.sent[-1]["usage"]["cache_read_input_tokens"] > 0
            assert sum(turn.events.get(Event.REAPPLIED, 0) for turn in gateway.recorder.turns) == 36 * 11

    asyncio.run(session())


def tokens(body: bytes) -> list[str]:
    """The texts that stand in the place of removed outputs."""
    found = []
    for message in json.loads(body)["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result" and "<<cg:" in block["content"]:
                found.append(block["content"])
    return found


@pytest.mark.parametrize("blocked", [False, True])
def test_6_both_forks_of_the_fallback_have_their_own_counters(blocked: bool) -> None:
    """A missed prefix leads to a second ask over samples, or, where that is blocked, to none."""

    async def session() -> None:
        missed = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 30_000}
        samples = {**ALL_SPENT, "name": "samples", "match": {"last_user~": ASKED, "tools": False}}
        ask = {**ALL_SPENT, "turns": [{"verdicts": VERDICTS, "usage": missed}]}
        flags = {"block_fallback": blocked}
        async with live([samples, ask, WORK], preset="classic", flags=flags) as gateway:
            await in_window(gateway, Talk(), 250)
            report = gateway.recorder.turns[-1]
            routes = [r["route"] for r in gateway.sent if r["route"] != "work"]
            assert report.declines[Decline.PREFIX_CACHE_READ_ZERO] == 1
            if blocked:
                assert routes == ["ask"] and report.declines[Decline.FALLBACK_BLOCKED] == 1
                assert Event.FALLBACK_USED not in report.events and report.removed == ()
            else:
                assert routes == ["ask", "samples"] and report.events[Event.FALLBACK_USED] == 1
                assert Decline.FALLBACK_BLOCKED not in report.declines and report.removed

    asyncio.run(session())


def test_7_no_expansion_is_unresolved_over_32_removals() -> None:
    """Each of 32 removed outputs is asked for, hidden or shown, and comes back."""

    async def session() -> None:
        calls = [{"name": EXPAND_TOOL, "input": expands(n)["input"]} for n in range(33)]
        reads = {"name": "Read", "input": {"file_path": "src/more.py"}}
        turns = [{"text": "Three at once.", "tools": calls[n : n + 11] + ([reads] if n else [])} for n in (0, 11, 22)]
        script = [
            ALL_SPENT,
            {"name": "work", "turns": [{"text": "Hm."}] * 7 + [turns[0], {"text": "Seen."}, *turns[1:]]},
        ]
        script[1]["then"] = "repeat"
        async with live(script) as gateway:
            talk = Talk()
            await gateway.post(talk.body())
            for n in range(3):
                await gateway.post(talk.calls(14).body())
                await gateway.wait(241)
                await gateway.wait(1000)
                await gateway.post(talk.say(f"Part {n}.").body())
            assert len(find_markers(gateway.bodies("work")[-1].decode())) >= 32
            await gateway.post(talk.say("Show me some.").body())
            for _ in range(2):
                answer = await gateway.post(talk.say("Show me more.").body())
                await gateway.post(talk.answered(answer.content).body())
            assert {outcome for _, outcome, _ in gateway.recorder.recoveries} == {ExpandOutcome.ORIGINAL}
            assert len(gateway.recorder.recoveries) >= 32
            totals = gateway.store.totals()["events"]
            assert "expand_unresolved" not in totals and totals["sweep_expanded"] >= 21

    asyncio.run(session())


def test_8_the_default_policy_is_cheaper_in_total_than_passing_through() -> None:
    """Asks in the gaps, applies at cold requests; asks, markers and our tool included, by the upstream's own usage."""

    async def session(*, swept: bool) -> tuple[float, list[int]]:
        flags = {} if swept else {"ask": "off"}
        async with live([ALL_SPENT, WORK], flags=flags) as gateway:
            talk = Talk()
            await gateway.post(talk.body())
            for part in range(3):
                for _ in range(7):
                    await gateway.post(talk.calls(2, size=12_000).body())
                    await gateway.wait(20)
                await gateway.wait(241)
                await gateway.wait(900)
                await gateway.post(talk.say(f"Part {part}.").body())
            assert {record["status"] for record in gateway.sent} == {200}
            return cost_of(gateway.up), [len(turn.removed) for turn in gateway.recorder.turns if turn.removed]

    through, nothing = asyncio.run(session(swept=False))
    swept, removals = asyncio.run(session(swept=True))
    assert nothing == [] and len(removals) == 3
    assert swept < 0.85 * through
