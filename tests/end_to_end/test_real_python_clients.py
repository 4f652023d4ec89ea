"""The Python clients themselves through the gateway: same answers, same histories, whatever they put on the wire.

Runs where `CG_CLIENTS_PYTHON` names an interpreter that has them; needs no network.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import scripts
from clients import Ended, main_requests, run_python
from fake_upstream import FakeUpstream
from served import gateway

from cg.sweep.body.transcript import read
from cg.sweep.config import load

pytestmark = pytest.mark.skipif(
    not os.environ.get("CG_CLIENTS_PYTHON"), reason="CG_CLIENTS_PYTHON names no interpreter with the clients"
)

START = 1_800_000_000
CONFIG = load(preset="cold", flags={"keep_newest": 2, "pings": 0})
SCRIPT = {"routes": [{"name": "main", "turns": scripts.lookups()}]}
WHOLE = ["sdk", "sdk-stream", "runner-full", "litellm", "pydantic-ai"]  # whole histories, with breakpoints
ALL = [*WHOLE, "langchain", "langchain-stream", "runner", "runner-stream"]


def upstream(**more: Any) -> FakeUpstream:
    return FakeUpstream(SCRIPT, clock="manual", clock_start=START, **more)


def ran(name: str, url: str) -> Ended:
    ended = run_python(name, url)
    if ended.exit_code == 3:
        pytest.skip(f"{name} is not installed there: {ended.stderr or ended.said}")
    return ended


def markers(record: dict[str, Any]) -> dict[str, str]:
    return {t.tool_use_id: t.text for t in read(record["body"].encode()).tool_texts if t.has_marker}


@pytest.mark.parametrize("threads", ["serve", "unsupported"])
@pytest.mark.parametrize("name", ALL)
def test_a_client_gets_the_same_answers_and_keeps_the_same_history(name: str, threads: str, tmp_path: Path) -> None:
    """Its own tools, errors, pairs and streams among them."""
    if threads == "unsupported" and not name.startswith("runner"):
        pytest.skip("only the tool runner has the provider hold the history")
    with upstream(threads=threads) as up:
        without, plain = ran(name, up.base_url), main_requests(up)
    with upstream(threads=threads) as up, gateway(up, CONFIG, state=tmp_path / "state.db") as live:
        through, seen, stats = ran(name, live.url), main_requests(up), live.stats()
    assert without.said
    assert (through.exit_code, through.said, through.is_error) == (without.exit_code, without.said, without.is_error)
    assert through.transcript == without.transcript
    assert [r["status"] for r in seen] == [r["status"] for r in plain]
    removed = stats["removed"]["outputs"]
    if name in WHOLE or (threads == "unsupported"):
        assert removed >= 5
        left = [markers(r) for r in seen]
        assert all(a.items() <= b.items() for a, b in zip(left, left[1:], strict=False))
        assert len(left[-1]) == removed
    if name in ("runner", "runner-stream") and threads == "serve":
        assert removed == 0
        assert stats["reasons"].keys() == {"server_thread"}
        assert [r["sha256"] for r in seen] == [r["sha256"] for r in plain] or len(seen) == len(plain)
