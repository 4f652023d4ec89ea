"""Which waiting drops a warm request applies, and when a gap is used for an ask."""

from dataclasses import replace

from presets import paid
from sessions import MODEL, Client, Replies, drops, history, opening, output, request, step

from cg.sweep.body.transcript import read
from cg.sweep.core.idle_ask import due_at
from cg.sweep.core.selection import paying
from cg.sweep.judging.inventory import eligible
from cg.sweep.ledger import Reason
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Branch, Phase, Thread, Usage

RATIO = 2.9


def candidates(body: bytes):
    transcript = read(body)
    found, _ = eligible(transcript, Thread(), paid(min_tokens=1), RATIO)
    return transcript, found


def test_d16_a_small_drop_far_back_does_not_veto_a_large_one_near_the_end() -> None:
    """The rewrite is measured from the first output that really goes: the run of drops from the end that repays."""
    small = step(0, output(0, 300))
    between = [message for n in range(1, 8) for message in step(n, output(n, 40_000))]
    transcript, found = candidates(request(opening() + small + between + step(8, output(8, 60_000))))
    early, late = found[0], found[-1]
    chosen = paying([early, late], transcript, Phase.WARM, RATIO, paid())
    assert [one.text.tool_use_id for one in chosen] == ["toolu_8"]
    assert paying([early], transcript, Phase.WARM, RATIO, paid()) == ()


def test_what_is_lost_anyway_is_removed_whole_and_an_unknown_phase_removes_nothing() -> None:
    """At a cold request even a drop that could never repay a rewrite goes; doubt about the prefix waits."""
    transcript, found = candidates(request(history(3)))
    assert paying(found, transcript, Phase.COLD, RATIO, paid()) == found
    assert paying(found, transcript, Phase.UNKNOWN, RATIO, paid()) == ()


def test_u31_a_gap_is_asked_once_and_a_busy_session_never() -> None:
    """A keep binds nothing and so costs one ask in each gap that reaches the window, at the most; seven requests in a
    row leave no such gap."""
    client = Client(MemoryStore(), paid(min_inventory=5))
    asker = Replies(drops(0), drops(0))
    client.send(request(opening()), 0.0)
    for n in range(7):
        client.send(request(history(20) + [m for i in range(n) for m in step(50 + i, "short")]), 10.0 * n)
    (branch,) = client.store.load("t").branches
    due = due_at(client.sweep.core, branch)
    assert due == 60.0 + 300 - 60  # of the last request alone
    assert client.sweep.settle("t", branch, due, asker=asker).reason is Reason.NOTHING_SPENT
    (asked,) = client.store.load("t").branches
    assert due_at(client.sweep.core, asked) is None and len(asker.asked) == 1


def test_u35_a_branch_whose_last_body_is_not_kept_asks_nothing() -> None:
    """A body past the limit leaves no stale one behind: the next gap has no prefix to ask over."""
    client = Client(MemoryStore(), paid(min_inventory=1))
    asker = Replies(drops(0))
    client.send(request(history(20)), 0.0)
    client.send(request(history(20) + step(90, output(90, 5 * 2**20))), 10.0)
    (branch,) = client.store.load("t").branches
    settled = client.sweep.settle("t", branch, 250.0, asker=asker)
    assert settled.asked is None and asker.asked == []


def test_u27_an_ask_that_costs_more_than_it_can_bring_is_not_made() -> None:
    """A few small outputs in front of a long history: the prefix that an ask reads is worth more than all of them."""
    client = Client(MemoryStore(), paid(min_inventory=1, min_tokens=1))
    asker = Replies(drops(0))
    talk = [{"role": "assistant", "content": "x" * 2_500_000}]
    client.send(
        request(opening() + step(0, output(0, 40)) + talk + opening("Go on."), mark={"type": "ephemeral", "ttl": "1h"}),
        0.0,
    )
    (branch,) = client.store.load("t").branches
    settled = client.sweep.settle("t", branch, 3540.0, asker=asker)
    assert settled.reason is Reason.ASK_NOT_REPAID and asker.asked == []


def test_a_branch_without_a_lifetime_is_never_due() -> None:
    """Unknown never fires."""
    branch = Branch("b", b"", b"", b"", 0.0, 300)
    core = Client(MemoryStore(), paid()).sweep.core
    assert due_at(core, branch) == 240.0
    assert due_at(core, replace(branch, ttl_s=None)) is None


def asked_in_two_gaps(output_tokens: int, model_between: str = MODEL) -> tuple[Reason, Reason]:
    """How two gaps of one thread end, whose first ask was answered with so many tokens of output."""
    client = Client(MemoryStore(), paid())
    usage = Usage(read=20_000, output=output_tokens)
    ended = []
    for n, model in enumerate((MODEL, model_between)):
        start = 400.0 * n
        client.send(request(history(12) + [m for i in range(n) for m in step(90 + i, "short")], model=model), start)
        branch = max(client.store.load("t").branches, key=lambda b: b.clock)
        ended.append(client.sweep.settle("t", branch, start + 240, asker=Replies(drops(0), usage=usage)).reason)
    return ended[0], ended[1]


def test_long_verdicts_stop_asks_that_short_ones_would_repay() -> None:
    """The first ask is made on the prior; 600 tokens a verdict then cost more than twelve outputs can bring in."""
    assert asked_in_two_gaps(12 * 20) == (Reason.NOTHING_SPENT, Reason.NOTHING_SPENT)
    assert asked_in_two_gaps(12 * 600) == (Reason.NOTHING_SPENT, Reason.ASK_NOT_REPAID)


def test_another_model_s_long_verdicts_say_nothing_of_this_one_s() -> None:
    """A thread that changes its model is asked on the prior again."""
    assert asked_in_two_gaps(12 * 600, "claude-haiku-4-5") == (Reason.NOTHING_SPENT, Reason.NOTHING_SPENT)
