"""Every relative link and anchor in the given Markdown files and folders must lead somewhere."""

import re
import sys
from pathlib import Path

LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def anchors(path: Path) -> set[str]:
    """The anchors that a renderer makes of a file's headings."""
    heads = re.findall(r"^#+\s+(.*)$", FENCE.sub("", path.read_text("utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken(path: Path) -> list[str]:
    """Links of one file that lead nowhere."""
    found = []
    for match in LINK.finditer(FENCE.sub("", path.read_text("utf-8"))):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            found.append(f"{path}: {target}")
    return found


files = [f for arg in sys.argv[1:] for f in ([Path(arg)] if Path(arg).is_file() else sorted(Path(arg).rglob("*.md")))]
problems = [line for f in files if "node_modules" not in f.parts for line in broken(f)]
print("\n".join(problems) or f"{len(files)} files, all links lead somewhere")
sys.exit(bool(problems))
