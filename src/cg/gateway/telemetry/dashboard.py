"""The dashboard: one page without outside assets, allowed by its headers to do nothing but read `/stats`."""

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from cg.gateway.telemetry.descriptions import ASKS, FAULTS, OUTCOMES, REASONS

_PLACEHOLDER = "@WORDS@"
_BLOCK = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


@cache
def dashboard() -> tuple[bytes, bytes]:
    """(the page, the value of its Content-Security-Policy): its one style and one script are named by their hashes."""
    template = files("cg.gateway.telemetry").joinpath("dashboard.html").read_text("utf-8")
    page = template.replace(
        _PLACEHOLDER, json.dumps(_descriptions()).replace("<", "\\u003c")
    )  # no text can end the data block
    hashes: dict[str, list[str]] = {"style": [], "script": []}
    for kind, text in _BLOCK.findall(page):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    policy = (
        "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        f"style-src {' '.join(hashes['style'])}; script-src {' '.join(hashes['script'])}"
    )
    return page.encode(), policy.encode("ascii")


def _descriptions() -> dict[str, dict[str, str]]:
    """What the names in `/stats` mean."""
    return {
        "reasons": {name.value: text for name, text in REASONS.items()},
        "faults": {name.value: text for name, text in FAULTS.items()},
        "outcomes": {name.value: text for name, text in OUTCOMES.items()},
        "asks": {name.value: text for name, text in ASKS.items()},
    }
