"""The part of requests that logs leave out: as large as the recorded usage says, and no larger behind a compaction."""

import base64
from pathlib import Path

import pytest
from claude_log import Log, call, said, usage

from cg.replay.policies import NONE
from cg.replay.reading import record
from cg.replay.run import run
from cg.replay.sessions import Session, open_sessions
from cg.replay.settings import Settings
from cg.replay.simulation.bodies import FRAME_TOKENS
from cg.replay.simulation.frames import frames

RATIO = 2.9


def recorded(log: Log, tmp_path: Path):
    [session] = open_sessions(log.write(tmp_path / "log.jsonl"))
    assert isinstance(session, Session)
    return record(session)


def test_an_image_in_the_first_prompt_is_not_taken_from_the_frame(tmp_path: Path) -> None:
    """Its base64 would be more than the prompt; the frame was nothing, and the bill a quarter of the recorded one."""
    data = base64.b64encode(bytes(600_000)).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    for content in ([said("look"), image], [{"type": "tool_result", "tool_use_id": "c0", "content": [image]}]):
        log = Log()
        if content[0]["type"] == "tool_result":
            log.answer("m0", call("c0"), usage=None)
        log.user(content)
        log.answer("m1", said("seen"), usage=usage(written=40_000))
        [tokens] = frames(recorded(log, tmp_path).turns, RATIO).values()
        assert tokens == pytest.approx(38_500, abs=300)


def in_mid_history() -> Log:
    """A log that begins with a prompt of 190,000 tokens, is compacted, and goes on with one of 40,000."""
    log = Log()
    log.user("go on", parent="in another file")
    log.answer("m1", said("so I do"), usage=usage(written=190_000))
    log.user("and now?")
    log.answer("m2", said("now this"), usage=usage(read=190_000, written=50))
    log.compact("all that was")
    log.user("next")
    log.answer("m3", said("next it is"), usage=usage(written=40_000))
    log.user("more")
    log.answer("m4", said("more"), usage=usage(read=40_000, written=50))
    return log


def test_a_frame_that_a_later_prompt_contradicts_is_estimated_anew(tmp_path: Path) -> None:
    """What a log lacks of its history is in every prompt up to the compaction, and in none behind it."""
    recording = recorded(in_mid_history(), tmp_path)
    assert frames(recording.turns, RATIO) == {0: pytest.approx(190_000, abs=100), 2: pytest.approx(40_000, abs=100)}
    seen: list[int] = []
    run(recording, NONE, Settings(), lambda sent: seen.append(sent.line.prompt.tokens))
    assert seen == [pytest.approx(tokens, abs=500) for tokens in (190_000, 190_050, 40_000, 40_050)]


def test_a_fixed_frame_stays(tmp_path: Path) -> None:
    """It was asked for."""
    seen: list[int] = []
    recording = recorded(in_mid_history(), tmp_path)
    run(recording, NONE, Settings(fixed_tokens=10_000), lambda sent: seen.append(sent.line.prompt.tokens))
    assert all(tokens == pytest.approx(10_000, abs=500) for tokens in seen)


def test_a_rewind_keeps_the_frame_where_its_size_is_in_doubt(tmp_path: Path) -> None:
    """The tokens of a long history are known to a third; what a few reminders weigh is no other frame."""
    log = Log()
    log.user("go")
    fork = log.answer("m1", said("a"), usage=usage(written=40_000))
    log.user("x" * 290_000)
    log.answer("m2", said("b"), usage=usage(read=40_000, written=110_000))
    log.user("y" * 290_000, parent=fork)
    log.answer("m3", said("c"), usage=usage(read=40_000, written=75_000))
    assert list(frames(recorded(log, tmp_path).turns, RATIO)) == [0]


def test_the_first_usage_that_is_recorded_counts(tmp_path: Path) -> None:
    """The first answer may have none; without any the frame is the median one."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"), usage=None)
    log.user("on")
    log.answer("m2", said("b"), usage=usage(written=60_000))
    assert frames(recorded(log, tmp_path).turns, RATIO) == {0: pytest.approx(60_000, abs=100)}
    log = Log()
    log.user("go")
    log.answer("m1", said("a"), usage=None)
    assert frames(recorded(log, tmp_path).turns, RATIO) == {0: FRAME_TOKENS}
