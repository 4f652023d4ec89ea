"""The picture of the package: a panel for each room, with its folders and files in rows, and the imports between rooms."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from docsite.imports import ROOMS, edges, layers, row_of

SAYS = {
    "gateway": ("cg.gateway", "the sweep before the live API"),
    "replay": ("cg.replay", "recorded sessions, priced"),
    "sweep": ("cg.sweep", "policy, store, economics"),
    "hints": ("cg.hints", "order a catalog"),
    "doors": ("cg", "the public doors to the compiled modules"),
    "compiled": ("cg._…", "compiled modules, and their kernels in C"),
}
PANEL_WIDTH, MARGIN, LANE, GAP = 690, 14, 15, 24  # pixels
HEAD, BOX, STEP, CHARACTER = 34, 24, 32, 7.7
STYLE = """<style>
text{font:13px system-ui,sans-serif;fill:#1c2430}.room{font-weight:600;font-size:15px}.n{fill:#4a5563}
rect{fill:#fff;stroke:#5d6775}.panel{stroke:#9aa4b1}.folder{fill:#e4eef8;stroke:#2f6fb0}.file{stroke:#c3cad3}
path{fill:none;stroke:#2f6fb0;stroke-width:1.4}polygon{fill:#2f6fb0}.paper{fill:#f6f7f9;stroke:none}
</style>"""


def picture(package: Path) -> str:
    """An SVG that stands alone and reads in light and dark."""
    found = sorted(edges(package), key=lambda e: (row_of(e[0]), row_of(e[1])))
    panels: list[str] = []
    span: dict[str, tuple[float, float]] = {}  # room: upper and lower edge
    y: float = MARGIN
    for room in ROOMS:
        drawn, height = _panel(room, layers(package, room), y)
        panels += drawn
        span[room] = y, y + height
        y += height + GAP
    width, height = PANEL_WIDTH + 2 * MARGIN + LANE * (len(found) + 1), y - GAP + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
            f"<title>{escape(sentence(found))}</title>{STYLE}",
            '<rect class="paper" width="100%" height="100%" rx="6"/>',
            *panels,
            *_arrows(found, span),
            "</svg>\n",
        ]
    )


def sentence(found: Sequence[tuple[str, str]]) -> str:
    """What the picture shows, for whoever does not see it."""
    said = "; ".join(f"{a} imports {b}" for a, b in found)
    return f"Rooms of the package. All imports go downwards, between rooms and between the rows of a room: {said}"


def _panel(room: str, rows: Sequence[Sequence[str]], top: float) -> tuple[list[str], float]:
    """What is drawn of a room, and its height."""
    name, says = SAYS[room]
    left = MARGIN + 12
    parts = [
        f'<text class="room" x="{left}" y="{top + 22:g}">{escape(name)}'
        f'<tspan class="n" font-weight="400" font-size="13" dx="10">{escape(says)}</tspan></text>'
    ]
    y = top + HEAD
    for row in rows:
        for line in _wrapped(row):
            parts += _line(line, left, y)
            y += STEP
    height = y - top + 4
    panel = f'<rect class="panel" x="{MARGIN}" y="{top:g}" width="{PANEL_WIDTH}" height="{height:g}" rx="6"/>'
    return [panel, *parts], height


def _wrapped(row: Sequence[str]) -> Iterator[list[str]]:
    """A row as lines that fit into a panel."""
    line: list[str] = []
    used = 0.0
    for name in row:
        if line and used + _width(name) > PANEL_WIDTH - 24:
            yield line
            line, used = [], 0.0
        line.append(name)
        used += _width(name) + 8
    yield line


def _line(names: Sequence[str], x: float, y: float) -> Iterator[str]:
    for name in names:
        kind = "folder" if name.endswith("/") else "file"
        width = _width(name)
        yield (
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX}" rx="4"/>'
            f'<text x="{x + width / 2:g}" y="{y + 16:g}" text-anchor="middle">{escape(name)}</text>'
        )
        x += width + 8


def _width(name: str) -> float:
    return round(len(name) * CHARACTER + 16, 1)


def _arrows(found: Sequence[tuple[str, str]], span: dict[str, tuple[float, float]]) -> Iterator[str]:
    """Each import in a lane of its own beside the panels: the nearest rooms in the inner lanes, so that few cross."""
    right = MARGIN + PANEL_WIDTH
    order = sorted(found, key=lambda e: (row_of(e[1]) - row_of(e[0]), row_of(e[0])))
    for lane, (a, b) in enumerate(order):
        out = right + LANE * (lane + 1)
        start, end = _place(a, (a, b), order, span), _place(b, (a, b), order, span)
        yield (
            f'<path d="M{right:g} {start:g}H{out:g}V{end:g}H{right + 8:g}"/>'
            f'<polygon points="{right + 1:g},{end:g} {right + 9:g},{end - 4:g} {right + 9:g},{end + 4:g}"/>'
        )


def _place(
    room: str, one: tuple[str, str], order: Sequence[tuple[str, str]], span: dict[str, tuple[float, float]]
) -> float:
    """Where on a panel's side an import begins or ends: first those that come in from above, then those that go out."""
    there = [e for e in order if e[1] == room] + [e for e in order if e[0] == room]
    top, bottom = span[room]
    return top + (bottom - top) * (there.index(one) + 1) / (len(there) + 1)
