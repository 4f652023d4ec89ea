"""What every store promises, whatever it is made of; a new store joins by a line in `STORES`."""

import hashlib
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from state_server import StateServer, needs_server, state_server

from cg.sweep import store as contract
from cg.sweep.accounting.tally import Tally
from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import AskLeg, Reason, Savings, TurnReport, ask_row
from cg.sweep.prices import Price
from cg.sweep.store import Expired, Limits, Store
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Branch, Ending, Identity, Payload, Pending, Removal, Switch, Thread, Usage

HOUR = 3600.0
LIMITS = Limits(payload_ttl_s=10 * HOUR, max_bytes=1_000_000)
STORES: dict[str, Callable[[Path, Limits], Store]] = {
    "memory": lambda folder, limits: MemoryStore(limits),
    "sqlite": lambda folder, limits: SqliteStore(folder / "state" / "sweep.db", limits=limits),
    "sqlite, bodies in memory": lambda folder, limits: SqliteStore(
        folder / "state" / "sweep.db", limits=limits, bodies_in_memory=True
    ),
}
ON_SERVER = "redis"


@pytest.fixture(scope="module")
def server() -> Iterator[StateServer]:
    with state_server() as running:
        yield running


@pytest.fixture(params=[*STORES, pytest.param(ON_SERVER, marks=needs_server)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    made: list[Store] = []
    if request.param == ON_SERVER:
        url = request.getfixturevalue("server").url(prefix=secrets.token_hex(8))  # a namespace for each test
        from cg.sweep.store_redis import RedisStore

    def build(limits: Limits = LIMITS) -> Store:
        store = (
            RedisStore(url, limits=limits) if request.param == ON_SERVER else STORES[request.param](tmp_path, limits)
        )
        made.append(store)
        return store

    yield build
    for store in made:
        store.close()


@pytest.fixture
def store(make: Callable[..., Store]) -> Store:
    return make()


def payload(content: bytes = b"81 hits\n", tool_use_id: str = "toolu_01") -> Payload:
    identity = Identity(tool_use_id, 0, hashlib.sha256(content).hexdigest())
    return Payload(identity, content, "Grep", '{"pattern":"x"}')


def removal(of: Payload, written: bytes = b'"[removed] <<cg:0>>"', at: float = 1.0) -> Removal:
    return Removal(of.identity, written, len(of.content) - len(written) + 2, at)


def removed(store: Store, thread: str, *payloads: Payload, now: float = 1.0) -> None:
    store.put(thread, payloads, now)
    assert len(store.freeze(thread, [removal(p) for p in payloads])) == len(payloads)


def branch(name: str = "b1", clock: float = 1.0, **more: object) -> Branch:
    return replace(Branch(name, b"c" * 16, b"h" * 8, b"d" * 32, clock, 300), **more)


# -- originals and decisions -------------------------------------------------------------------------------------------


def test_an_unseen_thread_is_empty(store: Store) -> None:
    """Loading what was never seen costs nothing and remembers nothing."""
    assert store.load("t") == Thread()
    assert store.status()["threads"] == 0


def test_a_stored_original_comes_back_byte_for_byte(store: Store) -> None:
    """Empty, binary, packed and lone-surrogate contents are all exact."""
    contents = [b"", b"\x00\xff\n", b"a" * 100_000, "\ud800 x".encode("utf-8", "surrogatepass")]
    originals = [payload(content, f"toolu_{n}") for n, content in enumerate(contents)]
    assert store.put("t", originals, 1.0) == {p.identity for p in originals}
    assert [store.fetch("t", p.identity.key) for p in originals] == originals


def test_names_from_a_hostile_request_are_stored_as_they_are(store: Store) -> None:
    """Tool ids, names and arguments may hold NUL, lone surrogates and SQL."""
    odd = Payload(payload().identity, b"81 hits\n", "\ud800\x00'; DROP TABLE payload;--", "{\udfff}")
    odd = replace(odd, identity=replace(odd.identity, tool_use_id="\ud83d\x00"))
    assert store.put("t", [odd], 1.0) == {odd.identity}
    store.freeze("t", [removal(odd)])
    assert store.fetch("t", odd.identity.key) == odd
    assert set(store.load("t").removals) == {odd.identity}


def test_an_original_that_does_not_hash_to_its_name_is_refused(store: Store) -> None:
    """Rule 5: what a marker would bring back is exactly what was removed."""
    forged = replace(payload(), content=b"other bytes")
    assert store.put("t", [forged], 1.0) == frozenset()
    assert store.fetch("t", forged.identity.key) is None


def test_rule5_no_decision_stands_without_its_original(store: Store) -> None:
    """A removal whose original was never stored is not recorded, and so is never replayed."""
    assert store.freeze("t", [removal(payload())]) == ()
    assert store.load("t").removals == {}


def test_u22_a_refused_original_leaves_no_decision_behind(make: Callable[..., Store]) -> None:
    """The store refuses, the removal is not recorded, and the next turn finds nothing to replay."""
    store = make(Limits(max_bytes=10))
    large = payload(hashlib.sha512(b"seed").digest() * 50)
    assert store.put("t", [large], 1.0) == frozenset()
    assert store.freeze("t", [removal(large)]) == ()
    assert store.load("t").removals == {}


def test_two_contents_with_one_key_cannot_both_be_stored(store: Store) -> None:
    """A marker's 16 digits name one text per thread; the second text stays whole."""
    first = payload(b"first")
    clash = replace(first, identity=replace(first.identity, sha256=first.identity.key + "0" * 48))
    store.put("t", [first], 1.0)
    assert store.put("t", [clash], 2.0) == frozenset()
    assert store.fetch("t", first.identity.key) == first


def test_a_key_that_belongs_to_other_bytes_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a true collision, as if SHA-256 had one in its first half."""
    first, second = payload(b"first"), payload(b"second", "toolu_02")
    monkeypatch.setattr(Identity, "key", property(lambda self: "c0ffee" * 2 + "c0ff"))
    assert store.put("t", [first], 1.0) == {first.identity}
    assert store.put("t", [second], 2.0) == frozenset()
    assert store.freeze("t", [removal(second)]) == ()
    assert store.fetch("t", first.identity.key) == first
    assert store.put("other thread", [second], 3.0) == {second.identity}


def test_the_first_writer_of_a_removal_wins(store: Store) -> None:
    """Rule 7: whoever comes second is told the bytes that stand."""
    original = payload()
    store.put("t", [original], 1.0)
    first, second = removal(original, b'"first"'), removal(original, b'"second"')
    assert store.freeze("t", [first]) == (first,)
    assert store.freeze("t", [second]) == (first,)
    assert store.load("t").removals == {original.identity: first}


def test_one_text_read_twice_is_two_outputs(store: Store) -> None:
    """Rule 12: a removal binds one identity; the same bytes under another call are not removed with it."""
    first, again = payload(), payload(tool_use_id="toolu_02")
    removed(store, "t", first)
    assert again.identity not in store.load("t").removals
    removed(store, "t", again)
    assert len(store.load("t").removals) == 2


def test_u25_nothing_but_a_removal_is_ever_replayed(store: Store) -> None:
    """Pending verdicts, stored originals, claims and expansions of a text never read as a decision to remove it."""
    original = payload()
    store.put("t", [original], 1.0)
    store.pend("t", [Pending(original.identity, 9.0, 1.0, 4, "")])
    store.claim("t", original.identity.sha256, 99.0)
    assert store.load("t").removals == {}


@pytest.mark.parametrize("ending", Ending)
def test_an_ended_removal_is_never_replayed_nor_made_again(store: Store, ending: Ending) -> None:
    """Rule 7: restored or revoked, once and for good; its marker still resolves."""
    original = payload()
    removed(store, "t", original)
    assert store.end("t", original.identity, ending, 2.0)
    assert not store.end("t", original.identity, Ending.REVOKED, 3.0)
    assert store.freeze("t", [removal(original)]) == ()
    thread = store.load("t")
    assert (thread.removals, thread.ended) == ({}, {original.identity: ending})
    assert store.fetch("t", original.identity.key) == original


def test_what_never_was_removed_cannot_end(store: Store) -> None:
    """Ending is a change of state, not a note."""
    assert not store.end("t", payload().identity, Ending.RESTORED, 1.0)
    assert store.load("t").ended == {}


def test_rule9_an_expanded_text_is_not_removed_anew(store: Store) -> None:
    """It stays whole from then on, under whatever call it comes; what already stands is replayed on."""
    original, copy = payload(), payload(tool_use_id="toolu_02")
    removed(store, "t", original)
    store.expand_mark("t", original.identity.sha256)
    store.put("t", [copy], 2.0)
    assert store.freeze("t", [removal(copy)]) == ()
    thread = store.load("t")
    assert thread.expanded == {original.identity.sha256}
    assert set(thread.removals) == {original.identity}


def test_drops_wait_until_they_are_applied_or_forgotten(store: Store) -> None:
    """The first verdict stands; a removal ends the wait."""
    applied, rescued, waits = (payload(b"%d" % n, f"toolu_{n}") for n in range(3))
    drops = [Pending(p.identity, 700.0, 5.0, 12, "ask-1") for p in (applied, rescued, waits)]
    store.pend("t", drops)
    store.pend("t", [replace(drops[2], judged_at=6.0)])
    assert store.load("t").pending == {d.identity: d for d in drops}
    removed(store, "t", applied)
    store.unpend("t", [rescued.identity])
    store.pend("t", [drops[0]])
    assert store.load("t").pending == {waits.identity: drops[2]}


def test_the_declaration_is_the_first_one(store: Store) -> None:
    """Rule 7: an upgraded program keeps sending the bytes that this thread began with."""
    assert store.declare("t", b'{"v":1}') == b'{"v":1}'
    assert store.declare("t", b'{"v":2}') == b'{"v":1}'
    assert store.load("t").declaration == b'{"v":1}'


# -- one thread never reaches another ----------------------------------------------------------------------------------


def test_nothing_of_a_thread_is_found_through_another(store: Store) -> None:
    """Every look-up is by (thread, key): a forged id reads nothing of somebody else's conversation."""
    original = payload()
    removed(store, "mine", original)
    store.keep_body("mine", "b1", b"{}")
    store.touch("mine", branch())
    assert store.fetch("theirs", original.identity.key) is None
    assert store.freeze("theirs", [removal(original)]) == ()
    assert store.last_body("theirs", "b1") is None
    assert store.load("theirs") == Thread()


def test_an_id_has_three_distinct_answers(store: Store) -> None:
    """The bytes; expired, with the call that made them; never existed."""
    original = payload()
    removed(store, "t", original)
    assert store.fetch("t", original.identity.key) == original
    store.sweep_ages(1.0 + LIMITS.payload_ttl_s)
    assert store.fetch("t", original.identity.key) == Expired("Grep", '{"pattern":"x"}')
    assert store.fetch("t", "0" * 16) is None


def test_forgetting_a_thread_leaves_the_others(store: Store) -> None:
    """`forget` erases all of one thread, and everything when none is named."""
    for thread in ("a", "b"):
        removed(store, thread, payload())
        store.touch(thread, branch())
        store.keep_body(thread, "b1", b"{}")
        store.pend(thread, [Pending(payload(b"x").identity, 1.0, 1.0, 1, "")])
        store.expand_mark(thread, "ab" * 32)
        store.claim(thread, "ping", 9.0)
        store.count(thread, TurnReport(Reason.REMOVED))
        store.book(ask_row(thread, 1.0, "m", [AskLeg("prefix_ask", Usage())], None, offered=1))
    store.forget("a")
    assert store.load("a") == Thread()
    assert store.fetch("a", payload().identity.key) is None
    assert store.last_body("a", "b1") is None
    assert [row.thread for row in store.rows()] == ["b"]
    assert store.claim("a", "ping", 9.0)
    assert len(store.load("b").removals) == 1
    store.forget(None)
    assert set(store.status().values()) == {0}


def test_a_person_s_switch_holds_for_all_threads_and_outlives_what_is_forgotten(make: Callable[..., Store]) -> None:
    """On until it is set; every later reader has the last word; erasing everything does not switch removal on again."""
    store = make()
    assert store.switch() is Switch.ON
    for switch in (Switch.PAUSED, Switch.PAUSED_ALL, Switch.ON, Switch.PAUSED):
        store.set_switch(switch)
        assert store.switch() is switch
    store.forget(None)
    assert store.switch() is Switch.PAUSED
    if not isinstance(store, MemoryStore):
        assert make().switch() is Switch.PAUSED


# -- sizes and ages ----------------------------------------------------------------------------------------------------


def noise(n: int, size: int = 100) -> Payload:
    """An original that does not compress."""
    words = b"".join(hashlib.sha256(b"%d %d" % (n, i)).digest() for i in range(size // 32 + 1))
    return payload(words[:size], f"toolu_{n}")


@pytest.mark.parametrize("max_bytes", [0, 1, 99, 100, 250, 1000])
def test_u19_every_marker_on_the_wire_resolves(make: Callable[..., Store], max_bytes: int) -> None:
    """Whatever the limit, a removal that stands has its original: the store refuses rather than evicts."""
    store = make(Limits(max_bytes=max_bytes))
    for n in range(20):
        store.put("t", [noise(n)], float(n))
        store.freeze("t", [removal(noise(n))])
    standing = store.load("t").removals
    assert len(standing) == max_bytes // 100 if max_bytes < 1000 else 10
    assert all(isinstance(store.fetch("t", identity.key), Payload) for identity in standing)
    assert store.status()["payload_bytes"] <= max_bytes


def test_u20_a_full_store_takes_new_originals_once_old_ones_are_past_their_time(make: Callable[..., Store]) -> None:
    """The payloads' horizon is shorter than the decisions', so a full store recovers without any restart."""
    store = make(Limits(payload_ttl_s=HOUR, max_bytes=250))
    removed(store, "old", noise(1), noise(2))
    assert store.put("new", [noise(3)], 2.0) == frozenset()
    assert store.put("new", [noise(3)], 2.0 + HOUR) == {noise(3).identity}
    assert len(store.load("old").removals) == 2


def test_u20_a_replay_puts_a_missing_original_back(store: Store) -> None:
    """The client has just sent it again: what was let go is whole again, and found missing before."""
    original = payload()
    removed(store, "t", original)
    assert store.missing("t") == store.load("t").missing == frozenset()
    store.sweep_ages(1.0 + LIMITS.payload_ttl_s)
    assert store.missing("t") == store.load("t").missing == {original.identity}
    assert store.put("t", [original], 2.0 + LIMITS.payload_ttl_s) == {original.identity}
    assert store.missing("t") == store.load("t").missing == frozenset()
    assert store.fetch("t", original.identity.key) == original


def test_u21_the_smallest_store_holds_what_fits_or_refuses(make: Callable[..., Store]) -> None:
    """No share of a small limit rounds to zero: an original that fits is stored, one byte more is refused."""
    assert make(Limits(max_bytes=100)).put("t", [noise(1)], 1.0) == {noise(1).identity}
    assert make(Limits(max_bytes=100)).put("u", [noise(2, 101)], 1.0) == frozenset()


def test_a_thread_in_use_keeps_what_it_replays(store: Store) -> None:
    """Every request of a thread renews the originals behind its markers, and only those."""
    replayed, loose = payload(b"replayed"), payload(b"loose", "toolu_02")
    removed(store, "t", replayed)
    store.put("t", [loose], 1.0)
    store.touch("t", branch(clock=8 * HOUR))
    store.sweep_ages(12 * HOUR)
    assert store.fetch("t", replayed.identity.key) == replayed
    assert isinstance(store.fetch("t", loose.identity.key), Expired)
    store.sweep_ages(18 * HOUR)
    assert isinstance(store.fetch("t", replayed.identity.key), Expired)


def test_decisions_outlive_their_originals_and_go_with_the_thread(store: Store) -> None:
    """A thread that comes back within four payload lifetimes replays the same bytes; later it starts anew, whole."""
    original = payload()
    removed(store, "t", original)
    store.sweep_ages(1.0 + 4 * LIMITS.payload_ttl_s - 1)
    assert set(store.load("t").removals) == {original.identity}
    store.sweep_ages(1.0 + 4 * LIMITS.payload_ttl_s)
    assert store.load("t") == Thread()
    assert store.fetch("t", original.identity.key) is None


def test_a_thread_that_no_request_has_dated_is_not_old(store: Store) -> None:
    """What was learnt or judged before the first dated call survives a sweep, and ages from there."""
    now = 1_800_000_000.0
    store.learn("t", paid_miss=True)
    store.put("other", [payload()], now)
    store.sweep_ages(now)
    assert store.load("t").paid_misses == 1
    store.sweep_ages(now + 4 * LIMITS.payload_ttl_s)
    assert store.load("t") == Thread()


def test_the_size_limit_counts_what_is_held_now(make: Callable[..., Store]) -> None:
    """Forgetting and ageing give room back; storing the same text twice takes it once."""
    store = make(Limits(max_bytes=100))
    store.put("a", [noise(1)], 1.0)
    assert store.put("a", [noise(1)], 2.0) == {noise(1).identity}
    assert store.put("b", [noise(2)], 2.0) == frozenset()
    store.forget("a")
    assert store.put("b", [noise(2)], 3.0) == {noise(2).identity}
    assert store.status()["payload_bytes"] == 100


# -- branches and bodies -----------------------------------------------------------------------------------------------


def test_a_branch_is_remembered_as_it_last_stood(store: Store) -> None:
    """One row a branch, all its fields exact, in the order of their clocks."""
    store.touch("t", branch("later", 5.0))
    store.touch("t", branch("b1", 1.0))
    last = branch("b1", 2.5, chain=b"x" * 24, ttl_s=None, asked_at=2.25)
    store.touch("t", last)
    assert store.load("t").branches == (last, branch("later", 5.0))


def test_a_branch_is_not_put_back_over_one_that_has_moved(store: Store) -> None:
    """An idle ask ends after the next request has come, to another process even: that one's word is the last."""
    seen = branch(clock=7.0)
    assert not store.touch("t", branch(clock=9.0), seen=seen)
    assert store.load("t").branches == ()
    assert store.touch("t", seen)
    assert store.touch("t", branch(clock=8.0), seen=seen)
    for moved in (seen, branch(clock=8.0, body=b"e" * 32), branch("b2", 8.0)):
        assert not store.touch("t", branch(clock=9.0), seen=moved)
    assert store.load("t").branches == (branch(clock=8.0),)


def test_the_longest_untouched_branch_goes_with_its_body(store: Store) -> None:
    """Side calls open branches; their number is bounded per thread."""
    store.keep_body("t", "b0", b"{}")
    for n in range(contract.MAX_BRANCHES + 1):
        store.touch("t", branch(f"b{n}", float(n)))
    names = [b.branch for b in store.load("t").branches]
    assert len(names) == contract.MAX_BRANCHES and "b0" not in names
    assert store.last_body("t", "b0") is None


def test_the_last_body_is_the_last_one_sent(store: Store) -> None:
    """U35: an oversized body is not kept, and neither is the older one, which is no longer what was sent."""
    assert store.last_body("t", "b1") is None
    store.keep_body("t", "b1", b"one")
    store.keep_body("t", "b1", b"two")
    store.keep_body("t", "b2", b"x" * contract.MAX_BODY_BYTES)
    assert store.last_body("t", "b1") == b"two"
    assert len(store.last_body("t", "b2") or b"") == contract.MAX_BODY_BYTES
    store.keep_body("t", "b1", b"x" * (contract.MAX_BODY_BYTES + 1))
    assert store.last_body("t", "b1") is None


def test_bodies_are_bounded_in_all(make: Callable[..., Store]) -> None:
    """The longest untouched go, the newest stays."""
    limit = 10_500
    store = make(replace(LIMITS, bodies_bytes=limit))
    n = limit // 1000 + 2
    body = bytes(1000)
    for i in range(n):
        store.keep_body("t", f"b{i}", body)
    assert limit - 1000 <= store.status()["body_bytes"] <= limit
    assert store.last_body("t", "b0") is None
    assert store.last_body("t", f"b{n - 1}") == body


# -- what is learnt and counted ----------------------------------------------------------------------------------------


def test_the_last_two_usages_are_remembered(store: Store) -> None:
    """Newest last."""
    for n in range(3):
        store.learn("t", usage=Usage(fresh=n))
    assert store.load("t").usages == (Usage(fresh=1), Usage(fresh=2))


def test_bytes_per_token_are_learnt_from_usage_and_size(store: Store) -> None:
    """All input tiers count; a ratio that is given outright is taken."""
    store.learn("t", usage=Usage(fresh=100, read=800, write_5m=60, write_1h=40, output=9999), sent_bytes=3000)
    assert store.load("t").bytes_per_token == 3.0
    store.learn("t", bytes_per_token=2.5)
    assert store.load("t").bytes_per_token == 2.5


def test_paid_misses_add_up(store: Store) -> None:
    """Two of them latch asking off, so none may be lost."""
    store.learn("t", paid_miss=True)
    store.learn("t", paid_miss=True)
    assert store.load("t").paid_misses == 2


def test_a_claim_has_one_winner_until_it_is_over(store: Store) -> None:
    """A timer's ask fires once, whoever shares the store."""
    assert store.claim("t", "ask b1 7.0", 100.0)
    assert not store.claim("t", "ask b1 7.0", 100.0)
    assert store.claim("t", "ask b1 8.0", 100.0)
    store.touch("t", branch(clock=100.0))
    store.sweep_ages(99.0)
    assert not store.claim("t", "ask b1 7.0", 100.0)
    store.sweep_ages(100.0)
    assert store.claim("t", "ask b1 7.0", 200.0)


def test_a_claim_on_a_branch_fails_once_the_branch_has_moved(store: Store) -> None:
    """A request that another process has served meanwhile: its gap has begun, the one before is over."""
    seen = branch(clock=7.0)
    assert not store.claim("t", "gap", 100.0, branch=seen)
    store.touch("t", seen)
    for moved in (branch(clock=8.0), replace(seen, body=b"e" * 32), branch("b2", 7.0)):
        assert not store.claim("t", "gap", 100.0, branch=moved)
    assert store.claim("t", "gap", 100.0, branch=seen)
    assert not store.claim("t", "gap", 100.0, branch=seen)
    store.touch("t", branch(clock=8.0))
    assert not store.claim("t", "later gap", 100.0, branch=seen)
    assert store.claim("t", "later gap", 100.0, branch=branch(clock=8.0))


def test_a_ledger_row_comes_back_as_booked(store: Store) -> None:
    """U43: every row carries its thread; an unknown cost stays unknown."""
    legs = [AskLeg("prefix_ask", Usage(1, 2, 3, 4, 5), 12.5), AskLeg("fallback", None, 3.0, answered=False)]
    rows = [
        ask_row("t", 5.0, "m", legs, Price.of(2.0), offered=3, judged_spent=2, dropped=1),
        ask_row("u", 6.0, "m", legs, None, offered=3),
    ]
    for row in rows:
        store.book(row)
    assert list(store.rows()) == rows
    assert list(store.rows("u")) == rows[1:]
    assert rows[1].cost_usd is None


def test_reasons_sum_to_the_turns(store: Store) -> None:
    """One reason a turn; events and declines are two families."""
    turn = TurnReport(
        Reason.REMOVED,
        events={Event.DROPPED: 2},
        declines={Decline.KEPT: 3},
        sizes={"le_180": 4, "more": 0},
        savings=Savings(10, 20, 5),
        gaps={"from_300": 2},
    )
    for _ in range(3):
        store.count("t", turn)
    store.count("u", TurnReport(Reason.WARM))
    assert store.totals("t") == {
        "reasons": {"removed": 3},
        "events": {"sweep_dropped": 6},
        "declines": {"sweep_kept": 9},
        "sizes": {"le_180": 12},
        "savings": {"unique_bytes": 30, "repeat_bytes": 60, "charged_bytes": 15, "unpriced_turns": 3},
        "gaps": {"from_300": 6},
    }
    assert sum(store.totals()["reasons"].values()) == 4


def test_who_is_known_by_counts_alone_is_kept_from_the_last_empty_put_on(store: Store) -> None:
    """A put without originals dates a name, as a request dates a thread: what is counted of it ages from there."""
    age = LIMITS.thread_ttl_s
    store.count("user", Tally(gaps=Counter(from_300=1)))
    store.put("user", (), 1000.0)
    store.put("user", (), 1000.0 + age / 2)
    store.sweep_ages(1000.0 + 1.4 * age)
    assert store.totals("user")["gaps"] == {"from_300": 1}
    store.sweep_ages(1000.0 + 1.6 * age)
    assert store.totals("user")["gaps"] == {}


# -- many at once ------------------------------------------------------------------------------------------------------


def test_u3_fifty_threads_lose_no_count(store: Store) -> None:
    """Counts, misses and removals made at the same time all arrive, each once."""
    original = payload()
    store.put("t", [original], 1.0)
    written = [b'"%d"' % n for n in range(50)]
    won: list[bytes] = []

    def work(n: int) -> None:
        store.count("t", TurnReport(Reason.WARM, events={Event.OFFERED: 2}))
        store.learn("t", paid_miss=True)
        won.append(store.freeze("t", [removal(original, written[n])])[0].written)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.totals("t")["reasons"] == {"warm": 50}
    assert store.totals("t")["events"] == {"sweep_offered": 100}
    assert store.load("t").paid_misses == 50
    assert len(won) == 50 and set(won) == {store.load("t").removals[original.identity].written}


def test_a_loaded_thread_does_not_change_under_its_reader(store: Store) -> None:
    """A load is a value: later writes show in later loads only."""
    first, second = payload(b"1"), payload(b"2", "toolu_02")
    removed(store, "t", first)
    before = store.load("t")
    removed(store, "t", second)
    store.end("t", first.identity, Ending.RESTORED, 2.0)
    assert set(before.removals) == {first.identity} and before.ended == {}
    assert set(store.load("t").removals) == {second.identity}


def test_the_end_of_a_turn_is_remembered_in_one_call(store: Store) -> None:
    """Branch, last body and counts as if each had been given by itself; without a branch, the counts alone."""
    turn = TurnReport(Reason.WARM, events={Event.REAPPLIED: 3})
    store.turned("t", turn, branch(clock=5.0), b"{}")
    assert store.load("t").branches == (branch(clock=5.0),)
    assert store.last_body("t", "b1") == b"{}"
    store.turned("t", turn)
    assert store.load("t").branches == (branch(clock=5.0),)
    assert store.totals("t")["reasons"] == {"warm": 2}
    assert store.totals("t")["events"] == {str(Event.REAPPLIED): 6}


def test_turns_on_many_branches_keep_the_newest(store: Store) -> None:
    """As `touch` does: the one that was left alone longest goes, with its body."""
    for n in range(contract.MAX_BRANCHES + 2):
        store.load("t")
        store.turned("t", TurnReport(Reason.WARM), branch(f"b{n}", float(n)), b"{%d}" % n)
    kept = [b.branch for b in store.load("t").branches]
    assert kept == [f"b{n}" for n in range(2, contract.MAX_BRANCHES + 2)]
    assert store.last_body("t", "b1") is None and store.last_body("t", "b2") == b"{2}"
