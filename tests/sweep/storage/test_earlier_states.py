"""States of earlier releases, as they lay on a disk and on a server: what was removed then is replayed byte for byte."""

import base64
import hashlib
import json
import lzma
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import upgraded
from piped import tokens
from state_server import needs_server, state_server

from cg.sweep.cli import session_thread
from cg.sweep.config import Config
from cg.sweep.open_store import open_store
from cg.sweep.store import StoreError
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Payload

STATES = Path(__file__).parents[2] / "data" / "state"
LAST_SENT = (
    "5093c9c056231e4543fb5e27127d352ea446d4acecdab8c96142ab7e92142a57"  # SHA-256 of the last body of that release
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The state of layout 4, with 200 removals."""
    path = tmp_path / "s" / "state.db"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(lzma.decompress((STATES / "layout-4.db.xz").read_bytes()))
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def server() -> Iterator[str]:
    """The same on a server, under the prefix of layout 1."""
    import redis

    with state_server() as server, closing(redis.Redis(unix_socket_path=str(server.socket))) as client:
        for key, kind, value in json.loads(lzma.decompress((STATES / "server-1.json.xz").read_bytes())):
            name = base64.b64decode(key)
            if kind == "string":
                client.set(name, base64.b64decode(value))
            elif kind == "hash":
                client.hset(name, mapping={base64.b64decode(f): base64.b64decode(v) for f, v in value})
            else:
                client.zadd(name, {base64.b64decode(member): score for member, score in value})
        yield server.url()


@pytest.fixture(params=["file", pytest.param("server", marks=needs_server)])
def state(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


def test_what_an_earlier_release_removed_is_replayed_byte_for_byte(state: str, tmp_path: Path) -> None:
    """The same request leads to the very body of that release, and the next ones carry its 200 markers unchanged."""
    sent, report = upgraded.run(state, upgraded.request(upgraded.N_OUTPUTS, "And now?"), upgraded.COLD + 5, tmp_path)
    assert hashlib.sha256(sent).hexdigest() == LAST_SENT and report["replayed"] == 200
    first = tokens(sent)
    for n, words in enumerate((("And now?", "Else?"), ("And now?", "Else?", "Well?"))):
        body = upgraded.request(upgraded.N_OUTPUTS, *words)
        later, report = upgraded.run(state, body, upgraded.COLD + 20 + 10 * n, tmp_path)
        assert tokens(later) == first and report["replayed"] == 200 and report["removed"] == []
        assert len([token for token in first.values() if b"<<cg:" in token]) == 200


def test_what_an_earlier_release_stored_comes_back(state: str) -> None:
    """Every original, by the id that stands in its marker."""
    thread = session_thread("s")
    with open_store(state, Config(), must_exist=True) as store:
        removals = store.load(thread).removals
        assert len(removals) == 200 and not store.missing(thread)
        for identity in removals:
            found = store.fetch(thread, identity.key)
            number = int(identity.tool_use_id.removeprefix("toolu_"))
            assert isinstance(found, Payload) and found.content == upgraded.output(number).encode()


def test_the_stored_state_is_of_that_layout(file: str) -> None:
    """Else it would show nothing about bringing one up."""
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (4,)


def test_a_state_of_a_newer_release_is_refused_in_words(file: str) -> None:
    """And left as it is: what it holds may mean something else."""
    SqliteStore(file).close()
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 99")
    before = Path(file).read_bytes()
    with pytest.raises(StoreError, match="schema version 99; .* a newer release wrote it: use that one"):
        SqliteStore(file)
    assert Path(file).read_bytes() == before
