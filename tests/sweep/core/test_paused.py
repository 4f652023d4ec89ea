"""Removal that a person has switched off, in whole turns: nothing new goes, and what went stays as it was or comes back."""

import json
from dataclasses import replace

import pytest
from presets import paid
from sessions import COLD_AFTER_S, Client, Replies, drops, history, request, results, step

from cg.sweep.config import Config
from cg.sweep.counters import Event
from cg.sweep.ledger import Reason
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Ending, Switch

QUICK = Config(quiet_requests=10)


def removed_once(n: int = 15) -> tuple[Client, bytes]:
    """A client whose older outputs went at a cold request, and the body that left then."""
    client = Client(MemoryStore(), QUICK)
    client.send(request(history(n)), 0.0)
    return client, client.send(request(history(n) + step(900)), COLD_AFTER_S)


def test_a_pause_removes_nothing_new_and_replays_what_was_removed() -> None:
    """At a cold request that would remove more, the bytes of the request before it leave again: no prefix breaks."""
    client, before = removed_once()
    gone = len(client.report.removed)
    client.store.set_switch(Switch.PAUSED)
    longer = history(15) + step(900) + [message for n in range(901, 920) for message in step(n)]
    after = client.send(request(longer), 2 * COLD_AFTER_S)
    assert client.report.reason is Reason.PAUSED and client.report.replayed == gone > 0
    assert not client.report.removed
    assert {k: v for k, v in results(after).items() if k in results(before)} == results(before)
    client.store.set_switch(Switch.ON)
    client.send(request([*longer, *step(999)]), 4 * COLD_AFTER_S)
    assert client.report.reason is Reason.REMOVED


def test_a_new_thread_takes_on_no_tool_while_removal_is_paused() -> None:
    """Its body leaves as it came."""
    client = Client(MemoryStore(), QUICK)
    client.store.set_switch(Switch.PAUSED)
    body = request(history(0))
    assert client.send(body, 0.0) == body and client.report.reason is Reason.PAUSED


def test_pausing_all_brings_every_original_back_for_good() -> None:
    """The next request leaves with the client's own outputs; each ending is stored and counted, and is no candidate
    once removal is on again."""
    client, before = removed_once()
    ended = [removal.identity for removal in client.store.load("t").removals.values()]
    client.store.set_switch(Switch.PAUSED_ALL)
    body = request(history(15) + step(900) + step(901))
    left = client.send(body, COLD_AFTER_S + 10)
    assert results(left) == results(body) and results(before) != results(body)
    assert client.report.events[Event.PAUSED] == len(ended) > 0
    assert client.store.load("t").ended == dict.fromkeys(ended, Ending.PAUSED)
    client.store.set_switch(Switch.ON)
    later = request(history(15) + step(900) + step(901) + step(902))
    kept = {identity.tool_use_id for identity in ended}
    left = client.send(later, 3 * COLD_AFTER_S)
    assert all(results(left)[name] == results(later)[name] for name in kept)


def test_what_the_model_asked_back_stays_answered_when_all_is_paused() -> None:
    """The client answered our call with an error of its own; the original that stands there is no removal."""
    client, _ = removed_once()
    key = next(iter(client.store.load("t").removals)).key
    asked = step(901, "No such tool available: cg_expand", name="cg_expand", id=key)
    messages = history(15) + step(900) + asked
    answered = results(client.send(request(messages), COLD_AFTER_S + 10))["toolu_901"]
    assert "No such tool" not in answered
    client.store.set_switch(Switch.PAUSED_ALL)
    after = results(client.send(request(messages + step(902)), COLD_AFTER_S + 20))
    assert after["toolu_901"] == answered and json.dumps(after).count("<<cg:") == 0


@pytest.mark.parametrize("switch", [Switch.PAUSED, Switch.PAUSED_ALL])
def test_nobody_is_asked_and_nothing_renewed_while_removal_is_paused(switch: Switch) -> None:
    """An ask that falls due in the pause is not made; the one of a later gap is."""
    client = Client(MemoryStore(), paid())
    client.send(request(history(0)), 0.0)
    client.send(request(history(20)), 10.0)
    (branch,) = client.store.load("t").branches
    client.store.set_switch(switch)
    asker = Replies(drops(2))
    assert client.sweep.settle("t", branch, 250.0, asker=asker).reason is Reason.PAUSED and not asker.asked
    assert not client.sweep.is_ping_fair("t", branch)
    client.store.set_switch(Switch.ON)
    assert client.sweep.settle("t", replace(branch), 250.0, asker=asker).asked is not None and asker.asked
