"""The reader of `agent-session/1`, held to histories rebuilt the slow way from every shared recording."""

import json
from pathlib import Path

import pytest
from recordings import RECORDINGS, decoded, histories, whole_histories

from cg.replay.sessions import Damaged, Session, open_sessions

MADE_UP = "[no result was recorded]"
HIDDEN = "(nothing was said)"


def opened(path: Path) -> Session:
    [session] = open_sessions(path)
    assert isinstance(session, Session), session
    return session


def written(path: Path, events: list[dict], **members) -> Session:
    doc = {"format": "agent-session/1", "name": "t", "events": events, **members}
    path.write_text(json.dumps(doc), "utf-8")
    return opened(path)


def user(text: str, ts: float | None = None) -> dict:
    return {"role": "user", "ts": ts, "content": [{"type": "text", "text": text}]}


def result(call: str, text: str, ts: float | None = None) -> dict:
    return {"role": "user", "ts": ts, "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}


def answer(*blocks: dict, ts: float | None = None, **members) -> dict:
    return {"role": "assistant", "ts": ts, "ts_end": ts, "model": "m", "content": list(blocks), **members}


def said(text: str) -> dict:
    return {"type": "text", "text": text}


def call(call_id: str) -> dict:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {}}


def as_recorded(messages: list[dict]) -> list[dict]:
    """Our messages without what had to be made up."""
    kept = []
    for message in messages:
        blocks = [
            b
            for b in message["content"]
            if not (b["type"] == "tool_result" and b["content"] == MADE_UP) and b.get("text") != HIDDEN
        ]
        kept.append({"role": message["role"], "content": blocks})
    return [message for message in kept if message["content"]]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.stem)
def test_every_request_carries_the_history_of_its_recording(path: Path) -> None:
    """The body of request k is every event since the last compaction, whatever way the steps are put together.

    Every request of a short session, every 23rd and the last of a long one.
    """
    recorded = json.loads(path.read_bytes())
    requests = recorded["stats"]["requests"]
    expected = histories(recorded, lambda k: requests < 60 or k % 23 == 0 or k == requests - 1)
    session = opened(path)
    assert session.requests == requests
    for step, messages in whole_histories(session.steps()):
        if step.index in expected:
            assert as_recorded(decoded(messages)) == expected.pop(step.index), step.index
    assert not expected


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.stem)
def test_a_step_brings_the_answer_before_it_and_one_user_message(path: Path) -> None:
    """What a step brings does not grow with the session; compactions alone open a history anew."""
    steps = list(opened(path).steps())
    recorded = json.loads(path.read_bytes())
    compactions = sum(event["role"] == "system" for event in recorded["events"])
    assert [s.index for s in steps] == list(range(len(steps)))
    assert sum(s.opens for s in steps) == 1 + compactions
    assert {len(s.messages) for s in steps if not s.opens} <= {0, 2}
    for before, step in zip(steps, steps[1:], strict=False):
        if step.messages and not step.opens:
            assert step.messages[0].endswith(before.reply.removeprefix(b'{"role":"assistant","content":['))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.stem)
def test_times_and_usage_are_those_of_the_log(path: Path) -> None:
    """A request is sent when its last part is there, answered when the last part of the answer is, and paid as logged."""
    events = json.loads(path.read_bytes())["events"]
    session, start = opened(path), None
    answers = [(i, e) for i, e in enumerate(events) if e["role"] == "assistant"]
    for step, (i, event) in zip(session.steps(), answers, strict=True):
        start = step.at if start is None else start
        if session.timed and events[i - 1]["role"] == "user":
            assert step.at - start == pytest.approx(events[i - 1]["ts"] - (events[0]["ts"] or 0.0), abs=1e-3)
        if event.get("usage"):
            counted = event["usage"]
            assert step.usage is not None
            assert step.usage.read == counted["cache_read_input_tokens"]
            assert step.usage.write_5m + step.usage.write_1h == counted["cache_creation_input_tokens"]
            assert step.usage.output == counted["output_tokens"]
        else:
            assert step.usage is None
        assert step.model == (event.get("model") or "")


def test_the_lifetime_is_the_one_that_recorded_writes_state() -> None:
    """Five minutes, one hour, or unknown where no write says."""
    shown = {path.stem: opened(path).ttl_s for path in RECORDINGS}
    hour = {"agentv-small-17", "cipherbox-mid-50", "cipherbox-long-175", "entire-mid-70", "entire-long-155"}
    unknown = {"swe-agent-demo-21", "pi-long-373"}
    assert shown == {n: 3600 if n in hour else None if n in unknown else 300 for n in shown}


def test_a_log_without_times_gets_a_fixed_pace_and_says_so(tmp_path: Path) -> None:
    """No wait of such a session reaches a lifetime."""
    session = written(tmp_path / "a.json", [user("go"), answer(said("a")), user("on"), answer(said("b"))])
    steps = list(session.steps())
    assert not session.timed and steps[1].at - steps[0].at == 5.0 and steps[0].answered_at is None


def test_a_call_without_a_result_gets_an_error_that_says_so(tmp_path: Path) -> None:
    """The API refuses a call that nothing answers."""
    events = [user("go"), answer(call("c1"), call("c2")), result("c2", "ok"), answer(said("done"))]
    [_, step] = written(tmp_path / "a.json", events).steps()
    blocks = json.loads(step.messages[-1])["content"]
    assert [(b["tool_use_id"], b.get("is_error", False)) for b in blocks] == [("c2", False), ("c1", True)]


def test_results_stand_before_what_the_user_says(tmp_path: Path) -> None:
    """The API takes results at the head of the message only."""
    events = [user("go"), answer(call("c1")), user("wait"), result("c1", "ok"), answer(said("done"))]
    [_, step] = written(tmp_path / "a.json", events).steps()
    assert [b["type"] for b in json.loads(step.messages[-1])["content"]] == ["tool_result", "text"]


def test_the_same_history_answered_twice_is_a_step_that_brings_nothing(tmp_path: Path) -> None:
    """Both answers stay in the history, as one message."""
    events = [user("go", 0), answer(said("a"), ts=1), answer(said("b"), ts=2), user("on", 9), answer(said("c"), ts=10)]
    first, second, third = written(tmp_path / "a.json", events).steps()
    assert first.messages and second.messages == () and not second.opens
    assert second.at - first.at == 2
    assert [b["text"] for b in json.loads(third.messages[0])["content"]] == ["a", "b"]
    assert not third.opens


def test_a_compaction_opens_the_history_anew(tmp_path: Path) -> None:
    """What was said right before it is not sent again."""
    events = [
        user("go"),
        answer(said("a")),
        user("lost"),
        {"role": "system", "compact": True, "content": []},
        user("summary"),
        answer(said("b")),
    ]
    [_, step] = written(tmp_path / "a.json", events).steps()
    assert step.opens and [json.loads(m)["content"][0]["text"] for m in step.messages] == ["summary"]


def test_an_id_that_the_api_refuses_or_that_comes_twice_is_replaced(tmp_path: Path) -> None:
    """In the call and in its result alike."""
    events = [
        user("go"),
        answer(call("not valid!"), call("c1")),
        {"role": "user", "content": result("not valid!", "x")["content"] + result("c1", "y")["content"]},
        answer(call("c1")),
        result("c1", "z"),
        answer(said("done")),
    ]
    steps = list(written(tmp_path / "a.json", events).steps())
    calls = [b["id"] for s in steps[:2] for b in json.loads(s.reply)["content"]]
    answered = [b["tool_use_id"] for s in steps[1:] for b in json.loads(s.messages[-1])["content"]]
    assert calls == answered and len(set(calls)) == 3, (calls, answered)


def test_a_lone_surrogate_is_sent_as_its_escape(tmp_path: Path) -> None:
    """A message is always UTF-8."""
    [step] = written(tmp_path / "a.json", [user("half \ud83d of one"), answer(said("a"))]).steps()
    assert json.loads(step.messages[0].decode("utf-8"))["content"][0]["text"] == "half \ud83d of one"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"format": "agent-session/1", "events": [{"role": "user", "se', "damaged JSON"),
        (b'{"format": "agent-session/1", "name": "secret"}', "no list of events"),
        (b'{"format": "agent-session/2", "events": []}', "not of the format"),
        (b'{"format": "agent-session/1", "events": []}', "without a request"),
        (b'{"format": "agent-session/1", "events": [{"role": "user", "content": NaN}]}', "damaged JSON"),
        (b'{"format": "agent-session/1", "x": ' + b"[" * 100_000, "damaged JSON"),
    ],
    ids=["cut", "no events", "another version", "empty", "not a number", "deep"],
)
def test_a_file_that_cannot_be_read_is_damaged_with_its_reason(tmp_path: Path, raw: bytes, reason: str) -> None:
    """The reason says what is wrong and holds nothing of the content."""
    path = tmp_path / "a.json"
    path.write_bytes(raw)
    [damaged] = open_sessions(path)
    assert isinstance(damaged, Damaged)
    assert reason in damaged.reason and "secret" not in damaged.reason


@pytest.mark.parametrize("ts", [10**400, -(10**400), -1.0, 1e300, True, "5"], ids=lambda ts: str(type(ts).__name__))
def test_an_offset_out_of_range_is_no_time(tmp_path: Path, ts: object) -> None:
    """Whole numbers of any size too."""
    events = [user("go"), answer(said("a")), user("on"), answer(said("b"))]
    session = written(tmp_path / "a.json", [event | {"ts": ts, "ts_end": ts} for event in events])
    assert not session.timed and [step.answered_at for step in session.steps()] == [None, None]
