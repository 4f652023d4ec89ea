"""What one turn costs on each kind of store, side by side in one run: `python bench/sweep/stores.py`.

A session of 200 messages with 12 branches and 40 removals; a turn reads it, moves its branch, counts itself and learns
from the reply. Then ten new originals of 12 KB stored, read back, hashed and frozen. Each on the file, on a server over
a socket file whose own log is synchronous as the file's is, and in memory; rounds alternate between the stores, so that
all of them meet the same load. Times are wall clock and the calling process's own CPU.
"""

import hashlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "harness"))

from state_server import StateServer, state_server

from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_redis import RedisStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Branch, Identity, Payload, Removal, Usage

ROUNDS = 24
TURNS = 10  # a round
CHAIN = bytes(8 * 200)
BODY = bytes(150_000)
USAGE = Usage(fresh=100, read=40_000, write_5m=900, output=300)


def payload(seed: int) -> Payload:
    """Text that packs about as source code does."""
    draw = random.Random(seed)
    words = [f"word{draw.randrange(3000)}" for _ in range(1600)]
    content = " ".join(words).encode()[:12_000]
    return Payload(Identity(f"toolu_{seed}", 0, hashlib.sha256(content).hexdigest()), content, "Read", '{"path":"x"}')


def removal(of: Payload) -> Removal:
    return Removal(of.identity, b'"' + b"[tool output removed] " * 8 + b'"', 11_000, 1.0)


def branch(n: int, clock: float) -> Branch:
    return Branch(f"b{n}", CHAIN, b"h" * 16, hashlib.sha256(repr(clock).encode()).digest(), clock, 300)


def prepare(store: Any) -> None:
    originals = [payload(n) for n in range(40)]
    store.put("t", originals, 1.0)
    assert len(store.freeze("t", [removal(p) for p in originals])) == 40
    for n in range(12):
        store.touch("t", branch(n, float(n)))


def turn(store: Any, n: int) -> None:
    store.load("t")
    moved = branch(0, 100.0 + n)
    store.turned("t", TurnReport(Reason.WARM), moved, BODY)
    store.learn("t", usage=USAGE, sent_bytes=len(BODY))


def remove(store: Any, seed: int) -> None:
    originals = [payload(seed + n) for n in range(10)]
    stored = store.put("t", originals, 2.0)
    assert len(store.freeze("t", [removal(p) for p in originals if p.identity in stored])) == 10


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """(wall, own CPU) in microseconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - wall) * 1e6, (time.process_time() - cpu) * 1e6


def told_by(server: StateServer, section: str, name: str) -> int:
    import redis

    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        return int(client.info(section)[name])


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        always = stack.enter_context(state_server(appendfsync="always"))
        second = stack.enter_context(state_server(appendfsync="everysec"))
        before = told_by(always, "memory", "used_memory")
        stores = {
            "file": stack.enter_context(SqliteStore(folder / "state" / "s.db", bodies_in_memory=True)),
            "server, appendfsync always": stack.enter_context(RedisStore(always.url())),
            "server, appendfsync everysec": stack.enter_context(RedisStore(second.url())),
            "memory": stack.enter_context(MemoryStore()),
        }
        for store in stores.values():
            prepare(store)
        held = told_by(always, "memory", "used_memory") - before
        log_at = told_by(always, "persistence", "aof_current_size")
        turns: dict[str, list[tuple[float, float]]] = {name: [] for name in stores}
        removals: dict[str, list[tuple[float, float]]] = {name: [] for name in stores}
        for n in range(TURNS):
            turn(stores["server, appendfsync always"], n)
        logged = (told_by(always, "persistence", "aof_current_size") - log_at) / TURNS
        for n in range(ROUNDS):
            for name, store in stores.items():
                for k in range(TURNS):
                    turns[name].append(timed(lambda s=store, k=k, n=n: turn(s, n * TURNS + k)))
            for name, store in stores.items():
                if n % 4 == 0:
                    removals[name].append(timed(lambda s=store, n=n: remove(s, 1000 + 10 * n)))
        originals = sum(len(payload(n).content) for n in range(40))
        print(
            f"{held / 1024:.0f} KiB on the server for {originals / 1024:.0f} KiB of originals with all that is theirs"
        )
        print(f"{logged / 1024:.1f} KiB of the server's own log a turn\n")
        for what, found in (("turn", turns), ("10 removals", removals)):
            print(f"| {what}, us | wall: least, median | of the file's | own CPU: least, median | of the file's |")
            print("| --- | --- | --- | --- | --- |")
            for name, times in found.items():
                cells = [name]
                for i in (0, 1):
                    own, of_file = ([t[i] for t in source] for source in (times, found["file"]))
                    least, middle = (of(own) / of(of_file) for of in (min, statistics.median))
                    cells += [f"{min(own):.0f}, {statistics.median(own):.0f}", f"{least:.2f}, {middle:.2f}"]
                print(f"| {' | '.join(cells)} |")
            print()


if __name__ == "__main__":
    main()
