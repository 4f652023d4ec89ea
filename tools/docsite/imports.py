"""The picture of the package's imports, drawn from the imports themselves."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

# From the top: a room may import those in lower rows, never one in its own row or above.
ROWS = (("gateway",), ("replay",), ("sweep", "hints"), ("doors",), ("compiled",))
SAYS = {
    "gateway": "cg.gateway: the live API",
    "replay": "cg.replay: recorded sessions",
    "sweep": "cg.sweep: policy, store, economics",
    "hints": "cg.hints: order a catalog",
    "doors": "cg.bm25, cg.verdicts, cg.shape, …",
    "compiled": "cg._bm25, cg._shape, …: compiled",
}
WIDTH, ROW, BOX_WIDTH, BOX_HEIGHT = 840, 104, 290, 52

Edges = Mapping[tuple[str, str], int]


def room_of(module: str) -> str:
    """The room of a dotted name: a folder, or at the top `doors` and `compiled`."""
    name = module.split(".")[1] if "." in module else ""
    if name.startswith("_") and not name.startswith("__"):
        return "compiled"
    return name if name in SAYS else "doors"


def row_of(room: str) -> int:
    """0 for the topmost."""
    return next(n for n, row in enumerate(ROWS) if room in row)


def edges(package: Path) -> Edges:
    """How many files of one room import a module of another, by (from, to)."""
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(package.rglob("*.py")):
        name = ".".join(("cg", *path.relative_to(package).with_suffix("").parts))
        here = room_of(name)
        found.update({(here, there) for there in map(room_of, imported(path)) if there != here})
    return found


def imported(path: Path) -> Iterator[str]:
    """Modules of the package that a file names in an import, wherever in its code."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "cg":
            names = [f"cg.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        yield from (name for name in names if name.startswith("cg."))


def files(package: Path) -> Mapping[str, int]:
    """Source files by room."""
    paths = [*package.rglob("*.py"), *package.rglob("_*.pyx")]
    return Counter(room_of(".".join(("cg", *p.relative_to(package).with_suffix("").parts))) for p in paths)


def picture(package: Path) -> str:
    """An SVG that stands alone and reads in light and dark."""
    found, count = edges(package), files(package)
    height = ROW * len(ROWS) - (ROW - BOX_HEIGHT) + 32
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">']
    parts += [f"<title>{escape(sentence(found))}</title>", STYLE]
    parts += [_arrow(a, b, n) for (a, b), n in sorted(found.items())]
    parts += [_box(room, count[room]) for row in ROWS for room in row]
    return "\n".join([*parts, "</svg>"]) + "\n"


def sentence(found: Edges) -> str:
    """What the picture shows, for whoever does not see it."""
    said = [f"{a} imports {b} in {n} files" for (a, b), n in sorted(found.items(), key=lambda e: row_of(e[0][0]))]
    return "Imports between the rooms of the package, all downwards: " + "; ".join(said)


STYLE = """<style>
text{font:14px system-ui,sans-serif;fill:#1c2430}.n{font-size:12px;fill:#4a5563}
rect{fill:#fff;stroke:#5d6775}path{fill:none;stroke:#2f6fb0;stroke-width:1.4}polygon{fill:#2f6fb0}
.paper{fill:#f6f7f9;stroke:none}.label{fill:#f6f7f9;stroke:none}
</style><rect class="paper" width="100%" height="100%" rx="6"/>"""


def _place(room: str) -> tuple[float, float]:
    """Middle of a room's upper edge."""
    n = row_of(room)
    row = ROWS[n]
    return WIDTH * (2 * row.index(room) + 1) / (2 * len(row)), 16 + n * ROW


def _box(room: str, count: int) -> str:
    x, y = _place(room)
    files = f"{count} files"
    return (
        f'<rect x="{x - BOX_WIDTH / 2:g}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<text x="{x:g}" y="{y + 22}" text-anchor="middle">{escape(SAYS[room])}</text>'
        f'<text x="{x:g}" y="{y + 41}" text-anchor="middle" class="n">{files}</text>'
    )


def _arrow(a: str, b: str, n: int) -> str:
    """From a lower edge to an upper one; a jump over rows swings out so that it passes no box."""
    (ax, ay), (bx, by) = _place(a), _place(b)
    span = row_of(b) - row_of(a)
    if span == 1:
        shift = (bx - ax) / 6
        start, end = (ax + shift, ay + BOX_HEIGHT), (bx - shift / 2, by)
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        line = f"M{start[0]:g} {start[1]:g}L{end[0]:g} {end[1] - 7:g}"
    else:
        side = -1 if (ax + bx) / 2 < WIDTH / 2 or (ax == bx and span % 2) else 1
        out = WIDTH / 2 + side * (WIDTH / 2 - 14 - 22 * (3 - min(span, 3)))
        start = (ax + side * BOX_WIDTH / 2, ay + BOX_HEIGHT / 2)
        end = (bx + side * BOX_WIDTH / 2, by + BOX_HEIGHT / 2)
        line = f"M{start[0]:g} {start[1]:g}H{out:g}V{end[1]:g}H{end[0] + side * 7:g}"
        middle = (out, (start[1] + end[1]) / 2)
        tip = f"{end[0]:g},{end[1]:g} {end[0] + side * 8:g},{end[1] - 4:g} {end[0] + side * 8:g},{end[1] + 4:g}"
        return f'<path d="{line}"/><polygon points="{tip}"/>' + _count(middle, n)
    tip = f"{end[0]:g},{end[1]:g} {end[0] - 4:g},{end[1] - 8:g} {end[0] + 4:g},{end[1] - 8:g}"
    return f'<path d="{line}"/><polygon points="{tip}"/>' + _count(middle, n)


def _count(at: tuple[float, float], n: int) -> str:
    x, y = at
    return (
        f'<rect class="label" x="{x - 12:g}" y="{y - 9:g}" width="24" height="18"/>'
        f'<text x="{x:g}" y="{y + 5:g}" text-anchor="middle" class="n">{n}</text>'
    )
