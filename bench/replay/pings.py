"""What the gate of pings is worth: `cold` without pings, with every ping that is due, and gated, on recorded sessions.

    python bench/replay/pings.py tests/data/transcripts [--ttl 5m]

'by worth': without the bound on what pings may lose. 'gated': as shipped, each session with an empty store. 'gated, learnt
elsewhere': leave one recording out; the store of each session holds what all other recordings counted (waits, bills, pings),
as the store of somebody would who had those sessions first. The gate itself has no number that was fitted to recordings of
the folder: its prior is of 502 other sessions, its bound is a promise.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from cg.replay.policies import NONE, Policy
from cg.replay.reading import Recording, record
from cg.replay.row import Row
from cg.replay.run import Run
from cg.replay.sessions import Session, open_all
from cg.replay.settings import TTLS, Settings
from cg.replay.simulation.sweep_actor import SweepActor
from cg.sweep.accounting.tally import Tally
from cg.sweep.config import load
from cg.sweep.counters import Event

sys.path.append(str(Path(__file__).parents[1]))

from studies.variants import RunPingingAlways, RunPingingByWorth

LEARNT = (
    Event.WAITED,
    Event.WAITED_RENEWABLE,
    Event.BILLED_UNITS,
    Event.PINGED,
    Event.PING_UNITS,
    Event.PING_GAINED_UNITS,
)


class Counting(SweepActor):
    """Starts with what others have counted, and leaves behind what it counted itself."""

    others: Counter[Event] = Counter()
    last: "Counting | None" = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._sweep.note("elsewhere", Tally(Counter(self.others)))
        Counting.last = self

    def counted(self) -> Counter[Event]:
        events = self._sweep.totals()["events"]
        return Counter({event: int(events.get(event, 0)) - self.others[event] for event in LEARNT})


class RunCounting(Run):
    """A run that counts."""

    _swept = Counting


def held_out(recordings: list[Recording], policy: Policy, settings: Settings) -> list[Row]:
    """Each recording with a store that holds the counts of all others."""
    Counting.others = Counter()
    counts = []
    for recording in recordings:
        RunCounting(recording, policy, settings, None).finish()
        assert Counting.last is not None
        counts.append(Counting.last.counted())
    everyone: Counter[Event] = sum(counts, Counter())
    rows = []
    for recording, own in zip(recordings, counts, strict=True):
        Counting.others = Counter({event: everyone[event] - own[event] for event in LEARNT})
        rows.append(RunCounting(recording, policy, settings, None).finish())
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--ttl", choices=TTLS, default="auto")
    arguments = parser.parse_args()
    settings = Settings(ttl_s=TTLS[arguments.ttl])
    recordings = [record(s) for s in open_all(arguments.paths) if isinstance(s, Session)]
    none = [Run(r, NONE, settings, None).finish().total.units for r in recordings]
    print("| pings | at most | bill against none | pings | worst recording | dearer by over 1 % | after the end |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for most in (0, 1, 2):
        policy = Policy("cold", load(preset="cold", flags={"pings": most}))
        ways = {"always": RunPingingAlways, "by worth": RunPingingByWorth, "gated": Run} if most else {"none": Run}
        for name, way in ways.items():
            show(name, most, [way(r, policy, settings, None).finish() for r in recordings], none)
        if most:
            show("gated, learnt elsewhere", most, held_out(recordings, policy, settings), none)


def show(name: str, most: int, rows: list[Row], none: list[float]) -> None:
    """One line of the table."""
    changes = [row.total.units / base - 1 for row, base in zip(rows, none, strict=True)]
    change = sum(row.total.units for row in rows) / sum(none) - 1
    after = sum(row.after_end.units for row in rows) / sum(none)
    pings, dearer = sum(row.bills["ping"].calls for row in rows), sum(c > 0.01 for c in changes)
    print(f"| {name} | {most} | {change:+.2%} | {pings} | {max(changes):+.2%} | {dearer} | {after:+.2%} |", flush=True)


if __name__ == "__main__":
    main()
