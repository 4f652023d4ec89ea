"""Sessions that fail, workers that are killed, and runs that are given up."""

import os
import time
from concurrent.futures import BrokenExecutor, CancelledError, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest
from replaying import TRANSCRIPTS

from cg.replay.batch import replay, workers
from cg.replay.cli import main
from cg.replay.policies import parse
from cg.replay.reporting import command
from cg.replay.sessions import Session, open_all
from cg.replay.settings import Settings

SMALL = TRANSCRIPTS / "ctxeval-small-15.json"


def small() -> Session:
    [session] = open_all([SMALL])
    assert isinstance(session, Session)
    return session


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_session_that_fails_in_any_way_is_named_and_the_rest_is_priced(jobs: int) -> None:
    """The kind of the fault is given and not its words, which may hold content."""
    failing = replace(small(), name="failing", read=partial(int, "a secret"))
    with ThreadPoolExecutor(jobs) as pool:
        executor = None if jobs == 1 else pool
        results = list(replay([failing, small()], parse(["cold"]), Settings(), executor=executor, jobs=jobs))
    assert [(r.name, r.error) for r in results] == [
        ("failing", "cannot be replayed: ValueError"),
        ("ctxeval-small-15", None),
    ]


def test_a_worker_that_is_killed_loses_sessions_by_name(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was lost is skipped as what cannot be read is, with the same exit codes."""
    killing = replace(small(), name="killing", path=Path("killing.json"), read=partial(os._exit, 1))
    sessions = [killing, *(replace(small(), name=f"s{n}") for n in range(20))]
    with workers(2) as pool:
        results = list(replay(sessions, parse(["cold"]), Settings(), executor=pool, jobs=2))
    assert [r.name for r in results] == [s.name for s in sessions]
    assert {r.error for r in results} <= {None, "lost: a worker process was ended from outside"}
    assert results[0].error is not None
    monkeypatch.setattr(command, "open_all", lambda _: iter([killing]))
    assert main(["replay", "--jobs", "2", "--policy", "none", "any"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "skipped killing.json: lost: a worker process was ended from outside\n"


def test_an_interrupt_ends_the_workers_too() -> None:
    """Nobody waits for what is still being worked on, and nothing of it is left behind."""
    before = set(active_children())
    with pytest.raises(KeyboardInterrupt), workers(2) as pool:
        assert pool is not None
        pool.submit(os.getpid).result()
        unfinished = pool.submit(time.sleep, 600)
        raise KeyboardInterrupt
    assert isinstance(_outcome(unfinished), BrokenExecutor | CancelledError)
    assert set(active_children()) <= before


def _outcome(future) -> BaseException | None:  # type: ignore[no-untyped-def]
    try:
        return future.exception(timeout=0)
    except CancelledError as error:
        return error


def test_an_interrupt_is_an_exit_code_and_no_traceback(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """130, as a shell counts it, with nothing printed."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "replay", interrupted)
    assert main(["replay", str(SMALL)]) == 130
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
