"""Hold every page to axe's accessibility rules, in a headless Chromium: the site, the gateway's page, a replay's report.

    (cd tools/a11y && npm install --no-package-lock)
    python tools/docs.py && python tools/a11y.py [--site build/site] [--all] [--every] [--pictures FOLDER]

Each page is looked at wide in the light scheme, and a share of them (with --every: all) narrow in the dark one. Exit
code 0: no violation that axe calls serious or critical (with --all: none at all). 1: there are some; each is printed with
its element. 77: skipped, and the reason.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tests" / "harness")]
import browser as chromium  # noqa: E402
from browser import Browser, binary  # noqa: E402
from figures_sample import START, busy  # noqa: E402

from cg.gateway.exchange import Inbound  # noqa: E402
from cg.gateway.telemetry.routes import TelemetryRoutes  # noqa: E402
from cg.gateway.telemetry.stats import GatewayInfo, Stats  # noqa: E402

AXE = Path(__file__).parent / "a11y" / "node_modules" / "axe-core" / "axe.min.js"
SKIPPED = 77
chromium.LIMIT_S = 180.0  # axe takes a second of a free processor for a long page, and a minute of a shared one
GRAVE = frozenset(["serious", "critical"])
VIEWS = ((1280, 900, "light"), (360, 740, "dark"))
SAMPLE = 4  # of the site's pages every so-manieth is seen narrow and dark too: all share one style sheet
# axe's own state is the page's; what it returns is cut to what is printed.
RUN = """axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(found.violations.map(v => (
  {id: v.id, impact: v.impact, nodes: v.nodes.map(n => n.target.join(' ') + '  ' + n.any.concat(n.all, n.none).map(
    c => c.message).join('; '))}))))"""
READY = {  # pages that draw themselves: what to wait for
    "/dashboard": "document.body.dataset.ready",
    "/site/benchmarks/": "document.querySelector('.benchmark-container, #main-graph canvas, #summarylist-body tr')",
}
BENCHMARKS = ("", "#/summarylist", "#/bm25.Query.time_query")


class Pages(SimpleHTTPRequestHandler):
    """The site under /site/, a report under /report/, and a gateway's own routes with sample figures."""

    site: Path
    report: Path
    own = TelemetryRoutes(
        Stats(busy(), GatewayInfo(START), lambda: START + 600, store_totals=lambda: {"reasons": {}, "savings": {}})
    )

    def translate_path(self, path: str) -> str:
        clean = path.partition("?")[0].partition("#")[0].lstrip("/")
        room, _, rest = clean.partition("/")
        return str({"site": self.site, "report": self.report}.get(room, Path("/nowhere")) / rest)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].encode()
        handler = self.own.handlers.get(path)
        if handler is None:
            super().do_GET()
            return
        answer = asyncio.run(handler(Inbound("GET", path, [])))  # type: ignore[arg-type]
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name.decode(), value.decode())
        self.end_headers()
        self.wfile.write(answer.body)  # type: ignore[arg-type]

    def log_message(self, *args: object) -> None:
        pass


def places(site: Path) -> Iterator[str]:
    """What to look at."""
    for path in sorted(site.rglob("*.html")):
        if "benchmarks" not in path.relative_to(site).parts:
            yield f"/site/{path.relative_to(site).as_posix()}"
    if (site / "benchmarks" / "index.html").exists():
        yield from (f"/site/benchmarks/index.html{view}" for view in BENCHMARKS)
    yield "/dashboard"
    yield "/report/report.html"


def look(browser: Browser, url: str, place: str, axe: str) -> list[dict]:
    """The violations of one page in one view."""
    ready = next((condition for start, condition in READY.items() if place.startswith(start)), "true")
    if "#" in place:
        browser.open("about:blank")  # else only the view of the page before would change
    browser.open(url + place, f"document.readyState === 'complete' && ({ready})")
    browser.run(axe + ";0")
    return json.loads(browser.run(RUN))


def report(into: Path) -> None:
    """A replay's report over the recorded examples."""
    command = [sys.executable, "-m", "cg.replay.cli", "replay", str(ROOT / "examples" / "sessions"), "--no-progress"]
    subprocess.run([*command, "--html", str(into / "report.html")], check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--only", default="", metavar="TEXT", help="pages whose address holds this")
    parser.add_argument("--all", action="store_true", help="minor and moderate ones count too")
    parser.add_argument("--every", action="store_true", help="every page in both views")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="keep a screenshot of every page and view")
    arguments = parser.parse_args()
    if binary() is None or not AXE.exists():
        print(
            "skipped: no Chromium on PATH" if binary() is None else f"skipped: no {AXE.relative_to(ROOT)}; npm install"
        )
        return SKIPPED
    if not (arguments.site / "index.html").exists():
        raise SystemExit(f"{arguments.site} holds no site: python tools/docs.py")
    with tempfile.TemporaryDirectory() as folder:
        report(Path(folder))
        Pages.site, Pages.report = arguments.site.resolve(), Path(folder)
        with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            found = check(f"http://127.0.0.1:{server.server_port}", arguments)
            server.shutdown()
    return found


def check(url: str, arguments: argparse.Namespace) -> int:
    """Look at every page in every view; returns the exit code."""
    axe, looked, grave, slight = AXE.read_text("utf-8"), 0, 0, 0
    with Browser() as browser:
        for width, height, scheme in VIEWS:
            browser.resize(width, height)
            browser.prefer(scheme)
            for n, place in enumerate(places(arguments.site)):
                seldom = scheme == "dark" and place.startswith("/site/") and n % SAMPLE and not arguments.every
                if arguments.only not in place or seldom:
                    continue
                looked += 1
                for violation in look(browser, url, place, axe):
                    counts = violation["impact"] in GRAVE or arguments.all
                    grave, slight = grave + counts, slight + (not counts)
                    if counts:
                        print(f"{place} ({width}, {scheme}): {violation['impact']}: {violation['id']}")
                        print("".join(f"    {node}\n" for node in violation["nodes"][:5]), end="", flush=True)
                if arguments.pictures is not None:
                    name = place.strip("/").replace("/", "-").replace("#", "")
                    arguments.pictures.mkdir(parents=True, exist_ok=True)
                    browser.screenshot(arguments.pictures / f"{name}-{width}-{scheme}.png")
    print(f"{looked} views of pages: {grave} violations, {slight} slight ones not counted")
    return int(grave > 0)


if __name__ == "__main__":
    sys.exit(main())
