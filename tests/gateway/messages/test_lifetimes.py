"""Lifetimes on live traffic: the upstream's own usage is as foretold, refusals leave the client's marks, headers say it."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from wired import WORK, Live, Talk, inbound, live

from cg.gateway.turns.prepared_request import BETA, ONE_HOUR, with_one_hour
from cg.replay.cache_model import CacheModel, prompt_of
from cg.sweep.accounting.tally import Tally
from cg.sweep.body.transcript import read
from cg.sweep.counters import Event
from cg.sweep.economics import units_of
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Phase, usage_of

RATIO = 4.0
HOUR_MARK = {"type": "ephemeral", "ttl": "1h"}


def has_paid(gateway: Live, **headers: str) -> None:
    """This client's requests have cost so much that a choice of lifetimes is covered."""
    user = gateway.messages._turns.client(inbound(b"", **headers)).user
    gateway.store.count(user, Tally(gaps=Counter({Event.BILLED_UNITS: 10**9})))


async def resumed(gateway: Live, talk: Talk, *waits: float, **headers: str) -> list[dict[str, Any]]:
    """A session with a call in front of each wait; the usage of each of its requests."""
    usages = [(await gateway.post(talk.body(), **headers)).message["usage"]]
    for wait in waits:
        talk.calls(3)
        await gateway.wait(wait)
        usages.append((await gateway.post(talk.body(), **headers)).message["usage"])
    return usages


def foretold(gateway: Live, *times: float) -> list[Any]:
    """The usage that the replay's own cache gives for the bodies that were sent, at these moments."""
    cache, found = CacheModel(), []
    for body, at in zip(gateway.bodies(), times, strict=True):
        prompt, marks = prompt_of(body, bytes_per_token=RATIO)
        found.append(cache.request(prompt, marks, at))
    return found


def tiers(usages: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    rows = [usage_of(usage) for usage in usages]
    return [(row.fresh, row.read, row.write_5m, row.write_1h) for row in rows if row is not None]


@pytest.mark.parametrize("lifetime", ["1h", "plan"])
def test_a_resume_within_the_hour_reads_what_five_minutes_would_have_lost(lifetime: str) -> None:
    """By the upstream's usage: as the replay foretells it, and cheaper than the same session without a gateway's word."""
    bills = {}

    async def session(setting: str) -> None:
        waits, store = (60, 900, 30, 1500), MemoryStore()
        async with live(
            [WORK], preset="quiet", flags={"lifetime": setting}, store=store, bytes_per_token=RATIO
        ) as gateway:
            has_paid(gateway)
            usages = await resumed(gateway, Talk(), *waits)
            times = [sum(waits[:n]) for n in range(len(waits) + 1)]
            assert tiers(usages) == [(u.fresh, u.read, u.write_5m, u.write_1h) for u in foretold(gateway, *times)]
            bills[setting] = gateway.usd
            events = store.totals()["events"]
            if setting == "client":
                assert usages[2]["cache_read_input_tokens"] == 0 and Event.LIFETIME_WRITTEN not in events
            else:
                assert usages[2]["cache_read_input_tokens"] > 0
                assert all(usage["cache_creation"]["ephemeral_5m_input_tokens"] == 0 for usage in usages)
                assert {turn.phase for turn in gateway.recorder.turns[1:]} == {Phase.WARM}
                assert events[Event.LIFETIME_WRITTEN] == 5
                assert events[Event.LIFETIME_GAINED_UNITS] > events[Event.LIFETIME_COST_UNITS] > 0

    asyncio.run(session("client"))
    asyncio.run(session(lifetime))
    assert bills[lifetime] < bills["client"]


@pytest.mark.parametrize("lifetime", ["client", "plan"])
def test_what_a_users_requests_cost_is_the_stake_of_a_plan(lifetime: str) -> None:
    """By the upstream's usage, for this user alone; without a plan nothing of it is kept."""

    async def session() -> None:
        async with live([WORK], preset="quiet", flags={"lifetime": lifetime}) as gateway:
            usages = [usage_of(usage) for usage in await resumed(gateway, Talk(), 60)]
            await gateway.post(Talk().body(), x_api_key="another")
            user = gateway.messages._turns.client(inbound(b"")).user
            paid = gateway.store.totals(user)["gaps"].get(Event.BILLED_UNITS)
            assert paid == (sum(round(units_of(usage)) for usage in usages if usage) if lifetime == "plan" else None)

    asyncio.run(session())


def test_five_minutes_of_a_client_that_asks_for_an_hour_are_written_as_foretold() -> None:
    """Its own client's cold resume writes the prefix again."""

    async def session() -> None:
        async with live([WORK], preset="quiet", flags={"lifetime": "5m"}, bytes_per_token=RATIO) as gateway:
            usages = await resumed(gateway, Talk(mark=HOUR_MARK), 60, 900)
            assert tiers(usages) == [(u.fresh, u.read, u.write_5m, u.write_1h) for u in foretold(gateway, 0, 60, 960)]
            assert [usage["cache_creation"]["ephemeral_1h_input_tokens"] for usage in usages] == [0, 0, 0]
            assert gateway.recorder.turns[-1].phase is Phase.COLD

    asyncio.run(session())


def test_a_lifetime_is_kept_over_a_restart_of_the_gateway(tmp_path: Path) -> None:
    """The next process reads from the store how long the branch's entries live."""

    async def session() -> None:
        talk, path = Talk(), tmp_path / "cg.db"
        with SqliteStore(path) as store:
            async with live([WORK], preset="quiet", flags={"lifetime": "1h"}, store=store) as gateway:
                await resumed(gateway, talk, 60)
                with SqliteStore(path) as again:
                    how = {"flags": {"lifetime": "1h"}, "store": again, "up": gateway.up}
                    async with live([WORK], preset="quiet", **how) as other:
                        talk.calls(1)
                        await other.wait(900)
                        usage = (await other.post(talk.body())).message["usage"]
                        assert usage["cache_read_input_tokens"] > 0

    asyncio.run(session())


def test_rule_11_a_refused_lifetime_leaves_the_clients_marks_and_its_removals() -> None:
    """The original is sent once; from then on this thread's marks leave as they come, and another's are still written."""

    async def session() -> None:
        async with live([WORK], preset="quiet", flags={"lifetime": "1h"}) as gateway:
            gateway.up.queue.append(
                {
                    "fault": {"kind": "http_error", "status": 400, "message": "no", "times": 1},
                    "match": {"any~": '"ttl"'},
                }
            )
            talk = Talk()
            body = talk.body()
            answer = await gateway.post(body)
            assert answer.status == 200 and gateway.bodies()[1:] == [body] and gateway.recorder.resents == [400]
            await gateway.post(talk.call() and talk.body())
            assert {mark[3] for mark in read(gateway.bodies()[-1]).scan.marks()} == {300}
            assert b"cg_expand" in gateway.bodies()[-1]  # it was the lifetimes that were to blame
            assert gateway.store.totals()["events"][Event.LIFETIME_REFUSED] == 1
            await gateway.post(Talk().body(), x_claude_code_session_id="another")
            assert {mark[3] for mark in read(gateway.bodies()[-1]).scan.marks()} == {3600}

    asyncio.run(session())


def test_waits_of_people_programs_and_sub_agents_are_learnt_apart() -> None:
    """Each credential has its own, too; a refused or unknown name teaches nobody else."""

    async def session() -> None:
        async with live([WORK], preset="quiet", flags={"lifetime": "plan"}) as gateway:
            for n, headers in enumerate(
                (
                    {"user_agent": "claude-cli/2.1.197 (external, cli)"},
                    {"user_agent": "claude-cli/2.1.197 (external, sdk-cli)"},
                    {"user_agent": "claude-cli/2.1.197 (external, cli)", "x_claude_code_agent_id": "a1"},
                    {"user_agent": "claude-cli/2.1.197 (external, cli)", "x_api_key": "another"},
                )
            ):
                has_paid(gateway, **headers)
                await gateway.post(Talk(mark=HOUR_MARK).body(), x_claude_code_session_id=f"s{n}", **headers)
            written = [{mark[3] for mark in read(body).scan.marks()} for body in gateway.bodies()]
            assert written == [{3600}, {300}, {300}, {3600}]
            users = [name for name in gateway.store._states if gateway.store.totals(name)["gaps"]]
            assert len(users) == 8  # four conversations, and whose they are

    asyncio.run(session())


def test_the_feature_of_an_hour_is_named_where_its_client_did_not() -> None:
    """In its own list of features, or in a new one; the original that follows a refusal has the client's own headers."""
    own = [(b"x-api-key", b"k"), (BETA, b"a-1,b-2"), (b"accept", b"*/*")]
    assert with_one_hour(own) == [own[0], (BETA, b"a-1,b-2," + ONE_HOUR), own[2]]
    assert with_one_hour(own[:1]) == [own[0], (BETA, ONE_HOUR)]
    named = [(BETA, b"a-1, " + ONE_HOUR)]
    assert with_one_hour(named) == named

    async def session() -> None:
        async with live([WORK], preset="quiet", flags={"lifetime": "1h"}) as gateway:
            gateway.up.queue.append({"fault": {"kind": "http_error", "status": 400, "message": "no", "times": 1}})
            await gateway.post(Talk().body(), anthropic_beta="a-1")
            named = [dict(json_headers(request)).get("anthropic-beta") for request in gateway.sent]
            assert named == ["a-1," + ONE_HOUR.decode(), "a-1"]

    asyncio.run(session())


def json_headers(request: dict[str, Any]) -> list[tuple[str, str]]:
    headers = request["headers"]
    pairs = headers.items() if isinstance(headers, dict) else headers
    return [(name.lower(), value) for name, value in json.loads(json.dumps(list(pairs)))]
