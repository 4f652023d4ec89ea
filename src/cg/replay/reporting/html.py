"""A replay as one HTML file that needs nothing else: no script, no font, no picture from elsewhere."""

from collections.abc import Sequence
from html import escape

from cg.replay.batch import Result
from cg.replay.policies import NONE
from cg.replay.reporting import plots, table
from cg.replay.reporting.printable import plain
from cg.replay.reporting.summary import Summary
from cg.replay.settings import Settings

STYLE = """
:root{--ink:#1c2430;--soft:#5d6775;--line:#d9dee5;--page:#fff;--panel:#f6f8fa;--read:#4a90d9;--write:#e08a3c;--fresh:#c0504d;
--output:#7f9c5a;--aside:#8e6bbf;--held:#bcd7ee;--cold:#f0d9c4;--good:#3f8f5f;--bad:#b8514a}
@media (prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#9aa5b3;--line:#37404b;--page:#14181d;--panel:#1c2229;
--held:#2d4f6e;--cold:#5a4330}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1400px;padding:2rem 1.25rem 4rem;color:var(--ink);background:var(--page);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.6rem;margin:0 0 .3rem}h2{font-size:1.15rem;margin:2.2rem 0 .5rem}h3{font-size:.95rem;margin:1.2rem 0 .2rem}
p{color:var(--soft);margin:.2rem 0 .7rem;max-width:72ch}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.8rem;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.28rem .45rem;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}
details{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.6rem 1rem;margin:.7rem 0}
summary{cursor:pointer;font-weight:600}summary span{color:var(--soft);font-weight:400}
svg{width:100%;height:auto;display:block;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}
svg .tick,svg .value{fill:var(--soft);font-size:11px}
.grid{stroke:var(--line)}.axis{stroke:var(--soft)}.whisker{stroke:var(--ink);stroke-width:2}
.miss{stroke:var(--fresh);stroke-width:1.5}
rect.read{fill:var(--read)}rect.write{fill:var(--write)}rect.fresh{fill:var(--fresh)}rect.output{fill:var(--output)}
rect.aside{fill:var(--aside)}rect.held{fill:var(--held)}rect.cold{fill:var(--cold)}rect.good{fill:var(--good)}
rect.bad{fill:var(--bad)}rect.gone{fill:var(--soft);opacity:.45}rect.used{fill:var(--fresh)}rect.cut{fill:var(--ink)}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.82rem;color:var(--soft);margin:.3rem 0 .5rem}
.key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em;vertical-align:-.05em}
"""


def page(summary: Summary, listed: Sequence[Result], drawn: Sequence[Result], settings: Settings) -> str:
    """The whole report."""
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1"><title>What the sweep would have saved</title>',
            f"<style>{STYLE}</style></head><body><main><h1>What the sweep would have saved</h1>",
            *(f"<p>{escape(sentence)}</p>" for sentence in table.notes(summary, settings, listed).splitlines()),
            "<h2>Bill against doing nothing</h2><p>Left of the line is cheaper. The thin line is the 90 % interval over",
            " resampled sessions.</p>",
            _changes(summary),
            "<h2>Policies</h2>",
            _table([table.HEADS, *table.lines(summary)]),
            *_sessions(listed),
            *_plots(drawn, summary.sessions),
            "</main></body></html>\n",
        ]
    )


def _changes(summary: Summary) -> str:
    rows = [
        (name, change, summary.interval(name))
        for name in summary.totals
        if name != NONE.name and (change := summary.change(name)) is not None
    ]
    return plots.changes(rows) if rows else ""


def _sessions(listed: Sequence[Result]) -> list[str]:
    if not 1 < len(listed) <= table.LISTED:
        return []
    return ["<h2>Sessions</h2>", _table(table.session_lines(listed))]


def _table(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = lines
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(plain(cell))}</td>" for cell in cells) + "</tr>" for cells in rest)
    return f'<div class="wide" tabindex="0" role="group" aria-label="Table"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _key(entries: Sequence[tuple[str, str]]) -> str:
    return (
        '<div class="key">'
        + "".join(f'<span><i style="background:var(--{kind})"></i>{escape(text)}</span>' for kind, text in entries)
        + "</div>"
    )


def _plots(drawn: Sequence[Result], n_sessions: int) -> list[str]:
    if not drawn:
        return []
    few = "" if len(drawn) == n_sessions else f" The {len(drawn)} sessions with the largest bills."
    parts = [f"<h2>Request by request</h2><p>Units are fresh input tokens of the request's model.{few}</p>"]
    for n, result in enumerate(drawn):
        parts += _session(result, is_open=n == 0)
    return parts


def _session(result: Result, *, is_open: bool) -> list[str]:
    traces = result.traces
    about = f"{result.requests} requests, {result.outputs} outputs, lifetime {result.ttl_s // 60} min"
    about += f", {result.client}" if result.client else ""
    removed = plots.removals(traces)
    return [
        f"<details{' open' if is_open else ''}><summary>{escape(plain(result.name))} <span>{escape(plain(about))}</span></summary>",
        "<h3>Cost per request by tier</h3>",
        _key([(band, plots.WORDS[band]) for band in plots.BANDS]),
        plots.costs(traces),
        "<h3>The cached prefix over time</h3>",
        "<p>Along the session's clock; a wait of more than two lifetimes is drawn as two.</p>",
        _key(
            [
                ("held", "held"),
                ("cold", "lost"),
                ("fresh", "a request that had to write it again"),
                ("aside", "ask or ping"),
            ]
        ),
        plots.cache(traces, result.ttl_s),
        "<h3>Removed outputs and their later use</h3>",
        _key([("soft", "gone from this request on"), ("fresh", "used again by the recorded answer")]) + removed
        if removed
        else "<p>Nothing was removed.</p>",
        "</details>",
    ]
