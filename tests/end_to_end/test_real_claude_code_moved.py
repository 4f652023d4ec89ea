"""Claude Code itself before three gateways on one server: each of its requests goes to the next, and one of them dies.

Runs where `CG_CLAUDE_BIN` names the binary; needs no login and no network, but a Valkey or Redis server.
"""

import contextlib
import json
import os
import shutil
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import scripts
import workspace
from clients import Ended, claude_binary, main_requests, run_claude
from state_server import StateServer, needs_server, state_server

pytestmark = [
    needs_server,
    pytest.mark.skipif(
        not os.environ.get("CG_CLAUDE_BIN") or claude_binary() is None,
        reason="CG_CLAUDE_BIN names no Claude Code binary",
    ),
]
pytest.importorskip("redis", reason="redis is not installed: the store on a server is an extra")

from several import Forwarder, GatewayProcess, gateways, upstream  # noqa: E402

from cg.sweep.body.transcript import read  # noqa: E402
from cg.sweep.store_redis import RedisStore  # noqa: E402

ALL_OLD = {"judge": "recency", "ask": "off", "apply": "free", "min_tokens": 250, "min_inventory": 1, "keep_newest": 0}
GAPS = (8, 14)  # turns behind which the client waits long: the cache is cold then
CUT_AT = 11  # the turn in whose answer its gateway dies: after the first removals, before the second
HANGS = {"kind": "stall", "after_events": 4, "seconds": 300, "ping_every_s": 0.05}


@pytest.fixture
def server() -> Iterator[StateServer]:
    with state_server() as running:
        yield running


@dataclass
class Seen:
    """A run with what the upstream saw of it."""

    ended: Ended
    requests: list[dict[str, Any]]  # of the conversation itself
    served: list[int]  # by which gateway
    faults: list[dict[str, int]]
    held: dict[str, int]

    @property
    def removed(self) -> list[dict[tuple[str, int], str]]:
        """Of each turn what stands in the place of removed outputs."""
        last = {r["turn"]: r["body"] for r in self.requests}
        return [
            {(t.tool_use_id, t.block): t.text for t in read(last[turn].encode()).tool_texts if t.has_marker}
            for turn in sorted(last)
        ]

    @property
    def by_turn(self) -> dict[int, set[tuple[int, str]]]:
        """Of each turn the sizes of its bodies with what they cost.

        Whether the client repeats the turn that hung once or twice, as a stream or not, is its own matter and changes from
        run to run; a repeat is the same body for the same price.
        """
        found: dict[int, set[tuple[int, str]]] = defaultdict(set)
        for r in self.requests:
            size = len(r["body"].replace('"stream":true,', ""))
            found[r["turn"]].add((size, json.dumps(r["usage"], sort_keys=True)))
        return dict(found)


def script_of(root: Path) -> dict[str, Any]:
    """The session, with one turn that hangs once."""
    turns = scripts.reads(root / "place" / "repo", gaps=GAPS)
    turns[CUT_AT]["fault"] = HANGS
    made = scripts.routes(turns)
    made["routes"][-1]["by"] = "assistant_turns"  # a request that is sent again gets the same turn
    return made


@contextlib.contextmanager
def death(up: Any, forwarder: Forwarder, found: list[GatewayProcess]) -> Iterator[list[int]]:
    """Kill the gateway that is in the middle of the answer that hangs; a single one is started again, as a supervisor
    would. Yields who was killed."""
    (hanging,) = [turn for route in up.script["routes"] for turn in route["turns"] if "fault" in turn]
    over, dead = threading.Event(), list[int]()

    def work() -> None:
        while not over.wait(0.02):
            if hanging["fault"].get("_left") == 0 and len(forwarder.answering) == 1:
                dead.append(forwarder.answering[0])
                found[dead[0]].kill()
                if len(found) == 1:
                    found[0].start()
                return

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield dead
    finally:
        over.set()
        worker.join()


def moved(n: int, root: Path, server: StateServer) -> Seen:
    """Claude Code behind so many gateways, one of which is killed in mid-stream."""
    home, folder = root / "home", root / f"gateways-{n}"
    shutil.rmtree(home, ignore_errors=True)
    folder.mkdir()
    url = server.url(prefix=f"n{n}")
    with (
        upstream(script_of(root), folder) as up,
        RedisStore(url) as store,
        gateways(n, folder, url, up, **ALL_OLD) as found,
    ):
        forwarder = Forwarder(found)
        with death(up, forwarder, found) as dead, forwarder as address:
            ended = run_claude(home, root / "place" / "repo", address, "-p", "Read every module.")
        assert len(dead) == 1, "no gateway was killed in the middle of an answer"
        faults = [g.stats()["faults"].get("ours", {}) for g in found if g.process is not None]
        return Seen(ended, main_requests(up), list(forwarder.served), faults, dict(store.status()))


def test_claude_code_does_not_notice_that_it_is_moved_and_that_a_gateway_dies(
    server: StateServer, tmp_path: Path
) -> None:
    """The session ends as behind one gateway; what the upstream gets and bills is the same, request by request, and no
    removal ever changes or comes back."""
    workspace.make(tmp_path / "place" / "repo")
    three, one = moved(3, tmp_path, server), moved(1, tmp_path, server)
    assert set(three.served) == {0, 1, 2} and set(one.served) == {0}
    assert (three.ended.exit_code, three.ended.said) == (0, scripts.FINAL) == (one.ended.exit_code, one.ended.said)
    assert three.by_turn == one.by_turn
    assert three.removed == one.removed
    assert not any(three.faults + one.faults)
    left = three.removed
    assert len(left[GAPS[0]]) >= 4 and len(left[-1]) > len(left[GAPS[0]])
    for before, after in zip(left, left[1:], strict=False):
        assert before.items() <= after.items(), "a removal changed or came back"
    assert three.held["removals"] == one.held["removals"] == len(left[-1])
