"""A whole gateway, put together as the command does it."""

import asyncio
import json
import os
import socket
import stat

import pytest
from event_recorder import EventRecorder
from fake_upstream import FakeUpstream
from live import ask, status, until

from cg.gateway.events import Fault
from cg.gateway.serve.thread_server import serve_in_thread
from cg.gateway.settings import Settings
from cg.gateway.state.housekeeping import Housekeeping
from cg.sweep.config import load
from cg.sweep.storage.sqlite.state_file import secure
from cg.sweep.store import StoreError
from cg.sweep.store_memory import MemoryStore

HEADERS = (b"x-api-key: key", b"anthropic-version: 2023-06-01", b"content-type: application/json")


def body(text: str) -> bytes:
    message = {"role": "user", "content": text}
    return json.dumps({"model": "claude-sonnet-5", "max_tokens": 100, "messages": [message]}).encode()


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@pytest.mark.parametrize("observe", [False, True], ids=["sweeping", "observing"])
def test_it_serves_messages_figures_and_everything_else(tmp_path, observe):
    """And leaves a state that only its owner can read; a second start finds it."""
    state = tmp_path / "own" / "gateway.db"
    with FakeUpstream([{"text": "Hello."}] * 4) as upstream:
        settings = Settings(listen=("127.0.0.1", 0), upstream=upstream.base_url, state=state, observe=observe)
        for _ in range(2):
            with serve_in_thread(settings) as url:
                port = port_of(url)
                answer = ask(port, b"POST /v1/messages", *HEADERS, body=body("Hi."))
                assert status(answer) == 200 and json.loads(answer.body)["content"][0]["text"] == "Hello."
                assert status(ask(port, b"GET /v1/models", *HEADERS)) == 200
                assert ask(port, b"GET /healthz").body == b'{"status": "ok"}'
                assert b"cg_turns_total" in ask(port, b"GET /metrics").body

                def told(port=port):
                    return json.loads(ask(port, b"GET /stats").body)

                assert until(lambda: told()["turns"] == 1)
                assert told()["observing"] is observe and told()["upstream"] == upstream.base_url
                assert status(ask(port, b"GET /expand?id=0123456789abcdef")) == 403  # no token was set
    if os.name == "posix":
        assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in state.parent.iterdir())
        assert state.exists() and state.with_name("gateway.db.secret").exists()


def test_a_state_that_is_not_ours_alone_is_refused(tmp_path):
    """Before anything is served."""
    state = tmp_path / "gateway.db"
    secure(state)
    state.chmod(0o644)
    with pytest.raises(StoreError), serve_in_thread(Settings(listen=("127.0.0.1", 0), state=state)):
        pytest.fail("it was served")


def test_every_preset_can_be_served():
    """In memory, with a free port."""
    with FakeUpstream([{"text": "Hello."}] * 3) as upstream:
        for preset in ("paid", "cold", "classic"):
            settings = Settings(("127.0.0.1", 0), upstream.base_url, config=load(preset=preset))
            with serve_in_thread(settings) as url:
                assert status(ask(port_of(url), b"POST /v1/messages", *HEADERS, body=body(preset))) == 200


def test_an_upstream_that_takes_a_connection_and_says_nothing_is_given_up():
    """Its handshake never ends; the wait for the reply (`upstream_idle_s`, 900 s) has not begun."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://localhost:{silent.getsockname()[1]}"
        with serve_in_thread(Settings(("127.0.0.1", 0), url, connect_timeout_s=0.2)) as gateway:
            answer = ask(port_of(gateway), b"GET /v1/models", *HEADERS)
            assert status(answer) in (502, 504) and b"cg-proxy" in answer.body


class Steps:
    """A clock whose every wait ends at once, until it is to stop."""

    def __init__(self, steps: int) -> None:
        self.at, self.left = 0.0, steps

    def now(self) -> float:
        return self.at

    async def sleep_until(self, moment: float) -> None:
        if not self.left:
            await asyncio.Event().wait()
        self.left -= 1
        self.at = moment


def test_the_store_is_cleared_once_an_hour_and_a_failure_does_not_end_that():
    """A locked file today is none tomorrow."""
    cleared, recorder = [], EventRecorder()

    class Store(MemoryStore):
        def sweep_ages(self, now):
            cleared.append(now)
            if len(cleared) == 1:
                raise StoreError("locked")

    async def main():
        house = Housekeeping(Store(), recorder, Steps(3))
        await house.start()
        while len(cleared) < 3:
            await asyncio.sleep(0.001)
        await house.stop()

    asyncio.run(main())
    assert cleared == [3600.0, 7200.0, 10800.0] and recorder.events == [Fault.STORE]
