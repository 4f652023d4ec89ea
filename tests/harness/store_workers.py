"""Two processes of eight threads on one store, all writing at the same time; run as a script it is one of the two.

python store_workers.py FILE|URL NAME ROUNDS
"""

import subprocess
import sys
import threading
import time
from typing import Any

from presets import paid
from store_under_fire import original, written

from cg.sweep.counters import Event
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.open_store import open_store
from cg.sweep.values import Payload, Removal, Usage

THREADS = 8
NAMES = ("a", "b")
PATIENCE_S = 300.0


def write(store: Any, name: str, worker: int, rounds: int, claimed: list[int]) -> None:
    """What one thread does: an original of its own and one that all want, both frozen; a claim; two counts."""
    for n in range(rounds):
        mine = original(10_000 * (worker + THREADS * NAMES.index(name)) + n)
        shared = original(900_000 + n)
        assert len(store.put("t", [mine, shared], time.time())) == 2
        ours = [Removal(mine.identity, written(n), 1, 1.0)]
        ours.append(Removal(shared.identity, f"{name}{worker}".encode(), 1, 1.0))
        stand = store.freeze("t", ours)
        assert stand[0] == ours[0] and store.load("t").removals[shared.identity] == stand[1]
        if store.claim("t", f"ask {n}", 1e12):
            claimed.append(n)
        store.learn("t", paid_miss=True)
        store.learn("t", usage=Usage(fresh=1))
        store.count("t", TurnReport(Reason.WARM, events={Event.OFFERED: 3}))


def work(state: str, rounds: int) -> None:
    """Run both processes on a state to their end."""
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, state, name, str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for name in NAMES
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=PATIENCE_S)[0].decode() for worker in workers]
    claimed = [int(words.split()[0]) for words in said if words.rstrip().endswith(" []")]
    assert len(claimed) == len(NAMES), said
    assert sum(claimed) == rounds


def look(store: Any, rounds: int) -> None:
    """All that the workers wrote is there, each once."""
    thread, writers = store.load("t"), THREADS * len(NAMES)
    assert len(thread.removals) == writers * rounds + rounds
    assert thread.paid_misses == writers * rounds
    assert thread.usages == (Usage(fresh=1), Usage(fresh=1))
    assert store.totals("t")["reasons"] == {"warm": writers * rounds}
    assert store.totals("t")["events"] == {"sweep_offered": 3 * writers * rounds}
    assert all(isinstance(store.fetch("t", identity.key), Payload) for identity in thread.removals)


def main() -> None:
    state, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    print("ready", flush=True)
    sys.stdin.readline()
    claimed: list[int] = []
    failed: list[str] = []

    def run(store: Any, worker: int) -> None:
        try:
            write(store, name, worker, rounds, claimed)
        except BaseException as error:
            failed.append(repr(error))

    with open_store(state, paid()) as store:
        threads = [threading.Thread(target=run, args=(store, n)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(len(claimed), failed[:1])


if __name__ == "__main__":
    main()
