"""LESSONS.md and RULES.md keep their word: every number once, and every test that they name is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NUMBERS = [f"U{n}" for n in range(1, 45)] + [f"D{n}" for n in range(1, 18)]
RULE_INSTEAD = {"U9", "U12", "U38", "U39"}  # what the design does otherwise


def rows(page: str = "LESSONS.md", number: str = r"[UD]\d") -> list[list[str]]:
    text = (ROOT / "tests" / page).read_text("utf-8")
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if re.match(rf"\| {number}", line)
    ]


def suite() -> set[str]:
    """The names of all test functions."""
    return {
        node.name
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_every_lesson_is_there_once() -> None:
    """44 faults and 17 hazards, in order, four cells each."""
    assert [row[0] for row in rows()] == NUMBERS
    assert all(len(row) == 4 and all(row) for row in rows())


def test_every_test_that_a_lesson_names_exists() -> None:
    """Only a lesson that a rule replaces may do without."""
    known = suite()
    for number, _, holds, named in rows():
        found = re.findall(r"`(test_\w+)`", named)
        missing = [name for name in found if name not in known]
        assert not missing, (number, missing)
        assert holds.startswith("replaced:") == (number in RULE_INSTEAD), number
        assert found, number


def test_every_rule_is_there_once_with_files_and_tests_that_exist() -> None:
    """And the page for readers has the same thirteen."""
    known = suite()
    rules = rows("RULES.md", r"\d")
    assert [row[0] for row in rules] == [str(n) for n in range(1, 14)]
    page = (ROOT / "docs" / "rules.md").read_text("utf-8")
    assert re.findall(r"^(\d+)\. \S", page, re.M) == [row[0] for row in rules]
    for number, room, named in rules:
        found = re.findall(r"`(test_\w+)`", named)
        assert found and not [name for name in found if name not in known], number
        for name in re.findall(r"`([a-z_/]+)`", room):
            assert (ROOT / "src" / "cg" / f"{name}.py").is_file(), (number, name)
