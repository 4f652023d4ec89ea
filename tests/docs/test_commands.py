"""What a page tells a reader to type does what the page says, page by page, in a folder of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import documented
import pytest

SHELL = shutil.which("bash")
DEADLINE_S = 300.0  # of one command; a guard against one that waits for ever
PAGES = [page for page in documented.pages() if any(documented.to_run(page))]
PYTHON = [page for page in documented.pages() if any(b.language == "python" for b in documented.blocks(page))]
MOST_NOT_RUN = 16  # blocks; an excuse is a thing to use up


def name_of(page: Path) -> str:
    return page.relative_to(documented.ROOT).as_posix()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a clone holds that commands on the pages use."""
    for name in ("examples", "bench/hints", "bench/data"):
        shutil.copytree(documented.ROOT / name, tmp_path / "clone" / name)
    return tmp_path / "clone"


def environment(home: Path) -> dict[str, str]:
    """That of a user who has installed the package and set nothing; a gateway takes a free port."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**kept, "PATH": path, "HOME": str(home), "CG_PROXY_LISTEN": "127.0.0.1:0"}


@pytest.mark.skipif(SHELL is None, reason="no bash on PATH")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_runs(page: Path, folder: Path, tmp_path: Path) -> None:
    """In order, in one folder, with the exit code and the output that the page shows."""
    for line, command in documented.to_run(page):
        if "curl " in command.text and shutil.which("curl") is None:
            pytest.skip("no curl on PATH")
        done = subprocess.run(
            [str(SHELL), "-euo", "pipefail", "-c", command.text],
            cwd=folder,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        where = f"{name_of(page)}:{line}: {command.text.strip()}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == command.exit_code, where
        if command.prints is not None:
            assert documented.matches(command.prints, done.stdout), where


@pytest.mark.parametrize("page", [p for p in PYTHON if p.name != "shape.md"], ids=name_of)
def test_the_python_of_a_page_runs(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one page follow on one another. (The texts of shape.md are literals; test_shape_kinds reads them.)"""
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"__name__": "page"}
    for block in documented.blocks(page):
        if block.language == "python" and block.reason is None:
            exec(compile(block.text, f"{name_of(page)}:{block.line}", "exec"), names)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    """A reason is a sentence, not a switch."""
    excused = [block for page in documented.pages() for block in documented.blocks(page) if block.reason is not None]
    assert len(excused) <= MOST_NOT_RUN
    assert all(len(block.reason.split()) >= 3 for block in excused if block.reason)


def test_an_excuse_of_the_first_page_belongs_to_a_command_of_it() -> None:
    """None outlives what it excused."""
    first = [block for block in documented.blocks(documented.ROOT / "README.md") if block.language in documented.RUN]
    assert documented.README.keys() <= {command.text for block in first for command in block.commands()}


def test_a_command_is_found_with_what_it_prints() -> None:
    """A continuation belongs to its command; what follows is output; a comment above speaks of the next block only."""
    block = documented.Block(1, "console", "$ a \\\n  b\none\n...\nend\n$ c\n", None, 3)
    assert block.commands() == [
        documented.Command("a \\\n  b", "one\n...\nend"),
        documented.Command("c", None, 3),
    ]
    assert documented.matches("one\n...\nend", "one\ntwo\nthree\nend\n")
    assert not documented.matches("one\nend", "one\ntwo\nend\n")
