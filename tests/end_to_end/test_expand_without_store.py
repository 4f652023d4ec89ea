"""The state goes away while the model thinks, and it then calls `cg_expand`: what stands in the body is answered."""

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("httpcore2")

from state_server import BINARY, StateServer, state_server
from wired import EXPAND_TOOL, Live, Talk, expands, find_markers, live, output, scripted, swept

from cg.gateway.exchange import Inbound
from cg.gateway.expansion.route import ExpandRoute
from cg.sweep.storage.sqlite import connections
from cg.sweep.store import StoreError
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore

both = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
READ = {"name": "Read", "input": {"file_path": "src/new.py"}}


class Raising(MemoryStore):
    """A store that fails in whatever it is asked, from some moment on."""

    is_away = False
    error: Exception = StoreError("away")

    def __getattribute__(self, name: str) -> Any:
        is_asked = hasattr(MemoryStore, name) and not name.startswith("_") and name != "close"
        if is_asked and object.__getattribute__(self, "is_away"):
            raise object.__getattribute__(self, "error")
        return object.__getattribute__(self, name)


class Hanging(MemoryStore):
    """A store that answers nothing from some moment on, until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()
        self.goes_on.set()

    def load(self, thread: str) -> Any:
        assert self.goes_on.wait(60)
        return super().load(thread)

    def expand_mark(self, thread: str, sha256: str) -> None:
        assert self.goes_on.wait(60)
        super().expand_mark(thread, sha256)


# -- ways to lose a state: each yields the store, what loses it, and what brings it back, if anything can -----------------

Lost = tuple[Any, Callable[[], object], Callable[[], object] | None]


@contextmanager
def _server(
    folder: Path, lose: Callable[[StateServer], object], find: Callable[[StateServer], object]
) -> Iterator[Lost]:
    from cg.sweep.store_redis import RedisStore

    with state_server() as server, RedisStore(server.url(timeout_ms="500")) as store:
        yield store, lambda: lose(server), lambda: find(server)


@contextmanager
def _emptied(folder: Path) -> Iterator[Lost]:
    """The server comes back without its data."""
    from cg.sweep.store_redis import RedisStore

    def flush() -> None:
        import redis

        redis.Redis(unix_socket_path=str(server.socket)).flushall()

    with state_server() as server, RedisStore(server.url(timeout_ms="30000")) as store:
        yield store, flush, None


@contextmanager
def _file(folder: Path, lose: Callable[[SqliteStore, Path], Callable[[], object] | None]) -> Iterator[Lost]:
    path = folder / "s" / "cg.db"
    found: list[Callable[[], object]] = []

    def losing() -> None:
        if (back := lose(store, path)) is not None:
            found.append(back)

    patience = mock.patch.object(connections, "BUSY_TIMEOUT_S", 0.3)
    with patience, SqliteStore(path, bodies_in_memory=True) as store:
        yield store, losing, lambda: [back() for back in found]


def _lock(store: SqliteStore, path: Path) -> Callable[[], object]:
    """Another process writes, and does not end."""
    lock = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    lock.execute("BEGIN IMMEDIATE")
    return lock.close


def _delete(store: SqliteStore, path: Path) -> None:
    for name in path.parent.iterdir():
        name.unlink()


def _replace(store: SqliteStore, path: Path) -> None:
    """Another file is put in its place."""
    _delete(store, path)
    path.write_bytes(b"no database")


def _limit(pragma: str) -> Callable[[SqliteStore, Path], Callable[[], object]]:
    def lose(store: SqliteStore, path: Path) -> Callable[[], object]:
        made = store._file._open

        def limited() -> sqlite3.Connection:
            connection = made()
            connection.execute(pragma)
            return connection

        store._file._close_idle()
        store._file._open = limited  # type: ignore[method-assign]
        return lambda: None

    return lose


def _damage(store: SqliteStore, path: Path) -> None:
    store._file._close_idle()
    for name in path.parent.iterdir():
        name.write_bytes(os.urandom(name.stat().st_size))


@contextmanager
def _raising(folder: Path, error: Exception) -> Iterator[Lost]:
    store = Raising()
    store.error = error
    yield store, lambda: setattr(store, "is_away", True), lambda: setattr(store, "is_away", False)


@contextmanager
def _hanging(folder: Path) -> Iterator[Lost]:
    store = Hanging()
    try:
        yield store, store.goes_on.clear, store.goes_on.set
    finally:
        store.goes_on.set()


WAYS: dict[str, Callable[[Path], Any]] = {
    "server killed": lambda folder: _server(folder, StateServer.kill, StateServer.start),
    "server hangs": lambda folder: _server(folder, StateServer.hang, StateServer.go_on),
    "server emptied": _emptied,
    "file locked": lambda folder: _file(folder, _lock),
    "file deleted": lambda folder: _file(folder, _delete),
    "file replaced": lambda folder: _file(folder, _replace),
    "file damaged": lambda folder: _file(folder, _damage),
    "file read-only": lambda folder: _file(folder, _limit("PRAGMA query_only = ON")),
    "disk full": lambda folder: _file(folder, _limit("PRAGMA max_page_count = 1")),
    "store raises": lambda folder: _raising(folder, StoreError("away")),
    "store has a fault": lambda folder: _raising(folder, ValueError("ours")),
    "store hangs": _hanging,
}
ways = pytest.mark.parametrize("way", WAYS)


class Losing:
    """An upstream that loses the state before its next reply comes."""

    def __init__(self, inner: Any, lose: Callable[[], object]) -> None:
        self._inner, self._lose, self.is_next = inner, lose, False

    async def send(self, *request: Any) -> Any:
        reply = await self._inner.send(*request)
        if self.is_next:
            self.is_next = False
            await asyncio.to_thread(self._lose)
        return reply

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def about_to_lose(way: str, folder: Path, *turns: dict[str, Any], stream: bool) -> AsyncIterator[Any]:
    """A session with eleven removals whose state is lost while its next request is answered."""
    if way.startswith("server") and BINARY is None:
        pytest.skip("no valkey-server or redis-server is installed")
    with ExitStack() as stack:
        store, lose, back = stack.enter_context(WAYS[way](folder))
        found: list[bool] = []
        find = None if back is None else lambda: (found.append(True), back())
        async with live(scripted(*turns), store=store) as gateway:
            try:
                talk = Talk(top={"stream": stream})
                keys = await swept(gateway, talk)
                gateway.messages._turns._budget_s = 0.5
                losing = Losing(gateway.messages._upstream, lose)
                gateway.messages._upstream = gateway.messages._expander._upstream = losing
                losing.is_next = True
                yield gateway, talk, keys, find
            finally:
                if find is not None and not found:
                    find()


def answered_with(gateway: Live) -> list[str]:
    """The texts of the results that the last body has for calls of our tool."""
    messages = json.loads(gateway.bodies("work")[-1])["messages"]
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    ours = {b["id"] for b in blocks if b["type"] == "tool_use" and b["name"] == EXPAND_TOOL}
    return [b["content"] for b in blocks if b["type"] == "tool_result" and b["tool_use_id"] in ours]


@both
@ways
def test_a_call_is_answered_from_the_body_whatever_the_state_does(way: str, stream: bool, tmp_path: Path) -> None:
    """The client sees one message; the upstream gets the original byte for byte."""

    async def session() -> None:
        turns = [expands(text="Look. "), {"text": "Found."}]
        async with about_to_lose(way, tmp_path, *turns, stream=stream) as (gateway, talk, _, _find):
            async with asyncio.timeout(30):
                answer = await gateway.post(talk.say("Show me f0.").body())
            assert [b["text"] for b in answer.content] == ["Look. ", "Found."]
            assert answered_with(gateway) == [output(0)]

    asyncio.run(session())


@both
@ways
def test_a_clients_error_is_replaced_although_the_state_is_away(way: str, stream: bool, tmp_path: Path) -> None:
    """A mixed reply passes; its later copies carry the original while the state is away, and the same bytes after."""

    async def session() -> None:
        mixed = [
            {"text": "Both. ", "tools": [{"name": EXPAND_TOOL, "input": expands()["input"]}, READ]},
            {"text": "Ok."},
        ]
        async with about_to_lose(way, tmp_path, *mixed, stream=stream) as (gateway, talk, keys, find):
            answer = await gateway.post(talk.say("Show me f0.").body())
            talk.answered(answer.content)
            for _ in range(2):
                assert (await gateway.post(talk.body())).status == 200
                body = gateway.bodies("work")[-1].decode()
                if find_markers(body):
                    assert find_markers(body) == keys and answered_with(gateway) == [output(0)]
                else:  # without any removal the model has the original itself
                    assert way == "server emptied" and body == talk.body().decode()
                talk.say("More?")
            if find is None:
                return
            find()
            gateway.messages._turns._budget_s = 20.0
            await asyncio.sleep(1.1 if way.startswith("server") else 0.0)  # a server is left alone for a second
            await gateway.post(talk.body())
            assert answered_with(gateway) == [output(0)]

    asyncio.run(session())


def test_what_was_expanded_while_the_state_was_away_stays_whole(tmp_path: Path) -> None:
    """The store is told with the next turn that it takes: a later copy is no candidate."""

    async def session() -> None:
        turns = [expands(text="Look. "), {"text": "Found."}]
        async with about_to_lose("store raises", tmp_path, *turns, stream=False) as (gateway, talk, _, find):
            await gateway.post(talk.say("Show me f0.").body())
            find()
            (thread,) = set(gateway.sweep._known)
            assert not gateway.store.load(thread).expanded
            copy = talk.call(output(0), path="src/0.py")
            await gateway.post(talk.calls(14).body())
            assert len(gateway.store.load(thread).expanded) == 1
            await gateway.wait(241)
            await gateway.wait(1000)
            await gateway.post(talk.say("And now?").body())
            assert len(find_markers(gateway.bodies("work")[-1].decode())) > 11
            blocks = [b for m in json.loads(gateway.bodies("work")[-1])["messages"] for b in m["content"]]
            (kept,) = [b["content"] for b in blocks if isinstance(b, dict) and b.get("tool_use_id") == copy]
            assert kept == output(0)

    asyncio.run(session())


def test_the_route_answers_from_originals_although_the_threads_state_cannot_be_read(tmp_path: Path) -> None:
    """Of a state that fails to load the last known one counts, and an original that can be read is given."""

    class Unloadable(MemoryStore):
        is_away = False

        def load(self, thread: str) -> Any:
            if self.is_away:
                raise StoreError("away")
            return super().load(thread)

    async def session() -> None:
        store = Unloadable()
        async with live(scripted(), store=store) as gateway:
            keys = await swept(gateway, Talk())
            store.is_away = True
            turns = gateway.messages._turns
            route = ExpandRoute(gateway.sweep, turns._naming, gateway.recorder, gateway.clock.now)
            own = [(b"x-api-key", b"key"), (b"x-claude-code-session-id", b"11111111-2222-3333-4444-555555555555")]
            found = await route.expand(Inbound("GET", b"/expand?id=" + keys[0].encode(), own))
            assert (found.status, found.body) == (200, output(0).encode())
            assert (await route.expand(Inbound("GET", b"/expand?id=" + b"0" * 16, own))).status == 503

    asyncio.run(session())
