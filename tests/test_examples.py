"""Every example runs, and every command that a README of the examples shows."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"(?:<!-- needs: ([^>]*) -->\n)?```sh\n(.*?)```", re.DOTALL)
LIMIT_S = 300  # of one block; each takes a second or two
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the blocks are for a POSIX shell")


def environment() -> dict[str, str]:
    """Commands of the environment that runs the tests come first; no variable of ours or of a proxy is heeded."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CG_") and not k.lower().endswith("_proxy")}
    return {**kept, "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])}


def needed(names: str) -> None:
    for name in names.split():
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LIMIT_S)


def blocks() -> list[tuple[str, str, str]]:
    """(file, needs, commands) of every block of commands."""
    found = []
    for readme in sorted(EXAMPLES.rglob("README.md")):
        found += [(str(readme.relative_to(ROOT)), *match) for match in BLOCK.findall(readme.read_text("utf-8"))]
    return found


@pytest.mark.parametrize(("file", "needs", "commands"), blocks(), ids=[f"{b[0]}-{n}" for n, b in enumerate(blocks())])
def test_the_commands_of_a_readme_run(file: str, needs: str, commands: str) -> None:
    """As they stand, from the repository's root, each with exit code 0."""
    needed(needs)
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    done = run("bash", "-euo", "pipefail", "-c", commands)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_readme_with_commands_is_found() -> None:
    """The test above has something to run."""
    assert {file for file, _, _ in blocks()} >= {
        "examples/README.md",
        "examples/hints/README.md",
        "examples/operations/README.md",
        "examples/sweep/README.md",
    }


def test_every_example_stands_in_the_index() -> None:
    """Each script and folder has its line, and each line its file."""
    text = (EXAMPLES / "README.md").read_text("utf-8")
    linked = {link.partition("/")[0] for link in re.findall(r"\]\(([^)]+)\)", text)}
    there = {path.name for path in EXAMPLES.iterdir() if path.name not in ("README.md", "__pycache__")}
    assert there <= linked
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (EXAMPLES / link).exists(), link


def test_the_agents_step_uses_what_was_found_within_twice_the_rank() -> None:
    """The worst possible hint costs one check more than none."""
    done = run(sys.executable, "examples/agent_step.py")
    assert done.returncode == 0, done.stderr
    assert "result: found after 2 checks" in done.stdout
    request = json.loads(done.stdout[done.stdout.index("{") :])
    assert 'id="db-disk"' in request["messages"][0]["content"][0]["text"]


def test_the_sdk_under_the_transport_removes_and_brings_back() -> None:
    """Its caller sees the answer and no call of our tool."""
    needed("anthropic")
    done = run(sys.executable, "examples/sdk_transport.py")
    assert done.returncode == 0, done.stderr
    assert "removed: 6 outputs" in done.stdout and "{'original': 1}" in done.stdout


def test_without_the_sdk_its_example_says_what_it_needs() -> None:
    """One line, no traceback."""
    hide = "import sys; sys.modules['anthropic'] = None; import runpy; runpy.run_path('examples/sdk_transport.py')"
    done = run(sys.executable, "-c", hide)
    assert done.returncode == 1
    assert done.stderr.startswith("this example needs the SDK") and done.stderr.count("\n") == 1


def test_the_sweeps_example_says_what_it_says_of_itself(tmp_path: Path) -> None:
    """Four outputs go at the third request, the newest stays, and one comes back byte for byte."""
    cg_sweep, state = shutil.which("cg-sweep", path=environment()["PATH"]), str(tmp_path / "state.db")
    assert cg_sweep is not None
    last = b""
    for name, now in (("1-first", "1800000000"), ("2-warm", "1800000010"), ("3-cold", "1800001000")):
        body = (EXAMPLES / "sweep" / f"{name}.json").read_bytes()
        command = [cg_sweep, "run", "--config", str(EXAMPLES / "sweep" / "small.toml"), "--state", state]
        command += ["--session", "demo", "--now", now]
        last = subprocess.run(command, input=body, capture_output=True, check=True, env=environment()).stdout
    shown = (EXAMPLES / "sweep" / "README.md").read_text("utf-8")
    keys = re.findall(rb"<<cg:([0-9a-f]{16})>>", last)
    assert len(keys) == 4 and keys[0].decode() in shown
    command = [cg_sweep, "expand", keys[0].decode(), "--state", state, "--session", "demo"]
    original = subprocess.run(command, capture_output=True, check=True, env=environment()).stdout.decode()
    messages = json.loads((EXAMPLES / "sweep" / "2-warm.json").read_text("utf-8"))["messages"]
    assert original == messages[2]["content"][0]["content"]
