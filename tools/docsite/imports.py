"""Who imports whom in the package, read from the source: between its rooms, and between the folders of a room."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

# From the top: a room may import those in lower rows, never one in its own row or above.
ROWS = (("gateway",), ("replay",), ("sweep", "hints"), ("doors",), ("compiled",))
ROOMS = tuple(room for row in ROWS for room in row)
MOST_FILES = 15  # of a room's own, shown by name; more are shown as their number

Edges = Mapping[tuple[str, str], int]


def room_of(module: str) -> str:
    """The room of a dotted name: a folder, or at the top `doors` and `compiled`."""
    name = module.split(".")[1] if "." in module else ""
    if name.startswith("_") and not name.startswith("__"):
        return "compiled"
    return name if name in ROOMS else "doors"


def row_of(room: str) -> int:
    """0 for the topmost."""
    return next(n for n, row in enumerate(ROWS) if room in row)


def edges(package: Path) -> Edges:
    """How many files of one room import a module of another, by (from, to)."""
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(package.rglob("*.py")):
        here = room_of(_module(path, package))
        found.update({(here, there) for there in map(room_of, imported(path)) if there != here})
    return found


def imported(path: Path) -> Iterator[str]:
    """What a file names of the package in an import, wherever in its code; the last part may be a module or a name in one."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith("cg."))


def layers(package: Path, room: str) -> Sequence[Sequence[str]]:
    """The folders (`name/`) and own files of a room in rows: each row imports only from rows below it.

    Those that import each other stand in one row. A room without folders has one row.
    """
    if room in ("doors", "compiled"):
        return _outside(package, room)
    parts = _parts(package / room)
    reached = {part: {part} | named for part, named in _imports(package, room, parts).items()}
    for through in parts:  # who is reached by way of others
        for part in parts:
            if through in reached[part]:
                reached[part] |= reached[through]
    depth: dict[str, int] = {}
    for part in sorted(parts, key=lambda p: len(reached[p])):  # what it reaches has fewer, unless they reach each other
        below = [depth[other] for other in reached[part] if part not in reached[other]]
        depth[part] = 1 + max(below, default=-1)
    if not any(part.endswith("/") for part in parts):
        return [parts]
    return [[part for part in parts if depth[part] == n] for n in sorted(set(depth.values()), reverse=True)]


def _parts(folder: Path) -> list[str]:
    """Folders, then files by name, or by number if they are many."""
    folders = [f"{path.name}/" for path in sorted(folder.iterdir()) if any(path.rglob("*.py"))]
    own = [path.stem for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    return folders + (own if len(own) <= MOST_FILES else [f"{len(own)} files"])


def _imports(package: Path, room: str, parts: Sequence[str]) -> Mapping[str, set[str]]:
    """Which parts of a room each part of it imports."""
    found: dict[str, set[str]] = {part: set() for part in parts}

    def part_of(module: str) -> str | None:
        name = (module.split(".") + ["", ""])[2]
        lump = next((part for part in parts if part.endswith(" files")), None)
        known = (f"{name}/", name) if f"{name}/" in parts or name in parts else ()
        return next((part for part in known if part in parts), lump if name != "__init__" else None)

    for path in sorted((package / room).rglob("*.py")):
        here = part_of(_module(path, package))
        if here is not None:
            there = {part_of(name) for name in imported(path) if name.startswith(f"cg.{room}.")}
            found[here] |= {part for part in there if part is not None and part != here}
    return found


def _outside(package: Path, room: str) -> Sequence[Sequence[str]]:
    """What stands at the top of the package: Python files, or compiled modules above the folders of their kernels."""
    if room == "doors":
        return [[path.stem for path in sorted(package.glob("*.py")) if path.stem != "__init__"]]
    kernels = [path for path in sorted((package / "kernels").glob("*/")) if path.is_dir() and any(path.glob("*.h"))]
    rows = [[path.stem for path in sorted(package.glob("_*.pyx"))], [f"kernels/{path.name}/" for path in kernels]]
    return [row for row in rows if row]


def _module(path: Path, package: Path) -> str:
    return ".".join(("cg", *path.relative_to(package).with_suffix("").parts))
