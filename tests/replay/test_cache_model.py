"""The cache model gives the figures that the scripted upstream gives, and costs a turn what a turn brings."""

import json
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from fake_upstream import Clock, FakeUpstream, PromptCache
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cg.replay.cache_model import Breakpoint, CacheModel, Prompt, prompt_of
from cg.sweep.values import Usage

WIRE = Path(__file__).parents[1] / "data" / "wire"
SEQUENCES = sorted(folder.name for folder in WIRE.iterdir() if folder.is_dir())
# Warm, renewed just in time, at the edges of both lifetimes, and past them.
GAPS_S = (4.0, 296.0, 299.0, 300.0, 7.0, 301.0, 2.0, 3599.0, 3.0, 3600.0, 11.0, 3601.0, 240.0, 90.0)
SMALL = 1  # tokens: the recorded bodies are shortened, so a real minimum would leave most of them out


# Histories are slow to draw on a busy machine; that says nothing of what is tested.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def figures(usage: dict[str, Any]) -> Usage:
    """The provider's spelling of usage as ours, output left out."""
    split = usage["cache_creation"]
    assert usage["cache_creation_input_tokens"] == sum(split.values())
    return Usage(
        usage["input_tokens"],
        usage["cache_read_input_tokens"],
        split["ephemeral_5m_input_tokens"],
        split["ephemeral_1h_input_tokens"],
    )


def recorded(sequence: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted((WIRE / sequence).glob("turn_*.json"))]


def sent(upstream: FakeUpstream, row: dict[str, Any]) -> dict[str, Any] | None:
    """The upstream's answer to a recorded request over HTTP; None if it refuses it."""
    kept = {name: value for name, value in row["headers"] if name.lower().startswith("anthropic-")}
    headers = {**kept, "x-api-key": "k", "content-type": "application/json"}
    body = {key: value for key, value in row["body"].items() if key != "stream"}
    request = urllib.request.Request(upstream.base_url + row["path"], json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as response:
            answer: dict[str, Any] = json.load(response)
            return answer
    except urllib.error.HTTPError as refusal:
        assert row["status"] != 200, refusal.read()
        refusal.close()
        return None


def whole(body: dict[str, Any], held: dict[str, dict[str, Any]], reply: dict[str, Any]) -> dict[str, Any]:
    """The body with the history that the server keeps for its client put back in front."""
    thread = body.get("thread") or {}
    full = {key: value for key, value in body.items() if key != "thread"}
    if thread.get("type") == "continue":
        before = held[thread["previous_message_id"]]
        full = {**full, "system": before.get("system"), "tools": before.get("tools")}
        full["messages"] = before["messages"] + full["messages"]
    if thread:
        answered = {"role": "assistant", "content": reply["content"]}
        held[reply["id"]] = {**full, "messages": full["messages"] + [answered]}
    return full


@pytest.mark.parametrize("bytes_per_token", [4.0, 2.9])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_every_recorded_sequence_gets_the_usage_that_the_upstream_gives(sequence: str, bytes_per_token: float) -> None:
    """Bodies of real clients, through the upstream over HTTP and through the model, with waits of every kind."""
    rows = [row for row in recorded(sequence) if row["path"].split("?")[0] == "/v1/messages"]
    served = [row for row in rows if row["status"] == 200]
    upstream = FakeUpstream(
        script=[{"content": row["reply"]["content"]} for row in served],
        clock="manual",
        min_cache_tokens=SMALL,
        bytes_per_token=bytes_per_token,
        threads="unsupported" if sequence == "sdk_threads_refused" else "serve",
        no_system_role=sequence == "claude_code_no_system_role",
        any_signature=True,
        allow_unknown_fields=True,
    )
    model, held, compared = CacheModel(min_tokens=SMALL), {}, 0
    with upstream:
        for n, row in enumerate(rows):
            answer = sent(upstream, row)
            if answer is not None:
                recorded_id = row["reply"]["id"]
                if row["body"].get("thread"):  # later requests name the reply as it was recorded
                    upstream.threads[recorded_id] = upstream.threads[answer["id"]]
                full = whole(row["body"], held, {**answer, "id": recorded_id})
                prompt, marks = prompt_of(json.dumps(full).encode(), bytes_per_token=bytes_per_token)
                usage = model.request(prompt, marks, upstream.clock.now())
                assert usage == figures(answer["usage"])
                compared += 1
            upstream.clock.advance(GAPS_S[n % len(GAPS_S)])
    assert compared == len(served) > 0


# --------------------------------------------------------------------------- made-up histories against the upstream's model

MARK = st.sampled_from([None, None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
WORD = st.sampled_from(["a", "bb", "long enough to count for a few tokens", "é\ud800", '"\\u00e9"'])


@st.composite
def blocks(draw: st.DrawFn, role: str) -> dict[str, Any]:
    """A block that may stand in a message of the role, with or without a mark on it or inside it."""
    mark = draw(MARK)
    kind = draw(st.sampled_from(["text", "result", "image"] if role == "user" else ["text", "call", "thinking"]))
    text = draw(WORD)
    block: dict[str, Any] = {
        "text": {"type": "text", "text": text},
        "result": {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": text}]},
        "image": {"type": "image", "source": {"data": text}},
        "call": {"type": "tool_use", "id": "t", "name": "n", "input": {"x": text}},
        "thinking": {"type": "thinking", "thinking": text, "signature": "s"},
    }[kind]
    if kind == "result" and draw(st.booleans()):
        block["content"] = text
    if mark and kind == "result" and draw(st.booleans()) and isinstance(block["content"], list):
        block["content"][0]["cache_control"] = mark
    elif mark and kind != "thinking":
        block["cache_control"] = mark
    return block


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    role = draw(st.sampled_from(["user", "assistant"]))
    if draw(st.integers(0, 4)) == 0:
        return {"role": role, "content": draw(WORD)}
    return {"role": role, "content": draw(st.lists(blocks(role), min_size=1, max_size=3))}


@st.composite
def sequences(draw: st.DrawFn) -> list[tuple[float, dict[str, Any]]]:
    """(wait, body) in order: histories that grow, go back, branch, change their head, and lose their marks."""
    history = draw(st.lists(messages(), min_size=1, max_size=3))
    requests = []
    for _ in range(draw(st.integers(2, 9))):
        kept = draw(st.integers(0, len(history))) if draw(st.integers(0, 3)) == 0 else len(history)
        history = history[:kept] + draw(st.lists(messages(), min_size=0 if kept else 1, max_size=3))
        body: dict[str, Any] = {"model": draw(st.sampled_from(["m", "m", "m", "n"])), "messages": history}
        body["system"] = draw(st.sampled_from([None, "s", [{"type": "text", "text": "s"}]]))
        body["tools"] = draw(st.sampled_from([None, [{"name": "a", "cache_control": {"type": "ephemeral"}}]]))
        body["thinking"] = draw(st.sampled_from([None, None, {"type": "disabled"}]))
        body["tool_choice"] = draw(st.sampled_from([None, None, {"type": "none"}]))
        body["cache_control"] = draw(st.sampled_from([None, None, {"type": "ephemeral"}]))
        gap = draw(st.sampled_from([0.0, 1.0, 150.0, 299.0, 300.0, 301.0, 1800.0, 3600.0]))
        requests.append((gap, body))
    return requests


@settings(PATIENT, max_examples=240)
@given(sequences(), st.integers(0, 20), st.integers(1, 6), st.sampled_from([1.0, 2.9, 4.0]), st.booleans())
def test_any_sequence_gets_the_usage_that_the_upstream_gives(
    requests: list[tuple[float, dict[str, Any]]], min_tokens: int, lookback: int, ratio: float, choice_in_key: bool
) -> None:
    """Branches, rewinds, both lifetimes, nested and automatic marks, small look-backs: the same figures throughout."""
    clock = Clock("manual")
    theirs = PromptCache(clock, min_tokens, lookback, ratio, tool_choice_in_key=choice_in_key)
    ours = CacheModel(min_tokens=min_tokens, lookback=lookback)
    for gap, body in requests:
        clock.advance(gap)
        plan = theirs.plan(body)
        theirs.commit(plan)
        raw = json.dumps(body).encode()
        prompt, marks = prompt_of(raw, bytes_per_token=ratio, tool_choice_in_key=choice_in_key)
        assert ours.peek(prompt, marks, clock.now()) == figures(plan["usage"])
        assert ours.request(prompt, marks, clock.now()) == figures(plan["usage"])
        alive = {digest for digest, entry in theirs.entries.items() if entry["expires"] > clock.now()}
        assert len(ours) == len(alive)


@settings(PATIENT, max_examples=60)
@given(st.lists(messages(), min_size=1, max_size=5), st.data())
def test_a_prompt_that_grew_and_went_back_equals_one_made_at_once(
    history: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Adding, cutting and adding again leaves the digests and tokens of the final history."""
    body = {
        "model": "m",
        "system": "s",
        "tools": [{"name": "a"}],
        "messages": history,
        "thinking": {"type": "adaptive"},
    }
    at_once, _ = prompt_of(json.dumps(body).encode())
    grown = Prompt("m", settings={"thinking": {"type": "adaptive"}})
    grown.add_tools(json.dumps(body["tools"]).encode())
    grown.add_system(b'"s"')
    aside = grown.copy()
    for n, message in enumerate(history):
        if data.draw(st.booleans()):
            for wrong in data.draw(st.lists(messages(), min_size=1, max_size=2)):
                grown.add_message(json.dumps(wrong).encode())
            grown.cut(n)
        grown.add_message(json.dumps(message).encode())
    assert len(grown) == len(at_once) and grown.n_messages == len(history)
    assert [grown.digest_at(n) for n in range(len(grown))] == [at_once.digest_at(n) for n in range(len(grown))]
    assert [grown.tokens_to(n) for n in range(len(grown))] == [at_once.tokens_to(n) for n in range(len(grown))]
    assert aside.n_messages == 0 and len(aside) == 2


# --------------------------------------------------------------------------- rules, each by itself


def text(words: str) -> bytes:
    return json.dumps({"role": "user", "content": words}).encode()


def prompt(n: int, words: str = "x" * 400) -> Prompt:
    """A prompt of `n` messages of a little over 100 tokens each."""
    made = Prompt("m")
    for i in range(n):
        made.add_message(text(f"{i} {words}"))
    return made


def at_end(made: Prompt, ttl_s: int = 300) -> list[Breakpoint]:
    return [Breakpoint(made.last_block(), ttl_s)]


@pytest.mark.parametrize("ttl_s", [300, 3600])
def test_an_entry_lives_for_its_lifetime_and_a_read_renews_it(ttl_s: int) -> None:
    """Read one second before the end it lives a whole lifetime more; at the end it is gone."""
    made, model = prompt(12), CacheModel()
    model.request(made, at_end(made, ttl_s), 0.0)
    assert model.request(made, at_end(made, ttl_s), ttl_s - 1.0).read == made.tokens
    assert model.request(made, at_end(made, ttl_s), 2.0 * ttl_s - 2.0).read == made.tokens
    assert model.request(made, at_end(made, ttl_s), 3.0 * ttl_s - 2.0).read == 0


def test_a_read_renews_the_shorter_entries_that_it_contains() -> None:
    """A rewind finds the entries of earlier turns alive as long as the later ones were read."""
    made, model = prompt(12), CacheModel()
    model.request(made, at_end(made), 0.0)
    start = made.tokens
    for now in (250.0, 500.0, 750.0):
        made.add_message(text(f"later {now}"))
        model.request(made, at_end(made), now)
    made.cut(12)
    made.add_message(text("another way"))
    assert model.request(made, at_end(made), 1000.0).read == start


def test_a_branch_is_not_renewed_by_reads_of_another() -> None:
    """Two histories share their beginning; reading one keeps that alive, and the other's own entry expires."""
    one, model = prompt(12), CacheModel()
    model.request(one, at_end(one), 0.0)
    shared, two = one.tokens, one.copy()
    one.add_message(text("one"))
    two.add_message(text("two"))
    model.request(one, at_end(one), 1.0)
    model.request(two, at_end(two), 2.0)
    for now in (200.0, 400.0):
        assert model.request(one, at_end(one), now).read == one.tokens
    assert model.request(two, at_end(two), 500.0).read == shared


@pytest.mark.parametrize(("added", "is_found"), [(19, True), (20, False)])
def test_a_breakpoint_looks_at_twenty_positions_itself_included(added: int, is_found: bool) -> None:
    """An entry 19 blocks before the breakpoint is read, one 20 blocks before is not, however alive."""
    made, model = prompt(12), CacheModel()
    model.request(made, at_end(made), 0.0)
    written = made.tokens
    for i in range(added):
        made.add_message(text(f"more {i}"))
    assert model.request(made, at_end(made), 1.0).read == (written if is_found else 0)


def test_a_prefix_below_the_minimum_is_neither_written_nor_read() -> None:
    """One token short of the minimum everything is fresh, each time."""
    made = prompt(3)
    for min_tokens, reads in ((made.tokens, made.tokens), (made.tokens + 1, 0)):
        model = CacheModel(min_tokens=min_tokens)
        model.request(made, at_end(made), 0.0)
        second = model.request(made, at_end(made), 1.0)
        assert second == Usage(fresh=made.tokens - reads, read=reads)


def test_two_lifetimes_in_one_prompt_are_written_and_expire_apart() -> None:
    """The head at one hour, the tail at five minutes: a wait of ten minutes loses the tail alone."""
    made, model = prompt(30), CacheModel()
    marks = [Breakpoint(11, 3600), Breakpoint(29, 300)]
    head = made.tokens_to(11)
    first = model.request(made, marks, 0.0)
    assert first == Usage(write_1h=head, write_5m=made.tokens - head)
    assert model.request(made, marks, 299.0) == Usage(read=made.tokens)
    assert model.request(made, marks, 899.0) == Usage(read=head, write_5m=made.tokens - head)
    assert model.request(made, marks, 899.0 + 3599.0) == Usage(read=head, write_5m=made.tokens - head)


def test_an_entry_keeps_the_lifetime_that_it_was_first_given() -> None:
    """Asking an hour for what is cached for five minutes buys nothing while that lives."""
    made, model = prompt(12), CacheModel()
    model.request(made, at_end(made, 300), 0.0)
    assert model.request(made, at_end(made, 3600), 100.0) == Usage(read=made.tokens)
    assert model.request(made, at_end(made, 3600), 500.0) == Usage(write_1h=made.tokens)


@settings(PATIENT, max_examples=80)
@given(
    st.lists(
        st.tuples(st.sampled_from([1.0, 200.0, 299.0, 301.0]), st.integers(1, 25), st.integers(0, 3)), max_size=12
    ),
    st.data(),
)
def test_more_breakpoints_never_read_less(turns: list[tuple[float, int, int]], data: st.DataObject) -> None:
    """At one lifetime, whatever was asked before: a client that sets more marks reads at least as much."""
    made, now = prompt(1), 0.0
    fewer, more = CacheModel(min_tokens=0), CacheModel(min_tokens=0)
    for gap, grows, back in turns:
        now += gap
        made.cut(max(1, made.n_messages - back))
        for _ in range(grows):
            made.add_message(text(data.draw(WORD)))
        marks = data.draw(st.lists(st.integers(0, len(made) - 1), max_size=3))
        extra = data.draw(st.lists(st.integers(0, len(made) - 1), max_size=2))
        few = fewer.request(made, [Breakpoint(b, 300) for b in sorted(set(marks))], now)
        many = more.request(made, [Breakpoint(b, 300) for b in sorted({*marks, *extra})], now)
        assert many.read >= few.read
        assert sum((few.fresh, few.read, few.write_5m)) == sum((many.fresh, many.read, many.write_5m)) == made.tokens


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m, p: m.request(p, at_end(p), -1.0), ValueError, "-1.0 is before 0.0"),
        (lambda m, p: m.request(p, at_end(p), float("nan")), ValueError, "nan"),
        (lambda m, p: m.request(p, [Breakpoint(3, 300)], 1.0), IndexError, "block 3"),
        (lambda m, p: m.request(p, [Breakpoint(-1, 300)], 1.0), IndexError, "block -1"),
        (lambda m, p: p.cut(4), ValueError, "4 messages"),
        (lambda m, p: p.add_system(b'"s"'), ValueError, "3 messages"),
        (lambda m, p: CacheModel(lookback=0), ValueError, "lookback 0"),
        (lambda m, p: Prompt("m", bytes_per_token=0.0), ValueError, "0.0"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, error: type[Exception], words: str) -> None:
    """A clock that goes back, a breakpoint outside the prompt: an error that names the value."""
    made, model = prompt(3), CacheModel(min_tokens=1)
    model.request(made, at_end(made), 0.0)
    with pytest.raises(error, match=words):
        call(model, made)


# --------------------------------------------------------------------------- cost and memory


def calls_of(action: Any) -> int:
    """Calls, of Python and of C, that an action makes: what grows with the work, without a clock."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def test_a_turn_costs_the_same_at_any_length_of_the_session() -> None:
    """The 3,000th request of a warm session makes exactly the calls of the 30th."""
    model, made, costs = CacheModel(min_tokens=1), prompt(1), defaultdict(list)

    def turn(n: int) -> None:
        made.add_message(text(f"turn {n}"))
        model.request(made, [Breakpoint(0, 300), *at_end(made)], 10.0 * n)

    for n in range(3000):
        if 30 <= n < 35 or n >= 2995:
            costs[n >= 2995].append(calls_of(lambda n=n: turn(n)))  # several: a collector's callback may fall into one
        else:
            turn(n)
    assert len(model) == 3001
    assert min(costs[True]) == min(costs[False])


def test_what_expires_is_dropped() -> None:
    """A model that serves one session after another holds the entries of the last lifetime alone."""
    model, most = CacheModel(min_tokens=1), 0
    for n in range(2000):
        made = prompt(2, f"session {n}")
        model.request(made, at_end(made, 300), 30.0 * n)
        most = max(most, len(model))
    assert most == 10
    assert len(model._cohorts) == len(model._entries) == 10
