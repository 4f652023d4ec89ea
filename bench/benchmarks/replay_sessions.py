"""Reading recorded sessions: cost per request beside json.loads of the same file, and whether it grows with the session."""

import json
import tempfile
import time
import tracemalloc
from pathlib import Path

from studies.synthetic import as_agent_session, as_claude_log, made_session

from cg.replay.sessions import open_sessions

TURNS = 2_000


def written(folder: str, form: str, turns: int) -> Path:
    session = made_session(1, turns)
    if form == "claude":
        path = Path(folder) / f"{turns}.jsonl"
        path.write_text("\n".join(map(json.dumps, as_claude_log(session))), "utf-8")
    else:
        path = Path(folder) / f"{turns}.json"
        path.write_text(json.dumps(as_agent_session(session)), "utf-8")
    return path


class Reading:
    """`agent` is one JSON object, `claude` JSON lines."""

    params, param_names = [["agent", "claude"]], ["form"]

    def setup(self, form):
        self.folder = tempfile.TemporaryDirectory()
        self.path = written(self.folder.name, form, TURNS)
        [self.session] = open_sessions(self.path)

    def teardown(self, form):
        self.folder.cleanup()

    def time_steps(self, form):
        for _ in self.session.steps():
            pass

    def track_beside_parsing(self, form):
        """Time of all steps over that of parsing the file's JSON."""
        raw = self.path.read_bytes()
        parse = [raw] if form == "agent" else raw.splitlines()
        best = {"steps": 1e9, "parse": 1e9}
        for _ in range(5):
            start = time.process_time()
            self.time_steps(form)
            middle = time.process_time()
            for text in parse:
                json.loads(text)
            best["steps"] = min(best["steps"], middle - start)
            best["parse"] = min(best["parse"], time.process_time() - middle)
        return best["steps"] / best["parse"]

    track_beside_parsing.unit = "ratio"

    def track_growth(self, form):
        """Time per request of a session ten times as long, over that of the short one: 1 if it does not depend on it."""
        per = []
        for turns in (TURNS // 10, TURNS):
            [session] = open_sessions(written(self.folder.name, form, turns))
            best = 1e9
            for _ in range(5):
                start = time.process_time()
                for _ in session.steps():
                    pass
                best = min(best, time.process_time() - start)
            per.append(best / turns)
        return per[1] / per[0]

    track_growth.unit = "ratio"


class Made:
    """Made sessions, one after the other."""

    def track_peak_growth(self):
        """Peak memory of ten sessions read a hundred times each over that of reading them once: 1 if it is flat."""
        peaks = []
        for sessions in (10, 1_000):
            tracemalloc.start()
            for seed in range(sessions):
                for _ in made_session(seed % 10, 20).steps():
                    pass
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return peaks[1] / peaks[0]

    track_peak_growth.unit = "ratio"

    def time_session(self):
        for _ in made_session(1, 200).steps():
            pass
