"""The dashboard of a gateway that is really at work, as a browser gets it from that gateway."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, binary
from fake_upstream import FakeUpstream
from outputs_session import body
from served import Gateway, gateway

from cg.sweep.config import load

START = 1_800_000_000
CONFIG = load(preset="cold", flags={"keep_newest": 2, "pings": 0})
SCRIPT = [{"text": "Looked.", "advance_s": 700 if n == 5 else 5} for n in range(8)]
READY = "document.body.dataset.ready || document.body.dataset.error"
SESSION = {"x-api-key": "dummy", "anthropic-version": "2023-06-01", "content-type": "application/json"}


def talk(live: Gateway) -> list[dict[str, Any]]:
    """Seven requests; the last comes to a cold cache."""
    replies = []
    for n in range(7):
        request = urllib.request.Request(f"{live.url}/v1/messages", body(n), SESSION)
        with urllib.request.urlopen(request, timeout=30) as answer:
            replies.append(json.load(answer))
    return replies


@pytest.mark.skipif(binary() is None, reason="no Chromium (CG_CHROMIUM names one)")
@pytest.mark.parametrize("observe", [False, True], ids=["sweeping", "observing"])
def test_a_browser_sees_what_the_gateway_did(observe: bool, tmp_path: Path) -> None:
    """The page's own request for figures passes the rules on who may read them, and the figures are those of the wire."""
    state = tmp_path / "state.db"
    with FakeUpstream(SCRIPT, clock="manual", clock_start=START) as up:
        with gateway(up, CONFIG, state=state, observe=observe) as live, Browser() as page:
            replies = talk(live)
            page.open(f"{live.url}/dashboard", READY)
            page.wait_for("document.getElementById('tiles').innerText.includes('Turns')")
            tiles = page.run("document.getElementById('tiles').innerText")
            shown = page.run("document.getElementById('projected-tiles').innerText")
            is_hidden = page.run("document.getElementById('projected').hidden")
            assert page.errors == []
        markers = sum(b"<<cg:" in r["body"].encode() for r in up.requests)
        sent = [r["sha256"] for r in up.requests]
    assert len(replies) == 7
    turns = tiles.split("Turns\n")[1].split("\n")[0]
    removed = tiles.split("Outputs removed\n")[1].split("\n")[0]
    assert turns.strip() == "7"
    if observe:
        assert (removed.strip(), is_hidden, markers) == ("0", False, 0)
        assert "Projected removals\n4" in shown.replace("\n\n", "\n")
        assert len(set(sent)) == 7
    else:
        assert (removed.strip(), is_hidden, markers) == ("4", True, 1)
