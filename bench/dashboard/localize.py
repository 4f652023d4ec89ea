"""Make an asv page self-contained: copy the assets it loads from elsewhere beside it, and point it at the copies.

cd bench/dashboard && npm install --no-package-lock && cd ../..
asv publish --config bench/asv.conf.json
python bench/dashboard/localize.py .asv/html bench/dashboard/node_modules
"""

import re
import shutil
import sys
from pathlib import Path

# file name in asv's page -> the same file in a package
ASSETS = {
    "bootstrap.min.css": "bootstrap/dist/css/bootstrap.min.css",
    "bootstrap.min.js": "bootstrap/dist/js/bootstrap.min.js",
    "jquery-3.3.1.min.js": "jquery/dist/jquery.min.js",
    "jquery.flot.categories.min.js": "flot/jquery.flot.categories.js",
    "jquery.flot.min.js": "flot/jquery.flot.js",
    "jquery.flot.orderBars.js": "flot-orderbars/js/jquery.flot.orderBars.js",
    "jquery.flot.selection.min.js": "flot/jquery.flot.selection.js",
    "jquery.flot.time.min.js": "flot/jquery.flot.time.js",
    "md5.min.js": "blueimp-md5/js/md5.min.js",
    "stupidtable.min.js": "stupid-table-plugin/stupidtable.min.js",
}
REMOTE = re.compile(r'(src|href)="https://[^"]*/([^"/]+\.(?:js|css))"')
CHECKS = re.compile(r' (?:integrity|crossorigin|referrerpolicy)="[^"]*"')  # they name the remote copies' bytes


def localize(page: str) -> str:
    """The page with every remote script and style sheet taken from `vendor/`; raises KeyError for an unknown one."""
    wanted = {match[2] for match in REMOTE.finditer(page)}
    unknown = sorted(wanted - ASSETS.keys())
    if unknown:
        raise KeyError(f"the page loads files that no asset stands for: {unknown}")
    return CHECKS.sub("", REMOTE.sub(r'\1="vendor/\2"', page))


def main(html: Path, modules: Path) -> None:
    """Rewrite `html`/index.html in place."""
    vendor = html / "vendor"
    vendor.mkdir(exist_ok=True)
    for name, source in ASSETS.items():
        shutil.copy(modules / source, vendor / name)
    shutil.copytree(modules / "bootstrap/dist/fonts", html / "fonts", dirs_exist_ok=True)  # named by its style sheet
    index = html / "index.html"
    index.write_text(localize(index.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
