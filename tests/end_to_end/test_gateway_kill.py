"""A gateway is killed at random moments: what reached the upstream can be brought back, whatever it was doing."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from state_server import needs_server, state_server

pytest.importorskip("httpcore2")

HARNESS = Path(__file__).parents[1] / "harness"
KILLS = 200 if os.environ.get("CG_LONG") == "1" else 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
@pytest.mark.parametrize("where", ["file", pytest.param("server", marks=needs_server)])
def test_no_marker_reaches_the_upstream_without_its_original_however_often_gateways_are_killed(
    tmp_path: Path, where: str
) -> None:
    """Every marker in every body that the upstream got resolves in the state, and what stands in the place of one
    output is the same in all bodies of its session, before the kills and after."""
    command = [sys.executable, str(HARNESS / "gateway_under_fire.py"), str(tmp_path), str(KILLS), "7"]
    with state_server() if where == "server" else nullcontext() as server:
        if server is not None:
            command.append(server.url())
        looked_at(command)


def looked_at(command: list[str]) -> None:
    """Run it, and look at what it found."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert seen["wrong"] == [] and seen["others"] == []
    assert seen["bodies"] > seen["answers"] >= KILLS and seen["markers"] > KILLS
