"""Drops that were judged and wait: what still counts for them when their moment comes."""

from typing import Any

import pytest
from presets import paid
from sessions import COLD_AFTER_S, LONG, Client, history, opening, output, request, step

from cg.sweep.body.transcript import Transcript, read
from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.store import Limits
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import DIGEST_BYTES, Pending, Usage


def pending(judged: Transcript, output: int) -> Pending:
    """A drop of one output that was judged over this body."""
    history = judged.chain[-DIGEST_BYTES:].hex()
    return Pending(judged.tool_texts[output].identity, 1000.0, 10.0, judged.n_messages, history)


def test_the_floor_is_not_asked_again_of_what_was_judged() -> None:
    """A ratio learnt between verdict and application makes outputs smaller in tokens; the verdict stands all the same."""
    store = MemoryStore()
    client = Client(store, paid(rescue=False, min_tokens=LONG // 4))
    client.send(request(history(2)), 0.0)
    judged = read(request(history(2)))
    store.pend("t", [pending(judged, 0)])
    client.sweep.observe("t", Usage(fresh=10), 180)  # 18 bytes a token: the output is now far below the floor
    client.send(request(history(3)), COLD_AFTER_S)
    assert client.report.reason is Reason.REMOVED
    assert [removed.tool_use_id for removed in client.report.removed] == ["toolu_0"]


def test_u20_a_replayed_removal_whose_original_was_let_go_puts_it_back() -> None:
    """The client sends every original again, so the turn after a long pause makes each marker resolve once more."""
    limits = Limits(payload_ttl_s=3600.0)
    store = MemoryStore(limits)
    client = Client(store, paid(judge="recency", ask="off", apply="free"))
    client.send(request(history(1)), 0.0)
    client.send(request(history(3)), COLD_AFTER_S)
    keys = [removed.key for removed in client.report.removed]
    assert len(keys) == 2
    later = COLD_AFTER_S + limits.payload_ttl_s
    store.sweep_ages(later)
    assert client.sweep.expand("t", keys[0], later).sha256 is None
    client.send(request(history(4)), later + 1)
    assert client.report.events[Event.PUT_BACK] == 2
    assert client.sweep.expand("t", keys[0], later + 2).answer == output(0).encode()
    client.send(request(history(5)), later + 3)
    assert Event.PUT_BACK not in client.report.events


def warm_drops(*judged: int) -> TurnReport:
    """What a warm request does, in a history of twelve outputs, with these of them judged spent before."""
    store = MemoryStore()
    client = Client(store, paid(rescue=False))
    client.send(request(history(0)), 0.0)
    client.send(request(history(12)), 5.0)
    asked = read(request(history(12)))
    store.pend("t", [pending(asked, i) for i in judged])
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
    client = Client(MemoryStore(), paid(judge="recency", ask="off", apply="free", keep_newest=0))
    client.send(request(history(3)), 0.0)
    client.send(request(history(4)), COLD_AFTER_S)
    assert client.report.reason is Reason.REMOVED
    assert not {Event.PREFIX_REWRITE_REPAID, Decline.PREFIX_REWRITE_NOT_REPAID} & {
        *client.report.events,
        *client.report.declines,
    }


# -- verdicts over another history -------------------------------------------------------------------------------------


def judged_and_left(later: list[dict[str, Any]]) -> Client:
    """Output 0 was judged spent over twelve; then this history comes, cold."""
    client = Client(MemoryStore(), paid(rescue=False))
    client.send(request(history(0)), 0.0)
    client.send(request(history(12)), 5.0)
    client.store.pend("t", [pending(read(request(history(12))), 0)])
    client.send(request(later), 5.0 + COLD_AFTER_S)
    return client


def test_a_verdict_holds_for_what_goes_on_from_the_history_that_was_judged() -> None:
    client = judged_and_left(history(13))
    assert [removed.tool_use_id for removed in client.report.removed] == ["toolu_0"]


@pytest.mark.parametrize(
    "later",
    [history(5) + opening("Change output 0."), history(12)[:-1] + step(90, "another end")[1:]],
    ids=["rewound", "edited at its end"],
)
def test_a_verdict_over_a_history_that_was_left_removes_nothing_and_is_forgotten(later: list[dict[str, Any]]) -> None:
    """What was spent there may be what comes next here; and what is forgotten can be asked about again."""
    client = judged_and_left(later)
    assert not client.report.removed and client.report.declines[Decline.JUDGED_ELSEWHERE] == 1
    assert client.store.load("t").pending == {}


# -- what nobody has read ----------------------------------------------------------------------------------------------


def test_a_rule_removes_nothing_that_no_request_has_carried() -> None:
    """Fifteen results of parallel calls, approved long after: none of them has been read yet."""
    client = Client(MemoryStore(), paid(judge="recency", ask="off", apply="free", keep_newest=2))
    calls = [message for i in range(15) for message in step(i, output(i))]
    at_once = [
        {"role": role, "content": [block for m in calls if m["role"] == role for block in m["content"]]}
        for role in ("assistant", "user")
    ]
    client.send(request(opening()), 0.0)
    client.send(request(opening() + at_once), COLD_AFTER_S)
    assert not client.report.removed and client.report.declines[Decline.CANDIDATE_UNSEEN] == 13
    client.send(request(opening() + at_once + step(90, "short")), 2 * COLD_AFTER_S)  # answered, they are as all others
    assert len(client.report.removed) == 13
