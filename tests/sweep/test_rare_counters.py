"""Reasons and counters that few sessions see, each moved through the sweep as a client would move it."""

import json
from typing import Any

import pytest
from presets import paid
from sessions import LONG, Client, Replies, drops, history, opening, output, request, step

from cg.sweep.config import Config, load
from cg.sweep.core.idle_ask import Settled
from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Usage

CLASSIC = load(preset="classic")
BY_INDEX = paid(judge="index", ask="off", apply="free", min_tokens=100)


def asked(reply: str, n: int = 12, **flags: Any) -> TurnReport:
    """The report of a request that asks in the last minute about `n` outputs and gets this reply."""
    client, asker = Client(MemoryStore(), load(preset="classic", flags=flags)), Replies(reply, reply)
    client.send(request(opening()), 0.0, asker)
    client.send(request(history(n)), 0.0, asker)
    client.send(request(history(n) + step(90, "short")), 250.0, asker)
    return client.report


def verdict(**fields: Any) -> dict[str, Any]:
    return {"i": 0, "needed_by": "b", "verdict": "keep"} | fields


@pytest.mark.parametrize(
    ("reply", "decline", "n"),
    [
        (json.dumps([{"i": 0, "verdict": "keep"}]), Decline.CRITERION_MISSING, 1),
        (json.dumps([verdict(), verdict(needed_by="none", verdict="drop")]), Decline.VERDICT_CONFLICT, 1),
        (json.dumps([{"needed_by": "b", "verdict": "keep"}]), Decline.VERDICT_NO_LABEL, 1),
        (json.dumps([7, verdict()]), Decline.VERDICT_STRAY, 1),
        (
            json.dumps([verdict(i=i, needed_by="none", verdict="drop") for i in range(1, 13)]),
            Decline.VERDICT_LABEL_SHIFT,
            1,
        ),
        (drops(12, "b"), Decline.DROP_REFUSED_OBLIGATION, 12),
    ],
)
def test_a_doubtful_reply_is_counted_by_what_is_wrong_with_it(reply: str, decline: Decline, n: int) -> None:
    """And nothing goes."""
    report = asked(reply)
    assert report.declines[decline] == n and not report.removed


def test_an_ask_about_one_output_says_so() -> None:
    """Where so few are allowed."""
    assert asked(drops(1), 1, min_inventory=1).events[Event.INVENTORY_OF_ONE] == 1


def test_an_output_without_a_token_to_recognise_is_opaque_to_the_index() -> None:
    """It stays: the index has no opinion."""
    client = Client(MemoryStore(), BY_INDEX)
    messages = opening()
    for n in range(12):
        messages += step(n, "-- == ..\n" * 100 + "-" * n if n % 2 else output(n))
    client.send(request(opening()), 0.0)
    client.send(request(messages), 0.0)
    client.send(request(messages + opening("And now?")), 900.0)
    assert client.report.declines[Decline.INDEX_OPAQUE] == 6
    assert client.report.reason is Reason.REMOVED


def test_a_provider_that_caches_nothing_is_not_asked_in_a_window() -> None:
    """No mark, and two usages without a read or a write: there is no prefix that an ask could read."""
    client = Client(MemoryStore(), CLASSIC)
    client.send(request(opening(), mark=None), 0.0)
    for _ in range(2):
        client.sweep.observe("t", Usage(fresh=5000, output=10), 15_000)
    client.send(request(history(12), mark=None), 10.0)
    assert client.report.reason is Reason.UNCACHED


def test_a_prefix_that_the_client_broke_is_not_asked_about_in_a_window() -> None:
    """Another system prompt, within the lifetime."""
    client = Client(MemoryStore(), CLASSIC)
    client.send(request(opening(), system="one"), 0.0)
    client.send(request(history(12), system="one"), 10.0)
    client.send(request(history(13), system="two"), 20.0)
    assert client.report.reason is Reason.BROKEN


def test_after_its_lifetime_a_prefix_is_not_asked_about_in_a_window() -> None:
    """It is cold: the ask would pay all of it."""
    client = Client(MemoryStore(), CLASSIC)
    client.send(request(opening()), 0.0)
    client.send(request(history(12)), 10.0)
    client.send(request(history(13)), 900.0)
    assert client.report.reason is Reason.COLD


def test_a_body_whose_history_lies_with_the_provider_is_left_alone() -> None:
    """Only new messages are in it."""
    client = Client(MemoryStore(), CLASSIC)
    body = request(history(13), thread={"id": "x"})
    assert client.send(body, 0.0) == body and client.report.reason is Reason.SERVER_THREAD


def test_a_thread_whose_declaration_was_refused_is_left_alone() -> None:
    """For good."""
    client = Client(MemoryStore(), CLASSIC)
    client.send(request(history(2)), 0.0)
    client.sweep.revoke("t", (), 10.0)
    body = request(history(3))
    assert client.send(body, 20.0) == body and client.report.reason is Reason.BYPASSED


def gap_of_a_dear_ask() -> tuple[Client, Settled, bytes]:
    """A few small outputs in front of a long history, the gap behind it, and the request that ends the gap."""
    client = Client(MemoryStore(), paid(min_inventory=1, min_tokens=1))
    mark = {"type": "ephemeral", "ttl": "1h"}
    talk = [{"role": "assistant", "content": "x" * 2_400_000}]
    messages = opening() + step(0, output(0, 40)) + talk + opening("Go on.")
    client.send(request(opening(), mark=mark), 0.0)
    client.send(request(messages, mark=mark), 0.0)
    (branch,) = client.store.load("t").branches
    gap = client.sweep.settle("t", branch, 3540.0, asker=Replies(drops(0)))
    return client, gap, request(messages + step(1, "short") + opening("And now?"), mark=mark)


def test_an_ask_that_is_not_repaid_is_the_reason_of_the_next_request() -> None:
    """And counts once."""
    client, gap, body = gap_of_a_dear_ask()
    swept = client.sweep.process(body, "t", 3560.0, settled=gap)
    assert swept.report.reason is Reason.ASK_NOT_REPAID and swept.report.declines[Decline.ASK_NOT_REPAID] == 1


def test_what_is_expanded_or_pending_is_not_offered_again() -> None:
    """Each is counted: what was asked back stays whole, what was judged spent waits."""
    client = Client(MemoryStore(), CLASSIC)
    messages = history(14)
    client.send(request(opening()), 0.0)
    client.send(request(messages), 0.0)
    asker = Replies(drops(12))
    client.send(request(messages + step(90, "short")), 250.0, asker)
    key = client.report.removed[0].key
    assert client.sweep.expand("t", key, 260.0).sha256 is not None
    later = messages + step(90, "short") + step(91, output(0, LONG)) + step(92, "short")
    client.send(request(later), 500.0, Replies(drops(0)))
    assert client.report.declines[Decline.KEPT_VERBATIM] == 1


def test_the_index_keeps_what_was_used_much_and_lately_open_and_the_rest_closed() -> None:
    """Neither is removed by it."""
    client = Client(MemoryStore(), BY_INDEX)
    messages = opening()
    for n in range(30):
        messages += step(n, output(n))
        if n == 2:
            messages += [{"role": "assistant", "content": "See entry_1_0003 there."}, *opening("Yes.")]
    messages += [{"role": "assistant", "content": "So entry_29_0003, entry_28_0005 and entry_28_0007."}]
    client.send(request(opening()), 0.0)
    client.send(request(messages + opening("Well?")), 0.0)
    client.send(request(messages + opening("Well?") + step(90, "short")), 900.0)
    declines = client.report.declines
    assert declines[Decline.INDEX_CLOSED] >= 1 and declines[Decline.INDEX_OPEN] >= 1


PAID = paid(min_inventory=1)
MISSED = Usage(read=0, write_5m=9000, output=5)


def gaps(n: int, usage: Usage, reply: str, config: Config = PAID) -> Client:
    """A session with `n` waits, each with an idle ask that gets this reply, taken into the request behind it."""
    client = Client(MemoryStore(), config)
    client.send(request(opening()), 0.0)
    messages = history(14)
    client.send(request(messages), 10.0)
    for gap in range(n):
        now = 10.0 + 250.0 * gap
        branch = max(client.store.load("t").branches, key=lambda b: b.clock)
        settled = client.sweep.settle("t", branch, now + 240.0, asker=Replies(reply, reply, usage=usage))
        messages = messages + step(90 + gap, "short")
        swept = client.sweep.process(request(messages), "t", now + 250.0, settled=settled)
        client.reports.append(swept.report)
    return client


def test_what_an_idle_ask_dropped_waits_and_is_not_offered_again() -> None:
    """The next gap offers what is left."""
    client = gaps(2, Usage(read=20_000, output=50), drops(1))
    assert client.reports[2].reason is Reason.NOT_REPAID
    assert client.report.declines[Decline.ALREADY_PENDING] >= 1


def test_two_asks_that_missed_the_prefix_latch_asking_off() -> None:
    """The fallback of each kept everything, and the third gap makes no ask."""
    client = gaps(3, MISSED, "[]")
    assert client.report.reason is Reason.ASKING_LATCHED
    assert client.reports[2].declines[Decline.FALLBACK_KEPT_EVERYTHING] == 1


def test_a_gap_whose_body_is_not_kept_is_counted() -> None:
    """Nobody knows what the provider holds."""
    client = Client(MemoryStore(), PAID)
    client.send(request(opening()), 0.0)
    client.send(request(history(14)), 10.0)
    branch = max(client.store.load("t").branches, key=lambda b: b.clock)
    client.store.keep_body("t", branch.branch, bytes(5 * 2**20))  # too large to be kept: only drops the older one
    gap = client.sweep.settle("t", branch, 250.0, asker=Replies())
    swept = client.sweep.process(request(history(14) + step(90, "short")), "t", 260.0, settled=gap)
    assert swept.report.declines[Decline.NO_PREFIX] == 1


def test_a_request_that_leaves_the_judged_history_says_that_the_gap_was_judged() -> None:
    """Its verdicts are not about this history."""
    client = Client(MemoryStore(), PAID)
    client.send(request(opening()), 0.0)
    client.send(request(history(14)), 10.0)
    branch = max(client.store.load("t").branches, key=lambda b: b.clock)
    gap = client.sweep.settle("t", branch, 250.0, asker=Replies(drops(12)))
    rewound = history(13) + step(77, "short")
    report = client.sweep.process(request(rewound), "t", 260.0, settled=gap).report
    assert report.reason is Reason.JUDGED and report.declines[Decline.JUDGED_ELSEWHERE] == len(gap.changes.pend) > 0
