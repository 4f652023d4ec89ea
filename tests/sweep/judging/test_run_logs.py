"""What counts as a log of what ran, and that whatever may print something else does not."""

import time

import pytest

from cg.sweep.judging.run_logs import MOST_CHARS, _is_run, is_run_log

COMMIT = """git commit -m "$(cat <<'EOF'
mend: a; b && c

more `text` of it
EOF
)\""""


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "cd x && pytest -q 2>&1 | tail -20",
        "timeout 60 pytest",
        "FOO=1 BAR='a b' python -m pytest tests | grep -A 5 FAILED",
        "go test ./... 2>&1 | grep FAIL | head -n 5",
        "npm run test:unit -- x",
        "npx tsc --noEmit",
        "mise run lint",
        "uv run pytest",
        "cargo test",
        "ruff check . && ruff format --check .",
        "make",
        "make build > log 2>&1",
        "source venv/bin/activate && tox",
        "rtk git status",
        "git -C /x status",
        "git log --oneline | cat",
        "git add -A && git commit -m 'a\nb' && git push",
        COMMIT,
        "/usr/bin/git push",
        "echo built && git status",
    ],
)
def test_tests_builds_linters_and_reports_of_version_control_are_run_logs(command: str) -> None:
    """However they are wrapped, filtered, or put one behind the other."""
    assert is_run_log("Bash", command)


@pytest.mark.parametrize("tool", ["TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "update_plan"])
def test_task_lists_are_run_logs(tool: str) -> None:
    """Their answers repeat what the call said."""
    assert is_run_log(tool, None)


@pytest.mark.parametrize("tool", ["Read", "Grep", "Task", "TaskOutput", "WebFetch", ""])
def test_other_tools_are_not(tool: str) -> None:
    """A sub-agent's answer is no task list."""
    assert not is_run_log(tool, None)


@pytest.mark.parametrize(
    "command",
    [
        "cat secret",
        "git status && cat secret",
        "git status; cat secret",
        "git status\ncat secret",
        "git status & cat secret",
        "git status | xargs cat",
        "pytest | tail -5 other",
        "pytest | tee log | cat secret",
        "pytest | grep word secret",
        "pytest || cat failures.log",
        "pytest $(cat secret)",
        'pytest "$(cat secret)"',
        "pytest `cat secret`",
        "pytest <(cat secret)",
        "(cat secret); pytest",
        "for f in *; do cat $f; done; pytest",
        "echo $(cat secret) && pytest",
        "cat <<EOF | pytest\ncat secret\nEOF",
        "git diff",
        "git show HEAD",
        "git",
        "git --version",
        "python script.py",
        "bash -c 'pytest; cat secret'",
        "ls && pytest",
        "echo pytest",
        "sleep 5; tail -50 server.log",
        "pytest '",
        "pytest\x00cat",
        "",
        " ",
        ";;",
        "|",
        "env",
    ],
)
def test_a_command_that_may_print_something_else_is_none(command: str) -> None:
    """Every part that prints must be a run: doubt says no."""
    assert not is_run_log("Bash", command)


@pytest.mark.parametrize("piece", ["a", "'", '"', "\\", "$(", "<<", ";", "git status;", "|", "\x00", "\n", "\ud800"])
def test_hostile_commands_cost_little(piece: str) -> None:
    """A megabyte is not looked at, and what is costs time in proportion."""
    assert not is_run_log("Bash", "pytest " + piece * (1_000_000 // len(piece)))
    took = []
    for size in (MOST_CHARS // 8, MOST_CHARS - 8):
        _is_run.cache_clear()
        start = time.perf_counter()
        is_run_log("Bash", ("pytest " + piece * size)[:size])
        took.append(time.perf_counter() - start)
    assert took[1] < 0.25
