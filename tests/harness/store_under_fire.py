"""Kill processes that remove, at random moments, and look at what they left; run as a script, prints one JSON line.

python store_under_fire.py FILE|URL KILLS SEED
"""

import hashlib
import json
import random
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import count

from presets import paid
from under_fire import READY, kill_once, say

from cg.sweep.open_store import open_store
from cg.sweep.store import Expired, Store
from cg.sweep.values import Identity, Payload, Removal

THREADS = ("t0", "t1")
ROUND = 3  # originals that are put at once
SEEDS_A_CHILD = 999_999  # a whole number of rounds, more than a child lives to make
MOST_WORDS = 7  # of the child, after which it may be killed: three a round, so that every step of a round is hit
LONGEST_DELAY_S = 0.03
LOOK_EVERY = 20  # kills


def original(seed: int) -> Payload:
    content = (f"line {seed} " * (1 + seed % 700)).encode()
    return Payload(Identity(f"toolu_{seed}", 0, hashlib.sha256(content).hexdigest()), content, "Bash", "{}")


def written(seed: int) -> bytes:
    return json.dumps(f"[tool output removed] <<cg:{original(seed).identity.key}>> {seed}").encode()


def seed_of(identity: Identity) -> int:
    return int(identity.tool_use_id.removeprefix("toolu_"))


def remove_for_ever(path: str, first: int, acknowledged: int) -> None:
    """Put three originals, freeze them, tell the parent which removals may now go on the wire; again."""
    with open_store(path, paid()) as store:
        say(acknowledged, READY)
        for start in range(first, first + SEEDS_A_CHILD, ROUND):
            thread = THREADS[start % 2]
            stored = store.put(thread, [original(seed) for seed in range(start, start + ROUND)], time.time())
            removals = [Removal(identity, written(seed_of(identity)), 1, 1.0) for identity in stored]
            for removal in store.freeze(thread, removals):
                say(acknowledged, f"{thread} {seed_of(removal.identity)}")


def stored_by(store: Store, child: int) -> Iterator[tuple[int, Payload | Expired]]:
    """(seed, what answers for it) of all originals that a child has put: round after round, until one left nothing."""
    for start in count(child * SEEDS_A_CHILD, ROUND):
        seeds = range(start, start + ROUND)
        answers = [store.fetch(THREADS[start % 2], original(seed).identity.key) for seed in seeds]
        known = [(seed, answer) for seed, answer in zip(seeds, answers, strict=True) if answer is not None]
        yield from known
        if not known:
            return


def faults(path: str, acknowledged: set[tuple[str, int]], children: int) -> tuple[int, int, list[str]]:
    """(removals, originals, what is wrong) in the state as it stands after so many children."""
    wrong, removals, originals = [], 0, 0
    with open_store(path, paid()) as store:
        for thread in THREADS:
            standing = store.load(thread).removals
            removals += len(standing)
            for identity, removal in standing.items():
                found, seed = store.fetch(thread, identity.key), seed_of(identity)
                if not isinstance(found, Payload) or found.content != original(seed).content:
                    wrong.append(f"removal {seed} has no original")
                if removal.written != written(seed):
                    wrong.append(f"removal {seed} has other bytes")
            here = {seed_of(identity) for identity in standing}
            lost = sorted(seed for name, seed in acknowledged if name == thread and seed not in here)
            wrong += [f"removal {seed} was acknowledged and is lost" for seed in lost]
        for child in range(children):
            for seed, found in stored_by(store, child):
                originals += 1
                if not isinstance(found, Payload) or found != original(seed):
                    wrong.append(f"original {seed} is damaged")
    return removals, originals, wrong


def main() -> None:
    path, kills, draw = sys.argv[1], int(sys.argv[2]), random.Random(int(sys.argv[3]))
    open_store(path, paid()).close()
    acknowledged: set[tuple[str, int]] = set()
    found: tuple[int, int, list[str]] = (0, 0, [])
    for n in range(kills):
        words, delay_s = draw.randint(0, MOST_WORDS), draw.uniform(0.0, LONGEST_DELAY_S)
        said = kill_once(partial(remove_for_ever, path, n * SEEDS_A_CHILD), words, delay_s)
        acknowledged.update((thread, int(seed)) for thread, seed in map(str.split, said))
        if n % LOOK_EVERY == LOOK_EVERY - 1 or n == kills - 1:
            found = faults(path, acknowledged, n + 1)
            if found[2]:
                break
    removals, originals, wrong = found
    seen = {"kills": n + 1, "acknowledged": len(acknowledged), "removals": removals, "originals": originals}
    print(json.dumps({**seen, "wrong": wrong[:5]}))


if __name__ == "__main__":
    main()
