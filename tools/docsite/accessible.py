"""What the theme leaves out for readers who use a keyboard or a screen reader, put into each built page."""

import re
from pathlib import Path

Change = tuple[re.Pattern[str], str]
CHANGES: tuple[Change, ...] = (
    # A heading needs a level, and two landmarks of one kind need names.
    (re.compile(r'(<p class="caption" role="heading")>'), r'\1 aria-level="2">'),
    (re.compile(r'(<aside class="sidebar-drawer")>'), r'\1 aria-label="Pages">'),
    (re.compile(r'(<aside class="toc-drawer[^"]*")>'), r'\1 aria-label="On this page">'),
    # What scrolls must be reachable without a mouse.
    (re.compile(r'(<div class="table-wrapper[^"]*")>'), r'\1 tabindex="0" role="group" aria-label="Table">'),
    (re.compile(r'(?=<div id="search-results"></div>)'), "<h1>Search</h1>\n"),
    # A column without a name is named by nothing.
    (re.compile(r'<th class="head"><p></p></th>'), "<td></td>"),
)


def mend(site: Path) -> None:
    """Change every page of a built site in place."""
    for path in site.rglob("*.html"):
        path.write_text(mended(path.read_text("utf-8")), "utf-8")


def mended(page: str) -> str:
    for pattern, instead in CHANGES:
        page = pattern.sub(instead, page)
    return page
