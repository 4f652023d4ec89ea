"""Foretold against observed: how often waits of recorded sessions end cold, by decile of the chance foretold.

    python bench/replay/resume.py PATH...

Every wait is foretold from the waits before it in its session alone (and from recorded sessions as the prior), at several
lifetimes and windows, so that the chances spread; two forecasts of one wait are not independent, so the intervals are
narrower than they should be.
"""

import argparse
import sys
from pathlib import Path

from cg.replay.sessions import Session, open_all

sys.path.append(str(Path(__file__).parents[1]))

from studies.wait_forecast import calibration, forecasts, waits_of

AGES = [
    (ttl, window)
    for ttl in (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
    for window in (15.0, 60.0, 240.0)
    if window < ttl
]
PRODUCT = [(300.0, 60.0), (3600.0, 60.0)]  # what the sweep asks for


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    people = []
    for session in open_all(parser.parse_args().paths):
        if isinstance(session, Session) and session.timed:
            people.append([wait for wait in waits_of(session.steps()) if wait is not None])
    print(f"{len(people)} sessions with times, {sum(map(len, people))} waits\n")
    print("| forecasts | foretold | observed | 95 % interval |\n| --- | --- | --- | --- |")
    for b in calibration(forecasts(people, AGES)):
        print(f"| {b.n} | {b.predicted:.3f} | {b.observed:.3f} | {b.low:.3f} to {b.high:.3f} |")
    for ttl_s, window_s in PRODUCT:
        made = list(forecasts(people, [(ttl_s, window_s)]))
        for b in calibration(made, bins=1):
            print(f"\nat {ttl_s:.0f} s, window {window_s:.0f} s: {b.n} waits, foretold {b.predicted:.3f}, ", end="")
            print(f"observed {b.observed:.3f} ({b.low:.3f} to {b.high:.3f})")


if __name__ == "__main__":
    main()
