"""The store on disk: killed, shared, full, read-only, damaged, foreign, and seen by others."""

import hashlib
import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from presets import paid
from store_workers import look, work

from cg.sweep.accounting.tally import Tally
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.storage.last_bodies import LATE_S
from cg.sweep.storage.sqlite import schema
from cg.sweep.storage.sqlite.connections import Handle
from cg.sweep.store import Expired, Limits, StoreError
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Branch, Ending, Identity, Payload, Removal, Thread

HARNESS = Path(__file__).parents[1] / "harness"
IS_LONG = os.environ.get("CG_LONG") == "1"
posix = pytest.mark.skipif(os.name != "posix", reason="mode bits and signals")


def payload(seed: int, size: int = 2000) -> Payload:
    content = random.Random(seed).randbytes(size)
    return Payload(Identity(f"toolu_{seed}", 0, hashlib.sha256(content).hexdigest()), content, "Bash", "{}")


def removal(of: Payload) -> Removal:
    return Removal(of.identity, f'"gone {of.identity.key}"'.encode(), 1900, 1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "sweep.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(path) as opened:
        yield opened


def fill(store: SqliteStore, *seeds: int) -> dict[Identity, Removal]:
    originals = [payload(seed) for seed in seeds]
    assert len(store.put("t", originals, 1.0)) == len(seeds)
    return {r.identity: r for r in store.freeze("t", [removal(p) for p in originals])}


def test_everything_is_there_after_a_restart(path: Path) -> None:
    """Rule 7: the same bytes are replayed by the next process."""
    with SqliteStore(path) as store:
        standing = fill(store, 1, 2)
        store.end("t", payload(2).identity, Ending.RESTORED, 2.0)
        store.declare("t", b'{"name":"cg_expand"}')
        store.touch("t", Branch("b", b"c", b"h", b"d", 3.0, None))
        store.keep_body("t", "b", b"{}")
        before = store.load("t")
    with SqliteStore(path) as store:
        assert store.load("t") == before
        assert before.removals == {payload(1).identity: standing[payload(1).identity]}
        assert store.fetch("t", payload(2).identity.key) == payload(2)
        assert store.last_body("t", "b") == b"{}"


def test_the_configuration_sets_the_limits(path: Path) -> None:
    """`store_max_mb` and `payload_ttl_h`, in their units."""
    with SqliteStore(path, paid(store_max_mb=1, payload_ttl_h=2.0)) as store:
        assert len(store.put("t", [payload(1, 1024 * 1024)], 1.0)) == 1
        assert len(store.put("t", [payload(2, 1)], 1.0)) == 0
        store.sweep_ages(7200.0)
        assert isinstance(store.fetch("t", payload(1, 1024 * 1024).identity.key), Payload)
        store.sweep_ages(7201.0)
        assert isinstance(store.fetch("t", payload(1, 1024 * 1024).identity.key), Expired)


def test_contents_are_packed_only_when_that_pays(store: SqliteStore) -> None:
    """Text shrinks on disk, noise and short texts lie as they are."""
    text = b"the same line again\n" * 5000
    original = Payload(Identity("toolu_x", 0, hashlib.sha256(text).hexdigest()), text, "Bash", "{}")
    store.put("t", [original], 1.0)
    assert store.status()["payload_bytes"] < len(text) / 10
    store.put("u", [payload(1, 5000)], 1.0)
    assert store.status()["payload_bytes"] >= 5000
    assert store.fetch("t", original.identity.key) == original


# -- last bodies -------------------------------------------------------------------------------------------------------


def sent(store: SqliteStore, made_of: bytes, body: bytes, branch: str = "b") -> None:
    store.touch("t", Branch(branch, b"c", b"h", made_of, 3.0, None))
    store.keep_body("t", branch, body)


def test_a_gateway_lets_a_body_go_with_its_cache_entry(path: Path) -> None:
    """Nobody is asked about a prefix that is gone; a touch, as after a ping, keeps the body for as long as the entry."""
    with SqliteStore(path, bodies_in_memory=True) as store:
        for branch in ("old", "pinged"):
            store.touch("t", Branch(branch, b"c", b"h", b"d", 0.0, 300))
            store.keep_body("t", branch, b"{}")
        store.touch("t", Branch("pinged", b"c", b"h", b"d", 240.0, 300))
        for now, kept in ((300 + LATE_S - 1, [b"{}", b"{}"]), (300 + LATE_S, [None, b"{}"])):
            store.touch("other", Branch("b", b"c", b"h", b"d", now, 300))
            assert [store.last_body("t", branch) for branch in ("old", "pinged")] == kept
        store.sweep_ages(540 + LATE_S)
        assert store.last_body("t", "pinged") is None


def test_a_pipe_keeps_a_body_past_its_cache_entry(path: Path) -> None:
    """Its next process makes the ask of a gap that is long over, as of the moment at which it was due."""
    with SqliteStore(path) as store:
        sent(store, b"d", b"{}")
        store.touch("other", Branch("b", b"c", b"h", b"d", 1e9, 300))
        assert store.last_body("t", "b") == b"{}"


def test_a_body_goes_to_the_file_when_its_store_is_closed(path: Path) -> None:
    """A pipe's next process finds it; the turns of one process do not pay for it."""
    store = SqliteStore(path)
    sent(store, b"one", b"first body")
    sent(store, b"two", b"second body")
    with SqliteStore(path) as other:
        assert other.last_body("t", "b") is None
    store.close()
    assert b"first body" not in b"".join(file.read_bytes() for file in path.parent.iterdir())
    with SqliteStore(path) as later:
        assert later.last_body("t", "b") == b"second body"
        assert later.status()["bodies"] == 1 and later.status()["body_bytes"] == 11


def test_a_body_is_only_good_while_its_branch_stands_where_it_stood(path: Path) -> None:
    """Another process has sent a newer one: the older is no answer here, and does not reach the file over it."""
    first, second = SqliteStore(path), SqliteStore(path)
    sent(first, b"one", b"older")
    sent(second, b"two", b"newer")
    assert first.last_body("t", "b") is None and second.last_body("t", "b") == b"newer"
    second.close()
    assert first.last_body("t", "b") == b"newer"
    first.close()
    with SqliteStore(path) as later:
        assert later.last_body("t", "b") == b"newer"
        later.touch("t", Branch("b", b"c", b"h", b"three", 4.0, None))
        assert later.last_body("t", "b") is None


def test_what_one_process_forgets_no_other_writes_down(path: Path) -> None:
    """`forget` holds for bodies that lie in another process's memory too."""
    first = SqliteStore(path)
    sent(first, b"one", b"correct horse")
    with SqliteStore(path) as second:
        second.forget("t")
    assert first.last_body("t", "b") is None
    first.close()
    assert all(b"correct horse" not in file.read_bytes() for file in path.parent.iterdir())


def test_bodies_in_the_file_stay_below_the_limit(path: Path) -> None:
    """The longest untouched go, those of earlier processes first."""
    limits = Limits(bodies_bytes=300)
    for first in (0, 2):
        with SqliteStore(path, limits=limits) as store:
            for n in (first, first + 1):
                sent(store, b"%d" % n, b"x" * 100, f"b{n}")
    with SqliteStore(path, limits=limits) as store:
        assert [store.last_body("t", f"b{n}") is not None for n in range(4)] == [False, True, True, True]
        assert store.status()["body_bytes"] == 300


def test_a_body_that_cannot_be_written_at_the_end_costs_nothing_but_an_ask(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Closing does not raise: what a turn did is stored long before."""
    store = SqliteStore(path)
    sent(store, b"one", b"secret body")
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE body")
    other.close()
    store.close()
    assert "were not kept" in caplog.text and "secret" not in caplog.text


# -- killed ------------------------------------------------------------------------------------------------------------


@posix
def test_a_process_killed_at_any_moment_leaves_no_decision_without_its_original(path: Path) -> None:
    """Every removal has its payload, every payload hashes, and nothing that was acknowledged is lost."""
    kills = 250 if IS_LONG else 15
    command = [sys.executable, str(HARNESS / "store_under_fire.py"), str(path), str(kills), "7"]
    done = subprocess.run(command, capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert (seen["kills"], seen["wrong"]) == (kills, [])
    assert seen["removals"] >= seen["acknowledged"] >= kills


# -- shared ------------------------------------------------------------------------------------------------------------


def test_two_processes_of_eight_threads_lose_nothing_and_double_nothing(path: Path) -> None:
    """Sixteen writers on one file: all removals stand, shared ones have one writer, claims one winner, counts sum."""
    rounds = 40 if IS_LONG else 6
    work(str(path), rounds)
    with SqliteStore(path) as store:
        look(store, rounds)


def test_a_new_file_may_be_opened_by_many_at_once(path: Path) -> None:
    """Eight openers of a file that is not there yet: one makes the layout, all can write."""
    failed: list[BaseException] = []

    def work(n: int) -> None:
        try:
            with SqliteStore(path) as store:
                fill(store, n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with SqliteStore(path) as store:
        assert len(store.load("t").removals) == 8


def test_a_writer_does_not_block_readers(store: SqliteStore, path: Path) -> None:
    """WAL: while another process holds a transaction open, loads answer with what was committed."""
    fill(store, 1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM removal")
    assert len(store.load("t").removals) == 1
    assert isinstance(store.fetch("t", payload(1).identity.key), Payload)
    other.execute("ROLLBACK")
    other.close()


def test_a_second_store_sees_what_the_first_decides(store: SqliteStore, path: Path) -> None:
    """What is remembered of a thread in one process is dropped when another has changed it, or has forgotten it."""
    fill(store, 1)
    assert len(store.load("t").removals) == 1
    with SqliteStore(path) as other:
        fill(other, 2)
        assert len(store.load("t").removals) == 2
        other.forget("t")
        assert store.load("t") == Thread()
        fill(other, 3)
        assert set(store.load("t").removals) == {payload(3).identity}


@pytest.mark.skipif(not hasattr(os, "fork") or sys.version_info >= (3, 12), reason="fork with threads warns")
def test_a_forked_child_uses_connections_of_its_own(store: SqliteStore) -> None:
    """A parent's connection must not be used, or closed, on the other side of a fork."""
    fill(store, 1)
    child = os.fork()
    if child == 0:
        try:
            fill(store, 2)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    fill(store, 3)
    assert len(store.load("t").removals) == 3


# -- no room, no right to write ----------------------------------------------------------------------------------------


@posix
def test_a_full_disk_refuses_originals_and_keeps_what_stands(path: Path) -> None:
    """The put answers with nothing, no decision follows, and what was stored before still comes back."""
    resource = pytest.importorskip("resource")
    import signal

    with SqliteStore(path) as store:
        standing = fill(store, 1)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            # The log and the file may grow no further than a little over what they have: writing fails from there on.
            size = max(file.stat().st_size for file in path.parent.iterdir())
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4096, hard))
            large = payload(2, 3_000_000)
            assert store.put("t", [large], 2.0) == frozenset()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, before)
        assert store.freeze("t", [removal(large)]) == ()
        assert store.load("t").removals == standing
        assert store.fetch("t", payload(1).identity.key) == payload(1)
        assert store.put("t", [large], 3.0) == {large.identity}


def test_a_database_at_its_page_limit_refuses_originals(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with SQLite's own word for a full disk, at put, freeze and count."""
    standing = fill(store, 1)
    connection = store._file._idle[-1]
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    large = payload(2, 100_000)
    assert store.put("t", [large], 2.0) == frozenset()
    assert store.freeze("t", [removal(large)]) == ()
    assert store.load("t").removals == standing


@posix
def test_a_state_that_cannot_be_written_is_refused_in_words(path: Path, tmp_path: Path) -> None:
    """A read-only file: StoreError at once, naming the file; the caller then sends the client's own bytes."""
    with SqliteStore(path) as store:
        fill(store, 1)
    uri = f"file:{path}?mode=ro"
    with SqliteStore(path) as store:
        store._file.close()
        store._file._is_closed = False
        options = {"uri": True, "isolation_level": None, "check_same_thread": False, "factory": Handle}
        store._file._open = lambda: sqlite3.connect(uri, **options)  # type: ignore[method-assign]
        with pytest.raises(StoreError, match=r"sweep\.db: cannot be written"):
            store.put("t", [payload(2)], 2.0)
        with pytest.raises(StoreError, match="cannot be written"):
            store.touch("t", Branch("b", b"", b"", b"", 1.0, None))


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be used as state"):
        SqliteStore(tmp_path / "file" / "sweep.db")


# -- damaged and foreign -----------------------------------------------------------------------------------------------


def write_private(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)


@pytest.mark.parametrize("content", [b"hello", b"x" * 5000, b"SQLite format 3\0" + b"\xff" * 4080, b"\0" * 4096])
def test_a_file_that_is_no_database_is_refused(path: Path, content: bytes) -> None:
    """With the file's name, and without touching it."""
    write_private(path, content)
    with pytest.raises(StoreError, match=r"sweep\.db: "):
        SqliteStore(path)
    assert path.read_bytes() == content


def whole_state(path: Path) -> bytes:
    with SqliteStore(path) as store:
        fill(store, *range(20))
        store.forget("nobody")  # writes the log back into the file
    return path.read_bytes()


@pytest.mark.parametrize("seed", [*range(150 if IS_LONG else 12), 26, 978])
def test_a_damaged_database_gives_true_answers_or_a_clear_error(path: Path, seed: int) -> None:
    """Bytes flipped or cut off anywhere: what still answers, answers right; never wrong bytes, never a crash."""
    content = bytearray(whole_state(path))
    draw = random.Random(seed)
    if seed % 3 == 0:
        content = content[: draw.randrange(1, len(content))]
    for _ in range(draw.choice([1, 10, 1000])):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    write_private(path, bytes(content))
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
    true = {payload(n).identity: payload(n) for n in range(20)}
    try:
        with SqliteStore(path) as store:
            for identity, standing in store.load("t").removals.items():
                assert standing == removal(true[identity])
            for original in true.values():
                found = store.fetch("t", original.identity.key)
                if isinstance(found, Payload):
                    assert found.content == original.content
            store.put("t", [payload(99)], 2.0)
            store.status()
    except StoreError as error:
        assert "sweep.db" in str(error)


def test_a_damaged_original_counts_as_gone_and_is_put_back(store: SqliteStore, path: Path) -> None:
    """It answers as expired, never with other bytes, and the next request that carries it makes it whole."""
    fill(store, 1)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE payload SET content = substr(content, 1, 1000)")
    other.close()
    assert store.fetch("t", payload(1).identity.key) == Expired("Bash", "{}")
    assert store.put("t", [payload(1)], 2.0) == {payload(1).identity}
    assert store.fetch("t", payload(1).identity.key) == payload(1)


@pytest.mark.parametrize("content", ["content", "NULL"])
def test_a_key_that_leads_to_another_original_is_an_error(store: SqliteStore, path: Path, content: str) -> None:
    """As a damaged index does: what it leads to hashes to its own name, and is not what was asked for."""
    fill(store, 1, 2)
    one, other = payload(1).identity.key, payload(2).identity.key
    with closing(sqlite3.connect(path)) as db, db:
        moved = f"SELECT sha256, {content}, is_packed, arguments FROM payload WHERE key = '{other}'"
        db.execute(f"UPDATE payload SET (sha256, content, is_packed, arguments) = ({moved}) WHERE key = '{one}'")
    with pytest.raises(StoreError, match="holds what does not belong there"):
        store.fetch("t", one)
    assert store.fetch("t", other) == payload(2)


def test_a_damaged_decision_is_an_error_and_not_a_replay(store: SqliteStore, path: Path) -> None:
    """Rule 7: other bytes than the frozen ones never leave."""
    fill(store, 1)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE removal SET written = X'22786D22'")
    other.close()
    with SqliteStore(path) as fresh, pytest.raises(StoreError, match="checksum"):
        fresh.load("t")


def test_a_packed_bomb_is_not_unpacked(store: SqliteStore, path: Path) -> None:
    """A state is hostile input too: no more is unpacked than one body may hold."""
    import zlib

    fill(store, 1)
    pack = zlib.compressobj(9)
    bomb = b"".join(pack.compress(bytes(1 << 20)) for _ in range(101)) + pack.flush()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE payload SET content = ?, is_packed = 1", (bomb,))
    other.close()
    assert store.fetch("t", payload(1).identity.key) == Expired("Bash", "{}")


def test_another_program_s_database_is_left_alone(path: Path) -> None:
    """By its application id; nothing is written to it."""
    write_private(path, b"")
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path)
    with sqlite3.connect(path) as other:
        assert [name for (name,) in other.execute("SELECT name FROM sqlite_master")] == ["mine"]
    other.close()


@pytest.mark.parametrize("version", [0, -1, len(schema.MIGRATIONS) + 1, 2**31 - 1])
def test_a_schema_of_an_unknown_version_is_refused(path: Path, version: int) -> None:
    """A newer program's state is not written over, nor one whose version makes no sense."""
    SqliteStore(path).close()
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version = {version}")
    other.close()
    with pytest.raises(StoreError, match=f"schema version {version}; this program knows 1 to {len(schema.MIGRATIONS)}"):
        SqliteStore(path)


def test_an_older_schema_is_brought_up_to_date_with_all_it_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps or none: a step that fails leaves the older version as it was."""
    with SqliteStore(path) as store:
        standing = fill(store, 1, 2)
    known = schema.MIGRATIONS
    monkeypatch.setattr(schema, "MIGRATIONS", (*known, "CREATE TABLE later (x); INSERT INTO nothing VALUES (1)"))
    with pytest.raises(StoreError):
        SqliteStore(path)
    monkeypatch.setattr(schema, "MIGRATIONS", (*known, "ALTER TABLE thread ADD COLUMN note; CREATE TABLE later (x)"))
    with SqliteStore(path) as store:
        assert store.load("t").removals == standing
    with sqlite3.connect(path) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (len(known) + 1,)
        assert other.execute("SELECT count(*) FROM later").fetchone() == (0,)
    other.close()


def test_the_layout_of_version_1_is_frozen() -> None:
    """A released script is never edited: states in the field were made by it."""
    digest = hashlib.sha256(" ".join(schema.MIGRATIONS[0].split()).encode()).hexdigest()
    assert digest == "142f87a8e7404997d6126af81e58bd883894c1753cdfd7f1135c29c1d1844bbb"


PLANTED = (
    "CREATE TRIGGER planted AFTER INSERT ON total BEGIN DELETE FROM removal; END",
    "CREATE VIEW planted AS SELECT * FROM removal",
    "CREATE TABLE planted (x)",
    "CREATE INDEX planted ON removal (ending)",
    "DROP INDEX payload_age",
    "ALTER TABLE removal ADD COLUMN more",
    "DROP TABLE expanded; CREATE VIEW expanded AS SELECT 'x' AS thread, 'y' AS sha256",
)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_state_whose_schema_another_hand_changed_is_refused(path: Path, planted: str) -> None:
    """A trigger would run with each of our statements, a view lie to them; nothing of the file is used or changed."""
    with SqliteStore(path) as store:
        fill(store, 1)
    with sqlite3.connect(path) as other:
        other.executescript(planted)
        schema_before = other.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
    other.close()
    with pytest.raises(StoreError, match=r"sweep\.db: (holds|lacks) what this program .* changed by another hand"):
        SqliteStore(path)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall() == schema_before
        assert other.execute("SELECT count(*) FROM removal").fetchone() == (1,)
    other.close()


def test_a_trigger_in_an_older_state_is_refused_before_it_is_brought_up_to_date(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps to the newest version would fire it."""
    known = schema.MIGRATIONS
    monkeypatch.setattr(schema, "MIGRATIONS", known[:2])
    write_private(path, b"")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        schema.prepare(other, path)
        other.execute("CREATE TRIGGER planted AFTER UPDATE ON thread BEGIN DELETE FROM removal; END")
    monkeypatch.setattr(schema, "MIGRATIONS", known)
    with pytest.raises(StoreError, match="another hand"):
        SqliteStore(path)


def test_a_state_of_every_older_version_comes_up_with_its_declaration_checked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was declared before declarations had a checksum is replayed as it was; old verdicts are asked for again."""
    known = schema.MIGRATIONS
    for version in range(1, len(known)):
        old = path.with_name(f"{version}.db")
        write_private(old, b"")
        monkeypatch.setattr(schema, "MIGRATIONS", known[:version])
        with closing(sqlite3.connect(old, isolation_level=None)) as other:
            schema.prepare(other, old)
            row = ("t", 1, 1.0, b'{"name":"cg_expand"}')
            other.execute("INSERT INTO thread (thread, version, used_at, declaration) VALUES (?, ?, ?, ?)", row)
            if version >= 3:
                other.execute("UPDATE thread SET declared = ? WHERE thread = 't'", (zlib.crc32(row[3]),))
            drop = ("t", b"toolu_1", 0, "00" * 32, 9.0, 1.0, 3, "")
            other.execute("INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, ?)", drop)
            other.execute("INSERT INTO thread (thread, version, used_at) VALUES ('u', 2, 1.0)")
        monkeypatch.setattr(schema, "MIGRATIONS", known)
        with SqliteStore(old) as store:
            assert store.load("t").declaration == b'{"name":"cg_expand"}'
            assert store.load("u").declaration is None
            # before the fourth it does not say over which history it was given
            assert len(store.load("t").pending) == (version >= 4)


@pytest.mark.parametrize("damage", ["declaration = x'7b7d'", "declared = declared + 1", "declaration = NULL"])
def test_a_damaged_declaration_is_an_error_and_not_a_replay(store: SqliteStore, path: Path, damage: str) -> None:
    """It stands in every request of its thread: a changed byte would break each cached prefix, or the request."""
    store.declare("t", b'{"name":"cg_expand"}')
    with sqlite3.connect(path) as other:
        other.execute(f"UPDATE thread SET {damage}")
    other.close()
    with pytest.raises(StoreError, match="does not match its checksum|holds what does not belong there"):
        store.load("t")


# -- what a turn costs -------------------------------------------------------------------------------------------------


def statements(store: SqliteStore) -> list[str]:
    """Where the statements go that the store's one connection runs from now on."""
    ran: list[str] = []
    (connection,) = store._file._idle
    connection.set_trace_callback(ran.append)
    return ran


def test_a_turn_that_decides_nothing_reads_one_row_and_makes_one_small_transaction(store: SqliteStore) -> None:
    """One look at the thread; its stamp, its branch and the counts, in one write without a flush to the disk."""
    known = Branch("b", b"c" * 800, b"h", b"d", 1.0, 300)
    fill(store, *range(20))
    report = TurnReport(Reason.WARM)
    for n in range(2):  # the first reads the decisions, and sets what a connection keeps
        store.load("t")
        store.turned("t", report, replace(known, clock=2.0 + n), b"{}")
    ran = statements(store)
    assert len(store.load("t").removals) == 20
    store.turned("t", report, replace(known, clock=9.0), b"{}")
    assert [one.split()[0] for one in ran] == ["SELECT", "BEGIN", "SELECT", "UPDATE", "INSERT", "INSERT", "COMMIT"]
    ran.clear()
    assert store.load("t").branches == (replace(known, clock=9.0),)
    assert len(ran) == 1  # what this process wrote it need not read


def test_originals_and_decisions_are_flushed_after_any_turn_that_was_not(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 5: the level of the last write does not stay in force for one that must be on the disk."""
    store.turned("t", TurnReport(Reason.WARM), Branch("b", b"c", b"h", b"d", 1.0, 300), b"{}")
    levels: list[int] = []
    writing = store._file.writing

    @contextmanager
    def watched(*, durable: bool = False) -> Iterator[sqlite3.Connection]:
        with writing(durable=durable) as db:
            levels.extend(db.execute("PRAGMA synchronous").fetchone())
            yield db

    monkeypatch.setattr(store._file, "writing", watched)
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: store.put("t", [payload(1)], 2.0),
        "touch": lambda: store.touch("t", Branch("b", b"c", b"h", b"d", 3.0, 300)),
        "freeze": lambda: store.freeze("t", [removal(payload(1))]),
        "turned": lambda: store.turned("t", TurnReport(Reason.WARM)),
        "declare": lambda: store.declare("t", b"{}"),
        "count": lambda: store.count("t", Tally()),
        "end": lambda: store.end("t", payload(1).identity, Ending.RESTORED, 4.0),
    }
    for call in calls.values():
        call()
    full, normal = 2, 1
    assert dict(zip(calls, levels, strict=True)) == {
        name: full if name in ("put", "freeze", "declare", "end") else normal for name in calls
    }


def test_what_another_process_writes_is_seen_at_the_next_look(store: SqliteStore, path: Path) -> None:
    """Branches, decisions, ratio and declaration: whatever of them this process remembers is looked at anew."""
    mine = Branch("b", b"c", b"h", b"d", 1.0, 300)
    with SqliteStore(path) as other:
        for n in range(3):
            store.touch("t", replace(mine, clock=10.0 * n))
            other.touch("t", replace(mine, branch="theirs", clock=10.0 * n + 1))
            assert [b.clock for b in store.load("t").branches] == [10.0 * n, 10.0 * n + 1]
            store.touch("t", replace(mine, clock=10.0 * n + 2))
            assert store.load("t") == other.load("t")
            assert [b.branch for b in store.load("t").branches] == ["theirs", "b"]
        fill(other, 1)
        other.learn("t", bytes_per_token=3.0)
        other.declare("t", b"{}")
        seen = store.load("t")
        assert (len(seen.removals), seen.bytes_per_token, seen.declaration) == (1, 3.0, b"{}")
        other.forget("t")
        assert store.load("t") == Thread()
        other.touch("t", replace(mine, branch="new", clock=99.0))
        store.touch("t", replace(mine, branch="newer", clock=100.0))
        assert [b.branch for b in store.load("t").branches] == ["new", "newer"]


# -- others on the machine ---------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_the_owner_can_read_the_state(tmp_path: Path, mask: int) -> None:
    """Folder 0700, all files 0600, the side files too, whatever the umask."""
    before = os.umask(mask)
    try:
        with SqliteStore(tmp_path / "a" / "sweep.db") as store:
            fill(store, 1)
            modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in (tmp_path / "a").iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert modes == {"sweep.db": 0o600, "sweep.db-wal": 0o600, "sweep.db-shm": 0o600}


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
def test_a_state_that_others_can_use_is_refused(path: Path, mode: int) -> None:
    """Read or written by group or others: the message has the mode."""
    SqliteStore(path).close()
    path.chmod(mode)
    with pytest.raises(StoreError, match=f"mode {mode:04o}"):
        SqliteStore(path)


@posix
@pytest.mark.parametrize("name", ["sweep.db", "sweep.db-journal", "sweep.db-wal", "sweep.db-shm"])
def test_a_symlinked_state_is_refused(path: Path, tmp_path: Path, name: str) -> None:
    """Neither followed nor created through, for the file and its side files."""
    path.parent.mkdir(mode=0o700)
    target = tmp_path / "elsewhere"
    (path.parent / name).symlink_to(target)
    with pytest.raises(StoreError, match="symbolic link"):
        SqliteStore(path)
    assert not target.exists()


@posix
def test_a_journal_that_another_put_beside_a_state_is_not_played_back(path: Path) -> None:
    """SQLite would write it into the state: in a sticky folder anybody can leave one there."""
    SqliteStore(path).close()
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    crash = (
        "import os, sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA journal_mode = DELETE')\n"
        "db.execute('PRAGMA cache_size = 1')\n"
        "db.execute('UPDATE meta SET value = 666')\n"
        "db.execute('BEGIN IMMEDIATE')\n"
        "db.execute('UPDATE meta SET value = 1')\n"
        "db.execute('INSERT INTO ask (thread, detail) VALUES (?, ?)', ('t', 'x' * 100000))\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", crash, str(copy)], check=True)
    planted = path.with_name("sweep.db-journal")
    copy.with_name("copy.db-journal").rename(planted)
    planted.chmod(0o644)
    with pytest.raises(StoreError, match="others may use it"):
        SqliteStore(path)
    planted.unlink()
    with SqliteStore(path) as store:
        assert store.status()["payload_bytes"] == 0


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_state_without_a_name_is_refused_in_words(name: str) -> None:
    """An empty variable in a script."""
    with pytest.raises(StoreError, match="not a regular file"):
        SqliteStore(name)


@pytest.mark.parametrize("decided_at", [1, 0, -0.0, 1.5, -1e300])
def test_a_decision_is_intact_at_whatever_moment_it_was_made(path: Path, decided_at: float) -> None:
    """A whole number and -0.0 come back from the file as other numbers, which damaged nothing."""
    with SqliteStore(path) as store:
        store.put("t", [payload(1)], 1.0)
        made = replace(removal(payload(1)), decided_at=decided_at)
        assert store.freeze("t", [made]) == (made,)
    with SqliteStore(path) as store:
        assert store.load("t").removals == {made.identity: made}


@pytest.mark.parametrize(
    "damage",
    ["branch SET chain = 'x'", "branch SET clock = 'x'", "branch SET body = 5", "thread SET paid_misses = 'x'"]
    + ["thread SET bytes_per_token = 'x'", "thread SET declaration = 'x'"],
)
def test_a_column_of_another_type_is_a_clear_error(path: Path, damage: str) -> None:
    """Flipped bits in a row's head give a value another type."""
    with SqliteStore(path) as store:
        fill(store, 1)
        store.touch("t", Branch("b", b"c", b"h", b"d", 3.0, None))
    damaged = sqlite3.connect(path)
    damaged.execute(f"UPDATE {damage}")
    damaged.commit()
    damaged.close()
    with SqliteStore(path) as store, pytest.raises(StoreError, match="damaged"):
        store.load("t")


@posix
def test_a_state_that_is_no_regular_file_is_refused(path: Path) -> None:
    """A pipe would hang, a folder would fail later."""
    path.parent.mkdir(mode=0o700)
    os.mkfifo(path, 0o600)
    with pytest.raises(StoreError, match="not a regular file"):
        SqliteStore(path)


@posix
def test_a_folder_in_which_others_may_write_is_refused(path: Path) -> None:
    """They could put another file in the state's place; a sticky folder such as /tmp prevents that."""
    path.parent.mkdir()
    path.parent.chmod(0o777)
    with pytest.raises(StoreError, match="others may write here"):
        SqliteStore(path)
    path.parent.chmod(0o1777)
    SqliteStore(path).close()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to give a file away")
def test_a_state_of_another_user_is_refused(path: Path) -> None:
    """Even one that we could read."""
    SqliteStore(path).close()
    os.chown(path, 12345, -1)
    with pytest.raises(StoreError, match="belongs to user 12345"):
        SqliteStore(path)


def test_what_is_forgotten_is_not_left_in_the_file(store: SqliteStore, path: Path) -> None:
    """`forget` overwrites: neither the file nor its log holds the text any more."""
    secret = b"correct horse battery staple"
    original = Payload(Identity("toolu_s", 0, hashlib.sha256(secret).hexdigest()), secret, "Bash", "{}")
    store.put("t", [original], 1.0)
    store.keep_body("t", "b", secret)
    store.forget("t")
    assert all(secret not in file.read_bytes() for file in path.parent.iterdir())


def test_no_copy_of_a_forgotten_row_is_left_on_another_page(store: SqliteStore, path: Path) -> None:
    """Rows that were moved between pages when others came leave copies behind, which deleting does not find."""
    rng = random.Random(3)
    for n in range(40):
        for thread in rng.sample(range(12), 12):
            made = [f"{thread} {n} {k}".encode() + rng.randbytes(rng.choice((20,))) for k in range(3)]
            payloads = [
                Payload(
                    Identity(f"toolu_{thread}_{n}_{k}", 0, hashlib.sha256(content).hexdigest()), content, "Bash", "{}"
                )
                for k, content in enumerate(made)
            ]
            store.put(str(thread), payloads, 1.0)
            store.freeze(str(thread), [Removal(p.identity, b'"w"', 5, 1.0) for p in payloads])
    for thread in range(7):
        store.forget(str(thread))
        assert all(b"toolu_%d_" % thread not in file.read_bytes() for file in path.parent.iterdir())
    assert len(store.load("7").removals) == 120
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_what_another_process_still_reads_is_not_called_forgotten(store: SqliteStore, path: Path, monkeypatch) -> None:
    """Its view lies in the log, from where nothing can be taken while it is read: that is said, and forgetting again
    once it has gone erases it."""
    monkeypatch.setattr("cg.sweep.storage.sqlite.connections.BUSY_TIMEOUT_S", 0.05)
    secret = b"correct horse battery staple"
    store.put("t", [Payload(Identity("toolu_s", 0, hashlib.sha256(secret).hexdigest()), secret, "Bash", "{}")], 1.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM payload").fetchone()
        with pytest.raises(StoreError, match="erased, but not yet from the log"):
            store.forget("t")
        assert store.load("t") == Thread() and secret in path.with_name(path.name + "-wal").read_bytes()
    store.forget("t")
    assert all(secret not in file.read_bytes() for file in path.parent.iterdir())


def test_a_connection_that_comes_back_while_the_store_closes_is_closed_with_it(store: SqliteStore) -> None:
    """Nobody else holds it then: left open it would keep the file, and its log, until the collector finds it."""

    class Pool(list[Handle]):
        def append(self, connection: Handle) -> None:
            store.close()
            super().append(connection)

    store.load("t")
    store._file._idle = Pool(store._file._idle)
    [connection] = store._file._idle
    assert store.load("t") == Thread()
    assert store._file._idle == []
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_a_closed_store_refuses(path: Path) -> None:
    """In words, and closing twice is fine."""
    store = SqliteStore(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.load("t")


def test_errors_carry_no_content(path: Path) -> None:
    """Messages may be logged: they name the file and SQLite's own words, nothing that was stored."""
    with SqliteStore(path, limits=Limits()) as store:
        fill(store, 1)
        with sqlite3.connect(path) as other:
            other.execute("DROP TABLE payload")
        other.close()
        with pytest.raises(StoreError) as refused:
            store.put("t", [payload(2)], 2.0)
    assert payload(2).identity.sha256 not in str(refused.value) and "toolu" not in str(refused.value)


@posix
@pytest.mark.parametrize("change", ["deleted", "state deleted", "log deleted", "replaced"])
def test_nothing_is_decided_in_a_file_that_is_no_longer_there(store: SqliteStore, path: Path, change: str) -> None:
    """What stands is read on, as it was opened; an original that no later start would find is not taken."""
    standing = fill(store, 1)
    change_state(path, change)
    with pytest.raises(StoreError, match="was deleted or replaced while it was in use"):
        store.put("t", [payload(2)], 2.0)
    with pytest.raises(StoreError, match="was deleted or replaced while it was in use"):
        store.freeze("t", [removal(payload(1))])
    assert store.load("t").removals == standing
    kept = store.fetch("t", payload(1).identity.key)
    assert isinstance(kept, Payload) and kept.content == payload(1).content


def change_state(path: Path, change: str) -> None:
    log = path.with_name(f"{path.name}-wal")
    if change == "replaced":
        copy = path.with_name("copy")
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o600)
        copy.replace(path)
    elif change == "deleted":
        for file in path.parent.iterdir():
            file.unlink()
    else:
        (log if change == "log deleted" else path).unlink()


@posix
@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_no_connection_makes_a_file_or_opens_another_than_the_first(
    store: SqliteStore, path: Path, change: str
) -> None:
    """One pool never holds two states, and where a state was deleted none of other rights stands in its place."""
    fill(store, 1)
    change_state(path, change)
    before = sorted(path.parent.iterdir())
    with store._file.reading(), pytest.raises(StoreError), store._file.reading():
        pass  # the second view needs a connection of its own
    assert sorted(path.parent.iterdir()) == before
    with SqliteStore(path) as anew:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert anew.put("t", [payload(2)], 3.0)


@pytest.mark.parametrize(
    "name", ["a b", pytest.param("what?#%41", marks=posix), pytest.param("x?mode=memory&vfs=none", marks=posix)]
)
def test_any_name_is_taken_as_it_stands(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What means something in a URI means nothing in the name of a state, and a name holds wherever the process goes."""
    (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)
    with SqliteStore(Path(name, name)) as store:
        monkeypatch.chdir(tmp_path / name)
        standing = fill(store, 1)
    assert [file.name for file in (tmp_path / name).iterdir()] == [name]
    with SqliteStore(tmp_path / name / name, must_exist=True) as again:
        assert again.load("t").removals == standing
