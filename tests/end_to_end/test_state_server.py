"""A gateway whose state is on a server: refused at the start, and the server lost in the middle of a session."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from state_server import StateServer, needs_server, state_server

pytestmark = needs_server
pytest.importorskip("redis", reason="redis is not installed: the store on a server is an extra")

from wired import ALL_SPENT, WORK, Live, Talk, find_markers, live, swept, until  # noqa: E402

from cg.gateway.build import build  # noqa: E402
from cg.gateway.embedded.gateway import EmbeddedGateway  # noqa: E402
from cg.gateway.events import Fault  # noqa: E402
from cg.gateway.settings import Settings, load  # noqa: E402
from cg.gateway.state.opened import opened  # noqa: E402
from cg.sweep.storage.redis.address import parse  # noqa: E402
from cg.sweep.store import StoreError  # noqa: E402
from cg.sweep.store_redis import RedisStore  # noqa: E402
from cg.sweep.values import Payload  # noqa: E402


@pytest.fixture
def server() -> Iterator[StateServer]:
    with state_server() as running:
        yield running


def sent_last(gateway: Live) -> list[str]:
    return find_markers(gateway.bodies("work")[-1].decode())


async def found_again(gateway: Live) -> None:
    """Wait until the store answers once more."""

    def answers() -> bool:
        try:
            gateway.store.load("t")
        except StoreError:
            return False
        return True

    await until(answers)


@pytest.mark.parametrize(
    ("lose", "find"),
    [(StateServer.kill, StateServer.start), (StateServer.hang, StateServer.go_on)],
    ids=["killed", "hangs"],
)
def test_a_server_lost_in_mid_session_changes_nothing_for_the_client(
    server: StateServer, lose: Callable[[StateServer], Any], find: Callable[[StateServer], Any]
) -> None:
    """Rule 10: what is frozen is replayed from memory, another conversation passes whole, faults are counted; and when
    the server is there again the session goes on where it was, with nothing removed twice or otherwise."""

    async def session() -> None:
        with RedisStore(server.url(timeout_ms="3000")) as store:
            async with live([ALL_SPENT, WORK], store=store) as gateway:
                talk = Talk()
                frozen = await swept(gateway, talk)
                lose(server)
                for _ in range(2):
                    assert (await gateway.post(talk.calls(7).body())).status == 200
                    assert sent_last(gateway) == frozen
                other = Talk(messages=[{"role": "user", "content": "Another."}]).calls(3).body()
                assert (await gateway.post(other, x_cg_session="other")).status == 200
                assert gateway.bodies("work")[-1] == other
                assert gateway.recorder.faults[Fault.STORE] >= 3
                find(server)
                await found_again(gateway)
                await gateway.post(talk.say("Still there?").body())
                assert sent_last(gateway) == frozen
                await gateway.wait(241)
                await gateway.wait(1000)
                await gateway.post(talk.say("And now?").body())
                assert set(frozen) < set(sent_last(gateway))
                (thread,) = {row.thread for row in store.rows()}
                assert all(isinstance(store.fetch(thread, key), Payload) for key in sent_last(gateway))

    asyncio.run(session())


def test_a_server_that_is_lost_in_a_gap_costs_the_ask(server: StateServer) -> None:
    """Nobody can claim it, so nobody asks: twice would be worse than never."""

    async def session() -> None:
        with RedisStore(server.url(timeout_ms="3000")) as store:
            async with live([ALL_SPENT, WORK], store=store) as gateway:
                talk = Talk()
                await gateway.post(talk.body())
                await gateway.post(talk.calls(14).body())
                server.kill()
                await gateway.wait(241)
                await until(lambda: gateway.recorder.faults[Fault.TIMER] == 1)
                assert gateway.bodies("ask") == []
                server.start()
                await found_again(gateway)
                assert (await gateway.post(talk.say("And now?").body())).status == 200

    asyncio.run(session())


def test_a_server_that_may_not_hold_a_state_stops_the_start() -> None:
    """Exit 2, the setting and its value, and nothing of the credential."""
    with state_server(maxmemory_policy="allkeys-lru") as server:
        url = server.url().replace("unix://", "unix://us3r:c0rrect-horse@")
        with pytest.raises(StoreError, match="maxmemory-policy is 'allkeys-lru'"):
            build(Settings(state=parse(server.url())))
        command = [sys.executable, "-m", "cg.gateway.cli", "serve", "--listen", "127.0.0.1:0", "--state"]
        for state, words in ((server.url(), "maxmemory-policy"), (url, "refuses the user name or the password")):
            done = subprocess.run([*command, state], capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 2 and words in done.stderr
            assert "c0rrect" not in done.stdout + done.stderr


def test_a_state_on_a_server_is_set_like_a_file(tmp_path: Path) -> None:
    """The later source counts, whichever kind it names; the settings show no credential."""
    url = "redis://cg:c0rrect@127.0.0.1:1/0"
    found = load(f'[proxy]\nstate = "{tmp_path}/s.db"\n', {"CG_PROXY_STATE": url}, {})
    assert found.state == parse(url)
    assert "c0rrect" not in repr(found)
    found = load(None, {"CG_PROXY_STATE": url}, {"state": str(tmp_path / "s.db")})
    assert found.state == tmp_path / "s.db"


def test_gateways_and_clients_of_one_server_go_by_its_clock_and_its_secret(server: StateServer) -> None:
    """Each names the same conversation alike, be it a process of its own or inside a client's."""
    settings = Settings(state=parse(server.url()))
    first, second, local = opened(settings), opened(settings), EmbeddedGateway(settings)
    try:
        assert first.secret == second.secret == local.secret
        assert isinstance(first.store, RedisStore)
        first.store._link.skew_s = 1000.0
        assert first.clock.now() - second.clock.now() > 900.0
        first.store.load("t")
        assert abs(first.clock.now() - second.clock.now()) < 100.0
    finally:
        for state in (first, second, local):
            state.close()
