"""Turns a second of a replay, its memory over many sessions, and cost per turn by session length.

python bench/replay/speed.py [--sessions 200] [--turns 200] [--policies cold,paid/oracle]

Sessions are made ones (`studies.synthetic`). Time is CPU time of this process; reading a session is told apart from
running policies over it. Peak memory is printed along the way: it must not grow with the number of sessions.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cg.replay.policies import Policy, parse
from cg.replay.reading import record
from cg.replay.run import run
from cg.replay.settings import Settings

sys.path.append(str(Path(__file__).parents[1]))

from studies.synthetic import made_session

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    done = work()
    return done, time.process_time() - start


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rss_mb() -> float:
    """Resident memory now, where /proc tells it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return float("nan")


def many(sessions: int, turns: int, policies: list[Policy]) -> None:
    """Sessions one after the other: turns a second by policy, and the peak at each tenth."""
    spent = dict.fromkeys(["reading", *(policy.name for policy in policies)], 0.0)
    for seed in range(sessions):
        found, seconds = timed(lambda seed=seed: record(made_session(seed, turns)))
        spent["reading"] += seconds
        for policy in policies:
            _, seconds = timed(lambda policy=policy, found=found: run(found, policy, Settings()))
            spent[policy.name] += seconds
        if (seed + 1) % max(1, sessions // 100) == 0:
            rates = "  ".join(f"{name} {(seed + 1) * turns / seconds:.0f}" for name, seconds in spent.items())
            print(
                f"{seed + 1:6} sessions, {rss_mb():.0f} MB now, peak {peak_mb():.0f} MB; turns/s: {rates}", flush=True
            )
    for name, seconds in spent.items():
        print(f"{name:16} {sessions * turns / seconds:8.0f} turns a second ({seconds:.1f} s)")


def by_length(lengths: list[int], policies: list[Policy], repeats: int = 5) -> None:
    """Microseconds a turn at each length, the median session of a few."""
    for policy in [*policies]:
        line = []
        for turns in lengths:
            found = []
            for seed in range(repeats):
                recording = record(made_session(seed, turns))
                found.append(timed(lambda r=recording, p=policy: run(r, p, Settings()))[1] / turns)
            line.append(f"{turns}: {1e6 * sorted(found)[repeats // 2]:.0f} us")
        print(f"{policy.name:16} a turn at  " + "  ".join(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--policies", default="cold,paid/oracle")
    parser.add_argument("--lengths", default="50,200,800")
    arguments = parser.parse_args()
    policies = list(parse(arguments.policies.split(",")))
    if arguments.lengths:
        by_length([int(n) for n in arguments.lengths.split(",")], policies)
    many(arguments.sessions, arguments.turns, policies)


if __name__ == "__main__":
    main()
