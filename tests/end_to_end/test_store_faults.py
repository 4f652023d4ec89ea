"""Whatever becomes of the state, the client gets what it would have got, and no marker leaves without its original."""

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import ALL_SPENT, WORK, Live, Talk, expands, find_markers, live, scripted, swept

from cg.gateway.events import Fault
from cg.sweep.store import StoreError
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Payload

CALLS = [
    "load",
    "put",
    "fetch",
    "freeze",
    "end",
    "expand_mark",
    "pend",
    "unpend",
    "declare",
    "touch",
    "turned",
    "learn",
    "keep_body",
    "last_body",
    "claim",
    "book",
    "count",
]


class Failing(MemoryStore):
    """A store of which one call always fails from some moment on."""

    fails: str | None = None

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "fails") and name in CALLS:

            def refuse(*_: Any, **__: Any) -> Any:
                raise StoreError(f"{name} fails")

            return refuse
        return object.__getattribute__(self, name)


async def whole_session(gateway: Live, stream: bool) -> list[list[dict[str, Any]]]:
    """A session with an ask, removals, an expansion, and another cold request; what its client read."""
    talk = Talk(top={"stream": stream})
    read = []
    for prepare in (
        lambda: talk,
        lambda: talk.calls(14),
        lambda: talk.say("And now?"),
        lambda: talk.say("Show me f0."),
        lambda: talk.calls(14),
        lambda: talk.say("The rest?"),
    ):
        answer = await gateway.post(prepare().body())
        assert answer.status == 200
        read.append([b for b in answer.content if b["type"] == "text"])
        await gateway.wait(241)
        await gateway.wait(1000)
    return read


def every_marker_resolves(gateway: Live) -> int:
    """How many markers the upstream got, all of whose originals the store holds."""
    (thread,) = set(gateway.sweep._known)
    seen = {key for body in gateway.bodies() for key in find_markers(body.decode())}
    for key in seen:
        found = gateway.store.fetch(thread, key)
        assert isinstance(found, Payload) and found.identity.key == key
    return len(seen)


def let_go(store: SqliteStore) -> None:
    """The store opens its file anew at the next call."""
    while store._file._idle:
        store._file._idle.pop().close()


@pytest.mark.parametrize("since", [0, 3], ids=["from the start", "in mid-session"])
@pytest.mark.parametrize("fails", CALLS)
def test_whichever_call_of_the_store_fails_the_session_ends_as_it_does_without(fails: str, since: int) -> None:
    """All replies are 200 and say the same; whatever marker the upstream got resolves."""

    async def session() -> None:
        turns = [expands(text="Look. "), {"text": "Found."}]
        store = Failing()
        async with live(scripted(*turns), store=store) as gateway:
            if since == 0:
                store.fails = fails
            talk = Talk()
            steps = [lambda: talk, lambda: talk.calls(14), lambda: talk.say("And now?"), lambda: talk.say("Show me.")]
            for n, prepare in enumerate(steps):
                if n == since:
                    store.fails = fails
                answer = await gateway.post(prepare().body())
                assert answer.status == 200
                await gateway.wait(241)
                await gateway.wait(1000)
            said = "".join(b["text"] for b in answer.content if b["type"] == "text")
            assert said in ("Look. Found.", "Look. ")  # recovered inside, or shown to the client
            store.fails = None
            if gateway.sweep._known:
                every_marker_resolves(gateway)

    asyncio.run(session())


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_a_whole_session_over_a_file_has_no_fault(stream: bool, tmp_path: Path) -> None:
    """The same session where nothing fails: removals, an expansion, and not one fault counted."""

    async def session() -> None:
        turns = [expands(text="Look. "), {"text": "Found."}]
        with SqliteStore(tmp_path / "cg.db", bodies_in_memory=True) as store:
            async with live(scripted(*turns), store=store) as gateway:
                read = await whole_session(gateway, stream)
                assert [b["text"] for b in read[3]] == ["Look. ", "Found."]
                assert every_marker_resolves(gateway) >= 11
                assert not gateway.recorder.faults

    asyncio.run(session())


def test_a_locked_state_costs_the_budget_and_no_more(tmp_path: Path) -> None:
    """Another process that holds the file keeps nobody waiting: what was decided is replayed at once, and while that
    cannot be written down, the thread's next request leaves in its last frozen form once the budget is over."""

    async def session() -> None:
        path = tmp_path / "cg.db"
        with SqliteStore(path, bodies_in_memory=True) as store:
            async with live([ALL_SPENT, WORK], store=store) as gateway:
                talk = Talk()
                await swept(gateway, talk)
                sent = find_markers(gateway.bodies("work")[-1].decode())
                lock = sqlite3.connect(path, isolation_level=None)
                lock.execute("BEGIN IMMEDIATE")
                for budget_s, fired in ((20.0, 0), (0.3, 1)):
                    gateway.messages._turns._budget_s = budget_s
                    answer = await gateway.messages.handle(_request(talk.say("Go on.").body()))
                    assert answer.status == 200
                    await answer.close()
                    assert find_markers(gateway.bodies("work")[-1].decode()) == sent
                    assert gateway.recorder.faults[Fault.WATCHDOG] == fired
                lock.execute("ROLLBACK")
                lock.close()

    asyncio.run(session())


def _request(body: bytes) -> Any:
    from wired import inbound

    return inbound(body)


def test_a_state_that_is_damaged_in_mid_session_changes_nothing_for_the_client(tmp_path: Path) -> None:
    """The removals that are known are replayed; nothing new is decided; the fault is counted as the store's."""

    async def session() -> None:
        path = tmp_path / "cg.db"
        store = SqliteStore(path, bodies_in_memory=True)
        async with live([ALL_SPENT, WORK], store=store) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            sent = find_markers(gateway.bodies("work")[-1].decode())
            before = [store._file._idle.pop() for _ in list(store._file._idle)]  # closing them would empty the log
            for name in (path, Path(f"{path}-wal")):
                size = name.stat().st_size
                with open(name, "r+b") as file:
                    file.write(os.urandom(size))
            answer = await gateway.post(talk.say("Go on.").body())
            assert answer.status == 200
            assert find_markers(gateway.bodies("work")[-1].decode()) == sent
            assert gateway.recorder.faults[Fault.STORE] >= 1
            await gateway.post(Talk(messages=[{"role": "user", "content": "Another."}]).body(), x_cg_session="other")
            assert gateway.sent[-1]["status"] == 200
            for connection in before:
                connection.close()

    asyncio.run(session())


@pytest.mark.parametrize("pragma", ["PRAGMA query_only = ON", "PRAGMA max_page_count = 1"], ids=["read-only", "full"])
def test_a_state_that_cannot_be_written_removes_nothing(pragma: str, tmp_path: Path, monkeypatch: Any) -> None:
    """A full disk or a read-only file: the outputs stay whole, and the session goes on."""

    async def session() -> None:
        with SqliteStore(tmp_path / "cg.db", bodies_in_memory=True) as store:
            async with live([ALL_SPENT, WORK], store=store) as gateway:
                talk = Talk()
                await gateway.post(talk.body())
                await gateway.post(talk.calls(14).body())
                await gateway.wait(241)
                await gateway.wait(1000)
                made = store._file._open
                let_go(store)

                def limited() -> sqlite3.Connection:
                    connection = made()
                    connection.execute(pragma)
                    return connection

                monkeypatch.setattr(store._file, "_open", limited)
                body = talk.say("And now?").body()
                answer = await gateway.post(body)
                assert answer.status == 200
                assert find_markers(gateway.bodies("work")[-1].decode()) == []

    asyncio.run(session())
