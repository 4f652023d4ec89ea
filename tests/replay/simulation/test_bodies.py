"""Bodies rebuilt from recordings: the API takes every one of them."""

import json
import os
from pathlib import Path

import pytest
from recordings import RECORDINGS, checked, whole_histories
from studies.synthetic import made_session

from cg.replay.sessions import open_sessions
from cg.replay.simulation.bodies import MAX_FRAME_BYTES, body, frame_for, neutral_frame
from cg.sweep.body.transcript import read

HELLO = b'{"role":"user","content":[{"type":"text","text":"hello"}]}'
FRAME = neutral_frame("claude-sonnet-4-5", system_bytes=5_000, tools_bytes=20_000)


def marks(sent: dict) -> list[tuple]:
    """(section, message, block, ttl) of every mark of a body."""
    found = [
        ("system", -1, i, b["cache_control"].get("ttl")) for i, b in enumerate(sent["system"]) if "cache_control" in b
    ]
    for i, message in enumerate(sent["messages"]):
        for k, block in enumerate(message["content"]):
            if "cache_control" in block:
                found.append(("messages", i, k, block["cache_control"].get("ttl")))
    return found


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.stem)
def test_every_body_of_every_recording_passes_the_api(path: Path) -> None:
    """No field that it refuses, no call without a result, no two neighbours of one role, never more than four marks.

    Of a session of more than 200 requests every eighth and the last, unless CG_LONG=1.
    """
    [session] = open_sessions(path)
    validator, frame = checked(), None
    stride = 1 if session.requests <= 200 or os.environ.get("CG_LONG") == "1" else 8
    for step, messages in whole_histories(session.steps()):
        frame = frame or frame_for(step)
        if step.index % stride and step.index + 1 < session.requests:
            continue
        validator.body(json.loads(body(frame, messages, ttl_s=session.ttl_s or 300)), {})


def test_marks_stand_where_the_client_sets_them() -> None:
    """On both system blocks and on the last block of the last message; spelled at one hour, none without a lifetime."""
    messages = [HELLO, b'{"role":"assistant","content":[{"type":"text","text":"hi"}]}', HELLO]
    for ttl_s, spelled in ((300, None), (3600, "1h")):
        sent = json.loads(body(FRAME, messages, ttl_s=ttl_s))
        assert marks(sent) == [("system", -1, 0, spelled), ("system", -1, 1, spelled), ("messages", 2, 0, spelled)]
    assert marks(json.loads(body(FRAME, messages, ttl_s=None))) == []


def test_the_sweep_reads_the_lifetime_that_was_asked_for() -> None:
    """The marks are those that the sweep's own reader knows."""
    for ttl_s in (300, 3600, None):
        assert read(body(FRAME, [HELLO], ttl_s=ttl_s)).ttl_s == ttl_s


def test_a_body_but_for_its_last_mark_begins_the_next_one() -> None:
    """What a step brings is appended: the prefix before it does not change."""
    messages: list[bytes] = []
    before = b""
    for step in made_session(1, turns=20).steps():
        messages += step.messages
        now = body(FRAME, messages, ttl_s=None)
        assert now.startswith(before.removesuffix(b"]}"))
        before = now


def test_a_frame_has_about_the_size_that_was_asked_for() -> None:
    """A word more or less for each text."""
    for size in (5_000, 50_000, 200_000):
        frame = neutral_frame("m", system_bytes=size, tools_bytes=2 * size)
        assert abs(len(frame.system) - size) < 20
        assert abs(len(frame.tools) - 2 * size) < 20 * 25


def test_the_same_frame_has_the_same_bytes() -> None:
    """Otherwise no two runs would agree."""
    again = neutral_frame("claude-sonnet-4-5", system_bytes=5_000, tools_bytes=20_000)
    assert again == FRAME


def test_a_session_s_frame_fills_its_first_recorded_prompt() -> None:
    """The provider counted the prompt; what the messages do not account for is the frame."""
    for path in RECORDINGS:
        [session] = open_sessions(path)
        step = next(session.steps())
        sent = len(body(frame_for(step), step.messages, ttl_s=None))
        tokens = 35_800
        if step.usage is not None:
            tokens = step.usage.fresh + step.usage.read + step.usage.write_5m + step.usage.write_1h
        assert sent == pytest.approx(2.9 * tokens, rel=0.03, abs=1_500), session.name


def test_a_request_that_does_not_end_in_a_user_message_is_refused() -> None:
    """Nothing could carry the mark."""
    for messages in ([], [b'{"role":"assistant","content":[{"type":"text","text":"hi"}]}']):
        with pytest.raises(ValueError, match="user message"):
            body(FRAME, messages, ttl_s=300)
    with pytest.raises(ValueError, match="has none"):
        body(FRAME, [b'{"role":"user","content":[]}'], ttl_s=300)


def test_a_frame_past_the_limit_is_refused() -> None:
    """The number and the limit stand in the message."""
    with pytest.raises(ValueError, match=str(MAX_FRAME_BYTES)):
        neutral_frame("m", system_bytes=MAX_FRAME_BYTES + 1, tools_bytes=0)
