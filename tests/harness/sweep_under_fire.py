"""Kill processes that sweep growing bodies, at random moments, and look at what left and what they left behind.

Run as a script it prints one JSON line: `python sweep_under_fire.py FOLDER KILLS SEED`.
"""

import json
import os
import random
import sys
from functools import partial
from pathlib import Path

from markers import find_markers
from presets import paid
from sessions import COLD_AFTER_S, history, output, request, results
from under_fire import READY, kill_once, say

from cg.sweep.drivers import Sweep
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Payload

CONFIG = paid(judge="recency", ask="off", apply="free", min_tokens=100, payload_ttl_h=8760)  # no original ages in a run
STEPS = 6  # requests of a session, each with one output more than the one before, each after a wait that ends cold
SIZE = 1500  # bytes of an output
MOST_WORDS = 8  # of the child, after which it may be killed: more than a session, so that each of its steps is hit
LONGEST_DELAY_S = 0.02
LOOK_EVERY = 40  # kills


def sweep_for_ever(folder: Path, first: int, start: float, acknowledged: int) -> None:
    """Sweep session after session; a body that leaves is in the file before the parent hears of it."""
    left = os.open(folder / "left", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with SqliteStore(folder / "state" / "sweep.db", CONFIG) as store:
        sweep, now = Sweep(CONFIG, store), start
        say(acknowledged, READY)
        for session in range(first, first + 10**6):
            for step in range(STEPS):
                now += COLD_AFTER_S
                swept = sweep.process(request(history(step, SIZE)), f"s{session}", now)
                os.write(left, b"%d " % session + swept.body + b"\n")
                say(acknowledged, f"{session} {swept.report.reason.value}")


def look(folder: Path, start: int) -> tuple[int, dict[str, int], list[str]]:
    """(end of what was read, counts, what is wrong) for the bodies in the file from `start` on."""
    raw = (folder / "left").read_bytes()[start:]
    raw = raw[: raw.rfind(b"\n") + 1]  # a body that was being written has not left
    counts, wrong = {"bodies": 0, "markers": 0, "originals": 0}, []
    written: dict[tuple[str, str], str] = {}
    with SqliteStore(folder / "state" / "sweep.db", CONFIG) as store:
        sweep = Sweep(CONFIG, store)
        for line in raw.splitlines():
            session, body = line.split(b" ", 1)
            thread = f"s{session.decode()}"
            counts["bodies"] += 1
            for tool_use_id, content in results(body).items():
                original = output(int(tool_use_id.removeprefix("toolu_")), SIZE)
                if content == original:
                    continue
                counts["markers"] += 1
                if written.setdefault((thread, tool_use_id), content) != content:
                    wrong.append(f"{thread} {tool_use_id}: other bytes than before")
        for (thread, tool_use_id), content in written.items():
            keys = find_markers(content)
            original = output(int(tool_use_id.removeprefix("toolu_")), SIZE).encode()
            if len(keys) != 1 or sweep.expand(thread, keys[0], 3e6).answer != original:
                wrong.append(f"{thread} {tool_use_id}: its marker does not bring the original back")
            counts["originals"] += 1
        for thread in {thread for thread, _ in written}:
            for identity in store.load(thread).removals:
                found = store.fetch(thread, identity.key)
                if not isinstance(found, Payload) or found.identity.sha256 != identity.sha256:
                    wrong.append(f"{thread} {identity.tool_use_id}: a decision without its original")
    return start + len(raw), counts, wrong


def main() -> None:
    folder, kills, draw = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    SqliteStore(folder / "state" / "sweep.db", CONFIG).close()
    totals = {"kills": 0, "acknowledged": 0, "faults": 0, "bodies": 0, "markers": 0, "originals": 0}
    wrong: list[str] = []
    first = read = 0
    for n in range(kills):
        child = partial(sweep_for_ever, folder, first, n * 1e4)
        said = kill_once(child, draw.randint(0, MOST_WORDS), draw.uniform(0.0, LONGEST_DELAY_S))
        totals["kills"] += 1
        totals["acknowledged"] += len(said)
        totals["faults"] += sum(line.endswith(" fault") for line in said)
        is_last = n == kills - 1
        if n % LOOK_EVERY == LOOK_EVERY - 1 or is_last:
            read, counts, wrong = look(folder, read)
            totals.update({name: totals[name] + count for name, count in counts.items()})
            if wrong:
                break
        # Half of the time the session that was cut off goes on, with what is known of it.
        newest = int(said[-1].split()[0]) if said else first
        first = newest + (draw.random() < 0.5)
        if n % LOOK_EVERY == LOOK_EVERY - 1:
            first = newest + 2  # what was looked at was expanded, and stays whole from then on
    print(json.dumps({**totals, "wrong": wrong[:5]}))


if __name__ == "__main__":
    main()
