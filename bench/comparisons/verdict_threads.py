"""Two threads beside one: python bench/comparisons/verdict_threads.py

Wall time of the same number of replies decoded by one thread and by two, in turn, beside a control that never holds the
interpreter's lock (SHA-256 of the same bytes): on a shared machine the control says what a second core was worth then.
Ratios are medians over rounds of two to one; `fed` hands the reply over in pieces of 64 KiB.
"""

import argparse
import hashlib
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from verdicts import LABELS, reply

from cg.verdicts import Decoder, decode

PIECE = 65_536


def fed(text: bytes) -> object:
    decoder = Decoder(LABELS)
    for at in range(0, len(text), PIECE):
        decoder.feed(text[at : at + PIECE])
    return decoder.finish()


def wall_s(work: Callable[[], object], threads: int, times: int) -> float:
    """Seconds for `times` calls shared out to so many threads."""

    def loop() -> None:
        for _ in range(times // threads):
            work()

    crew = [threading.Thread(target=loop) for _ in range(threads)]
    begin = time.perf_counter()
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    return time.perf_counter() - begin


def gain(work: Callable[[], object], rounds: int) -> float:
    """Median of how many times faster two threads are."""
    work()
    begin = time.perf_counter()
    work()
    times = max(2, 2 * round(0.05 / (time.perf_counter() - begin)))
    return statistics.median(wall_s(work, 1, times) / wall_s(work, 2, times) for _ in range(rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--kinds", default="clean_array,bracket_prose,open_pairs")
    options = parser.parse_args()
    for kind in options.kinds.split(","):
        for size_bytes in (4_000, 16_000, 64_000, 1_000_000, 4_000_000):
            text = reply(kind, size_bytes).encode()
            found = {
                "whole": gain(lambda text=text: decode(text, LABELS), options.rounds),
                "fed": gain(lambda text=text: fed(text), options.rounds),
                "control": gain(lambda text=text: hashlib.sha256(text).digest(), options.rounds),
            }
            print(f"{kind:>14} {size_bytes:>9}", *(f"{name} {ratio:5.2f}" for name, ratio in found.items()), flush=True)


if __name__ == "__main__":
    main()
