"""A process that sweeps is killed at random moments: what left it can be brought back, whatever it was doing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[1] / "harness"
KILLS = 200 if os.environ.get("CG_LONG") else 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
def test_every_marker_that_left_resolves_after_kills_at_random_moments(tmp_path: Path) -> None:
    """Each marker in each body that left brings the exact original back, the bytes of a removal are the same in all
    bodies of its thread, before and after, and no decision is there without its original."""
    command = [sys.executable, str(HARNESS / "sweep_under_fire.py"), str(tmp_path), str(KILLS), "11"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert seen["wrong"] == []
    assert seen["kills"] == KILLS and seen["faults"] == 0
    assert seen["bodies"] >= seen["acknowledged"] > KILLS
    assert seen["markers"] > seen["originals"] > KILLS
