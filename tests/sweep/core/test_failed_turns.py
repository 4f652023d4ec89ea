"""Turns that must leave nothing behind, and turns in which something of ours fails: what earlier systems got wrong."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from markers import find_markers
from presets import paid
from sessions import (
    COLD_AFTER_S,
    HOUR_MARK,
    LONG,
    Client,
    Replies,
    drops,
    history,
    opening,
    output,
    request,
    results,
    step,
)

from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.body.transcript import read
from cg.sweep.config import Config, load
from cg.sweep.core.idle_ask import due_at
from cg.sweep.counters import Decline, Event
from cg.sweep.effects import Answer, Failure
from cg.sweep.history.thread_key import thread_key
from cg.sweep.ledger import Reason
from cg.sweep.store import Limits
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Identity, Payload, Phase, Removal, Usage

COLD = paid(judge="recency", ask="off", apply="free")
CLASSIC = load(preset="classic")
PRE_EXPIRY_S = 250.0


def client(config: Config = COLD, store: MemoryStore | None = None) -> Client:
    return Client(store or MemoryStore(), config)


# -- U14, U39: bodies that are none of the sweep's business ------------------------------------------------------------


def test_u14_where_nothing_can_be_removed_no_tool_is_declared() -> None:
    """A model that is never asked judges nothing: the body is the client's own, byte for byte, in every turn."""
    one = client(paid(judge="model", ask="off"))
    for n, now in enumerate((0.0, 10.0, COLD_AFTER_S + 10.0)):
        body = request(opening() if n == 0 else history(12 * n))
        assert one.send(body, now) == body


def test_u39_a_body_without_tools_or_with_our_tool_s_name_is_the_client_s_own() -> None:
    """A title call, a summary, a client that has a tool of that name: nothing is declared, nothing is removed."""
    one = client()
    named = [{"name": EXPAND_TOOL, "description": "The client's.", "input_schema": {"type": "object"}}]
    for body, reason in (
        (request(opening(), tools=None), Reason.SIDE_CALL),
        (request(history(3), tools=None), Reason.SIDE_CALL),
        (request(history(4), tools=named), Reason.TOOL_NAME_TAKEN),
    ):
        assert one.send(body, COLD_AFTER_S * len(one.reports)) == body
        assert one.report.reason is reason


# -- U15: no breakpoints -----------------------------------------------------------------------------------------------


def test_a_mark_of_an_unknown_lifetime_is_never_taken_for_no_cache() -> None:
    """Two usages that show no cache make a body without marks free to change; one with a mark has a prefix to lose."""
    for mark, expected in ((None, Phase.UNCACHED), ({"type": "ephemeral", "ttl": "7d"}, Phase.UNKNOWN)):
        one = client()
        one.send(request(history(2), mark=mark), 0.0)
        for _ in range(2):
            one.sweep.observe("t", Usage(fresh=5000, output=10), 15_000)
        one.send(request(history(3), mark=mark), 10_000.0)
        assert one.report.phase is expected
        assert bool(one.report.removed) == (expected is Phase.UNCACHED)


def test_u38_our_tool_in_a_request_is_no_sign_of_a_removal() -> None:
    """Its declaration holds no marker: a request that carries it and nothing else of ours reads like the client's own."""
    one = client()
    sent = one.send(request(history(0)), 0.0)
    sent = one.send(request(history(3)), 10.0)
    assert EXPAND_TOOL in read(sent).declares and one.report.reason is Reason.WARM
    assert b"<<cg:" not in sent and find_markers(sent.decode()) == []
    assert not any(text.has_marker for text in read(sent).tool_texts)


def test_u15_a_body_without_breakpoints_is_never_asked_about() -> None:
    """No mark, no prefix to read: an ask would pay all of it fresh, so none is due and none is made."""
    asker = Replies()
    for config in (CLASSIC, paid()):
        one = client(config)
        one.send(request(opening(), mark=None), 0.0, asker)
        one.send(request(history(12), mark=None), PRE_EXPIRY_S, asker)
        (branch,) = one.store.load("t").branches
        assert due_at(one.sweep.core, branch) is None
        assert asker.asked == []


# -- U16, D6: what the legs of an ask tell -----------------------------------------------------------------------------


def classic_ask(asker: Replies, config: Config = CLASSIC) -> Client:
    """A thread whose third request asks."""
    one = client(config)
    one.send(request(opening()), 0.0, asker)
    one.send(request(history(12)), 0.0, asker)
    one.send(request(history(12) + step(90, "short")), PRE_EXPIRY_S, asker)
    return one


def test_u16_a_write_is_no_read_of_zero() -> None:
    """A prefix that was read in part and written in the rest is counted as written, and not as missed."""
    usage = Usage(read=39_805, write_5m=260_604, output=10)
    one = classic_ask(Replies(drops(0), usage=usage))
    assert one.report.declines[Decline.PREFIX_CACHE_WRITE] == 1
    assert Decline.PREFIX_CACHE_READ_ZERO not in one.report.declines
    assert one.store.load("t").paid_misses == 1


def test_u10_u15_a_missed_prefix_books_both_legs_in_one_row() -> None:
    """The ask that read nothing and the fallback after it are one adjudication with the tokens of both."""
    asker = Replies(drops(11), Answer(drops(11), Usage(fresh=10_709, output=20)), usage=Usage(fresh=500, output=10))
    one = classic_ask(asker)
    (row,) = one.store.rows()
    assert row.legs == ("prefix_ask", "fallback") and row.usage == Usage(fresh=11_209, output=30)
    assert (row.thread, row.dropped) == ("t", 11)
    blocked = classic_ask(
        Replies(drops(11), usage=Usage(fresh=500)), load(preset="classic", flags={"block_fallback": True})
    )
    assert blocked.report.declines[Decline.FALLBACK_BLOCKED] == 1 and not blocked.report.removed


def test_d6_the_fallback_has_a_deadline_of_its_own() -> None:
    """A first leg that used up all its time leaves the second one all of its own."""
    asker = Replies(Failure("timeout", 89_000.0), drops(11))
    config = load(preset="classic", flags={"ask_timeout_s": 90.0, "fallback_timeout_s": 45.0})
    one = classic_ask(asker, config)
    assert asker.timeouts == [90.0, 45.0]
    assert one.report.events[Event.FALLBACK_USED] == 1 and len(one.report.removed) == 11


# -- U17, U18, U22, U23: half-made turns --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "bodies"),
    [
        (CLASSIC, (request(history(3)), request(history(4)))),  # too few to ask about
        (CLASSIC, (request(history(12)), request(history(12) + step(90)))),  # nobody to ask
        (COLD, (request(history(2)), request(history(3)))),  # warm
        (paid(), (request(history(12)), request(history(13)))),  # nothing judged
    ],
)
def test_u17_a_declined_turn_is_the_client_s_body_and_books_no_saving(
    config: Config, bodies: tuple[bytes, ...]
) -> None:
    """Whichever exit a turn takes without a removal, it reports none and its bytes are the client's."""
    one = client(config)
    for body, now in zip(bodies, (0.0, PRE_EXPIRY_S), strict=True):
        assert one.send(body, now) == body
        assert not one.report.removed and one.report.savings is None
        assert Event.APPLIED not in one.report.events


class FailingStore(MemoryStore):
    """Raises in one of its calls, once."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self.call: str | None = call

    def _fail(self, call: str) -> None:
        if self.call == call:
            self.call = None
            raise RuntimeError("a fault of ours")

    def put(self, thread: str, payloads: Sequence[Payload], now: float) -> frozenset[Identity]:
        stored = super().put(thread, payloads, now)
        self._fail("put")
        return stored

    def freeze(self, thread: str, removals: Sequence[Removal]) -> tuple[Removal, ...]:
        standing = super().freeze(thread, removals)
        self._fail("freeze")
        return standing

    def declare(self, thread: str, declaration: bytes) -> bytes:
        self._fail("declare")
        return super().declare(thread, declaration)


@pytest.mark.parametrize("call", ["put", "freeze", "declare"])
def test_u18_a_fault_in_mid_turn_sends_the_client_s_bytes_and_says_so(call: str) -> None:
    """Whatever was done by then, the turn is a fault and not a removal, and the next one is whole again."""
    store = FailingStore(call)
    one = client(store=store)
    one.send(request(history(1)), 0.0)
    body = request(history(3))
    assert one.send(body, COLD_AFTER_S) == body
    assert one.report.reason is Reason.FAULT and not one.report.removed and one.report.savings is None
    sent = one.send(request(history(4)), 3 * COLD_AFTER_S)
    contents = results(sent)
    assert all(find_markers(contents[f"toolu_{n}"]) for n in range(3))
    for n in range(3):
        (key,) = find_markers(contents[f"toolu_{n}"])
        assert one.sweep.expand("t", key, 3 * COLD_AFTER_S).answer == output(n).encode()
    assert store.totals("t")["reasons"]["fault"] == 1


class RefusingStore(MemoryStore):
    def put(self, thread: str, payloads: Sequence[Payload], now: float) -> frozenset[Identity]:
        return frozenset()


def test_u22_u23_a_refused_drop_leaves_no_record_and_no_saving() -> None:
    """The message stays whole in this turn and the next, nothing is frozen, nothing is booked as saved."""
    one = client(store=RefusingStore())
    one.send(request(opening()), 0.0)
    body = request(history(4))
    assert results(one.send(body, COLD_AFTER_S)) == results(body)
    assert one.report.reason is Reason.REFUSED and one.report.declines[Decline.STORE_REFUSED] == 3
    assert one.report.savings is not None and one.report.savings.unique_bytes == 0
    assert one.store.load("t").removals == {}
    later = request(history(5))
    assert results(one.send(later, COLD_AFTER_S + 10)) == results(later)


# -- U38, U44: what the client answered for us ------------------------------------------------------------------------


def with_call(n: int, arguments: dict[str, Any], answer: str, beside: str) -> list[dict[str, Any]]:
    """One assistant turn that calls our tool and the agent's own, and the client's answers to both."""
    uses = [
        {"type": "tool_use", "id": f"toolu_x{n}", "name": EXPAND_TOOL, "input": arguments},
        {"type": "tool_use", "id": f"toolu_y{n}", "name": "Read", "input": {"file_path": "other.py"}},
    ]
    answers = [
        {"type": "tool_result", "tool_use_id": f"toolu_x{n}", "content": answer, "is_error": True},
        {"type": "tool_result", "tool_use_id": f"toolu_y{n}", "content": beside},
    ]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": answers}]


def test_u44_a_mixed_turn_s_unknown_tool_result_is_repaired_in_the_next_request() -> None:
    """The client does not know our tool; its error becomes the original, its own result stays, and later copies carry
    the same bytes."""
    one = client()
    one.send(request(opening()), 0.0)
    one.send(request(history(2)), COLD_AFTER_S)
    key = one.report.removed[0].key
    mixed = history(2) + with_call(1, {"id": key}, "No such tool: cg_expand", "its own result")
    sent = one.send(request(mixed), COLD_AFTER_S + 10)
    contents = results(sent)
    assert contents["toolu_x1"] == output(0) and contents["toolu_y1"] == "its own result"
    assert find_markers(contents["toolu_0"]) == [key]  # expanding changes nothing in place
    again = one.send(request(mixed + step(90, "short")), COLD_AFTER_S + 20)
    assert results(again)["toolu_x1"] == output(0)


# -- U43, D14, D15 ------------------------------------------------------------------------------------------------------


def test_u43_every_row_and_total_has_its_thread() -> None:
    """A declined turn and an ask can be joined by the thread that both carry."""
    one = classic_ask(Replies(drops(0)))
    assert [row.thread for row in one.store.rows("t")] == ["t"]
    assert one.store.totals("t")["declines"] and not one.store.totals("another")["declines"]


def test_d14_an_ask_rides_on_the_body_of_its_own_branch() -> None:
    """A sub-agent that shares the thread's name sends other bodies: the ask is put behind the main agent's own."""
    asker = Replies(drops(0))
    one = client(CLASSIC)
    main = request(history(12), mark=HOUR_MARK)
    one.send(main, 0.0, asker)
    other = [{"role": "user", "content": "You are a sub-agent."}] + [m for n in range(50, 62) for m in step(n)]
    one.send(request(other, mark=HOUR_MARK), 3000.0, asker)
    one.send(request(history(12) + step(90), mark=HOUR_MARK), 3560.0, asker)
    (asked,) = asker.asked
    assert json.loads(asked)["messages"][: len(history(12))] == json.loads(main)["messages"]


def test_d15_another_configuration_replays_the_same_bytes() -> None:
    """What was written is stored: presets, judges and floors decide about new removals only."""
    one = client()
    one.send(request(opening()), 0.0)
    first = results(one.send(request(history(2)), COLD_AFTER_S))
    for config in (paid(), CLASSIC, paid(ask="off"), paid(judge="index", ask="off", min_tokens=100_000)):
        later = client(config, one.store)
        contents = results(later.send(request(history(3)), COLD_AFTER_S + 10))
        assert {name: contents[name] for name in first} == first


# -- U13, U19, U37 -----------------------------------------------------------------------------------------------------


def test_u19_with_a_store_too_small_for_all_every_marker_still_resolves() -> None:
    """What does not fit stays whole; nothing that left is evicted for it, in this turn or a later one."""
    store = MemoryStore(Limits(max_bytes=3 * LONG))
    one = client(store=store)
    one.send(request(opening()), 0.0)
    one.send(request(history(6)), COLD_AFTER_S)
    sent = one.send(request(history(9)), 3 * COLD_AFTER_S)
    marked = {name: find_markers(content) for name, content in results(sent).items() if find_markers(content)}
    assert len(marked) == 3
    for name, (key,) in marked.items():
        assert one.sweep.expand("t", key, 3 * COLD_AFTER_S).answer == output(int(name.removeprefix("toolu_"))).encode()


def test_u37_a_header_that_comes_and_goes_makes_nothing_cold() -> None:
    """Four turns a minute apart, the second and third under another name: the fourth is a minute's work away from
    cold under either."""
    store = MemoryStore()
    by_name = {name: Client(store, COLD, thread_key(b"s", **named(name))) for name in (None, "s1")}
    for n, name in enumerate((None, "s1", "s1", None)):
        one = by_name[name]
        one.send(request(history(n + 1)), 60.0 * n)
        assert one.report.phase is not Phase.COLD and not one.report.removed
    assert by_name[None].thread != by_name["s1"].thread


def named(session: str | None) -> dict[str, Any]:
    """What a thread is told by, with or without a session header."""
    headers = {} if session is None else {"x-cg-session": session}
    return {"credential": "c", "upstream": "u", "headers": headers, "session_id": None, "opening": b"o"}
