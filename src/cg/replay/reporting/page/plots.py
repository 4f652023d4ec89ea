"""Plots of a replay as SVG text, made of rectangles, lines and words alone; each says in words what it shows."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10

from cg.replay.reporting.page.parts import text
from cg.replay.row import TIERS
from cg.replay.trace import Trace, context_tokens, cost
from cg.sweep.economics import units_of
from cg.sweep.values import Usage

WIDTH, LEFT, RIGHT = 920, 150, 20
PLOT = WIDTH - LEFT - RIGHT
NUMBER = 70  # px that a percentage takes
COLOURS = 6  # of lines; more of them begin again
COLUMNS = 230  # bars in a plot: more requests than this share bars

BANDS = ("read", "write", "fresh", "output", "aside")
WORDS = {
    "read": "cache reads",
    "write": "cache writes",
    "fresh": "fresh input",
    "output": "output",
    "aside": "asks, pings, expansions",
}


def svg(height: float, parts: Iterable[str], label: str, about: str = "") -> str:
    """A drawing that scales with the page; `label` and `about` are read out where it cannot be seen."""
    said = f"<title>{text(label)}</title>" + (f"<desc>{text(about)}</desc>" if about else "")
    head = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{text(label)}">'
    return head + said + "".join(parts) + "</svg>"


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="{kind}"/>'


def rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    shown = f"<title>{text(title)}</title>" if title else ""
    shape = f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" height="{max(height, 0):.2f}" class="{kind}"'
    return f"{shape}>{shown}</rect>" if shown else f"{shape}/>"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" class="{kind}"/>'


def words(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" class="{kind}">{text(said)}</text>'


def ticks(top: float, n: int = 4) -> list[float]:
    """Round values from 0 up to about `top`."""
    if top <= 0:
        return [0.0]
    raw = top / n
    size = 10.0 ** floor(log10(raw))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= raw)
    return [step * i for i in range(ceil(top / step) + 1)]


def short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


# -- the bill against none -----------------------------------------------------------------------------------------------


def changes(rows: Sequence[tuple[str, float, tuple[float, float] | None]]) -> str:
    """(policy, change, interval) as bars from zero: to the left is cheaper."""
    bounds = [0.0, *(c for _, c, _ in rows), *(b for _, _, i in rows if i for b in i)]
    low, high = min(bounds), max(bounds)
    span = (high - low) or 1.0
    left, wide = LEFT + 8, PLOT - 8 - NUMBER  # behind the longest bar there is still room for its number

    def x(share: float) -> float:
        return left + wide * (share - low) / span

    parts = []
    for n, (name, change, interval) in enumerate(rows):
        y = 8 + 26 * n
        kind = "good" if change < 0 else "bad"
        parts += [
            words(LEFT - 8, y + 14, name, anchor="end"),
            rect(min(x(0), x(change)), y + 2, abs(x(change) - x(0)), 16, kind, f"{name}: {100 * change:+.2f} %"),
        ]
        if interval:
            parts.append(line(x(interval[0]), y + 10, x(interval[1]), y + 10, "whisker"))
        edge = max(x(0), x(change), x(interval[1]) if interval else 0.0) + 6
        parts.append(words(edge, y + 14, f"{100 * change:+.2f} %", "value"))
    height = 8 + 26 * len(rows)
    parts.append(line(x(0), 4, x(0), height, "axis"))
    about = "; ".join(f"{name} {100 * change:+.2f} %" for name, change, _ in rows)
    return svg(height + 6, parts, "Bill of each policy against doing nothing", about)


# -- cost per request ----------------------------------------------------------------------------------------------------


def bands(usage: Usage, aside: float) -> dict[str, float]:
    """A request's price by tier, in units."""
    alone = {tier: units_of(Usage(**{tier: getattr(usage, tier)})) for tier in TIERS}
    return {
        "read": alone["read"],
        "write": alone["write_5m"] + alone["write_1h"],
        "fresh": alone["fresh"],
        "output": alone["output"],
        "aside": aside,
    }


def binned(trace: Trace) -> list[dict[str, float]]:
    """Mean cost per request by band, requests in order, at most COLUMNS bars."""
    size = max(1, ceil(len(trace.points) / COLUMNS))
    bars = []
    for start in range(0, len(trace.points), size):
        points = trace.points[start : start + size]
        found = [bands(point.usage, point.aside) for point in points]
        bars.append({band: sum(each[band] for each in found) / len(points) for band in BANDS})
    return bars


def cold_bars(trace: Trace) -> list[bool]:
    """Which of these bars hold a request that came after its entry had expired."""
    size = max(1, ceil(len(trace.points) / COLUMNS))
    return [any(p.is_cold for p in trace.points[i : i + size]) for i in range(0, len(trace.points), size)]


def costs(traces: Mapping[str, Trace]) -> str:
    """Cost per request by tier, one strip a policy on one scale; bars above the scale are cut and marked."""
    bars = {name: binned(trace) for name, trace in traces.items()}
    heights = sorted(sum(bar.values()) for found in bars.values() for bar in found)
    top = max(heights[int(0.985 * (len(heights) - 1))], 1.0) * 1.15  # one cold start must not flatten all the rest
    strip, parts = 92, []
    for n, (name, found) in enumerate(bars.items()):
        base = strip * (n + 1) - 14
        scale = (strip - 26) / top
        total = sum(cost(point) for point in traces[name].points)
        parts += [
            words(LEFT - 46, base - 34, name, anchor="end"),
            words(LEFT - 46, base - 18, short(round(total)), "value", "end"),
        ]
        for value in ticks(top, 3):
            if value <= top:
                parts.append(line(LEFT, base - value * scale, WIDTH - RIGHT, base - value * scale, "grid"))
                parts.append(words(LEFT - 6, base - value * scale + 4, short(value), "tick", "end"))
        width = PLOT / max(1, len(found))
        for i, (bar, is_cold) in enumerate(zip(found, cold_bars(traces[name]), strict=True)):
            parts += _bar(LEFT + i * width, base, width, bar, scale, strip - 26)
            if is_cold:
                parts.append(rect(LEFT + i * width, base + 2, max(width * 0.9, 3), 5, "late", "came after expiry"))
    parts.append(words(LEFT, strip * len(bars) + 8, "request 0", "tick"))
    n_requests = max((len(trace.points) for trace in traces.values()), default=0)
    parts.append(words(WIDTH - RIGHT, strip * len(bars) + 8, f"request {n_requests - 1}", "tick", "end"))
    late = [str(p.index) for p in next(iter(traces.values())).points if p.is_cold]
    about = (
        f"Units for each of {n_requests} requests, a strip a policy. Came after expiry: {', '.join(late) or 'none'}."
    )
    return svg(strip * len(bars) + 14, parts, "Cost per request by tier", about)


def _bar(x: float, base: float, width: float, bar: dict[str, float], scale: float, limit: float) -> list[str]:
    parts, height = [], 0.0
    for band in BANDS:
        size = min(bar[band] * scale, limit - height)
        if size > 0.05:
            parts.append(rect(x, base - height - size, width * 0.9, size, band))
            height += size
    if sum(bar.values()) * scale > limit + 0.5:
        parts.append(rect(x, base - limit - 3, width * 0.9, 2, "cut", f"{short(round(sum(bar.values())))} units"))
    return parts


# -- what a request carries ----------------------------------------------------------------------------------------------


def context(traces: Mapping[str, Trace]) -> str:
    """Tokens that each request carried, a line a policy; of requests that share a column the largest."""
    sizes = {name: [context_tokens(point) for point in trace.points] for name, trace in traces.items()}
    n = max(len(found) for found in sizes.values())
    top = ticks(max(max(found) for found in sizes.values()), 4)
    height, per = 190.0, max(1, ceil(n / COLUMNS))
    parts = []
    for value in top:
        y = 10 + height * (1 - value / (top[-1] or 1))
        parts += [line(LEFT, y, WIDTH - RIGHT, y, "grid"), words(LEFT - 6, y + 4, short(value), "tick", "end")]
    for k, found in enumerate(sizes.values()):
        columns = [max(found[i : i + per]) for i in range(0, len(found), per)]
        step = PLOT / max(1, len(columns) - 1)
        points = [(LEFT + i * step, 10 + height * (1 - size / (top[-1] or 1))) for i, size in enumerate(columns)]
        parts.append(
            path(points if len(points) > 1 else [*points, (points[0][0] + PLOT, points[0][1])], f"line l{k % COLOURS}")
        )
    parts.append(words(LEFT, height + 26, "request 0", "tick"))
    parts.append(words(WIDTH - RIGHT, height + 26, f"request {n - 1}", "tick", "end"))
    about = ". ".join(
        f"{name}: at most {short(max(found))} tokens, {short(found[-1])} at the end" for name, found in sizes.items()
    )
    return svg(height + 34, parts, "Tokens that each request carried", about)


# -- the bill over time --------------------------------------------------------------------------------------------------


def over_time(rows: Sequence[tuple[str, float, float, int]], unit: str) -> str:
    """(name, cost, of it what cold requests wrote again, cold requests) as bars in their order."""
    size = max(1, ceil(len(rows) / COLUMNS))
    bars = [rows[i : i + size] for i in range(0, len(rows), size)]
    top = ticks(max(sum(row[1] for row in bar) for bar in bars), 4)
    height, width = 190.0, PLOT / len(bars)
    parts = []
    for value in top:
        y = 24 + height * (1 - value / (top[-1] or 1))
        parts += [line(LEFT, y, WIDTH - RIGHT, y, "grid"), words(LEFT - 6, y + 4, unit + short(value), "tick", "end")]
    for i, bar in enumerate(bars):
        cost, again, n = sum(row[1] for row in bar), sum(row[2] for row in bar), sum(row[3] for row in bar)
        high, lost = height * cost / (top[-1] or 1), height * again / (top[-1] or 1)
        x, wide = LEFT + i * width + width * 0.08, min(width * 0.84, 60)
        name = bar[0][0] + ("" if len(bar) == 1 else f" to {bar[-1][0]}")
        title = f"{name}: {unit}{short(cost)}, of it {unit}{short(again)} for {n} cold requests"
        parts.append(rect(x, 24 + height - high, wide, high - lost, "read", title))
        parts.append(rect(x, 24 + height - lost, wide, lost, "late", title))
        if n:
            parts.append(words(x + wide / 2, 24 + height - high - 4, str(n), "value", "middle"))
    parts.append(words(LEFT, height + 40, cut(rows[0][0]), "tick"))
    if len(rows) > 1:
        parts.append(words(WIDTH - RIGHT, height + 40, cut(rows[-1][0]), "tick", "end"))
    dearest = max(rows, key=lambda row: row[1])
    about = f"{len(rows)} bars; {sum(row[3] for row in rows)} cold requests. The dearest is {dearest[0]}: {unit}{short(dearest[1])}."
    return svg(height + 48, parts, "The bill over time, and what cold requests wrote again", about)


def cut(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "..."


# -- what was removed ----------------------------------------------------------------------------------------------------


def kinds(rows: Sequence[tuple[str, int, float, int]]) -> str:
    """(tool, removals, tokens, used later) as bars of tokens, the largest first."""
    top = max(row[2] for row in rows) or 1.0
    wide = PLOT - 230
    parts = []
    for n, (tool, removals, tokens, used) in enumerate(rows):
        y = 6 + 26 * n
        parts.append(words(LEFT - 8, y + 14, tool[:20], anchor="end"))
        parts.append(rect(LEFT, y + 2, wide * tokens / top, 16, "read", f"{tool}: {tokens:,.0f} tokens"))
        parts.append(rect(LEFT, y + 15, wide * tokens / top * used / removals, 3, "used", f"{used} used later"))
        said = f"{short(tokens)} tokens, {removals} removed, {used} used later"
        parts.append(words(LEFT + wide * tokens / top + 8, y + 14, said, "value"))
    about = "; ".join(f"{tool}: {removals} removed, {used} used later" for tool, removals, _, used in rows)
    return svg(12 + 26 * len(rows), parts, "Removed outputs by tool, and how many were used later", about)


# -- the cache over time -------------------------------------------------------------------------------------------------


def cache(traces: Mapping[str, Trace], ttl_s: int) -> str:
    """Whether the prefix was held, along the session's clock; waits longer than two lifetimes are drawn as two."""
    first = next(iter(traces.values()))
    gaps = [b.at - a.at for a, b in zip(first.points, first.points[1:], strict=False)]
    drawn = [min(gap, 2.0 * ttl_s) for gap in gaps]
    scale = PLOT / (sum(drawn) or 1.0)
    parts: list[str] = []
    for n, (name, trace) in enumerate(traces.items()):
        y = 6 + 30 * n
        parts.append(words(LEFT - 8, y + 15, name, anchor="end"))
        x = float(LEFT)
        for gap, width, point in zip(gaps, drawn, trace.points[1:], strict=False):
            is_hit = _is_hit(point.usage)
            held = width if is_hit else min(width, ttl_s)
            parts.append(rect(x, y, held * scale, 20, "held"))
            if held < width:
                parts.append(rect(x + held * scale, y, (width - held) * scale, 20, "cold", f"{gap / 60:.0f} min"))
            x += width * scale
            if not is_hit:
                parts.append(line(x, y - 2, x, y + 22, "miss"))
            if point.aside and gap >= ttl_s - 60:
                parts.append(rect(x - 1.5, y + 22, 3, 4, "aside", f"{short(round(point.aside))} units on the side"))
    return svg(12 + 30 * len(traces), parts, "Whether the cached prefix was held")


def _is_hit(usage: Usage) -> bool:
    """More of the prompt was read than written."""
    return usage.read > usage.write_5m + usage.write_1h + usage.fresh


# -- removals ------------------------------------------------------------------------------------------------------------


def removals(traces: Mapping[str, Trace]) -> str:
    """Each removed output from the request that dropped it on; a mark where the session used it again."""
    parts: list[str] = []
    y = 4.0
    for name, trace in traces.items():
        if not trace.removed:
            continue
        last = max(1, trace.points[-1].index)
        rows = sorted(trace.removed, key=lambda r: (r.request, -r.tokens))
        step = min(6.0, 90 / len(rows))
        parts.append(words(LEFT - 8, y + 14, name, anchor="end"))
        used = sum(r.used_at is not None for r in rows)
        parts.append(words(LEFT - 8, y + 30, f"{len(rows)} removed", "value", "end"))
        parts.append(words(LEFT - 8, y + 44, f"{used} used later", "value", "end"))
        for i, removed in enumerate(rows):
            row, x = y + 2 + i * step, LEFT + PLOT * removed.request / last
            title = f"{removed.tokens:.0f} tokens, removed at request {removed.request}"
            parts.append(rect(x, row, LEFT + PLOT - x, max(step * 0.7, 0.6), "gone", title))
            if removed.used_at is not None:
                at = LEFT + PLOT * removed.used_at / last
                parts.append(rect(at - 1.5, row - 0.5, 3, max(step, 2.5), "used", f"used at request {removed.used_at}"))
        y += max(54.0, len(rows) * step + 12)
    if not parts:
        return ""
    return svg(y, parts, "Removed outputs and their later use")
