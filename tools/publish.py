"""Put the dashboard of the benchmarks beside the site: the results in bench/results, drawn over the project's history.

    pip install asv && (cd bench/dashboard && npm install --no-package-lock)
    python tools/docs.py && python tools/publish.py [--site build/site]

Nothing that it loads comes from elsewhere. Exit code 0: published. 1: a link that leads nowhere. 77: skipped, and why.
"""

import argparse
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from docsite import dashboard, links

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "bench" / "dashboard"))
import localize  # noqa: E402

CONFIG = ROOT / "bench" / "asv.conf.json"
DRAWN = ROOT / ".asv" / "html"  # where the configuration puts it
MODULES = ROOT / "bench" / "dashboard" / "node_modules"
SKIPPED = 77
FROM = ("index.html", "bench/README.html")  # pages of the site that point to it


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site", metavar="FOLDER")
    site: Path = parser.parse_args().site
    if importlib.util.find_spec("asv") is None or not MODULES.exists():
        print("skipped: asv is not installed" if MODULES.exists() else f"skipped: no {MODULES}; npm install")
        return SKIPPED
    shutil.rmtree(DRAWN, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "asv", "publish", "--config", str(CONFIG)], check=True, cwd=ROOT)
    localize.main(DRAWN, MODULES)
    dashboard.mend(DRAWN)
    shutil.rmtree(site / "benchmarks", ignore_errors=True)
    shutil.copytree(DRAWN, site / "benchmarks")
    for name in FROM:
        if (site / name).exists():
            dashboard.point(site / name, "../" * name.count("/") + "benchmarks/index.html")
    found = links.problems(site)
    print("\n".join(found) or f"the dashboard is in {site / 'benchmarks'}, all links lead somewhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
