"""Plots as SVG files of their own, made of lines, rectangles and words; they read on white, whatever the page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from cg.replay.reporting.page.plots import line, ticks, words
from studies.measure import Results
from studies.study import Panel, Study

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 920, 64, 16, 58, 52
HEIGHT = 380
COLOURS = ("#2f6fb0", "#c4622d", "#3f8f5f", "#8e5aa8", "#8a7a2c", "#4a5361", "#b8436e", "#2c8f93")
STYLE = (
    "text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1c2430}"
    ".soft,.tick{fill:#5d6775;font-size:11px}.head{font-weight:600}"
    ".grid{stroke:#e3e7ec}.axis{stroke:#5d6775}"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One value with its interval, in percent."""

    label: str
    value: float
    low: float
    high: float


def marks(results: Results, panel: Panel) -> dict[str, list[Mark]]:
    """The change of the bill of every variant of a panel, by series."""
    found: dict[str, list[Mark]] = {}
    for name, label, variant in panel.variants():
        value = 100 * results.change(variant)
        low, high = results.interval(variant) or (value / 100, value / 100)
        found.setdefault(name, []).append(Mark(label, value, 100 * low, 100 * high))
    return found


def draw(study: Study, results: Results) -> str:
    """The plot of a study: the bill against doing nothing, with its intervals."""
    panels = {panel.name: marks(results, panel) for panel in study.panels}
    match study.drawn:
        case "lines":
            return lines(study.title, panels, study.varied)
        case "dots":
            return dots(study.title, panels)
        case "grid":
            return grid(study.title, panels, study.varied)


def document(title: str, height: float, parts: Iterable[str], width: float = WIDTH) -> str:
    """A file of its own; the title is read out where it cannot be seen."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>' + "".join(parts) + "</svg>\n"
    )


def span(values: Iterable[float]) -> tuple[float, float]:
    """Bounds of an axis that holds zero and all values, with a little room."""
    found = [0.0, *values]
    low, high = min(found), max(found)
    room = 0.05 * ((high - low) or 1.0)
    return low - room * (low < 0), high + room * (high > 0)


def steps(low: float, high: float) -> list[float]:
    """Round values between two bounds, zero among them."""
    size = ticks(high - low, 6)
    step = size[1] if len(size) > 1 else 1.0
    return [step * i for i in range(int(low // step), int(high // step) + 2) if low <= step * i <= high]


def stroke(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'


def dot(x: float, y: float, colour: str, title: str, radius: float = 3.5) -> str:
    shown = f"<title>{escape(title)}</title>"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}">{shown}</circle>'


def key(names: Sequence[str], y: float) -> list[str]:
    """The colours of the series, in one line."""
    parts, x = [], float(LEFT)
    for name, colour in zip(names, COLOURS, strict=False):
        parts += [f'<rect x="{x:.0f}" y="{y - 9:.0f}" width="10" height="10" fill="{colour}"/>', words(x + 15, y, name)]
        x += 32 + 5.9 * len(name)
    return parts


# -- change along what is varied -----------------------------------------------------------------------------------------


def lines(title: str, panels: dict[str, dict[str, list[Mark]]], varied: str) -> str:
    """One panel beside the other on one scale; whiskers are the intervals."""
    every = [m for found in panels.values() for each in found.values() for m in each]
    low, high = span(b for m in every for b in (m.low, m.high))
    width = (WIDTH - LEFT - RIGHT) / len(panels)
    parts = key(list(next(iter(panels.values()))), 18)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    for value in steps(low, high):
        parts.append(line(LEFT, y(value), WIDTH - RIGHT, y(value), "grid" if value else "axis"))
        parts.append(words(LEFT - 6, y(value) + 4, f"{value:+g} %" if value else "0", "tick", "end"))
    for n, (name, found) in enumerate(panels.items()):
        left = LEFT + n * width
        parts.append(words(left + 8, TOP - 12, name, "head"))
        parts += _curves(found, left, width, y)
        parts.append(words(left + width / 2, HEIGHT - 12, varied, "soft", "middle"))
    return document(f"{title}: bill against doing nothing", HEIGHT, parts)


def _curves(found: dict[str, list[Mark]], left: float, width: float, y: "object") -> list[str]:
    assert callable(y)
    labels = list(dict.fromkeys(m.label for each in found.values() for m in each))
    step = width / (len(labels) + 0.6)
    parts = [words(left + step * (i + 0.8), HEIGHT - 30, label, "tick", "middle") for i, label in enumerate(labels)]
    for n, (name, each) in enumerate(found.items()):
        colour = COLOURS[n % len(COLOURS)]
        aside = (n - (len(found) - 1) / 2) * min(7.0, step / (len(found) + 1))
        at = [(left + step * (labels.index(m.label) + 0.8) + aside, m) for m in each]
        parts += [stroke(a, y(m.value), b, y(o.value), colour, 1.2) for (a, m), (b, o) in pairwise(at)]
        for x, m in at:
            title = f"{name}, {m.label}: {m.value:+.2f} % ({m.low:+.2f} to {m.high:+.2f})"
            parts += [stroke(x, y(m.low), x, y(m.high), colour, 1), dot(x, y(m.value), colour, title)]
    return parts


# -- one line a variant --------------------------------------------------------------------------------------------------


def dots(title: str, panels: dict[str, dict[str, list[Mark]]]) -> str:
    """A line for each variant, panels one under the other on one scale; whiskers are the intervals."""
    every = [m for found in panels.values() for each in found.values() for m in each]
    low, high = span(b for m in every for b in (m.low, m.high))
    high = min(high, max(-low, 5.0))  # one policy that makes the bill half as large again must not flatten all the rest
    names = 300.0

    def x(value: float) -> float:
        return names + (WIDTH - names - RIGHT - 66) * (min(value, high) - low) / (high - low)

    parts, y = [], 26.0
    for panel, found in panels.items():
        parts.append(words(8, y, panel, "head"))
        top = y + 4
        for n, (name, each) in enumerate(found.items()):
            colour = COLOURS[n % len(COLOURS)]
            for m in each:
                y += 19
                label = f"{name}: {m.label}" if len(found) > 1 else m.label
                if m.value > high:
                    parts.append(words(x(high) + 2, y + 4, "\u203a", "head"))
                parts += [
                    words(names - 10, y + 4, label, "", "end"),
                    stroke(x(m.low), y, x(m.high), y, colour, 1.2),
                    dot(x(m.value), y, colour, f"{label}: {m.value:+.2f} % ({m.low:+.2f} to {m.high:+.2f})"),
                    words(WIDTH - RIGHT, y + 4, f"{m.value:+.2f} %", "soft", "end"),
                ]
            y += 6
        for value in steps(low, high):
            parts.insert(0, line(x(value), top, x(value), y + 6, "grid" if value else "axis"))
        y += 34
    parts += [words(x(v), y - 12, f"{v:+g} %" if v else "0", "tick", "middle") for v in steps(low, high)]
    return document(f"{title}: bill against doing nothing", y, parts)


# -- two things varied ---------------------------------------------------------------------------------------------------


def grid(title: str, panels: dict[str, dict[str, list[Mark]]], varied: str) -> str:
    """Cells coloured by the change: the darker green, the cheaper; red is dearer than doing nothing."""
    every = [m.value for found in panels.values() for each in found.values() for m in each]
    most = max(map(abs, every), default=1.0) or 1.0
    width = (WIDTH - 16) / len(panels)
    rows = max(len(found) for found in panels.values())
    parts = []
    for n, (panel, found) in enumerate(panels.items()):
        left, column = 16 + n * width, (width - 110) / max(len(each) for each in found.values())
        parts.append(words(left, 22, panel, "head"))
        for i, (name, each) in enumerate(found.items()):
            y = 56 + 30 * i
            parts.append(words(left, y + 19, name))
            for j, m in enumerate(each):
                at = left + 92 + j * column
                if i == 0:
                    parts.append(words(at + column / 2, 48, m.label, "tick", "middle"))
                colour = "#3f8f5f" if m.value <= 0 else "#b8514a"
                shade = f'fill="{colour}" fill-opacity="{0.75 * abs(m.value) / most:.3f}"'
                parts.append(f'<rect x="{at:.1f}" y="{y}" width="{column - 3:.1f}" height="27" {shade}/>')
                parts.append(words(at + column / 2, y + 18, f"{m.value:+.1f} %", "", "middle"))
        parts.append(words(left + 92, 56 + 30 * rows + 18, f"across: {varied}", "soft"))
    return document(f"{title}: bill against doing nothing", 56 + 30 * rows + 30, parts)
