"""Every link of a built site leads somewhere, and nothing that a page loads comes from elsewhere."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "object": "data",
}
RELATIONS = frozenset(["stylesheet", "icon", "shortcut icon", "preload", "modulepreload", "manifest", "preconnect"])
IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?(?!data:|#)([^"')\s]+)""")
HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?\Z", re.I)


class Page(HTMLParser):
    """Ids, links and loaded files of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag in ("a", "area") and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel", "") not in RELATIONS:
            return
        if (place := given.get(LOADED.get(tag, ""))) is not None:
            self.loaded.append(place)


def problems(site: Path) -> list[str]:
    """What is wrong with the links of a built site, one line each."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [f"{path.relative_to(site)}: {what}" for path in pages for what in _of_page(path, pages)]
    for path in sorted(site.rglob("*.css")):
        found += [
            f"{path.relative_to(site)}: loads {to}"
            for to in IN_STYLES.findall(path.read_text("utf-8"))
            if not _is_there(path, to)
        ]
    return found


def _of_page(path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    page = pages[path]
    for place in page.loaded:
        if not place.startswith("data:") and not _is_there(path, place):
            yield f"loads {place}"
    for link in page.links:
        if (wrong := _wrong(path, link, pages)) is not None:
            yield f"{link}: {wrong}"


def _is_there(path: Path, place: str) -> bool:
    """Whether a file that is loaded is one of the site's own."""
    parts = urlsplit(place)
    return not parts.scheme and not parts.netloc and (path.parent / unquote(parts.path)).is_file()


def _wrong(path: Path, link: str, pages: dict[Path, Page]) -> str | None:
    """Why a link leads nowhere; one that leaves the site is looked at only as text."""
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return None if HOST.match(parts.netloc) else "no host"
    if parts.scheme or parts.netloc:
        return None if parts.scheme == "mailto" else "neither a page nor an address"
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    there = there / "index.html" if there.is_dir() else there
    if not there.is_file():
        return "no such page"
    if parts.fragment.startswith("/"):
        return None  # a view that the page's own script draws
    if parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].ids:
        return "no such place on the page"
    return None
