"""--verify: a program answers by its exit status, is never given to a shell, and leaves nothing running."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from cg.hints.shell.command import CommandCheck
from cg.hints.verify import Answer, Failure, Subject

POSIX = pytest.mark.skipif(os.name != "posix", reason="process groups of POSIX")
SUBJECT: Subject = {
    "snapshot_id": "s", "query": "q", "id": "a", "text": "t" * 200_000,
    "rank": 1, "source": "bm25", "bm25_rank": 1, "bm25_score": 0.0,
}  # fmt: skip


def python(code: str, *arguments: str) -> str:
    """A command line that runs `code`; forward slashes, since a backslash is an escape to shlex."""
    return " ".join(quote(word) for word in (sys.executable.replace("\\", "/"), "-c", code, *arguments))


def asks_for(id: str, log: Path) -> str:
    """A check that notes each candidate in `log` and finds the one with this id."""
    code = (
        "import json, sys; c = json.load(sys.stdin); open(sys.argv[2], 'a').write(c['id'] + chr(10));"
        "print('noise'); sys.exit(0 if c['id'] == sys.argv[1] else 1)"
    )
    return python(code, id, log.as_posix())


@pytest.mark.parametrize(
    ("status", "answer"),
    [(0, Answer.FOUND), (1, Answer.NOT_THIS), (2, Failure("exit status 2")), (127, Failure("exit status 127"))],
)
def test_the_exit_status_is_the_answer(status: int, answer: Answer | Failure) -> None:
    """A check may answer without reading its input, however large."""
    assert CommandCheck(python(f"import sys; sys.exit({status})"), 30)(SUBJECT) == answer


@POSIX
def test_a_check_that_dies_of_a_signal_has_failed() -> None:
    assert CommandCheck(python("import os; os.kill(os.getpid(), 9)"), 30)(SUBJECT) == Failure("signal 9")


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    """What a shell would run, redirect or expand is an argument like any other."""
    code = "import sys; sys.exit(0 if sys.argv[1:] == [';', 'touch', '$HOME', '>', 'x'] else 1)"
    command = python(code) + " ; touch $HOME > x"
    assert CommandCheck(command, 30)(SUBJECT) is Answer.FOUND


@pytest.mark.parametrize(
    ("wanted", "budget", "outcome", "exit_code"),
    [
        ("payments", [], {"result": "found", "id": "payments", "checks": 2}, 0),
        ("nothing", [], {"result": "absent", "id": None, "checks": 3}, 3),
        ("nothing", ["--budget", "3"], {"result": "absent", "id": None, "checks": 3}, 3),
        (
            "search",
            ["--budget", "2"],
            {"result": "incomplete", "id": None, "checks": 2, "reason": "budget", "at": "search"},
            4,
        ),
    ],
)
def test_the_exit_code_tells_the_outcome(
    cg_hints: Any, valid: Any, tmp_path: Path, wanted: str, budget: list[str], outcome: Any, exit_code: int
) -> None:
    log = tmp_path / "log"
    result = cg_hints("--verify", asks_for(wanted, log), *budget, stdin=valid)
    assert (result.returncode, json.loads(result.stdout), result.stderr) == (exit_code, outcome, b"")
    assert log.read_text().split() == ["cache", "payments", "search"][: outcome["checks"]]


def test_a_check_is_given_one_json_object(cg_hints: Any, valid: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    cg_hints(
        "--verify", python("import sys; open(sys.argv[1], 'w').write(sys.stdin.read())", log.as_posix()), stdin=valid
    )
    assert json.loads(log.read_text()) == {
        "snapshot_id": "s1", "query": "card payment", "id": "cache", "text": "keeps pages",
        "rank": 1, "source": "hint", "bm25_rank": 3, "bm25_score": 0.0,
    }  # fmt: skip


def test_a_broken_check_is_incomplete(cg_hints: Any, valid: Any) -> None:
    result = cg_hints("--verify", python("raise SystemExit(5)"), stdin=valid)
    want = {"result": "incomplete", "id": None, "checks": 1, "reason": "exit status 5", "at": "cache"}
    assert (result.returncode, json.loads(result.stdout)) == (4, want)


def test_a_limit_never_makes_an_absence(cg_hints: Any, valid: Any, tmp_path: Path) -> None:
    """`limit` cuts what is printed; "absent" is still said only after every document was checked."""
    result = cg_hints("--verify", asks_for("nothing", tmp_path / "log"), "--limit", "1", stdin=valid | {"limit": 1})
    assert json.loads(result.stdout) == {"result": "absent", "id": None, "checks": 3}


def test_a_check_is_given_the_name(cg_hints: Any, valid: Any, tmp_path: Path) -> None:
    for document in valid["documents"]:
        document["name"] = f"the {document['id']}"
    command = python("import json, sys; sys.exit(json.load(sys.stdin)['name'] != 'the search')")
    assert json.loads(cg_hints("--verify", command, stdin=valid).stdout)["id"] == "search"


def test_a_refused_request_is_not_checked(cg_hints: Any, valid: Any, tmp_path: Path) -> None:
    result = cg_hints("--verify", asks_for("cache", tmp_path / "log"), stdin=valid | {"query": 1})
    assert result.returncode == 2 and not (tmp_path / "log").exists()


def test_a_repeated_check_of_one_run_is_not_made_twice(cg_hints: Any, valid: Any, tmp_path: Path) -> None:
    """--lines with --verify answers an outcome a line and shares what was already checked."""
    log = tmp_path / "log"
    lines = (json.dumps(valid) + "\n") * 3
    result = cg_hints("--lines", "--verify", asks_for("payments", log), stdin=lines.encode())
    assert [json.loads(line)["checks"] for line in result.stdout.splitlines()] == [2, 0, 0]
    assert (result.returncode, log.read_text().split()) == (0, ["cache", "payments"])


def is_running(pid: int) -> bool:
    """Whether the process is there and not merely waiting to be reaped."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


# Starts a child of its own that would outlive it, notes both, and waits.
LINGERS = (
    "import subprocess, sys, os, time;"
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)']);"
    "open(sys.argv[1] + '.new', 'w').write(f'{os.getpid()} {p.pid}'); os.rename(sys.argv[1] + '.new', sys.argv[1]);"
    "time.sleep(120)"
)


@POSIX
def test_a_timeout_ends_the_check_and_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    assert CommandCheck(python(LINGERS, str(pids)), 3)(SUBJECT) == Failure("timeout")
    assert all(has_ended(int(pid)) for pid in pids.read_text().split())


# Starts a child that would outlive it and holds its input open, notes it, and answers at once.
LEAVES = (
    "import subprocess, sys;"
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)']);"
    "open(sys.argv[1], 'w').write(str(p.pid)); sys.exit(int(sys.argv[2]))"
)


@POSIX
@pytest.mark.parametrize(("status", "answer"), [(0, Answer.FOUND), (1, Answer.NOT_THIS)])
def test_an_answer_ends_all_that_the_check_started(tmp_path: Path, status: int, answer: Answer | Failure) -> None:
    """What a check leaves behind neither lives on nor delays the answer, though it holds an unread input open."""
    pid = tmp_path / "pid"
    assert CommandCheck(python(LEAVES, str(pid), str(status)), 30)(SUBJECT) is answer
    assert has_ended(int(pid.read_text()))


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="without waitid a forgotten status reads as 0")
def test_a_status_that_the_system_forgot_is_no_answer(valid: Any) -> None:
    """Where ended children are not reported, "found" would be a guess."""
    code = (
        "import runpy, signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        "runpy.run_module('cg.hints.cli', run_name='__main__')"
    )
    command = [sys.executable, "-c", code, "--verify", python("raise SystemExit(0)")]
    result = subprocess.run(command, input=json.dumps(valid).encode(), capture_output=True, timeout=60, check=False)
    assert (result.returncode, json.loads(result.stdout)["result"], result.stderr) == (4, "incomplete", b"")


@POSIX
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ending_the_run_ends_the_check(valid: Any, tmp_path: Path, number: int, exit_code: int) -> None:
    pids = tmp_path / "pids"
    command = [sys.executable, "-m", "cg.hints.cli", "--verify", python(LINGERS, str(pids))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(json.dumps(valid).encode())
    process.stdin.close()
    process.stdin = None
    deadline = time.monotonic() + 30
    while not pids.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (exit_code, b"", b"")
    assert all(has_ended(int(pid)) for pid in pids.read_text().split())
