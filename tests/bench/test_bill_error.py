"""The study that holds simulated bills beside recorded ones."""

import importlib.util
from pathlib import Path

import pytest
from claude_log import Log, said, usage

from cg.replay.sessions import Session, open_sessions

PATH = Path(__file__).parents[2] / "bench" / "replay" / "bill_error.py"


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("bill_error", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compared(study, log: Log, tmp_path: Path):
    [session] = open_sessions(log.write(tmp_path / "log.jsonl"))
    assert isinstance(session, Session)
    return study.compared(session)


def test_a_session_that_did_what_the_model_says_has_no_error(study, tmp_path):
    """One prompt written, then read."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"), usage=usage(written=20_000))
    log.user("on")
    log.answer("m2", said("b"), usage=usage(read=20_000, written=40))
    row = compared(study, log, tmp_path)
    assert row.error == pytest.approx(0, abs=0.01) and row.before == row.missed == 0


def test_what_another_session_cached_and_what_was_missed_are_named(study, tmp_path):
    """At an hour: 1.9 units a token each."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"), usage=usage(read=15_000, written=5_000))
    log.user("on")
    log.answer("m2", said("b"), usage=usage(read=0, written=20_040))
    row = compared(study, log, tmp_path)
    assert (row.before, row.missed) == (pytest.approx(1.9 * 15_000), pytest.approx(1.9 * 20_000))
    assert abs(row.rest) < 0.01 < abs(row.error)
    assert row.name in study.page([row], 0)
