"""`cg-sweep status --line`: one line for a status bar, from a session's log, a state, or both."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from piped import START, Pipe, command
from sweeping import encoded, history

from cg.sweep.accounting.status_line import TAIL_BYTES
from cg.sweep.prices import PriceTable

EXAMPLE = Path(__file__).parents[2] / "examples" / "claude-code"
SECOND = "2027-01-15T08:00:00Z"  # START
MODEL = "claude-opus-4-6"


def answer(written: int = 1000, read: int = 9000, hour: int = 0, **members: Any) -> dict[str, Any]:
    """A line of a log: an answer whose request read and wrote so many tokens, `hour` of them for an hour."""
    split = {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour}
    counts = {
        "input_tokens": 5,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": split,
    }
    return {"type": "assistant", "timestamp": SECOND, "message": {"model": MODEL, "usage": counts}, **members}


def line(
    folder: Path,
    *lines: Any,
    now: float = START + 60,
    status: dict[str, Any] | None = None,
    arguments: tuple[str, ...] = (),
) -> str:
    """What stands in the bar, of a log of these lines."""
    log = folder / "log.jsonl"
    log.write_bytes(
        b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in lines)
    )
    sent = {"session_id": "s", "transcript_path": str(log), "model": {"id": MODEL}, **(status or {})}
    code, out = command("status", "--line", "--now", repr(now), *arguments, stdin=json.dumps(sent).encode())
    assert code == 0 and out.count(b"\n") == 1
    return out.decode().rstrip("\n")


def lapse(tokens: int, ttl_s: int) -> str:
    price = PriceTable.default().price(MODEL)
    assert price is not None
    return f"${tokens * (price.write(ttl_s) - price.read) / 1e6:.2f}"


def test_the_line_counts_down_and_then_up(tmp_path: Path) -> None:
    """Seconds until the entry expires, and what the next request pays more once it has."""
    log = answer(read=90_000, written=10_000)
    assert line(tmp_path, log) == f"cache 4:00 left | a lapse writes 100k tokens again: {lapse(100_000, 300)}"
    assert line(tmp_path, log, now=START + 299).startswith("cache 0:01 left")
    gone = f"| next request writes 100k tokens again: {lapse(100_000, 300)}"
    assert line(tmp_path, log, now=START + 300) == f"cache expired 0:00 ago {gone}"
    assert line(tmp_path, log, now=START + 8000) == f"cache expired 2:08:20 ago {gone}"
    assert line(tmp_path, log, now=START - 5).startswith("cache 5:00 left")


def test_the_lifetime_is_that_of_the_newest_write_that_states_one(tmp_path: Path) -> None:
    """An hour costs more to write again; where no write states a lifetime none is made up."""
    hour = answer(read=90_000, written=10_000, hour=10_000)
    assert line(tmp_path, hour) == f"cache 59:00 left | a lapse writes 100k tokens again: {lapse(100_000, 3600)}"
    only_read = answer(read=100_000, written=0)
    assert line(tmp_path, hour, only_read).startswith("cache 59:00 left")
    assert line(tmp_path, answer(), hour, only_read).startswith("cache 59:00 left")
    assert line(tmp_path, only_read).startswith("cache last used 1:00 ago | a lapse writes 100k tokens again")


@pytest.mark.parametrize(
    "last",
    [
        answer(read=1, isSidechain=True),
        {"type": "user", "timestamp": SECOND, "message": {"usage": {"input_tokens": 1}}},
        answer(read=1, timestamp="yesterday"),
        answer(read=0, written=0),
        b'{"type": "assistant", "timestamp": "2027-01-15T08:00:50Z", "message": {"usage": {"cache_read_inp',
        b'\xff\x00"usage"',
        b'["usage"]',
        {"type": "assistant", "timestamp": SECOND, "message": ["usage"]},
    ],
)
def test_what_is_no_answer_of_the_conversation_is_passed_over(last: Any, tmp_path: Path) -> None:
    """Sub-agents, tools, cut lines, errors without a usage."""
    assert line(tmp_path, answer(read=90_000, written=10_000), last).startswith("cache 4:00 left | a lapse writes 100k")


def test_what_is_not_known_is_not_in_the_line(tmp_path: Path) -> None:
    """No log yet, no price, no session: each leaves a shorter line."""
    assert line(tmp_path) == "cache: nothing sent yet"
    assert line(tmp_path, status={"transcript_path": "/nowhere/a.jsonl"}) == "cache: nothing sent yet"
    assert line(tmp_path, status={"transcript_path": str(tmp_path)}) == "cache: nothing sent yet"
    assert (
        line(tmp_path, answer(), status={"model": {"id": "other"}})
        == "cache 4:00 left | a lapse writes 10k tokens again"
    )
    assert "$" in line(tmp_path, answer(), status={"model": {"id": f"{MODEL}[1m]"}})
    assert "$" in line(tmp_path, answer(), status={"model": "of another type"})
    usage = {"current_usage": {"cache_read_input_tokens": 50_000, "cache_creation_input_tokens": 0}}
    assert "a lapse writes 50k" in line(tmp_path, answer(), status={"context_window": usage})
    assert line(tmp_path, status={"context_window": usage}).startswith("a lapse writes 50k")


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    """A line of a status bar is made every few seconds, of logs of any length."""
    early = answer(read=1_000_000, timestamp="2027-01-15T07:59:00Z")
    assert line(tmp_path, early, {"type": "user", "message": "x" * TAIL_BYTES}, answer()).startswith("cache 4:00")
    assert line(tmp_path, early, {"type": "user", "message": "x" * TAIL_BYTES}) == "cache: nothing sent yet"


def swept(tmp_path: Path, *, to: int = 1000) -> Pipe:
    """A session of the pipe whose cold request dropped outputs."""
    pipe = Pipe(tmp_path, preset="cold")
    pipe.run(encoded(history(0)), START)
    pipe.run(encoded(history(14)), START + 10)
    _, report = pipe.run(encoded(history(14, last="And now?")), START + to)
    assert report["reason"] == "removed"
    return pipe


def test_a_sessions_state_says_what_was_removed_and_what_it_saved(tmp_path: Path) -> None:
    """From the state alone: its clock, its lifetime, its removals, their worth by the turns so far."""
    pipe = swept(tmp_path)
    code, out = command("status", "--line", *pipe.where(), "--model", MODEL, "--now", repr(START + 1100))
    found = out.decode().rstrip("\n").split(" | ")
    report = json.loads((tmp_path / "report.json").read_text())
    n, net = len(report["removed"]), report["savings"]["net_usd"]
    assert code == 0 and found[0] == "cache 3:20 left"
    assert found[1].startswith(f"{n} removed (") and n > 0
    assert found[2] == f"saved {'-' if net < 0 else ''}${abs(net):.2f}"


def test_a_state_that_does_not_know_the_session_gives_its_sums(tmp_path: Path) -> None:
    """So it is with a gateway's, whose names for sessions nobody else can make; a session that was named has its own."""
    pipe = swept(tmp_path)
    state = ("--state", str(pipe.state))
    here = line(tmp_path, answer(), status={"session_id": pipe.session}, arguments=state)
    there = line(tmp_path, answer(), status={"session_id": "another"}, arguments=state)
    assert "in all sessions" in there and "in all sessions" not in here
    assert here.split(" | ")[2].split()[0] == there.split(" | ")[2].split()[0]
    _, out = command("status", "--line", *state, "--session", "another", "--now", repr(START))
    assert out == b"cache: nothing sent yet | nothing removed\n"


@pytest.mark.parametrize("stdin", [b"", b"[]", b"7", b"{", b"[" * 100_000])
def test_what_is_no_status_is_refused(stdin: bytes, capsys) -> None:
    """One line on stderr, exit code 2, nothing in the bar."""
    assert command("status", "--line", stdin=stdin) == (2, b"")
    assert capsys.readouterr().err.count("\n") == 1


def test_a_status_needs_a_state_or_a_line(tmp_path: Path, capsys) -> None:
    """And a named session needs the state that knows it; a state that is not there is not made."""
    assert command("status") == command("status", "--line", "--session", "s") == (2, b"")
    assert "--state" in capsys.readouterr().err
    assert command("status", "--line", "--session", "s", "--state", str(tmp_path / "no.db")) == (2, b"")
    assert list(tmp_path.iterdir()) == []


def test_the_example_settings_name_a_command_that_works() -> None:
    """As Claude Code runs it: in a shell, with its status on standard input."""
    settings = json.loads((EXAMPLE / "settings.json").read_text("utf-8"))
    assert settings["statusLine"]["type"] == "command"
    program, *arguments = shlex.split(settings["statusLine"]["command"])
    assert program == "cg-sweep"
    done = subprocess.run(
        [sys.executable, "-m", "cg.sweep.cli", *arguments, "--now", "1800000200"],
        input=(EXAMPLE / "status.json").read_bytes(),
        capture_output=True,
        cwd=EXAMPLE.parents[1],
        env=os.environ,
    )
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout == f"cache 2:00 left | a lapse writes 82k tokens again: {lapse(82_500, 300)}\n".encode()
