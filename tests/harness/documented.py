"""What the pages tell a reader to type: fenced blocks, page by page, and how each is to be run.

A comment above a fence says what is special about its block:

    <!-- not run: REASON -->      nothing of it can run here
    <!-- exit code: N -->         of its last command; 0 where nothing is said
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<marks>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=marks)[ \t]*$", re.M | re.S)
COMMENT = re.compile(r"<!-- (?P<what>not run|exit code): (?P<said>[^\n]+?) -->\s*\Z")
RUN = frozenset(["console", "sh"])
README = {  # commands of the first page, which carries no comments: why they are not run here
    "python3 -m venv .venv\n.venv/bin/pip install -q .\n.venv/bin/cg-hints --table < examples/hints/request.json\n": (
        "installs from the package index; .ci/run runs it as it stands"
    ),
    "python3 -m venv .venv\n.venv/bin/pip install -q '.[dev]'\n.venv/bin/python -m pytest\n": (
        "installs from the package index; .ci/run runs it as it stands"
    ),
    "cg-sweep replay --html report.html": "reads your own logs",
    "pip install '.[proxy]'": "installs from the package index",
    "cg-proxy run -- claude": "needs Claude Code and a key",
    "cg-proxy doctor": "needs a key and the network",
}


@dataclass(frozen=True, slots=True)
class Command:
    """One command, what it prints (None: not said), and the exit code that it ends with."""

    text: str
    prints: str | None
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    line: int
    language: str
    text: str
    reason: str | None  # why it is not run
    exit_code: int = 0

    def commands(self) -> list[Command]:
        """What to run, in order: a `console` block's lines behind a dollar sign, a `sh` block's whole text."""
        if self.language == "sh":
            return [Command(self.text, None, self.exit_code)]
        found: list[Command] = []
        for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]:
            lines = part.splitlines()
            n = 1
            while lines[n - 1].endswith("\\"):
                n += 1
            said = "\n".join(lines[n:]).strip("\n")
            found.append(Command("\n".join(lines[:n]), said or None))
        last = found[-1]
        return [*found[:-1], Command(last.text, last.prints, self.exit_code)]


def pages() -> list[Path]:
    """Every page that a user reads; those under examples/ have a test of their own."""
    rest = (ROOT / "README.md", ROOT / "bench" / "README.md", ROOT / "bench" / "hints" / "README.md")
    return [*rest, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    for fence in FENCE.finditer(text):
        special = COMMENT.search(text[: fence.start()])
        said = {special["what"]: special["said"]} if special else {}
        yield Block(
            line=text.count("\n", 0, fence.start()) + 1,
            language=fence["info"].strip().partition(" ")[0],
            text=fence["text"],
            reason=said.get("not run"),
            exit_code=int(said.get("exit code", 0)),
        )


def to_run(page: Path) -> Iterator[tuple[int, Command]]:
    """The commands of a page that are to be run, each with the line of its block."""
    excused = README if page == ROOT / "README.md" else {}
    for block in blocks(page):
        if block.language in RUN and block.reason is None:
            yield from ((block.line, one) for one in block.commands() if one.text not in excused)


def matches(expected: str, printed: str) -> bool:
    """A line `...` stands for any lines."""
    pattern = "\n".join(r"[\s\S]*?" if line == "..." else re.escape(line) for line in expected.splitlines())
    return re.fullmatch(pattern, printed.strip("\n")) is not None
