"""Made sessions: valid, the same from the same seed, and distributed as recorded ones are."""

import json
from pathlib import Path

import pytest
from recordings import checked, decoded, whole_histories
from studies.synthetic import as_agent_session, made_session
from studies.wait_forecast import waits_of

from cg.replay.sessions import open_sessions
from cg.replay.simulation.bodies import body, frame_for


def test_a_seed_makes_the_same_session_always_and_another_makes_another() -> None:
    """A session is a pure function of its seed."""
    one = list(made_session(5, 50).steps())
    assert one == list(made_session(5, 50).steps()) != list(made_session(6, 50).steps())


@pytest.mark.parametrize("seed", range(5))
def test_every_body_passes_the_api(seed: int) -> None:
    session, validator, frame = made_session(seed, 40), checked(), None
    for step, messages in whole_histories(session.steps()):
        frame = frame or frame_for(step)
        validator.body(json.loads(body(frame, messages, ttl_s=300)), {})


def test_a_made_session_written_and_read_is_itself(tmp_path: Path) -> None:
    """Made or read from a file, a session is the same steps."""
    made = made_session(8, 60)
    path = tmp_path / "made.json"
    path.write_text(json.dumps(as_agent_session(made)), "utf-8")
    [read] = open_sessions(path)
    assert (read.requests, read.ttl_s, read.timed, read.client) == (60, 300, True, "made")
    for a, b in zip(made.steps(), read.steps(), strict=True):
        assert (a.messages, a.reply, a.usage, a.opens, a.model) == (b.messages, b.reply, b.usage, b.opens, b.model)
        assert b.at == pytest.approx(a.at, abs=1e-3)


def test_sizes_and_waits_are_those_of_recorded_sessions() -> None:
    """Shares that recorded sessions have: outputs of 500 tokens and more, waits that end cold."""
    sizes, waits = [], []
    for seed in range(60):
        steps = list(made_session(seed, 100).steps())
        waits += [w for w in waits_of(steps) if w is not None]
        for message in decoded([s.messages[-1] for s in steps[1:]]):
            sizes += [len(block["content"].encode()) / 4 for block in message["content"]]
    assert 0.18 < sum(size >= 500 for size in sizes) / len(sizes) < 0.28
    assert 0.02 < sum(wait >= 300 for wait in waits) / len(waits) < 0.04


def test_outputs_are_used_later() -> None:
    """Otherwise every rule would look harmless."""
    used = 0
    for step, messages in whole_histories(made_session(2, 100).steps()):
        said = json.loads(step.reply)["content"][0]["text"]
        if said.startswith("So entry_"):
            used += any(said[3:] in m.decode() for m in messages)
    assert used > 10


def test_no_session_has_no_turns() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        made_session(1, 0)
