"""Open a localised asv page in headless Chromium with no network and see that benchmarks are on it.

    python bench/dashboard/check.py .asv/html [screenshot.png]

Exit code 0: rendered. 1: blank or broken. 77: skipped, there is no Chromium here (named on stdout).
"""

import functools
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

SKIPPED = 77
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # what is not local cannot load
    "--virtual-time-budget=8000",
    "--window-size=1400,1000",
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and logs nothing."""

    def log_message(self, *args: object) -> None:
        pass


def main(html: Path, screenshot: Path | None) -> int:
    """Serve the folder on loopback (a page opened as a file may not read its own data) and dump what it renders."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("skipped: no chromium on PATH")
        return SKIPPED
    handler = functools.partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, tempfile.TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/index.html"
        command = [browser, *FLAGS, f"--user-data-dir={profile}"]
        if screenshot is not None:
            subprocess.run(
                [*command, f"--screenshot={screenshot}", address], check=True, capture_output=True, timeout=120
            )
        page = subprocess.run(
            [*command, "--dump-dom", address], check=True, capture_output=True, text=True, timeout=120
        ).stdout
        server.shutdown()
    found = page.count("benchmark-container")
    print(f"{found} benchmarks on the page")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
