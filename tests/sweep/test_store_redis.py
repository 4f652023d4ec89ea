"""The store on a server: refused, lost, restarted, shared, full, damaged, and what others may see of it.

What it has in common with every store stands in the contract's suite. A real server is started; without one these are
skipped.
"""

import hashlib
import json
import logging
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import store_workers
from presets import paid
from state_server import StateServer, needs_server, state_server

from cg.sweep.accounting.totals import FAMILIES
from cg.sweep.counters import Event
from cg.sweep.ledger import AskLeg, Reason, TurnReport, ask_row
from cg.sweep.open_store import open_store
from cg.sweep.store import Expired, Limits, Store, StoreError
from cg.sweep.values import Branch, Ending, Identity, Payload, Pending, Removal, Thread, Usage

pytestmark = needs_server
redis = pytest.importorskip("redis", reason="redis is not installed: the store on a server is an extra")

from cg.sweep.storage.redis import connection as redis_link  # noqa: E402
from cg.sweep.storage.redis.scripts import COUNTS, TEXT, Command  # noqa: E402
from cg.sweep.store_redis import RedisStore  # noqa: E402

HARNESS = Path(__file__).parents[1] / "harness"
IS_LONG = os.environ.get("CG_LONG") == "1"
PATIENCE_S = 60.0
HOSTILE = ["", "t\x00t", "a:b:c", "{tag}", "*?[x]", "x\r\nFLUSHALL\r\n", "\ud800", "t" * 10_000, "cg:1:secret"]


def payload(seed: int, size: int = 2000) -> Payload:
    content = random.Random(seed).randbytes(size)
    return Payload(Identity(f"toolu_{seed}", 0, hashlib.sha256(content).hexdigest()), content, "Bash", "{}")


def removal(of: Payload) -> Removal:
    return Removal(of.identity, f'"gone {of.identity.key}"'.encode(), 1900, 1.0)


def fill(store: Store, *seeds: int, thread: str = "t") -> dict[Identity, Removal]:
    originals = [payload(seed) for seed in seeds]
    assert len(store.put(thread, originals, 1.0)) == len(seeds)
    return {r.identity: r for r in store.freeze(thread, [removal(p) for p in originals])}


def use_all(store: Store, thread: str = "t") -> None:
    """Every call that writes something, once."""
    fill(store, 1, 2, thread=thread)
    store.end(thread, payload(2).identity, Ending.RESTORED, 2.0)
    store.pend(thread, [Pending(payload(n).identity, 1.0, 1.0, 1, "") for n in (3, 4)])
    store.unpend(thread, [payload(4).identity])
    store.expand_mark(thread, "ab" * 32)
    store.declare(thread, b'{"name":"cg_expand"}')
    store.touch(thread, Branch("b", b"c", b"h", b"d", 3.0, None))
    store.keep_body(thread, "b", b"{}")
    store.claim(thread, "gap", 9.0)
    store.learn(thread, usage=Usage(fresh=100), sent_bytes=300, paid_miss=True)
    store.count(thread, TurnReport(Reason.REMOVED, events={Event.DROPPED: 2}))
    store.book(ask_row(thread, 1.0, "m", [AskLeg("prefix_ask", Usage())], None, offered=1))


@pytest.fixture(scope="module")
def shared() -> Iterator[StateServer]:
    """A server for all that does not hurt it."""
    with state_server() as running:
        yield running


@pytest.fixture
def server(shared: StateServer) -> StateServer:
    """The same, empty."""
    client(shared).flushall()
    return shared


@pytest.fixture
def own() -> Iterator[StateServer]:
    """A server to be killed."""
    with state_server() as running:
        yield running


def client(server: StateServer) -> Any:
    return redis.Redis(unix_socket_path=str(server.socket))


@pytest.fixture
def store(server: StateServer) -> Iterator[RedisStore]:
    with RedisStore(server.url()) as opened:
        yield opened


def in_time(holds: Callable[[], bool]) -> None:
    """Waits for what must come true, however slow the machine."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def answers(store: RedisStore) -> bool:
    try:
        store.load("t")
    except StoreError:
        return False
    return True


# -- which servers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, "maxmemory-policy is 'allkeys-lru': it must be noeviction"),
        ({"maxmemory_policy": "volatile-ttl"}, "maxmemory-policy is 'volatile-ttl'"),
        ({"appendonly": "no", "save": '""'}, "appendonly is 'no' and save is ''"),
    ],
)
def test_a_server_that_evicts_or_forgets_is_refused_at_the_start(settings: dict[str, str], words: str) -> None:
    """The message names the server, the setting and its value; nothing was written."""
    with state_server(**settings) as running:
        with pytest.raises(StoreError) as refused:
            RedisStore(running.url())
        assert words in str(refused.value) and str(running.socket) in str(refused.value)
        assert client(running).dbsize() == 0


def test_snapshots_are_persistence_too() -> None:
    """`save` points in place of an append-only file."""
    with state_server(appendonly="no", save="3600 1") as running, RedisStore(running.url()) as store:
        frozen = fill(store, 1)
        assert store.load("t").removals == frozen


def test_a_replica_is_refused(server: StateServer) -> None:
    """It takes no writes."""
    with state_server(replicaof="127.0.0.1 1") as running, pytest.raises(StoreError, match="it is a replica"):
        RedisStore(running.url())


def test_a_server_that_starts_to_evict_takes_nothing_new_and_replays_what_stands(
    own: StateServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The removals that are on the wire go on; no other is begun until the setting is right again."""
    with RedisStore(own.url()) as store:
        standing = fill(store, 1)
        client(own).config_set("maxmemory-policy", "allkeys-lru")
        store.sweep_ages(2.0)  # looks again each hour
        assert store.put("t", [payload(2)], 2.0) == frozenset()
        assert store.load("t").removals == standing
        assert "the state server is unfit: evicts" in caplog.text
        client(own).config_set("maxmemory-policy", "noeviction")
        store.sweep_ages(3.0)
        fill(store, 2)


def test_each_connection_looks_at_the_server_anew(own: StateServer) -> None:
    """What comes back after a restart may be another server, with other settings."""
    with RedisStore(own.url()) as store:
        standing = fill(store, 1)
        own.kill()
        own.settings["maxmemory-policy"] = "allkeys-random"
        own.start()
        in_time(lambda: answers(store))
        assert store.load("t").removals == standing
        assert store.put("t", [payload(2)], 2.0) == frozenset()


# -- who may do what --------------------------------------------------------------------------------------------------

DOCUMENTED = Path(__file__).parents[2] / "docs" / "several-gateways.md"


def documented_rules() -> list[str]:
    """The access rules of the line `user cg ...` in the documentation."""
    (line,) = [line for line in DOCUMENTED.read_text("utf-8").splitlines() if line.startswith("user cg ")]
    return [word for word in line.split()[2:] if not word.startswith(">")]


def test_a_user_with_the_documented_rights_can_do_all_that_is_needed(server: StateServer) -> None:
    """And no more than that: other keys, other commands and the settings are not for it."""
    admin = client(server)
    admin.execute_command("ACL", "SETUSER", "cg", "reset", ">s3cret", *documented_rules())
    try:
        url = server.url().replace("unix://", "unix://cg:s3cret@")
        with RedisStore(url, limits=Limits(max_bytes=20_000)) as store:
            use_all(store)
            assert store.load("t").removals and store.fetch("t", payload(1).identity.key) == payload(1)
            assert store.status()["payloads"] == 2 and len(list(store.rows())) == 1
            assert store.put("u", [payload(5, 30_000)], 1e10) == frozenset()  # full: looks for what is past its time
            assert store.totals() and store.load("t") == Thread() and store.status()["threads"] == 1
            use_all(store)
            store.forget("t")
            store.forget(None)
            user = redis.Redis(unix_socket_path=str(server.socket), username="cg", password="s3cret")
            for forbidden in (
                ["SET", "other", "x"],
                ["GET", "other"],
                ["FLUSHALL"],
                ["CONFIG", "GET", "save"],
                ["KEYS", "*"],
            ):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    user.execute_command(*forbidden)
    finally:
        admin.execute_command("ACL", "DELUSER", "cg")


def test_a_user_without_config_is_told_what_to_do(server: StateServer) -> None:
    """Snapshots without the right to see their setting: refused, unless the operator answers for them."""
    with state_server(appendonly="no", save="3600 1") as running:
        rules = ["on", "nopass", "~cg:1:*", "+@all", "-config"]
        client(running).execute_command("ACL", "SETUSER", "cg", "reset", *rules)
        url = running.url().replace("unix://", "unix://cg:x@")
        with pytest.raises(StoreError, match="add assume=persistence to the URL"):
            RedisStore(url)
        with RedisStore(url + "&assume=persistence") as store:
            fill(store, 1)


def test_a_missing_right_is_named_and_no_key_is(server: StateServer) -> None:
    """An operator reads which command is missing."""
    rules = ["on", "nopass", "~cg:1:*", "+@all", "-evalsha", "-eval"]
    client(server).execute_command("ACL", "SETUSER", "cg", "reset", *rules)
    url = server.url().replace("unix://", "unix://cg:x@")
    with RedisStore(url) as store, pytest.raises(StoreError, match="its user may not evalsha"):
        store.load("t")
    client(server).execute_command("ACL", "DELUSER", "cg")


def test_no_credential_gets_into_a_message_or_a_log(server: StateServer, caplog: pytest.LogCaptureFixture) -> None:
    """A wrong password, a server that is not there, a closed store."""
    caplog.set_level(logging.DEBUG)
    gone = server.url().replace("/s?", "/gone?")
    for url in (server.url(), gone):
        with pytest.raises(StoreError) as refused:
            RedisStore(url.replace("unix://", "unix://us3r:c0rrect-horse@"))
        told = f"{refused.value} {refused.value!r} {caplog.text}"
        assert "c0rrect" not in told and "us3r" not in told
    assert "cannot be reached" in told


def test_tls_is_checked_against_the_authority_that_is_named(tmp_path: Path) -> None:
    """`rediss://` with the server's own authority; with another one, or with none, nothing is sent."""
    ca, other = authority(tmp_path, "ca"), authority(tmp_path, "other")
    certify(tmp_path, "ca", "server", "subjectAltName=IP:127.0.0.1")
    port = free_port()
    files = {"tls_cert_file": tmp_path / "server.pem", "tls_key_file": tmp_path / "server.key", "tls_ca_cert_file": ca}
    with state_server(tls_port=str(port), tls_auth_clients="no", **{k: str(v) for k, v in files.items()}):
        url = f"rediss://127.0.0.1:{port}?timeout_ms=30000"
        with RedisStore(f"{url}&tls_ca={ca}") as store:
            fill(store, 1)
        for without in (url, f"{url}&tls_ca={other}"):
            with pytest.raises(StoreError, match="TLS fails"):
                RedisStore(without)
        with pytest.raises(StoreError, match="TLS fails"):  # the certificate is for another name
            RedisStore(f"{url}&tls_ca={ca}".replace("127.0.0.1", "localhost"))


def openssl(*arguments: str | Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl is installed")
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def authority(folder: Path, name: str) -> Path:
    """An authority of our own; returns its certificate."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    use = (
        "-addext",
        "keyUsage=critical,keyCertSign,cRLSign",
    )  # from Python 3.13 on one that does not say so is refused
    openssl("req", "-x509", *new, *use, "-keyout", key, "-out", certificate, "-subj", f"/CN={name}", "-days", "2")
    return certificate


def certify(folder: Path, by: str, name: str, extension: str) -> None:
    """A key and a certificate that the authority `by` has signed."""
    key, request, certificate = (folder / f"{name}.{end}" for end in ("key", "csr", "pem"))
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", *new, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
    (folder / "extension").write_text(f"{extension}\nauthorityKeyIdentifier=keyid\n", "utf-8")
    signed = ("-CA", folder / f"{by}.pem", "-CAkey", folder / f"{by}.key", "-CAcreateserial", "-days", "2")
    openssl("x509", "-req", "-in", request, *signed, "-extfile", folder / "extension", "-out", certificate)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# -- lost and found ---------------------------------------------------------------------------------------------------


def test_everything_is_there_after_the_server_was_killed_and_started_again(own: StateServer) -> None:
    """Rule 7: the same bytes are replayed, and nothing that was acknowledged is lost."""
    with RedisStore(own.url()) as store:
        use_all(store)
        before, held = store.load("t"), store.status()
        own.kill()
        own.start()
        in_time(lambda: answers(store))
        assert store.load("t") == before and store.status() == held
        assert store.fetch("t", payload(1).identity.key) == payload(1)
        assert store.last_body("t", "b") == b"{}"
    with RedisStore(own.url()) as later:
        assert later.load("t") == before
        assert later.last_body("t", "b") is None


def test_a_lost_server_is_an_error_and_not_a_wait(own: StateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 10 needs a quick answer: for a moment after a failure nobody tries at all, then one does."""
    monkeypatch.setattr(redis_link, "PAUSE_S", 3600.0)
    with RedisStore(own.url()) as store:
        fill(store, 1)
        own.kill()
        tries = []
        monkeypatch.setattr(redis.UnixDomainSocketConnection, "_connect", lambda self: tries.append(1) or _refuse())
        for _ in range(20):
            with pytest.raises(StoreError):
                store.load("t")
        assert len(tries) == 1
        with pytest.raises(StoreError, match="it is asked again within"):
            store.put("t", [payload(2)], 2.0)
        assert len(tries) == 1


def _refuse() -> Any:
    raise OSError("gone")


def test_a_server_that_hangs_is_given_up_and_found_again(own: StateServer) -> None:
    """It takes connections and answers nothing, as a machine that swaps does."""
    with RedisStore(own.url(timeout_ms="3000")) as store:
        standing = fill(store, 1)
        own.hang()
        with pytest.raises(StoreError, match="does not answer in time"):
            store.load("t")
        own.go_on()
        in_time(lambda: answers(store))
        assert store.load("t").removals == standing


def test_a_server_that_comes_back_empty_gets_its_secret_back(own: StateServer) -> None:
    """The gateways that are running go on naming threads by it, and one that is started then does too."""
    with RedisStore(own.url()) as store:
        fill(store, 1)
        own.kill()
        for name in own.folder.iterdir():
            if name.name.startswith("appendonly"):
                for file in name.iterdir():
                    file.unlink()
        own.start()
        in_time(lambda: answers(store))
        assert store.load("t") == Thread()
        with RedisStore(own.url()) as other:
            assert other.secret == store.secret


def test_the_script_has_the_commands_and_the_counts_that_python_names() -> None:
    """Neither side calls what the other does not have."""
    assert re.findall(r"^function commands\.(\w+)\(", TEXT, re.MULTILINE) == [command.value for command in Command]
    [counts] = re.findall(r"^local COUNTS = \{(.*)\}$", TEXT, re.MULTILINE)
    assert tuple(re.findall(r"'(\w+)'", counts)) == COUNTS


def test_scripts_are_sent_again_where_the_server_has_lost_them(store: RedisStore, server: StateServer) -> None:
    """After a restart or a flush of scripts the call is made all the same."""
    fill(store, 1)
    client(server).script_flush()
    fill(store, 2)
    client(server).script_flush()
    assert store.put("t", [payload(1), payload(2)], 2.0) == {payload(1).identity, payload(2).identity}


def test_an_unreachable_server_is_refused_at_the_start(server: StateServer) -> None:
    """In words."""
    with pytest.raises(StoreError, match="cannot be reached"):
        RedisStore("redis://127.0.0.1:1")


def test_a_closed_store_refuses(server: StateServer) -> None:
    """In words, and closing twice is fine."""
    store = RedisStore(server.url())
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.load("t")


# -- shared -----------------------------------------------------------------------------------------------------------


def test_two_processes_of_eight_threads_lose_nothing_and_double_nothing(server: StateServer) -> None:
    """Sixteen writers on one server: all removals stand, shared ones have one writer, claims one winner, counts sum."""
    rounds = 40 if IS_LONG else 6
    store_workers.work(server.url(), rounds)
    with RedisStore(server.url()) as store:
        store_workers.look(store, rounds)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
def test_a_process_killed_at_any_moment_leaves_no_decision_without_its_original(server: StateServer) -> None:
    """Every removal has its payload, every payload hashes, and nothing that was acknowledged is lost."""
    kills = 250 if IS_LONG else 15
    command = [sys.executable, str(HARNESS / "store_under_fire.py"), server.url(), str(kills), "7"]
    done = subprocess.run(command, capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert (seen["kills"], seen["wrong"]) == (kills, [])
    assert seen["removals"] >= seen["acknowledged"] >= kills


def test_a_second_store_sees_what_the_first_decides(store: RedisStore, server: StateServer) -> None:
    """What is remembered of a thread in one process is dropped when another has changed it, or has forgotten it."""
    fill(store, 1)
    assert len(store.load("t").removals) == 1
    with RedisStore(server.url()) as other:
        fill(other, 2)
        assert len(store.load("t").removals) == 2
        other.forget("t")
        assert store.load("t") == Thread()
        fill(other, 3)
        assert set(store.load("t").removals) == {payload(3).identity}


def test_branches_that_another_moves_are_read_anew(store: RedisStore, server: StateServer) -> None:
    """Each sees the other's last word, whoever wrote before."""
    branch = Branch("b", b"c", b"h", b"d", 1.0, 300)
    with RedisStore(server.url()) as other:
        for clock in range(1, 7):
            writer = (store, other)[clock % 2]
            writer.touch("t", replace(branch, clock=float(clock)))
            writer.touch("t", replace(branch, branch=f"b{clock}", clock=float(clock)))
            seen = store.load("t").branches
            assert seen == other.load("t").branches
            assert [b.clock for b in seen if b.branch == "b"] == [float(clock)]
            assert len(seen) == clock + 1
        other.touch("t", replace(branch, branch="x"))
        store.touch("t", replace(branch, branch="y"))
        assert store.load("t").branches == other.load("t").branches


def test_a_last_body_is_good_only_where_it_was_sent_and_while_its_branch_stands(
    store: RedisStore, server: StateServer
) -> None:
    """The gateway that has served the newest request has the body; nobody else asks, and an older one is no answer."""
    with RedisStore(server.url()) as other:
        for one, made_of in ((store, b"one"), (other, b"two")):
            one.touch("t", Branch("b", b"c", b"h", made_of, 3.0, None))
            one.keep_body("t", "b", b"body of " + made_of)
        assert store.last_body("t", "b") is None
        assert other.last_body("t", "b") == b"body of two"


def test_all_gateways_of_a_server_name_threads_by_one_secret(store: RedisStore, server: StateServer) -> None:
    """The first process makes it; forgetting everything leaves it, since the running gateways go on."""
    with RedisStore(server.url()) as other:
        assert other.secret == store.secret and len(store.secret) == 32
        other.forget(None)
    with RedisStore(server.url()) as later, RedisStore(server.url(prefix="another")) as apart:
        assert later.secret == store.secret != apart.secret


def test_the_servers_clock_is_told(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways whose own clocks differ go by it; what the network takes is no difference."""
    store.load("t")
    assert store.skew_s == 0.0
    monkeypatch.setattr(time, "time", lambda: time.monotonic() + 5e8)
    behind = store._link
    behind._now = time.time
    store.load("t")
    seconds, microseconds = behind._client.time()
    assert abs(time.time() + store.skew_s - (seconds + microseconds / 1e6)) < 60.0


# -- full -------------------------------------------------------------------------------------------------------------


def test_a_server_without_memory_keeps_what_stands_and_refuses_the_rest(own: StateServer) -> None:
    """The put answers with nothing, no decision follows, and what was stored before still comes back."""
    with RedisStore(own.url()) as store:
        standing = fill(store, 1)
        used = client(own).info("memory")["used_memory"]
        client(own).config_set("maxmemory", used)
        large = payload(2, 3_000_000)
        assert store.put("t", [large], 2.0) == frozenset()
        assert store.load("t").removals == standing
        assert store.fetch("t", payload(1).identity.key) == payload(1)
        with pytest.raises(StoreError, match="no memory left"):
            store.expand_mark("t", "ab" * 32)
        client(own).config_set("maxmemory", 0)
        assert store.freeze("t", [removal(large)]) == ()
        assert store.put("t", [large], 3.0) == {large.identity}


def test_a_store_that_is_full_looks_for_what_is_old_once_an_hour(server: StateServer) -> None:
    """Not at each refusal: that would be a walk over all threads a request."""
    with RedisStore(server.url(), limits=Limits(payload_ttl_s=10.0, max_bytes=2500)) as store:
        fill(store, 1)
        looked = []
        store.sweep_ages, sweep = lambda now: looked.append(now) or sweep(now), store.sweep_ages  # type: ignore[method-assign]
        for now in (2.0, 3.0, 100.0):
            assert store.put("u", [payload(2)], now) == frozenset()
        assert looked == [2.0]
        assert len(store.put("u", [payload(2)], 3602.0)) == 1
        assert looked == [2.0, 3602.0]


# -- damaged ----------------------------------------------------------------------------------------------------------


def keys_of(server: StateServer, kind: str) -> bytes:
    (found,) = client(server).keys(f"cg:1:{kind}:*")
    return bytes(found)


def test_a_damaged_original_counts_as_gone_and_is_put_back(store: RedisStore, server: StateServer) -> None:
    """It answers as expired, never with other bytes, and the next request that carries it makes it whole."""
    fill(store, 1)
    for damage in (b"-" + bytes(1000), b"z" + bytes(100), b"", b"?"):
        client(server).hset(keys_of(server, "c"), payload(1).identity.key, damage)
        assert store.fetch("t", payload(1).identity.key) == Expired("Bash", "{}")
        assert store.put("t", [payload(1)], 2.0) == {payload(1).identity}
        assert store.fetch("t", payload(1).identity.key) == payload(1)
    assert store.status()["payload_bytes"] == 2000


def test_a_key_that_leads_to_another_original_is_an_error(store: RedisStore, server: StateServer) -> None:
    """What stands there hashes to its own name, and is not what was asked for."""
    fill(store, 1, 2)
    for kind in ("p", "c"):
        name = keys_of(server, kind)
        other = client(server).hget(name, payload(2).identity.key)
        client(server).hset(name, payload(1).identity.key, other)
    with pytest.raises(StoreError):
        store.fetch("t", payload(1).identity.key)
    assert store.fetch("t", payload(2).identity.key) == payload(2)


def test_rule5_what_does_not_come_back_as_it_was_is_not_stored(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read back and hashed, as an expansion would: the server's word that it has something is not enough."""
    monkeypatch.setattr("cg.sweep.store_redis.payload_content", lambda of: b"-" + of.content[:-1])
    assert store.put("t", [payload(1)], 1.0) == frozenset()
    monkeypatch.undo()
    assert store.put("t", [payload(1)], 2.0) == {payload(1).identity}


def test_a_packed_bomb_is_not_unpacked(store: RedisStore, server: StateServer) -> None:
    """A state is hostile input too: no more is unpacked than one body may hold."""
    fill(store, 1)
    pack = zlib.compressobj(9)
    bomb = b"z" + b"".join(pack.compress(bytes(1 << 20)) for _ in range(101)) + pack.flush()
    client(server).hset(keys_of(server, "c"), payload(1).identity.key, bomb)
    assert store.fetch("t", payload(1).identity.key) == Expired("Bash", "{}")


def test_a_damaged_decision_is_an_error_and_not_a_replay(store: RedisStore, server: StateServer) -> None:
    """Rule 7: other bytes than the frozen ones never leave."""
    fill(store, 1)
    name = keys_of(server, "r")
    ((field, value),) = client(server).hgetall(name).items()
    client(server).hset(name, field, value.replace(b"gone", b"hmph"))
    with RedisStore(server.url()) as fresh:
        with pytest.raises(StoreError, match="checksum"):
            fresh.load("t")
        with pytest.raises(StoreError, match="checksum"):
            fresh.freeze("t", [removal(payload(1))])


def test_a_damaged_declaration_is_an_error_and_not_sent(store: RedisStore, server: StateServer) -> None:
    """Rule 7: the tool is declared by the first bytes, or this thread's bodies pass as they are."""
    assert store.declare("t", b"{}") == store.declare("t", b"[]") == store.load("t").declaration == b"{}"
    name = keys_of(server, "t")
    client(server).hset(name, "decl", client(server).hget(name, "decl").replace(b"{}", b"[]"))
    for use in (lambda: store.load("t"), lambda: store.declare("t", b"{}")):
        with pytest.raises(StoreError, match="checksum"):
            use()


@pytest.mark.parametrize("kind", ["b", "r", "e", "w", "p"])
@pytest.mark.parametrize(
    "value", [b"", b"\xff", b"[]", b"[1,2,3,4,5]\n", b"{}", b'["x", "y", "z", "u", "v"]', b"9" * 400]
)
def test_a_value_of_another_form_is_a_clear_error(
    store: RedisStore, server: StateServer, kind: str, value: bytes
) -> None:
    """Whatever somebody has put in the place of ours."""
    use_all(store)
    name = keys_of(server, kind)
    for field in client(server).hkeys(name):
        client(server).hset(name, field, value)
    client(server).hset(keys_of(server, "t"), mapping={"d": "anew", "b": "anew"})
    with pytest.raises(StoreError, match="damaged|checksum"):
        store.fetch("t", payload(1).identity.key) if kind == "p" else store.load("t")


def test_a_key_of_another_type_is_a_clear_error(store: RedisStore, server: StateServer) -> None:
    """Another program in our namespace."""
    client(server).set("cg:1:threads", "x")
    with pytest.raises(StoreError, match="refuses a command"):
        store.touch("t", Branch("b", b"c", b"h", b"d", 3.0, None))


# -- what others may see of it ----------------------------------------------------------------------------------------


def test_no_last_body_gets_to_the_server(store: RedisStore, own: StateServer) -> None:
    """DESIGN 6.9: it lives in the memory of the gateway that has sent it, at closing too."""
    canary = b"correct horse battery staple"
    with RedisStore(own.url()) as store:
        use_all(store)
        store.keep_body("t", "b", canary * 100)
        assert store.last_body("t", "b") == canary * 100
    files = [file for file in own.folder.rglob("*") if file.is_file()]
    assert any(b"gone " in file.read_bytes() for file in files)
    assert all(canary not in file.read_bytes() for file in files)


@pytest.mark.parametrize("thread", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_from_a_request_is_part_of_a_key(store: RedisStore, server: StateServer, thread: str) -> None:
    """Whatever a thread is called, its keys lie in our namespace, and another thread's are others."""
    use_all(store, thread)
    use_all(store, thread + ":")
    assert len(store.load(thread).removals) == 1
    store.forget(thread + ":")
    assert store.load(thread).removals and store.load(thread + ":") == Thread()
    digest = hashlib.sha256(thread.encode("utf-8", "surrogatepass")).hexdigest()
    singles = {"threads", "counts", "held", "totals", "asks", "seq", "secret"}
    for name in client(server).scan_iter():
        space, layout, kind, *rest = name.decode().split(":")
        assert (space, layout) == ("cg", "1") and (rest == [digest] or (not rest and kind in singles))


def test_forgetting_everything_leaves_what_is_not_ours(server: StateServer) -> None:
    """Other programs' keys, and those of another prefix."""
    client(server).set("mine", "x")
    client(server).set("cg:2:t", "x")
    with RedisStore(server.url(prefix="a.c")) as ours, RedisStore(server.url(prefix="abc")) as theirs:
        for store in (ours, theirs):
            use_all(store)
        ours.forget(None)
        assert set(ours.status().values()) == {0}
        assert ours.load("t") == Thread() and ours.totals()["reasons"] == {}
        assert len(theirs.load("t").removals) == 1
        assert {bytes(name) for name in client(server).keys("a.c:*")} == {b"a.c:1:secret"}
    assert client(server).get("mine") == client(server).get("cg:2:t") == b"x"


def test_forgetting_a_thread_leaves_no_key_of_it(store: RedisStore, server: StateServer) -> None:
    """Nor its share in any sum."""
    before = store.status()
    use_all(store)
    use_all(store, "u")
    store.forget("t")
    store.forget("u")
    assert store.status() | {"bodies": 0, "body_bytes": 0} == before
    assert store.totals() == {family: {} for family in FAMILIES}
    assert {bytes(name) for name in client(server).scan_iter()} == {b"cg:1:secret", b"cg:1:seq"}


def test_every_key_of_a_thread_has_the_same_end(store: RedisStore, server: StateServer) -> None:
    """A server that no gateway clears any more empties itself, and never lets go of a part of a thread."""
    use_all(store)
    names = [name for name in client(server).scan_iter() if len(name.split(b":")) == 4]
    ends = {client(server).pexpiretime(name) for name in names}
    assert len(names) == 12 and len(ends) == 1
    (end,) = ends
    least = (time.time() + Limits().thread_ttl_s) * 1000
    assert least < end < least + 2 * 86_400_000


def test_a_thread_that_the_server_has_let_go_of_is_cleared_away(store: RedisStore, server: StateServer) -> None:
    """Its bytes are free again, and its rows do not count."""
    use_all(store)
    use_all(store, "u")
    digest = hashlib.sha256(b"t").hexdigest()
    client(server).delete(*client(server).keys(f"cg:1:*:{digest}"))
    assert store.load("t") == Thread()
    store.sweep_ages(5.0)
    assert store.status()["payload_bytes"] == 4000
    assert store.status()["threads"] == store.status()["asks"] == len(list(store.rows())) == 1


def test_contents_are_packed_only_when_that_pays(store: RedisStore) -> None:
    """Text takes less memory on the server, noise and short texts lie as they are."""
    text = b"the same line again\n" * 5000
    original = Payload(Identity("toolu_x", 0, hashlib.sha256(text).hexdigest()), text, "Bash", "{}")
    store.put("t", [original], 1.0)
    assert store.status()["payload_bytes"] < len(text) / 10
    assert store.fetch("t", original.identity.key) == original


def test_the_configuration_sets_the_limits(server: StateServer) -> None:
    """`store_max_mb` and `payload_ttl_h`, in their units."""
    with open_store(server.url(), paid(store_max_mb=1, payload_ttl_h=2.0)) as store:
        assert len(store.put("t", [payload(1, 1024 * 1024)], 1.0)) == 1
        assert len(store.put("t", [payload(2, 1)], 1.0)) == 0
        store.sweep_ages(7200.0)
        assert isinstance(store.fetch("t", payload(1, 1024 * 1024).identity.key), Payload)
        store.sweep_ages(7201.0)
        assert isinstance(store.fetch("t", payload(1, 1024 * 1024).identity.key), Expired)


# -- trips ------------------------------------------------------------------------------------------------------------


def test_a_turn_that_changes_nothing_reads_and_sends_little(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thread that only this process writes to, neither branches nor decisions are read again."""
    use_all(store)
    store.load("t")
    told: list[Any] = []
    run = store._link.run
    monkeypatch.setattr(store._link, "run", lambda *given: told.append((given[0], run(*given))) or told[-1][1])
    for clock in (4.0, 5.0):
        before = store.load("t")
        store.touch("t", replace(before.branches[0], clock=clock))
    assert store.load("t").branches[0].clock == 5.0
    loads = [answer for which, answer in told if which is Command.LOAD]
    assert len(told) == 5 and len(loads) == 3
    assert all(answer[2:] == [None, None] for answer in loads)


# -- the command ------------------------------------------------------------------------------------------------------


def sweep_command(*arguments: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "cg.sweep.cli", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)


def test_the_command_looks_at_a_server_and_forgets_it(store: RedisStore, server: StateServer) -> None:
    """`status` and `forget`, by the same URL as the gateways'."""
    use_all(store)
    state = ("--state", server.url())
    assert json.loads(sweep_command("status", *state).stdout)["removals"] == 1
    assert sweep_command("forget", *state, "--all").returncode == 0
    assert json.loads(sweep_command("status", *state).stdout)["removals"] == 0


def test_a_pipe_on_a_server_asks_no_model(server: StateServer) -> None:
    """The body that an ask rides on is never there; what needs none works."""
    state = ("--state", server.url(), "--session", "s")
    refused = sweep_command("run", *state, "--preset", "paid", stdin=b"{}")
    assert refused.returncode == 2 and b"no server keeps" in refused.stderr
    done = sweep_command("run", *state, "--preset", "cold", stdin=b"{}")
    assert (done.returncode, done.stdout) == (0, b"{}")
    assert sweep_command("expand", "0" * 16, *state).returncode == 3
