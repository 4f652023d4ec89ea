"""What asv's pages leave out for readers who use a keyboard or a screen reader, and the way to them."""

import json
from pathlib import Path

MARK = '<p class="dashboard">'


STYLE = """
.navbar-default .navbar-text, .navbar-default .navbar-brand, .navbar-default .navbar-nav > li > a { color: #555; }
a { color: #1f5a94; }
.btn.active, .btn-default.active, .active.btn-xs[role="button"] { background-color: #1f5a94 !important; color: #fff; opacity: 1; }
"""
INSTEAD = (
    ("<html>", '<html lang="en">'),
    ("<title>airspeed velocity</title>", "<title>cg: benchmarks over the history</title>"),
    ("<body>", '<body>\n    <header><h1 class="sr-only">Benchmarks over the history of cg</h1></header>'),
    ('<div id="summarygrid-display"', '<div id="summarygrid-display" role="main" aria-label="Benchmarks as a grid"'),
    ('<div id="summarylist-display"', '<div id="summarylist-display" role="main" aria-label="Benchmarks as a list"'),
    ('<div id="graph-display"', '<div id="graph-display" role="main" aria-label="One benchmark"'),
    ('<div id="regressions-display"', '<div id="regressions-display" role="main" aria-label="Regressions"'),
    ('<input id="range" type="text"', '<input id="range" aria-label="Commits" type="text"'),
)


def mend(html: Path) -> None:
    """Change asv's own pages in place. Raises ValueError for a page that is not as it was when this was written."""
    index = html / "index.html"
    text = index.read_text("utf-8")
    for old, new in INSTEAD:
        if old not in text:
            raise ValueError(f"{index} has no {old}")
        text = text.replace(old, new)
    index.write_text(text, "utf-8")
    with (html / "asv.css").open("a", encoding="utf-8") as style:
        style.write(STYLE)
    only_measured(html)


def only_measured(html: Path) -> None:
    """Benchmarks without any result leave the list: their frames would be empty."""
    path = html / "index.json"
    index = json.loads(path.read_text("utf-8"))
    index["benchmarks"] = {
        name: said
        for name, said in index["benchmarks"].items()
        if (html / "graphs" / "summary" / f"{name}.json").exists()
    }
    path.write_text(json.dumps(index), "utf-8")


def point(page: Path, to: str) -> None:
    """Let a page of the site lead to the dashboard; once, however often this is called."""
    text = page.read_text("utf-8")
    if MARK not in text:
        link = f'{MARK}<a href="{to}">The benchmarks over the history of the project</a></p>\n'
        page.write_text(text.replace("</article>", link + "</article>", 1), "utf-8")
