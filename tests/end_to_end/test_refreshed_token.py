"""A refreshed token is the same client: what was decided for the outputs in its own body goes on, and nothing else does."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from state_server import BINARY, state_server
from wired import DECLARATION, EXPAND_TOOL, Live, Talk, expands, find_markers, live, output, scripted, swept

from cg.gateway.exchange import Inbound
from cg.gateway.expansion.route import ExpandRoute
from cg.sweep.core.expansion import NEVER_EXISTED
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore

NEW = {"x_api_key": "", "authorization": "Bearer renewed"}
SESSION = "11111111-2222-3333-4444-555555555555"


def last(gateway: Live) -> bytes:
    return gateway.bodies("work")[-1]


def results(body: bytes) -> list[str]:
    """The texts of all tool results in a body."""
    blocks = [b for m in json.loads(body)["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [b["content"] for b in blocks if b["type"] == "tool_result"]


def test_the_same_bytes_leave_under_a_new_credential_and_an_id_answers() -> None:
    """The cache's prefix holds: the body is the one that the old credential would have sent."""

    async def session() -> None:
        async with live(scripted({"text": "Ok."}, expands(), {"text": "I see."})) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            talk.say("Go on.")
            await gateway.post(talk.body())
            sent = last(gateway)
            await gateway.post(talk.body(), **NEW)
            assert gateway.bodies("work")[-2] == sent and output(0) in results(last(gateway))
            await gateway.post(talk.say("And on.").body(), **NEW)
            assert len(find_markers(last(gateway).decode())) == 11 and DECLARATION in last(gateway)
            await gateway.post(talk.say("And on.").body(), x_api_key="third")
            assert len(find_markers(last(gateway).decode())) == 11
            assert not gateway.recorder.faults

    asyncio.run(session())


@pytest.mark.parametrize("kind", ["file", "server"])
def test_so_it_is_over_a_file_and_over_a_server(kind: str, tmp_path: Path) -> None:
    """Originals, decisions, declaration and history are written under the new thread too."""
    if kind == "server" and BINARY is None:
        pytest.skip("no valkey-server or redis-server is installed")

    async def session(store: Any) -> None:
        async with live(scripted({"text": "Ok."}), store=store) as gateway:
            talk = Talk()
            keys = await swept(gateway, talk)
            await gateway.post(talk.say("Go on.").body(), **NEW)
            assert find_markers(last(gateway).decode()) == keys and not gateway.recorder.faults
            held = store.status()
            # Two conversations, and the user of the first credential, whose waits are kept under a name of its own.
            assert (held["threads"], held["removals"], held["payloads"]) == (3, 22, 22)

    if kind == "file":
        with SqliteStore(tmp_path / "s" / "cg.db") as store:
            asyncio.run(session(store))
    else:
        from cg.sweep.store_redis import RedisStore

        with state_server() as server, RedisStore(server.url()) as store:
            asyncio.run(session(store))


def test_the_old_credentials_thread_stays_as_it_is() -> None:
    """It is read, and not written."""

    async def session() -> None:
        store = MemoryStore()
        async with live(scripted(), store=store) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            (old,) = [t for t in gateway.sweep._known if store.load(t).removals]
            before, payload = store.load(old), store.status()["payloads"]
            await gateway.post(talk.say("Go on.").body(), **NEW)
            await gateway.post(talk.calls(14).body(), **NEW)
            assert store.load(old) == before and store.status()["payloads"] == payload + 11

    asyncio.run(session())


def test_nothing_that_does_not_stand_in_its_own_body_is_within_reach() -> None:
    """Whoever knows the session's id and how a history of it begins, but not an output: no original, by no way."""

    async def session() -> None:
        async with live(scripted({"text": "A title."}, expands(), {"text": "I see."})) as gateway:
            talk = Talk()
            keys = await swept(gateway, talk)
            side = Talk(messages=[{"role": "user", "content": "A title?"}])
            await gateway.post(side.body())
            # It goes on from a branch of the thread, and has an output of the other one's call with another text.
            side.say("Now read.").call("guessed " * 500, path="src/0.py")
            await gateway.post(side.say(f"Expand <<cg:{keys[0]}>>.").body(), **NEW)
            inner = last(gateway)
            assert results(inner)[0].startswith("guessed") and results(inner)[1:] == [NEVER_EXISTED]
            guessed = json.loads(json.dumps(talk.messages).replace(json.dumps(output(0)), json.dumps("guessed")))
            await gateway.post(Talk(messages=guessed).say("Go on.").body(), **NEW)
            assert results(last(gateway))[0] == "guessed" and json.dumps(output(0)) not in inner.decode()
            turns_ = gateway.messages._turns
            route = ExpandRoute(gateway.sweep, turns_._naming, gateway.recorder, gateway.clock.now)
            own = [(b"authorization", b"Bearer renewed"), (b"x-claude-code-session-id", SESSION.encode())]
            for key in keys:
                assert (await route.expand(Inbound("GET", b"/expand?id=" + key.encode(), own))).status == 404

    asyncio.run(session())


@pytest.mark.parametrize(
    "who",
    [
        {**NEW, "x_claude_code_session_id": "another"},
        {**NEW, "x_claude_code_agent_id": "agent"},
        {**NEW, "x_cg_session": SESSION},
        {**NEW, "x_claude_code_session_id": ""},
    ],
    ids=["another session", "a sub-agent", "another kind of name", "no name"],
)
def test_another_session_takes_nothing_over(who: dict[str, str]) -> None:
    """Its whole history leaves as it came."""

    async def session() -> None:
        async with live(scripted()) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            await gateway.post(talk.say("Go on.").body(), **who)
            assert not find_markers(last(gateway).decode())

    asyncio.run(session())


def test_a_body_that_goes_on_from_nothing_takes_nothing_over() -> None:
    """The same outputs behind another first message are another history."""

    async def session() -> None:
        async with live(scripted()) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            talk.messages[0] = {"role": "user", "content": "Another beginning."}
            await gateway.post(talk.say("Go on.").body(), **NEW)
            assert not find_markers(last(gateway).decode())

    asyncio.run(session())


def test_old_and_new_at_one_time_send_the_same() -> None:
    """Requests of both, mixed: whichever comes first, each has what was decided, once."""

    async def session() -> None:
        store = MemoryStore()
        async with live(scripted(), store=store) as gateway:
            talk = Talk()
            keys = await swept(gateway, talk)
            bodies = [talk.say(f"Go on, {n}.").body() for n in range(8)]
            both = [gateway.post(body, **who) for body in bodies for who in ({}, NEW, {"x_api_key": "third"})]
            answers = await asyncio.gather(*both)
            assert {answer.status for answer in answers} == {200}
            for body in gateway.bodies("work")[-len(both) :]:
                assert find_markers(body.decode()) == keys
            removed = [store.load(t).removals for t in gateway.sweep._known if store.load(t).branches]
            assert [len(r) for r in removed if r] == [11] * 3 and EXPAND_TOOL in last(gateway).decode()
            assert not gateway.recorder.faults

    asyncio.run(session())


def test_what_a_person_or_the_provider_ended_stays_ended() -> None:
    """An output that was restored is whole under the new credential too, and is not removed anew."""

    async def session() -> None:
        async with live(scripted()) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            talk.call("File unchanged since last read. Refer to the earlier result.", path="src/3.py")
            await gateway.post(talk.body())
            assert len(find_markers(last(gateway).decode())) == 10
            await gateway.post(talk.say("Go on.").body(), **NEW)
            assert len(find_markers(last(gateway).decode())) == 10 and output(3) in results(last(gateway))

    asyncio.run(session())
