"""The lifetimes of the client's marks: decided where the prefix is lost, kept while it holds, and nothing else differs."""

import json
from collections import Counter
from typing import Any

import pytest
from sweeping import MARK, START, encoded, history, sweep_of

from cg.sweep.accounting.tally import Tally
from cg.sweep.body.transcript import read
from cg.sweep.counters import Decline, Event
from cg.sweep.drivers import Sweep
from cg.sweep.ledger import Reason
from cg.sweep.planning.gaps import CONVERSATIONS, Client
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Phase, Switch

HOUR = {"type": "ephemeral", "ttl": "1h"}
USER = Client("user")


def plain(lifetime: str, store: Any = None) -> Sweep:
    """A sweep that removes nothing: only lifetimes are written."""
    return sweep_of(store, "quiet", judge="model", lifetime=lifetime)


def of_an_hour(form: dict[str, Any]) -> dict[str, Any]:
    """The same request of a client that asks for an hour."""
    return json.loads(json.dumps(form).replace(json.dumps(MARK), json.dumps(HOUR)))


def marks(body: bytes) -> set[int]:
    return {mark[3] for mark in read(body).scan.marks()}


def learnt(store: MemoryStore, *, billed: float = 10**9, **waits: int) -> MemoryStore:
    """What a store knows of a user, and how much its requests have cost."""
    store.count("user", Tally(gaps=Counter({**waits, Event.BILLED_UNITS: int(billed)})))
    return store


def process(sweep: Sweep, form: dict[str, Any], after: float, thread: str = "t", client: Client = USER) -> Any:
    return sweep.process(encoded(form), thread, START + after, client=client)


def test_an_hour_is_written_on_every_mark_and_nothing_else_changes() -> None:
    """The client's bytes, but for the lifetime."""
    form = history(0, system=[{"type": "text", "text": "s", "cache_control": MARK}], cache_control=MARK)
    left = process(plain("1h"), form, 0)
    assert marks(left.body) == {3600} and left.body.count(b',"ttl":"1h"') == 3
    assert left.body.replace(b',"ttl":"1h"', b"") == encoded(form)
    assert left.report.lifetime == {"asked_s": 300, "written_s": 3600, "why": "set"}
    assert left.report.events[Event.LIFETIME_WRITTEN] == 1 and left.report.events[Event.LIFETIME_COST_UNITS] > 0


def test_without_the_setting_the_clients_marks_leave_as_they_came() -> None:
    """Nothing is said of them either."""
    left = process(plain("client"), history(0), 0)
    assert left.body == encoded(history(0)) and left.report.lifetime is None


def test_the_lifetime_is_kept_while_the_prefix_holds_and_phases_go_by_it() -> None:
    """Ten minutes into an hour are warm; past it the prefix is lost, and the choice is made anew."""
    sweep = plain("1h")
    process(sweep, history(1), 0)  # has answers already: what its provider holds is not known
    assert marks(process(sweep, history(1), 1).body) == {300}
    sweep, large = plain("1h"), {"system": "s" * 20_000}
    process(sweep, history(0, **large), 0)
    warm = process(sweep, history(1, **large), 600)
    assert (warm.report.phase, warm.report.lifetime["why"], marks(warm.body)) == (Phase.WARM, "kept", {3600})
    assert warm.report.events[Event.LIFETIME_GAINED_UNITS] > 0  # the client's five minutes would have been over
    cold = process(sweep, history(2, **large), 600 + 3661)
    assert (cold.report.phase, cold.report.lifetime["why"]) == (Phase.COLD, "set")


def test_five_minutes_for_a_client_that_asks_for_an_hour() -> None:
    """In the place of its own, and what it wrote is lost after them."""
    sweep, form = plain("5m"), of_an_hour(history(0))
    left = process(sweep, form, 0)
    assert left.body == encoded(form).replace(b'"1h"', b'"5m"')
    assert process(sweep, of_an_hour(history(1)), 361).report.phase is Phase.COLD


def test_a_setting_that_changes_waits_for_the_next_loss() -> None:
    """A change on a warm request would pay for nothing."""
    store = MemoryStore()
    process(plain("client", store), history(0), 0)
    other = plain("1h", store)
    assert marks(process(other, history(1), 60).body) == {300}
    assert marks(process(other, history(2), 60 + 361).body) == {3600}
    assert marks(process(plain("5m", store), history(3), 60 + 361 + 900).body) == {3600}


def test_a_compaction_is_decided_anew() -> None:
    """Its history begins with a message that nothing was written for."""
    store = MemoryStore()
    process(plain("client", store), history(3), 0)
    compacted = history(0)
    compacted["messages"][0]["content"][0]["text"] = "A summary of all that was said."
    assert marks(process(plain("1h", store), compacted, 30).body) == {3600}


def test_a_retry_is_the_same_bytes_and_counts_nothing_twice() -> None:
    """Also where the first was chosen."""
    sweep = plain("1h")
    first, again = process(sweep, history(0), 0), process(sweep, history(0), 5)
    assert again.body == first.body and again.report.reason is Reason.RETRY
    assert Event.LIFETIME_WRITTEN not in again.report.events


def test_a_lifetime_survives_a_restart(tmp_path: Any) -> None:
    """It is the branch's, in the store."""
    for n, after in ((0, 0), (1, 900)):
        with SqliteStore(tmp_path / "s.db") as store:
            left = process(plain("1h", store), history(n), after)
            assert marks(left.body) == {3600}, n
    assert left.report.phase is Phase.WARM


@pytest.mark.parametrize(
    "form",
    [
        history(0, cache_control={"type": "ephemeral", "ttl": "1d"}),
        history(0, anthropic_version="vertex-2023-10-16"),
    ],
    ids=["a lifetime that is not known", "another cloud"],
)
def test_a_body_whose_marks_cannot_be_written_safely_is_left_and_says_so(form: dict[str, Any]) -> None:
    """The client's own bytes."""
    left = process(plain("1h"), form, 0)
    assert left.body == encoded(form)
    is_marked = read(encoded(form)).ttl_s is not None
    assert left.report.declines.get(Decline.LIFETIME_LEFT, 0) == is_marked


def test_the_spare_mark_has_the_lifetime_that_is_written() -> None:
    """A longer one never stands behind a shorter one: all are the same."""
    store = MemoryStore()
    process(sweep_of(store, "cold", lifetime="client"), history(20), 0)
    left = process(sweep_of(store, "cold", lifetime="1h"), history(21), 361)
    assert left.report.reason is Reason.REMOVED
    assert len(read(left.body).breakpoints) == len(read(encoded(history(21))).breakpoints) + 1
    assert marks(left.body) == {3600}
    again = process(sweep_of(store, "cold", lifetime="1h"), history(22), 361 + 600)
    assert marks(again.body) == {3600} and again.report.replayed == len(left.report.removed)


def test_a_paused_sweep_chooses_no_lifetime_and_keeps_those_that_stand() -> None:
    """What is new is the client's."""
    store = MemoryStore()
    process(plain("1h", store), history(0), 0)
    store.set_switch(Switch.PAUSED)
    assert marks(process(plain("1h", store), history(1), 60).body) == {3600}
    assert marks(process(plain("1h", store), history(2), 60 + 3661).body) == {300}


def test_a_fault_of_ours_sends_the_lifetime_that_was_decided() -> None:
    """As with removals: the last frozen form."""
    store = MemoryStore()
    sweep = plain("1h", store)
    process(sweep, history(0), 0)
    store.switch = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    left = process(sweep, history(1), 60)
    assert left.report.reason is Reason.FAULT and marks(left.body) == {3600}


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_a_person_who_comes_back_within_the_hour_gets_one() -> None:
    """By recorded waits from the first session on, where what it may cost is covered by what was paid before."""
    left = process(plain("plan", learnt(MemoryStore())), history(0), 0)
    assert marks(left.body) == {3600} and left.report.lifetime["why"] == "cheaper"
    assert left.report.lifetime["chance_within_the_hour"] > left.report.lifetime["needed"] == 0.395


def test_what_a_choice_may_lose_is_covered_by_what_was_paid() -> None:
    """A store that has seen no bill yet leaves the client's own, and says why."""
    left = process(plain("plan"), history(0), 0)
    assert left.body == encoded(history(0)) and left.report.lifetime["why"] == "not_covered"
    assert left.report.declines[Decline.LIFETIME_NOT_COVERED] == 1
    lost = learnt(MemoryStore(), billed=10**9)
    lost.count("user", Tally(gaps=Counter({Event.LIFETIME_COST_UNITS: 10**8})))
    assert process(plain("plan", lost), history(0), 0).report.lifetime["why"] == "not_covered"


def test_a_program_is_not_waited_for() -> None:
    """An hour that its client asks for is taken back to five minutes."""
    store = learnt(MemoryStore())
    left = process(plain("plan", store), of_an_hour(history(0)), 0, client=Client("user", is_person=False))
    assert marks(left.body) == {300}


def test_a_user_who_stays_away_for_longer_gets_five_minutes() -> None:
    """Forty long waits, none of which ended within the hour, prevail over the recorded ones."""
    store = learnt(MemoryStore(), conversations=20, from_7200=20)
    assert marks(process(plain("plan", store), of_an_hour(history(0)), 0).body) == {300}
    assert marks(process(plain("plan", store), of_an_hour(history(0)), 0, "u", Client("another")).body) == {3600}


def test_a_habit_near_the_price_leaves_the_clients_own() -> None:
    """Ten of twenty-six waits ended within the hour: which is cheaper is not known well enough."""
    store = learnt(MemoryStore(), conversations=20, from_600=6)
    left = process(plain("plan", store), of_an_hour(history(0)), 0)
    assert marks(left.body) == {3600} and left.report.lifetime["why"] == "unsure"
    assert left.report.declines[Decline.LIFETIME_UNSURE] == 1


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_waits_are_learnt_by_thread_and_by_user_over_a_restart(kind: str, tmp_path: Any) -> None:
    """One conversation begun each, and one wait of ten minutes; a side call, and a compaction, begin none."""
    kept = MemoryStore()
    for n, (form, after) in enumerate(
        [
            ({**history(0, tools=[]), "messages": [{"role": "user", "content": "Name this conversation."}]}, 0),
            (history(0), 1),
            (history(1), 601),
            (history(2), 610),
        ]
    ):
        store = kept if kind == "memory" else SqliteStore(tmp_path / "s.db")
        process(plain("plan", store), form, after)
        if n == 3:
            expected = {CONVERSATIONS: 1, "from_600": 1}
            assert store.totals("t")["gaps"] == store.totals("user")["gaps"] == expected
        if kind == "sqlite":
            store.close()


def test_a_user_is_remembered_for_as_long_as_a_thread() -> None:
    """From the last wait on; then what was learnt goes, with all else that is that old."""
    store = MemoryStore()
    sweep = plain("plan", store)
    process(sweep, history(0), 0)
    process(sweep, history(1), 600)
    store.sweep_ages(START + 600 + 27 * 86400)
    assert store.totals("user")["gaps"]
    store.sweep_ages(START + 600 + 29 * 86400)
    assert not store.totals("user")["gaps"]


def test_a_provider_that_refuses_the_lifetimes_is_not_asked_again_in_that_thread() -> None:
    """The original was taken: from then on the client's marks leave, and the clock goes by them."""
    store = MemoryStore()
    sweep = plain("1h", store)
    first = process(sweep, history(0), 0)
    assert first.branch is not None and first.written_s == 3600
    sweep.refuse_lifetime("t", first.branch, encoded(history(0)))
    assert store.load("t").branches[0].ttl_s == 300
    later = process(sweep, history(1), 361)
    assert later.body == encoded(history(1)) and later.report.phase is Phase.COLD
    assert later.report.declines[Decline.LIFETIME_LEFT] == 1
    assert store.totals()["events"][Event.LIFETIME_REFUSED] == 1
    assert marks(process(sweep, history(0), 400, "u").body) == {3600}
