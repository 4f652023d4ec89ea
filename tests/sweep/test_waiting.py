"""Drops that were judged and wait: what still counts for them when their moment comes."""

from sessions import COLD_AFTER_S, LONG, Client, history, output, request

from cg.sweep.config import Config
from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.store import Limits
from cg.sweep.store_memory import MemoryStore
from cg.sweep.transcript import read
from cg.sweep.values import Pending, Usage


def test_the_floor_is_not_asked_again_of_what_was_judged() -> None:
    """A ratio learnt between verdict and application makes outputs smaller in tokens; the verdict stands all the same."""
    store = MemoryStore()
    client = Client(store, Config(rescue=False, min_tokens=LONG // 4))
    client.send(request(history(2)), 0.0)
    text = read(request(history(2))).tool_texts[0]
    store.pend("t", [Pending(text.identity, 1000.0, 10.0, 5, "")])
    client.sweep.observe("t", Usage(fresh=10), 180)  # 18 bytes a token: the output is now far below the floor
    client.send(request(history(3)), COLD_AFTER_S)
    assert client.report.reason is Reason.REMOVED
    assert [removed.tool_use_id for removed in client.report.removed] == ["toolu_0"]


def test_u20_a_replayed_removal_whose_original_was_let_go_puts_it_back() -> None:
    """The client sends every original again, so the turn after a long pause makes each marker resolve once more."""
    limits = Limits(payload_ttl_s=3600.0)
    store = MemoryStore(limits)
    client = Client(store, Config(judge="recency", ask="off", apply="free"))
    client.send(request(history(1)), 0.0)
    client.send(request(history(2)), COLD_AFTER_S)
    keys = [removed.key for removed in client.report.removed]
    assert len(keys) == 2
    later = COLD_AFTER_S + limits.payload_ttl_s
    store.sweep_ages(later)
    assert client.sweep.expand("t", keys[0], later).sha256 is None
    client.send(request(history(3)), later + 1)
    assert client.report.events[Event.PUT_BACK] == 2
    assert client.sweep.expand("t", keys[0], later + 2).answer == output(0).encode()
    client.send(request(history(4)), later + 3)
    assert Event.PUT_BACK not in client.report.events


def warm_drops(*judged: int) -> TurnReport:
    """What a warm request does, in a history of twelve outputs, with these of them judged spent before."""
    store = MemoryStore()
    client = Client(store, Config(rescue=False))
    client.send(request(history(0)), 0.0)
    client.send(request(history(12)), 5.0)
    texts = read(request(history(12))).tool_texts
    store.pend("t", [Pending(texts[i].identity, 1000.0, 10.0, 25, "") for i in judged])
    client.send(request(history(13)), 10.0)
    return client.report


def test_a_warm_turn_tells_how_its_sums_went() -> None:
    """An early drop alone costs more than it brings and waits; the latest goes, with or without it."""
    waiting = warm_drops(0)
    assert waiting.reason is Reason.NOT_REPAID
    assert (
        waiting.declines[Decline.PREFIX_REWRITE_NOT_REPAID] == 1 and Event.PREFIX_REWRITE_REPAID not in waiting.events
    )
    going = warm_drops(0, 11)
    assert going.reason is Reason.REMOVED and len(going.removed) == 1
    assert going.events[Event.PREFIX_REWRITE_REPAID] == 1 and going.declines[Decline.DROP_UNAFFORDABLE_PRUNED] == 1
    assert Decline.PREFIX_REWRITE_NOT_REPAID not in going.declines


def test_a_cold_turn_weighs_nothing_and_says_nothing_of_it() -> None:
    client = Client(MemoryStore(), Config(judge="recency", ask="off", apply="free", keep_newest=0))
    client.send(request(history(3)), 0.0)
    client.send(request(history(4)), COLD_AFTER_S)
    assert client.report.reason is Reason.REMOVED
    assert not {Event.PREFIX_REWRITE_REPAID, Decline.PREFIX_REWRITE_NOT_REPAID} & {
        *client.report.events,
        *client.report.declines,
    }
