"""The rules of the sweep, each as a test that fails when its rule is taken out."""

import hashlib
import json
import logging
import re

import pytest
from markers import find_markers
from piped import changed_texts, tokens
from sweeping import START, TOOLS, Judge, encoded, expanding, history, output, removed_at_cold, settled, sweep_of

from cg.sweep.body.marker import DECLARATION, EXPAND_TOOL
from cg.sweep.body.transcript import read
from cg.sweep.store import Expired, StoreError
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Ending


class Refusing(MemoryStore):
    """A store that keeps no original whose text holds a word."""

    def __init__(self, word: bytes) -> None:
        super().__init__()
        self.word = word

    def put(self, thread, payloads, now):
        return super().put(thread, [p for p in payloads if self.word not in p.content], now)

    def freeze(self, thread, removals):
        super().freeze(thread, removals)
        return tuple(removals)  # its own check is another's test: here the core's has to hold


class Failing(MemoryStore):
    """A store that stops answering when it is told to."""

    is_down = False

    def load(self, thread):
        if self.is_down:
            raise StoreError("disk full")
        return super().load(thread)


def test_rule_5_no_marker_leaves_without_its_original_stored() -> None:
    """What the store refuses stays whole, no decision is recorded for it, and the rest goes."""
    sweep = sweep_of(store=Refusing(b"entry_3_"))
    body, done = removed_at_cold(sweep)
    assert ("toolu_003", 0) not in changed_texts(body, done.body)
    assert len(done.report.removed) == 10 and done.report.declines["sweep_store_refused"] == 1
    state = sweep.state("t")
    assert {i.tool_use_id for i in state.removals} == {f"toolu_{n:03}" for n in range(11) if n != 3}


def test_rule_5_every_marker_on_the_wire_resolves_to_the_exact_original() -> None:
    """By its key, in its thread, hashed."""
    sweep = sweep_of()
    body, done = removed_at_cold(sweep)
    theirs, ours = tokens(body), changed_texts(body, done.body)
    assert len(ours) == 11
    for where, token in ours.items():
        (key,) = find_markers(token.decode())
        content = sweep.expand("t", key, START + 2000).answer
        assert content.decode() == json.loads(theirs[where])
        assert hashlib.sha256(content).hexdigest()[:16] == key


def test_rule_6_what_stands_in_an_outputs_place_says_nothing_of_its_content() -> None:
    """Outputs of one shape and other content leave the same bytes behind, but for the key."""
    written = []
    for digits in ("0123456789", "9876543210"):
        others = {n: output(n).translate(str.maketrans("0123456789", digits)) for n in range(20)}
        body, done = removed_at_cold(sweep_of(), outputs=others)
        texts = changed_texts(body, done.body)
        assert len(texts) == 11
        written.append({where: re.sub(rb"[0-9a-f]{16}", b"KEY", token) for where, token in texts.items()})
    assert written[0] == written[1]


def test_rule_7_a_frozen_removal_is_replayed_byte_for_byte_whatever_the_code_would_write_today(
    monkeypatch, tmp_path
) -> None:
    """After a restart into a version with other words and another tool declaration too."""
    with SqliteStore(tmp_path / "s" / "sweep.db") as store:
        body, done = removed_at_cold(sweep_of(store=store))
        before = changed_texts(body, done.body)
    monkeypatch.setattr("cg.sweep.body.marker.hint", lambda key: "[another version's words]")
    monkeypatch.setattr("cg.sweep.core.policy.DECLARATION", DECLARATION.replace(b"Shows", b"Displays"))
    with SqliteStore(tmp_path / "s" / "sweep.db") as store:
        for n, form in enumerate(({"last": "And now?", "max_tokens": 31000}, {"last": "Else?"}, {"last": ""})):
            later = encoded(history(20, **form))
            out = sweep_of(store=store).process(later, "t", START + 1010 + n).body
            assert changed_texts(later, out) == before and b"," + DECLARATION in out


def test_rule_7_a_removal_ends_by_a_stored_and_counted_restoration_once() -> None:
    """A client that answers a repeated read with a notice gets the first copy back, for good."""
    sweep = sweep_of()
    removed_at_cold(sweep)
    form = history(20, last="And now?")
    call = {"type": "tool_use", "id": "toolu_again", "name": "Read", "input": {"file_path": "/repo/f4.py"}}
    words = (
        "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still"
    )
    words += " current \u2014 refer to that instead of re-reading."
    notice = {"type": "tool_result", "tool_use_id": "toolu_again", "content": words}
    form["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [notice]}]
    for n in range(2):
        body = encoded({**form, "max_tokens": 32000 - n})
        done = sweep.process(body, "t", START + 1010 + n)
        assert ("toolu_004", 0) not in changed_texts(body, done.body) and done.report.replayed == 10
        assert done.report.events.get("sweep_restored", 0) == (1 if n == 0 else 0)
    assert list(sweep.state("t").ended.values()) == [Ending.RESTORED]
    assert all(i.tool_use_id != "toolu_004" for i in sweep.state("t").removals)


def test_rule_8_a_replacement_that_is_not_shorter_is_not_made() -> None:
    """However low the floor: a short output stays as it is."""
    sweep = sweep_of(min_tokens=1)
    outputs = {n: f"ok {n} " * 12 for n in range(0, 11, 2)}
    body, done = removed_at_cold(sweep, outputs=outputs)
    assert set(changed_texts(body, done.body)) == {(f"toolu_{n:03}", 0) for n in range(1, 11, 2)}
    assert done.report.declines["sweep_drop_would_not_shrink"] == 6
    assert len(done.body) < len(body)


def test_rule_9_what_was_expanded_stays_whole_from_then_on() -> None:
    """The answer stands in the place of the client's error, and neither it nor any later copy is ever a candidate."""
    sweep = sweep_of(min_inventory=1)
    _, done = removed_at_cold(sweep)
    key = done.report.removed[2].key
    body = encoded(expanding(20, key))
    out = sweep.process(body, "t", START + 1010)
    assert json.loads(tokens(out.body)[("toolu_expand", 0)]) == output(2)
    assert out.report.events["sweep_expanded"] == 1 and out.report.replayed == 12
    form = expanding(20, key)
    for i, (name, text) in enumerate((("toolu_copy", output(2)), ("toolu_new", output(99)))):
        call = {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": f"/repo/again{i}.py"}}
        result = {"type": "tool_result", "tool_use_id": name, "content": text}
        form["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    sweep.process(encoded(form), "t", START + 1020)
    judge = Judge()
    settled(sweep, "t", START + 1020 + 240, judge)
    question = json.loads(judge.bodies[0])["messages"][-1]["content"]
    assert "toolu_new" in question and "toolu_copy" not in question and "toolu_expand" not in question
    # Expanding changes nothing in place: the removed output itself is still replayed.
    assert ("toolu_002", 0) in changed_texts(body, out.body)


def test_rule_9_the_answer_in_a_later_body_is_the_same_bytes() -> None:
    """Frozen like a removal."""
    sweep = sweep_of()
    _, done = removed_at_cold(sweep)
    body = encoded(expanding(20, done.report.removed[0].key))
    first = sweep.process(body, "t", START + 1010).body
    other = body.replace(b'"max_tokens":32000', b'"max_tokens":31000')
    again = sweep.process(other, "t", START + 1020).body
    assert changed_texts(body, first)[("toolu_expand", 0)] == changed_texts(other, again)[("toolu_expand", 0)]


def test_rule_10_a_failure_of_ours_sends_the_last_frozen_form(caplog) -> None:
    """The store stops answering: what was removed stays removed, and the log holds no content."""
    store = Failing()
    sweep = sweep_of(store=store)
    body, done = removed_at_cold(sweep)
    store.is_down = True
    with caplog.at_level(logging.DEBUG):
        failed = sweep.process(body, "t", START + 5000)
    assert failed.body == done.body and failed.report.reason == "fault"
    assert "entry_" not in caplog.text and "toolu_" not in caplog.text


def test_rule_10_without_a_frozen_form_the_clients_bytes_leave(caplog) -> None:
    """A process that never read the thread's state has nothing to replay."""
    store = Failing()
    body, _ = removed_at_cold(sweep_of(store=store))
    store.is_down = True
    failed = sweep_of(store=store).process(body, "t", START + 5000)
    assert failed.body == body and failed.report.reason == "fault" and caplog.records


def test_rule_10_a_fault_inside_the_rules_sends_the_last_frozen_form(monkeypatch, caplog) -> None:
    """Whatever the fault is."""
    sweep = sweep_of()
    body, done = removed_at_cold(sweep)
    monkeypatch.setattr("cg.sweep.core.policy.new_sizes", lambda *_: 1 / 0)
    assert sweep.process(body + b" ", "t", START + 5000).body == done.body + b" "
    assert caplog.records


def test_rule_11_removals_that_the_provider_refused_end_for_good() -> None:
    """The original was taken, so it is what leaves from then on, stored and counted."""
    sweep = sweep_of()
    body, done = removed_at_cold(sweep)
    sweep.revoke("t", tuple(sweep.state("t").removals), START + 1001)
    assert not changed_texts(body, sweep.process(body, "t", START + 1002).body)
    later = sweep.process(encoded(history(20, last="And now?", max_tokens=31000)), "t", START + 9000)
    assert not later.report.removed
    assert set(sweep.state("t").ended.values()) == {Ending.REVOKED} and len(done.report.removed) == 11


def test_rule_12_the_same_text_read_again_is_a_new_output() -> None:
    """A verdict binds one call's result: a later copy of a removed text stays until it is judged itself."""
    sweep = sweep_of()
    removed_at_cold(sweep)
    body = encoded(history(22, outputs={21: output(0)}))
    out = sweep.process(body, "t", START + 1010)
    assert ("toolu_000", 0) in (gone := changed_texts(body, out.body)) and ("toolu_021", 0) not in gone


def test_rule_13_past_nine_tenths_of_the_models_window_nothing_new_is_removed() -> None:
    """The client has to see the real size and compact; what was removed before is replayed."""
    sweep = sweep_of(preset="cold", keep_newest=0)
    model = {"model": "claude-haiku-4-5-20251001", "outputs": {n: output(n) for n in range(4)}}
    window = sweep.core.prices.window_tokens(model["model"])
    size = int(0.91 * window * 2.9 / 17)
    sweep.process(encoded(history(0, **model)), "t", START)
    assert sweep.process(encoded(history(4, **model)), "t", START + 1000).report.reason == "removed"
    big = sweep.process(encoded(history(20, size=size, **model)), "t", START + 9000)
    small = sweep.process(encoded(history(20, size=size // 2, last="Less.", **model)), "t", START + 9000)
    assert big.report.reason == "unswept_too_big" and not big.report.removed and big.report.replayed == 3
    assert small.report.reason != "unswept_too_big"


def test_a_thread_first_seen_in_mid_history_is_declared_and_swept_only_when_its_prefix_is_lost() -> None:
    """A warm prefix that is not known here is left alone."""
    sweep = sweep_of(preset="cold", keep_newest=0)
    first = sweep.process(encoded(history(12)), "t", START)
    assert first.body == encoded(history(12)) and EXPAND_TOOL.encode() not in first.body
    warm = encoded(history(12, last="And now?"))
    assert sweep.process(warm, "t", START + 100).body == warm
    cold = sweep.process(encoded(history(13, last="")), "t", START + 4000)
    assert cold.report.phase in ("cold", "unknown")


@pytest.mark.parametrize("phase_at", [310.0, 355.0])
def test_a_request_whose_prefix_may_still_be_there_is_left_alone_by_the_default(phase_at: float) -> None:
    """Past its lifetime, yet not surely gone: drops wait."""
    sweep = sweep_of()
    sweep.process(encoded(history(0)), "t", START)
    sweep.process(encoded(history(20)), "t", START + 10)
    settled(sweep, "t", START + 250, Judge(keep={11}))
    done = sweep.process(encoded(history(20, last="And now?")), "t", START + 250 + phase_at)
    assert not done.report.removed and len(sweep.state("t").pending) == 11


def test_two_asks_that_missed_the_prefix_latch_asking_off() -> None:
    """A paid miss is counted, and the second in a thread is the last."""
    from cg.sweep.values import Usage

    judge, sweep = Judge(keep={0}, usage=Usage(fresh=20_000)), sweep_of(block_fallback=True)
    sweep.process(encoded(history(0)), "t", START)
    now = START
    for n, reason in enumerate(("nothing_spent", "nothing_spent", "asking_latched")):
        now += 1000
        sweep.process(encoded(history(20 + n)), "t", now)
        assert settled(sweep, "t", now + 240, judge).reason == reason
    assert len(judge.bodies) == 2 and sweep.state("t").paid_misses == 2


def test_a_clients_own_tool_of_our_name_is_left_alone() -> None:
    """Two tools of one name are refused by the API."""
    tools = [*TOOLS, {"name": EXPAND_TOOL, "input_schema": {"type": "object"}}]
    sweep = sweep_of(preset="cold", keep_newest=0)
    sweep.process(encoded(history(0, tools=tools)), "t", START)
    body = encoded(history(12, tools=tools))
    done = sweep.process(body, "t", START + 9000)
    assert done.body == body and done.report.reason == "tool_name_taken"


def test_an_original_that_expired_is_put_back_by_the_request_that_carries_it() -> None:
    """The client re-sends every original: a marker that is replayed gets its payload back."""
    store = MemoryStore()
    sweep = sweep_of(store=store)
    body, done = removed_at_cold(sweep)
    key = done.report.removed[0].key
    store.sweep_ages(START + 1000 + 169 * 3600)
    assert isinstance(store.fetch("t", key), Expired)
    sweep.process(encoded(history(20, last="And now?", max_tokens=31000)), "t", START + 1000 + 170 * 3600)
    assert sweep.expand("t", key, START + 1000 + 170 * 3600).answer == output(0).encode()
    assert len(read(body).tool_texts) == 20
