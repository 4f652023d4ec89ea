"""A turn of the sweep over SQLite: 1 MB, 100 frozen removals, beside json.loads and json.dumps of the same body."""

import itertools
import json
import tempfile
import tracemalloc
from pathlib import Path

from cg.sweep.body.transcript import read
from cg.sweep.config import load
from cg.sweep.drivers import Sweep
from cg.sweep.store_sqlite import SqliteStore

from .sweep_bodies import request

START = 1_800_000_000.0
STEP_S = 1000.0  # each request is cold and none a retry


TURNS = 16  # bodies made before, each a step longer; then they begin anew


def going_on(body, n):
    """Bodies of the requests that follow: one more exchange each, and the mark on its last message."""
    request = json.loads(body)
    bodies = []
    for turn in range(n):
        request["messages"][-1]["content"][0].pop("cache_control")
        said = [{"type": "text", "text": f"Step {turn} is done."}]
        asked = [{"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}]
        request["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": asked}]
        bodies.append(json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode())
    return bodies


class Turn:
    """`process` replays 100 removals and removes nothing new in a session that goes on, `unseen` does where the body
    before it is not remembered (a restart, more sessions than are kept); `peer` is what a rewriter without spans does.
    """

    params, param_names = [["process", "unseen", "peer"]], ["call"]

    def setup(self, call):
        self.folder = tempfile.TemporaryDirectory()
        config = load(None, {}, {"keep_newest": 0}, "cold")
        self.store = SqliteStore(Path(self.folder.name) / "state" / "sweep.db", config)
        self.sweep = Sweep(config, self.store)
        self.body, self.now = request(1_000_000, "code"), START
        first = json.loads(self.body)
        first["messages"] = first["messages"][:1]
        first["messages"][0]["content"] = [
            {"type": "text", "text": first["messages"][0]["content"], "cache_control": {"type": "ephemeral"}}
        ]
        self.sweep.process(json.dumps(first).encode(), "t", self.now)
        self.now += STEP_S
        assert len(self.sweep.process(self.body, "t", self.now).report.removed) == 100
        self.bodies = itertools.cycle(going_on(self.body, TURNS))

    def teardown(self, call):
        self.store.close()
        self.folder.cleanup()

    def step(self, call):
        body = next(self.bodies)
        if call == "peer":
            return json.dumps(json.loads(body), ensure_ascii=False).encode()
        self.now += STEP_S
        done = self.sweep.process(read(body) if call == "unseen" else body, "t", self.now)
        assert done.report.replayed == 100
        return done.body

    def time_turn(self, call):
        self.step(call)

    def track_peak(self, call):
        """Bytes allocated at the peak over the body's own size; the body itself is not counted."""
        tracemalloc.start()
        try:
            self.step(call)
            return tracemalloc.get_traced_memory()[1] / len(self.body)
        finally:
            tracemalloc.stop()

    track_peak.unit = "bodies"
