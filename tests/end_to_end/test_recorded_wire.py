"""Recorded sessions of real clients, turn by turn through the pipe, with a judge that calls everything spent."""

import json
import os
from pathlib import Path

import pytest
from piped import START, Pipe, changed_texts, encoded, follow_on, recorded, tokens, validate, verdicts

from cg.sweep.body.transcript import read
from cg.sweep.config import load
from cg.sweep.drivers import Sweep
from cg.sweep.judging.recorded_asker import RecordedAsker
from cg.sweep.store_sqlite import SqliteStore

ALL_SPENT = verdicts(*"d" * 12)
STEP_S = 10.0
LONG_S = 700.0  # the ask at clock + 240 renews the entry: it is cold past 240 + 300 + 60
LARGE = {"claude_code": 17, "litellm": 14, "sdk_tool_runner_full": 14}  # the turn that comes after the long wait
SMALL = [
    "claude_code_1h",
    "claude_code_compact",
    "claude_code_cut_stream",
    "claude_code_no_system_role",
    "claude_code_output_limit",
    "claude_code_resume",
    "claude_code_subagent",
    "sdk_threads_refused",
]
LOW = "min_inventory = 1\nmin_tokens = 50\n"


def session(folder: str) -> list[dict]:
    """The recorded requests, and two that follow them."""
    rows = recorded(folder)
    second = follow_on(rows[-1], "All read.", "And now?")
    return [*rows, second, follow_on(second, "Nothing is left.", "Fine, go on.")]


def played(pipe: Pipe, rows: list[dict], long_before: int, reply: str = ALL_SPENT, long_s: float = LONG_S):
    """(row, body, what left, report) of each turn; the turn numbered `long_before` (from 1) comes after a long wait."""
    now = START
    for number, row in enumerate(rows, start=1):
        now += long_s if number == long_before else STEP_S
        body = encoded(row["body"])
        yield row, body, *pipe.run(body, now, reply)


def checked(turns) -> list[dict[tuple[str, int], bytes]]:
    """What stood in the place of removed texts, turn by turn; every body valid and otherwise the client's.

    A removal stays as it was written, unless its end is counted: a client said that a repeated read is unchanged. Then
    its text is whole from that turn on.
    """
    seen: list[dict[tuple[str, int], bytes]] = []
    restored: set[tuple[str, int]] = set()
    for row, body, out, report in turns:
        validate(out, row)
        written = changed_texts(body, out)
        there = tokens(body)
        back = {where for before in seen for where in before if where in there and where not in written} - restored
        assert len(back) == report["events"].get("sweep_restored", 0), "a removal ended without a word"
        restored |= back
        assert not restored & written.keys(), "what came back was removed again"
        for before in seen:
            for where, token in before.items():
                assert where in restored or where not in there or written[where] == token, "a removal changed"
        assert len(written) == report["replayed"] + len(report["removed"])
        seen.append(written)
    return seen


@pytest.mark.parametrize("folder", LARGE)
def test_a_long_session_at_the_defaults_is_swept_at_its_cold_request(folder: str, tmp_path: Path) -> None:
    """Ten candidates, an ask in the idle gap, removals at the cold request, the same bytes ever after."""
    turns = list(played(Pipe(tmp_path, preset="paid"), session(folder), LARGE[folder]))
    seen = checked(turns)
    reports = [report for *_, report in turns]
    cold = LARGE[folder] - 1
    assert reports[cold]["phase"] == "cold" and reports[cold]["reason"] == "removed"
    assert not any(seen[:cold]) and seen[cold]
    assert seen[-1].items() >= seen[cold].items()
    assert [r["replayed"] for r in reports[cold + 1 :]] == [len(seen[cold])] * (len(reports) - cold - 1)


@pytest.mark.parametrize("folder", LARGE)
def test_a_library_with_one_open_store_sends_what_the_pipe_sends(folder: str, tmp_path: Path) -> None:
    """The pipe opens its state at each turn; one process that stays, and one that starts midway, write the same bytes."""
    (tmp_path / "pipe").mkdir()
    piped = [out for _, _, out, _ in played(Pipe(tmp_path / "pipe", preset="paid"), session(folder), LARGE[folder])]
    config, asker, now = load(preset="paid"), RecordedAsker(ALL_SPENT, None), START
    rows, path = session(folder), tmp_path / "library" / "sweep.db"
    stays = restarted = None
    for number, row in enumerate(rows, start=1):
        if number in (1, LARGE[folder] + 1):  # a new process right after the removal
            stays = restarted
            restarted = SqliteStore(path, config)
            if stays:
                stays.close()
        sweep, body = Sweep(config, restarted), encoded(row["body"])
        previous = now
        now += LONG_S if number == LARGE[folder] else STEP_S
        if number == LARGE[folder]:
            (branch,) = sweep.state("t").branches
            sweep.settle("t", branch, previous + 240, asker=asker)
        assert sweep.process(body, "t", now, asker=asker).body == piped[number - 1], number
    restarted.close()


@pytest.mark.parametrize("preset", ["paid", "cold"])
@pytest.mark.parametrize("folder", SMALL)
def test_a_short_session_of_any_shape_is_valid_and_otherwise_the_clients(
    folder: str, preset: str, tmp_path: Path
) -> None:
    """Side calls, sub-agents, compaction, resumes, retries: whatever is removed, all other bytes are the client's."""
    keep = "keep_newest = 0\n" if preset == "cold" else ""
    rows = session(folder)
    waits = 3700.0 * 2 if folder == "claude_code_1h" else LONG_S
    every = range(2, len(rows) + 1)
    for long_before in every if os.environ.get("CG_LONG") == "1" else (len(rows) // 2, len(rows) - 1):
        where = tmp_path / str(long_before)
        where.mkdir()
        checked(played(Pipe(where, preset=preset, toml=LOW + keep), rows, long_before, long_s=waits))


REMOVING = {"claude_code_compact": 5, "claude_code_subagent": 6, "sdk_threads_refused": 5}


@pytest.mark.parametrize("folder", REMOVING)
def test_a_short_session_with_low_floors_is_swept_by_recency(folder: str, tmp_path: Path) -> None:
    """Outputs of 50 tokens and more go at the cold request, in each client's own spelling."""
    pipe = Pipe(tmp_path, preset="cold", toml=LOW + "keep_newest = 0\n")
    rows = session(folder)
    if folder.startswith(
        "claude_code"
    ):  # up to a request whose output the model has yet to read, and one that follows it
        rows = [*rows[: REMOVING[folder] - 1], follow_on(rows[REMOVING[folder] - 2], "Read.", "And now?")]
    assert checked(played(pipe, rows, REMOVING[folder]))[REMOVING[folder] - 1]


@pytest.mark.parametrize("long_before", [5, 6, 8])
def test_an_output_that_an_unchanged_notice_leans_on_never_goes(long_before: int, tmp_path: Path) -> None:
    """The client answers a repeated read (turn 6) with a notice: the first copy is the only one the model has. Before, in
    turn 5, the model has yet to read it."""
    pipe = Pipe(tmp_path, preset="cold", toml=LOW + "keep_newest = 0\n")
    turns = list(played(pipe, session("claude_code_compact"), long_before))
    read_twice = ("toolu_fake000008", 0)
    assert not any(read_twice in changed_texts(body, out) for _, body, out, _ in turns)
    assert any(report["removed"] for *_, report in turns)  # others do


def test_a_short_session_with_low_floors_is_swept_by_its_model(tmp_path: Path) -> None:
    """The one large output goes; the other is kept, as the reply says."""
    pipe = Pipe(tmp_path, toml=LOW, preset="paid")
    seen = checked(played(pipe, session("claude_code_compact"), 6, verdicts("d", "k", quote="First answer.")))
    assert list(seen[5]) == [next(iter(tokens(encoded(recorded("claude_code_compact")[5]["body"]))))]


@pytest.mark.parametrize("preset", ["paid", "cold", "classic"])
@pytest.mark.parametrize("folder", ["langchain", "sdk_tool_runner_threads"])
def test_sessions_without_a_mark_or_held_by_the_server_are_byte_for_byte_the_same(
    folder: str, preset: str, tmp_path: Path
) -> None:
    """No lifetime is known, or no history is here: nothing is declared, asked or removed, however long the waits."""
    keep = "keep_newest = 0\n" if preset == "cold" else ""
    pipe = Pipe(tmp_path, preset=preset, toml=LOW + keep)
    for long_before in (5, 12):
        for _, body, out, report in played(pipe, recorded(folder), long_before):
            assert out == body and not report["removed"] and report["ask"] is None
            if folder == "sdk_tool_runner_threads":
                assert report["reason"] == "server_thread"


@pytest.mark.parametrize("folder", ["claude_code_subagent", "claude_code_compact"])
def test_side_calls_and_token_counts_are_byte_for_byte_the_same(folder: str, tmp_path: Path) -> None:
    """A request without tools is no step of the task: it leaves as it came, before and after removals."""
    n = 0
    for row, body, out, report in played(Pipe(tmp_path, toml=LOW, preset="paid"), session(folder), 6):
        if row["kind"] in ("side", "count_tokens"):
            assert out == body and report["reason"] == "side_call"
            n += 1
    assert n == sum(row["kind"] in ("side", "count_tokens") for row in recorded(folder)) > 0


def test_the_tool_is_declared_last_from_the_first_request_with_the_same_bytes(tmp_path: Path) -> None:
    """What is cached in front of every message never changes."""
    raw = set()
    for _, _, out, _ in played(Pipe(tmp_path, preset="paid"), session("claude_code"), 17):
        tools = json.loads(out)["tools"]
        assert [t["name"] for t in tools].index("cg_expand") == len(tools) - 1
        start, end = read(out).member("tools")
        raw.add(out[out.rindex(b',{"name":"cg_expand"', start, end) : end])
    assert len(raw) == 1
