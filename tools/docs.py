"""Build the documentation, strictly, and see that its links lead somewhere.

    pip install '.[proxy]' -r requirements/docs.txt
    python tools/docs.py [--into build/site]
    python tools/docs.py --write            # make the pages in docs/ again that are made from the code, and no site
    python tools/docs.py --check            # only look whether they are fresh

Exit code 0: built. 1: a page in docs/ is stale, a warning of the build, or a link that leads nowhere; each is printed.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from docsite import accessible, links, stage

ROOT = Path(__file__).parents[1]
STRICT = [
    "-j",
    "auto",
    "-W",
    "--keep-going",
    "-n",
    "-q",
]  # a warning is an error; all of them are told; unknown names too


def build(into: Path, work: Path) -> int:
    """Make the site; returns Sphinx's exit code."""
    stage.lay(work / "sources")
    shutil.rmtree(into, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", *STRICT, "-b", "html", "-d", str(work / "doctrees")]
    found = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}  # for the extension in docsite/
    done = subprocess.run([*command, str(work / "sources"), str(into)], env=found)
    if not done.returncode:
        for name in (".buildinfo", "objects.inv"):
            (into / name).unlink(missing_ok=True)
        accessible.mend(into)
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site", metavar="FOLDER")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--write", action="store_true", help="make the pages in docs/ that are made from the code")
    only.add_argument("--check", action="store_true", help="look whether they are fresh, and build nothing")
    arguments = parser.parse_args()
    if arguments.write:
        print("\n".join(f"docs/{name} written" for name in stage.write()) or "all fresh")
        return 0
    if stale := stage.stale():
        print("\n".join(f"docs/{name} is stale: python tools/docs.py --write" for name in stale))
        return 1
    if arguments.check:
        print("all fresh")
        return 0
    into: Path = arguments.into
    if build(into, ROOT / "build" / "docs"):
        return 1
    found = links.problems(into)
    print("\n".join(found) or f"{len(list(into.rglob('*.html')))} pages in {into}, all links lead somewhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
