"""No function is longer than 50 lines, in Python, Cython or C: one that is holds two."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cg"
LONGEST = 50  # lines, from the one that names the function to its last

# Functions that are longer and wait for their turn; one that has become short enough must leave the list.
KNOWN = {"kernels/verdict/idle.h: past_idle"}

CYTHON = re.compile(r"\s*(?:def|cdef|cpdef)\b[^=(]*?(\w+)\(")
C_NAME = re.compile(r"(\w+)\s*\(")
C_ATTRIBUTE = re.compile(r"(?s)__attribute__\s*\(\(.*?\)\)(?=\s)")
C_NOISE = re.compile(
    r"""(?sx) /\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ ]*\#(?:\\\n|[^\n])* """, re.M
)


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """(name, lines) of every function, nested ones too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def cython_functions(text: str) -> Iterator[tuple[str, int]]:
    """(name, lines) of every function, which ends where a line stands as far left as its first."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        match = CYTHON.match(line)
        if match is None:
            continue
        depth, last, opened = len(line) - len(line.lstrip()), at, line.count("(") - line.count(")")
        for i in range(at + 1, len(lines)):
            inside = opened > 0 or len(lines[i]) - len(lines[i].lstrip()) > depth
            if lines[i].strip() and not inside:
                break
            last = i if lines[i].strip() else last
            opened += lines[i].count("(") - lines[i].count(")") if opened > 0 else 0
        yield match[1], last - at + 1


def c_functions(text: str) -> Iterator[tuple[str, int]]:
    """(name, lines) of every function: a block at the top level whose head has an argument list."""
    code = C_NOISE.sub(lambda match: "\n" * match[0].count("\n"), text)
    depth = head = start = 0
    for at, sign in enumerate(code):
        if sign == "{":
            depth += 1
            start = at if depth == 1 else start
        elif sign == "}":
            depth -= 1
            name = C_NAME.search(C_ATTRIBUTE.sub("", code[head:start]))
            if depth == 0 and name and "=" not in code[head:start]:
                yield name[1], code[head : at + 1].strip().count("\n") + 1
        if depth == 0 and sign in "};":
            head = at + 1


READERS = {".py": python_functions, ".pyx": cython_functions, ".pxd": cython_functions, ".h": c_functions}


def long_functions() -> set[str]:
    return {
        f"{path.relative_to(SOURCE).as_posix()}: {name}"
        for path in SOURCE.rglob("*")
        if path.suffix in READERS
        for name, lines in READERS[path.suffix](path.read_text("utf-8"))
        if lines > LONGEST
    }


def test_no_function_is_longer_than_fifty_lines() -> None:
    assert long_functions() - KNOWN == set()


def test_what_is_short_enough_has_left_the_list() -> None:
    assert KNOWN - long_functions() == set()


BODY = "".join(f"    x = {i};\n" for i in range(60))
LONG = {
    "py": f"class A:\n    def long(self):\n{BODY.replace('    x', '        x')}",
    "pyx": f"cdef int short(int a) except -1:\n    return a\n\ncdef int long(int a,\n             int b) except -1:\n{BODY}\nX = 1\n",
    "h": f"static int short(int a) {{ return a; }}\n/* why {'{'} */\nstatic int\nlong(int a) {{\n{BODY}}}\nstatic int b[] = {{ 1 }};\n",
}


@pytest.mark.parametrize("language", LONG)
def test_a_long_function_is_seen(language: str) -> None:
    lengths = dict(READERS[f".{language}"](LONG[language]))
    assert lengths["long"] in (61, 62, 63)
    assert set(lengths) <= {"long", "short"} and lengths.get("short", 1) < 4
