"""Names of the package that nothing in the package uses: prints `file:line name` for each, and exits 1 if there is one.

Looked at are functions, classes, constants, methods and fields of dataclasses in every .py and .pyx file. A use inside
the name's own definition, or inside a definition that is itself unused, is none. Public is what tools/docsite/api.py puts
into the reference and the documentation names in code, and the commands of pyproject.toml. Members of enumerations are
left out, as their values come in from outside, and so are fields of named tuples, which are read by place.
"""

import ast
import builtins
import importlib
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Definition:
    """One name with the lines that define it; `owner` is the class of a method or a field."""

    path: Path
    name: str
    first: int
    last: int
    owner: str = ""

    @property
    def full(self) -> str:
        """The dotted name that an import would use; of a member, the name alone, as its class is not known where it is read."""
        return self.name if self.owner else f"{module_of(self.path)}.{self.name}"

    def holds(self, use: "Use") -> bool:
        return use.path == self.path and self.first <= use.line <= self.last


@dataclass(frozen=True)
class Use:
    """One place that reads a name."""

    path: Path
    line: int


def module_of(path: Path) -> str:
    """The dotted name of a file's module; a .pyx file in a folder of kernels is part of the one that includes it."""
    if path.parent.parent.name == "kernels":
        return "cg._bm25"
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def main() -> int:
    modules = [Module(path) for path in sorted((SOURCE / "cg").rglob("*.py"))]
    handed_on = {f"{m.name}.{name}": origin for m in modules for name, origin in m.imported.items()}
    definitions = [d for m in modules for d in m.definitions]
    bases = {f"{m.name}.{name}": above for m in modules for name, above in m.bases.items()}
    uses: dict[str, list[Use]] = defaultdict(list)
    for module in modules:
        for name, use in module.uses():
            while name in handed_on:
                name = handed_on[name]
            uses[name].append(use)
    for path in sorted((SOURCE / "cg").rglob("*.pyx")):
        text = without_strings(path.read_text("utf-8")).splitlines()
        definitions += compiled_definitions(path, text)
        for name, use in compiled_uses(path, text):
            uses[name].append(use)
    for path in sorted((SOURCE / "cg").rglob("*.html")):  # its scripts read what a dataclass became as JSON
        for at, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            for name in re.findall(r"\.(\w+)", line):
                uses[name].append(Use(path, at))
    public = Public()
    left = unused([d for d in definitions if d not in public and not overrides(d, bases)], uses)
    for one in left:
        print(f"{one.path.relative_to(ROOT)}:{one.first} {f'{one.owner}.' if one.owner else ''}{one.name}")
    return 1 if left else 0


def unused(candidates: list[Definition], uses: dict[str, list[Use]]) -> list[Definition]:
    """The candidates without a use; each found makes the uses within it void, so the search goes on until none is new."""
    dead: list[Definition] = []
    while True:
        new = [d for d in candidates if d not in dead and not is_used(d, uses[d.full], dead)]
        if not new:
            return sorted(dead, key=lambda d: (d.path, d.first))
        dead += new


def is_used(one: Definition, uses: Iterable[Use], dead: Iterable[Definition]) -> bool:
    return any(not any(d.holds(use) for d in (one, *dead)) for use in uses)


# ---- Python ----------------------------------------------------------------------------------------------------------


class Module:
    """What one Python file defines and reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = module_of(path)
        self.tree = ast.parse(path.read_text("utf-8"))
        self.imported = dict(imports(self.tree))
        self.definitions: list[Definition] = []
        self.bases: dict[str, set[str]] = {}
        for node in self.tree.body:
            self._define(node)

    def _define(self, node: ast.stmt) -> None:
        if isinstance(node, ast.If | ast.Try):
            for inner in node.body:
                self._define(inner)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._add(node.name, node)
        elif isinstance(node, ast.ClassDef):
            self._add(node.name, node)
            self._define_class(node)
        else:
            for name in assigned(node):
                self._add(name, node)

    def _define_class(self, node: ast.ClassDef) -> None:
        self.bases[node.name] = {self._full(dotted(base)) for base in node.bases if dotted(base)}
        ends = {base.rpartition(".")[2] for base in self.bases[node.name]}
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                self._add(inner.name, inner, node.name)
            elif not ends & {"StrEnum", "IntEnum", "Enum", "IntFlag", "NamedTuple", "TypedDict"}:
                if any(dotted(d).endswith("dataclass") for d in node.decorator_list) and is_listed(node):
                    continue
                for name in assigned(inner):
                    self._add(name, inner, node.name)

    def _full(self, name: str) -> str:
        """The dotted name as another module would say it; a built-in's is left as it is."""
        first, dot, rest = name.partition(".")
        return self.imported.get(first, first if hasattr(builtins, first) else f"{self.name}.{first}") + dot + rest

    def _add(self, name: str, node: ast.stmt, owner: str = "") -> None:
        if not (name.startswith("__") and name.endswith("__")) and name != "_":
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            self.definitions.append(Definition(self.path, name, first, node.end_lineno or node.lineno, owner))

    def uses(self) -> Iterator[tuple[str, Use]]:
        """Every name that is read: dotted as an import would say it, and of what stands behind a dot the name alone."""
        for node in ast.walk(self.tree):
            names: list[str] = []
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names = [self.imported.get(node.id, f"{self.name}.{node.id}")]
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                names = [node.attr, self._full(dotted(node))]
            elif isinstance(node, ast.MatchClass):
                names = node.kwd_attrs
            elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in READERS:
                names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            for name in names:
                yield name, Use(self.path, node.lineno)
            for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
                for name in quoted(annotation) if annotation else ():
                    yield self._full(name), Use(self.path, node.lineno)


def quoted(annotation: ast.expr) -> Iterator[str]:
    """The names within the quoted parts of an annotation."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (name.id for name in ast.walk(ast.parse(node.value)) if isinstance(name, ast.Name))


READERS = ("getattr", "hasattr", "attrgetter", "methodcaller")


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name here, dotted name there) of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name if alias.asname else alias.name.partition(".")[0]


def assigned(node: ast.stmt) -> Iterator[str]:
    """The names to which a statement gives a value or a type."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        for part in ast.walk(target):
            if isinstance(part, ast.Name):
                yield part.id


def dotted(node: ast.expr) -> str:
    """A name with its dots; of a call or a subscript, what is called or subscribed."""
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_listed(node: ast.ClassDef) -> bool:
    """Does a dataclass read all of its own fields by asdict, astuple or fields?"""
    return any(
        isinstance(call, ast.Call)
        and dotted(call.func).rpartition(".")[2] in ("asdict", "astuple", "fields")
        and [dotted(a) for a in call.args] == ["self"]
        for call in ast.walk(node)
    )


def overrides(one: Definition, bases: dict[str, set[str]]) -> bool:
    """Is it a member that a base class from another package has too, and calls?"""
    above = [f"{module_of(one.path)}.{one.owner}"] if one.owner else []
    for name in above:
        for base in bases.get(name, ()):
            if base.startswith("cg."):
                above.append(base)
            elif hasattr(imported(base), one.name):
                return True
    return False


def imported(name: str) -> object:
    """What a dotted name of another package stands for; None where that package is not installed."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module or "builtins"), attribute, None)
    except ImportError:
        return None


# ---- Cython ----------------------------------------------------------------------------------------------------------

STRING_OR_COMMENT = re.compile(r'(?s)""".*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*')
CLASS = re.compile(r"(?:cdef )?class (\w+)")
FUNCTION = re.compile(r"\s*(?:def|cdef|cpdef)\b[^=(]*?(\w+)\(")
CONSTANT = re.compile(r"(\w+)\s*(?::[^=]+)?=[^=]")


def without_strings(text: str) -> str:
    """The text with strings and comments taken out and every line in its place."""
    return STRING_OR_COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def compiled_definitions(path: Path, lines: list[str]) -> Iterator[Definition]:
    owner = ""
    for at, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth == 0:
            match = CLASS.match(line)
            owner = match[1] if match else ""
        match = (CLASS.match(line) or CONSTANT.match(line)) if depth == 0 else None
        match = match or (FUNCTION.match(line) if depth == 0 or (owner and depth == 4) else None)
        if match and not match[1].startswith("__"):
            inner = owner if depth else ""
            yield Definition(path, match[1], at + 1, end_of(lines, at, depth) if ":" in line else at + 1, inner)


def end_of(lines: list[str], at: int, depth: int) -> int:
    """The last line, from 1, of the block that opens at lines[at]."""
    last = at + 1
    for i in range(at + 1, len(lines)):
        line = lines[i]
        if line.strip() and len(line) - len(line.lstrip()) <= depth and not line.lstrip().startswith(")"):
            break
        last = i + 1
    return last


def compiled_uses(path: Path, lines: list[str]) -> Iterator[tuple[str, Use]]:
    for at, line in enumerate(lines):
        for match in WORD.finditer(line):
            if line[: match.start()].endswith("."):
                yield match[0], Use(path, at + 1)
            yield f"{module_of(path)}.{match[0]}", Use(path, at + 1)


# ---- what is public --------------------------------------------------------------------------------------------------

# How a machine with vector instructions tests the way without them, sees which of two ways an answer took, and compares
# with an oracle what a text was read as, which outside is a hash.
FOR_TESTS = {
    ("cg._bm25", "_force_path"),
    ("cg._bm25", "_paths"),
    ("cg._bm25", "_is_skipping"),
    ("cg._reuse", "items"),
    ("cg._shape", "has_vectors"),
    ("cg._verdict_parser", "force_scan"),
    ("cg._word_table", "cosines"),  # the parts of an order, held to the oracle one by one
}
# What a session says of itself, for whoever reads recordings: the made sessions of bench/ are written from it.
OF_A_RECORDING = {("cg.replay.recordings.recording", "answered_at"), ("cg.replay.sessions", "open_sessions")}
# Measures of what asks, removals at warm requests and lifetimes are worth, held by tests; the planner that weighs them all
# by one user's own gaps is not there yet.
OF_THE_PLANNER = {
    ("cg.sweep.economics", name)
    for name in (
        "repaid",
        "turns_needed",
        "turns_left",
        "Booking",
        "SHRINKAGE_TOKENS",
        "MIN_ACCEPTED",
        "accepted_share",
        "_shrunk",
        "_group",
    )
}


class Public:
    """Names that users reach from outside: documented ones of the reference's modules, and the commands."""

    def __init__(self) -> None:
        sys.path.insert(0, str(ROOT / "tools"))
        pages = importlib.import_module("docsite.api").PAGES
        self._modules = {module for _, _, modules in pages.values() for module in modules}
        self._named = set(documented())
        scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"].values()
        self._commands = {tuple(script.split(":")) for script in scripts}

    def __contains__(self, one: Definition) -> bool:
        module = module_of(one.path)
        if (module, one.name) in self._commands:
            return True
        if (module, one.name) in FOR_TESTS | OF_A_RECORDING | OF_THE_PLANNER:
            return True
        if one.path.suffix == ".pyx":  # its door is what the reference holds; a class there has its members in the stub
            in_reference = f"cg.{module.rpartition('.')[2].lstrip('_')}" in self._modules
            return in_reference and not one.name.startswith("_") and (one.owner or one.name) in self._named
        return module in self._modules and one.name in self._named and not one.name.startswith("_")


def documented() -> Iterator[str]:
    """Every word that stands in code in the documentation, or in an example."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for span in re.findall(r"(?s)```.*?```|`[^`\n]+`", path.read_text("utf-8")):
            yield from WORD.findall(span)
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield from WORD.findall(path.read_text("utf-8"))


if __name__ == "__main__":
    sys.exit(main())
