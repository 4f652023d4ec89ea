"""What a session costs under a policy, by hand where it can be done by hand."""

import json
from dataclasses import replace

import pytest
from recordings import checked
from replaying import RECORDINGS, Bodies, policy, recording, session_of

from cg.replay.prompt import prompt_of
from cg.replay.reading import record
from cg.replay.recordings.hindsight import Label
from cg.replay.recordings.recording import Step
from cg.replay.run import EXPAND_CALL_TOKENS, Run, run
from cg.replay.settings import Settings
from cg.replay.simulation.bodies import frame_for
from cg.sweep.accounting import ping_economics as keep_alive
from cg.sweep.prices import PriceTable
from cg.sweep.values import Usage

MODEL = "claude-sonnet-4-5"
START = 1_700_000_000.0


def encoded(value):
    return json.dumps(value, separators=(",", ":")).encode()


def user(*blocks):
    return encoded({"role": "user", "content": list(blocks)})


def text(words):
    return {"type": "text", "text": words}


def result(n, content):
    return {"type": "tool_result", "tool_use_id": f"call_{n}", "content": content}


def reply(n, words="Going on."):
    call = {"type": "tool_use", "id": f"call_{n}", "name": "Read", "input": {"file_path": f"src/{n}.py"}}
    return encoded({"role": "assistant", "content": [text(words), call]})


def output(n, lines=120):
    return "\n".join(f"entry_{n}_{i} = compute_value({n * 1000 + i}) of the table" for i in range(lines))


def steps(gaps, says=()):
    """A request after each gap; the n-th answer calls, and its result is the next request's news."""
    found, at, news = [], START, (user(text("Look at the files.")),)
    for n, gap in enumerate(gaps):
        at += gap
        answer = reply(n, dict(says).get(n, "Going on."))
        found.append(Step(n, at, at + 1, MODEL, n == 0, news, answer, None))
        news = (answer, user(result(n, output(n))))
    return found


def tokens(*texts):
    """Tokens of the blocks of messages at one byte a token."""
    blocks = [block for message in texts for block in json.loads(message)["content"]]
    return sum(len(json.dumps(block, ensure_ascii=False, separators=(",", ":")).encode()) for block in blocks)


def test_three_requests_by_hand():
    """Written once, read while it is held, written again after a wait as long as the lifetime."""
    made = steps([0, 10, 400])
    settings = Settings(bytes_per_token=1.0, fixed_tokens=8000)
    row = run(record(session_of(*made)), policy("none"), settings)
    frame = frame_for(made[0], tokens=8000, bytes_per_token=1.0)
    fixed = sum(len(encoded(block)) for part in (frame.tools, frame.system) for block in json.loads(part))
    first = fixed + tokens(*made[0].messages)
    second = first + tokens(*made[1].messages)
    third = second + tokens(*made[2].messages)
    out = sum(len(step.reply) for step in made)
    total = row.total
    assert total.tokens == {"fresh": 0, "read": first, "write_5m": second + third, "write_1h": 0, "output": out}
    assert total.units == pytest.approx(0.1 * first + 1.25 * (second + third) + 5 * out)
    assert total.usd == pytest.approx(3e-6 * total.units)
    assert row.cold_requests == 1
    assert row.cold_excess == pytest.approx(1.15 * second)


def test_a_forced_lifetime_is_written_and_charged():
    """At one hour the same session reads all but what is new, at the dearer write."""
    made = steps([0, 10, 400])
    row = run(record(session_of(*made)), policy("none"), Settings(ttl_s=3600, bytes_per_token=1.0))
    assert row.total.tokens["write_5m"] == 0 and row.cold_requests == 0
    assert row.total.tokens["read"] > row.total.tokens["write_1h"] > 0


def test_what_the_provider_counted_as_output_wins_if_it_is_more():
    """Logged output may be low, as streams are logged at their start; it is never taken down."""
    (step,) = steps([0])
    high = Step(0, step.at, None, MODEL, True, step.messages, step.reply, Usage(output=5000, fresh=20_000))
    assert run(record(session_of(high)), policy("none"), Settings()).total.tokens["output"] == 5000


def test_an_unknown_price_is_unknown_in_every_sum():
    """Never zero: tokens and units stand, dollars do not."""
    (step,) = steps([0])
    other = Step(0, step.at, None, "some-other-model", True, step.messages, step.reply, None)
    total = run(record(session_of(other)), policy("none"), Settings()).total
    assert total.usd is None and total.units > 0
    priced = PriceTable.default().overridden('[models."some-other-model"]\ninput = 2\n')
    assert run(record(session_of(other)), policy("none"), Settings(prices=priced)).total.usd == pytest.approx(
        2e-6 * total.units
    )


def cold_session(says=()):
    """Fifteen outputs, a wait past the lifetime, five requests more."""
    return record(session_of(*steps([0] + [5] * 15 + [1000] + [5] * 5, says)))


def test_cold_removes_at_the_cold_request_and_not_before():
    """All but the newest ten go when the prefix is lost anyway; no prefix is broken for it."""
    bodies = Bodies()
    row = run(cold_session(), policy("cold", pings=0), Settings(), bodies)
    assert row.removals == 6 and row.prefix_breaks == 0
    gone = [body.count(b"<<cg:") for body in bodies.bodies]
    assert gone == [0] * 16 + [6] * 6
    assert row.cold_excess < run(cold_session(), policy("none"), Settings()).cold_excess


def test_a_wrong_removal_is_brought_back_and_paid_for():
    """An answer that uses what is gone costs one more round: the prompt read, the original fresh, a call's tokens."""
    says = {18: "It is\nentry_1_7 = compute_value(1007) of the table"}
    found = cold_session(says)
    assert found.hindsight.label("call_1", 16) is Label.LIVE
    row = run(found, policy("cold", pings=0), Settings())
    bill = row.bills["expansion"]
    assert (row.expansions, bill.calls, row.live, row.live_kept) == (1, 1, 1, 0)
    assert bill.tokens["output"] == EXPAND_CALL_TOKENS
    assert bill.tokens["fresh"] == pytest.approx(len(output(1)) / 2.9, rel=0.1)
    assert bill.tokens["read"] > 10_000 and not bill.tokens["write_5m"]


def test_hindsight_as_judge_keeps_what_is_used_and_drops_the_rest():
    """paid/oracle asks in the gap before the lifetime ends and applies at the cold request."""
    says = {18: "It is\nentry_1_7 = compute_value(1007) of the table"}
    row = run(cold_session(says), policy("paid/oracle"), Settings())
    assert row.bills["ask"].calls == 1
    assert row.live == row.live_kept == 1 and row.expansions == 0
    assert row.spent_dropped == row.removals == 11  # of twelve that one ask takes
    assert row.bills["ask"].tokens["output"] == 12 * Settings().verdict_tokens


def test_an_imperfect_judge_errs_at_its_rates():
    """oracle:50/0 misses half of the spent; the same outputs on every run."""
    rows = [run(cold_session(), policy("paid/oracle:50/0"), Settings()) for _ in range(2)]
    assert rows[0] == rows[1] and 2 <= rows[0].removals <= 10
    assert run(cold_session(), policy("paid/oracle:0/100"), Settings()).removals == 0


def test_a_ping_keeps_the_prefix_through_a_wait_it_spans(monkeypatch):
    """One read at ttl - window renews a five-minute entry: a wait of 400 s ends warm, for a tenth of the prefix."""
    monkeypatch.setattr(keep_alive, "MAX_LOSS", 1.0)
    made = record(session_of(*steps([0] + [5] * 8 + [400])))
    none, row = (run(made, policy(name), Settings()) for name in ("none", "cold"))
    assert row.bills["ping"].calls == 1 and row.bills["ping"].tokens["output"] == 1
    assert row.total.units < none.total.units and row.cold_excess == 0 < none.cold_excess
    hour = run(made, policy("cold"), Settings(ttl_s=3600))
    assert hour.bills["ping"].calls == 0


def test_a_short_session_is_not_pinged():
    """A lost ping would be a large part of its bill, and what it has paid so far covers none."""
    made = record(session_of(*steps([0] + [5] * 8 + [400])))
    assert run(made, policy("cold"), Settings()).bills["ping"].calls == 0


@pytest.mark.parametrize("ttl_s", [None, 300])
def test_cold_makes_no_recording_dearer_by_one_per_cent(ttl_s):
    """Its pings and its declared tool together, on every shared recording."""
    for name in RECORDINGS:
        found = recording(name)
        none, row = (run(found, policy(which), Settings(ttl_s=ttl_s)) for which in ("none", "cold"))
        assert row.total.units <= 1.01 * none.total.units, name


def test_what_happens_behind_the_end_of_a_log_is_told_apart(monkeypatch):
    """Nobody knows how long the last wait was: its asks and pings are on no bill, and reported beside it."""
    monkeypatch.setattr(keep_alive, "MAX_LOSS", 1.0)
    made = record(session_of(*steps([0] + [5] * 13)))
    for name, calls in (("cold", 1), ("paid/oracle", 1), ("none", 0)):
        row = run(made, policy(name), Settings())
        assert row.after_end.calls == calls
        assert row.bills["ping"].calls == row.bills["ask"].calls == 0


def test_masks_break_the_prefix_and_drop_all_more_often():
    """A mask at every request rewrites what stands behind the output that has grown old."""
    made = record(session_of(*steps([0] + [5] * 30)))
    none, mask, drop = (run(made, policy(name), Settings()) for name in ("none", "mask-all-but-k", "drop-all"))
    assert mask.removals == 20 and drop.removals == 29
    assert mask.prefix_breaks == 20 and drop.prefix_breaks == 29
    assert mask.total.units > none.total.units


def test_a_change_of_model_and_a_compaction_are_followed():
    """Another model has another cache; a history that opens anew is the new history alone."""
    made = steps([0, 5, 5, 5])
    other = Step(2, made[2].at, None, "claude-opus-4-6", False, made[2].messages, made[2].reply, None)
    anew = Step(3, made[3].at, None, "claude-opus-4-6", True, (user(text("In short: go on.")),), made[3].reply, None)
    bodies = Bodies()
    row = run(record(session_of(made[0], made[1], other, anew)), policy("none"), Settings(), bodies)
    assert not bodies.mismatched and row.total.usd is not None
    assert bodies.usages[2].read == 0 and bodies.usages[3].read > 0
    assert json.loads(bodies.bodies[3])["messages"][0]["content"][0]["text"] == "In short: go on."


def test_bodies_pass_as_requests():
    """Every body of a long recording under a policy that removes is a request that the stand-in upstream takes."""
    validator, bodies = checked(), Bodies()
    row = run(recording("entire-long-116"), policy("cold"), Settings(), bodies)
    assert row.removals and not bodies.mismatched
    for body in bodies.bodies:
        validator.body(json.loads(body), {})


@pytest.mark.parametrize(("name", "which"), [("cipherbox-mid-50", "paid/oracle"), ("ctxeval-mid-59", "classic/oracle")])
def test_an_ask_is_charged_as_its_whole_body_would_be(name, which, monkeypatch):
    """It is priced over the line's own prompt, without reading the body again: the usage is the same."""
    charge, compared = Run._charge, []

    def both(self, body, at, output):
        prompt, breakpoints = prompt_of(body, bytes_per_token=self._ratio)
        seen = self.account.peek(prompt, breakpoints, at)
        charged = charge(self, body, at, output)
        compared.append((replace(seen, output=output), charged))
        return charged

    monkeypatch.setattr(Run, "_charge", both)
    run(recording(name), policy(which), Settings(ttl_s=300))
    assert compared and all(seen == charged for seen, charged in compared)
