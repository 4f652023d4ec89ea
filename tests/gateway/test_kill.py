"""A gateway is killed at random moments: what reached the upstream can be brought back, whatever it was doing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("httpcore2")

REFERENCE = Path(__file__).parents[1] / "reference"
KILLS = 200 if os.environ.get("CG_LONG") == "1" else 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
def test_no_marker_reaches_the_upstream_without_its_original_however_often_gateways_are_killed(tmp_path: Path) -> None:
    """Every marker in every body that the upstream got resolves in the state, and what stands in the place of one
    output is the same in all bodies of its session, before the kills and after."""
    command = [sys.executable, str(REFERENCE / "gateway_under_fire.py"), str(tmp_path), str(KILLS), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert seen["wrong"] == [] and seen["others"] == []
    assert seen["bodies"] > seen["answers"] >= KILLS and seen["markers"] > KILLS
