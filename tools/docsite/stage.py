"""Sources of the site: the pages of docs/, some of which are made from the code, beside those that only the site has."""

import os
import re
import shutil
from pathlib import Path

from docsite import api, codes, commands, configuration, picture

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).parents[2] / "src" / "cg"  # an installed package has no sources of compiled modules


# files from elsewhere that pages link to: where they stand in the repository, and on the site
TAKEN = {
    "bench/README.md": "bench/README.md",
    "bench/hints/README.md": "bench/hints.md",
    "bench/shape_kinds.md": "bench/shape_kinds.md",
    "tests/data/verdicts/README.md": "verdict-rules.md",
}
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<to>[^)\s#:]+)(?P<place>#[^)\s]*)?\)")


# what the site shows beside the lists of the index, by the heading of the list; some of it is there only when it is built
BESIDE = {"Understand it": ["verdict-rules"], "Reference": ["reference/api-*"], "Measured": ["studies/*"]}
HEADING = re.compile(r"^## (?P<caption>.+)\n(?P<list>(?:\n|- .*\n)+)", re.M)


def lay(into: Path) -> None:
    """Write all sources into a folder, which is emptied before."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(ROOT / "docs", into)
    for there in sorted(into.rglob("*.md")):
        here = Path("docs") / there.relative_to(into)
        there.write_text(relinked(there.read_text("utf-8"), here), "utf-8")
    index = into / "index.md"
    index.write_text(with_contents(index.read_text("utf-8")), "utf-8")
    for name, text in taken().items():
        path = into / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, "utf-8")


def made() -> dict[str, str]:
    """The pages and the picture in docs/ that are made from the code, by their place there."""
    serve = commands.subcommands(commands.parsers()["cg-proxy"])["serve"]
    return {
        "reference/configuration.md": configuration.page(serve),
        "reference/commands.md": commands.page(),
        "reference/codes.md": codes.page(),
        "architecture.svg": picture.picture(PACKAGE),
    }


def stale() -> dict[str, str]:
    """Those of them that do not stand in docs/ as they would be made now."""
    docs = ROOT / "docs"
    return {
        name: text
        for name, text in made().items()
        if not (docs / name).is_file() or (docs / name).read_text("utf-8") != text
    }


def write() -> list[str]:
    """Make them again where they are stale; returns which."""
    found = stale()
    for name, text in found.items():
        path = ROOT / "docs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return list(found)


def taken() -> dict[str, str]:
    """The pages that only the site has: the API, and files from elsewhere, by their place on the site."""
    files = {to: relinked((ROOT / name).read_text("utf-8"), Path(name)) for name, to in TAKEN.items()}
    return {**api.pages(), **files}


def with_contents(index: str) -> str:
    """The index with the site's tables of contents, which are its own lists of links."""

    def listed(match: re.Match[str]) -> str:
        names = [found["to"].removesuffix(".md") for found in LINK.finditer(match["list"])]
        beside = BESIDE.get(match["caption"], [])
        head = ["```{toctree}", ":hidden:", f":caption: {match['caption']}", *([":glob:"] * bool(beside)), ""]
        return match[0] + "\n".join(["", *head, *names, *beside, "```", "", ""])

    return HEADING.sub(listed, index + "\n")


def relinked(text: str, here: Path) -> str:
    """A page whose links to files that are taken from elsewhere lead to their places on the site.

    A link to a file that is not on the site becomes its words and the file's place in the repository.
    """

    def moved(match: re.Match[str]) -> str:
        aim = Path(os.path.normpath(here.parent / match["to"]))
        if not (ROOT / aim).exists():
            return match[0]  # a page that is made, or a mistake, which the build tells
        if aim.as_posix() not in TAKEN and aim.parts[0] != "docs":
            return f"{match['text']} (`{aim.as_posix()}`)"
        return f"[{match['text']}]({os.path.relpath(place(aim), place(here).parent)}{match['place'] or ''})"

    return LINK.sub(moved, text)


def place(path: Path) -> Path:
    """Where a file of the repository stands on the site."""
    return Path(TAKEN[path.as_posix()]) if path.as_posix() in TAKEN else path.relative_to("docs")
