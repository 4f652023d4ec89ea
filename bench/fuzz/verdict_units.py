"""The slowest short text to repeat: python bench/fuzz/verdict_units.py --length 4 --size 60000

Every text of up to --length characters out of an alphabet of JSON's punctuation is repeated to --size bytes and decoded;
the slowest are printed with their nanoseconds of CPU a byte. The slowest of them are then timed again, best of several,
at --size and at four times that, so that a cost that grows with the reply shows. Long runs: one process a --part.
"""

import argparse
import itertools
import time

from cg._verdict_parser import decode_codes

ALPHABET = '[]{}",:a\\ \n0'
ANSWER = '\n[{"i":0,"needed_by":"none","quote":"","verdict":"drop"}]'
LABELS = range(12)


def ns_a_byte(head: str, unit: str, size_bytes: int, repeats: int) -> float:
    reply = (head + unit * (size_bytes // len(unit)) + ANSWER).encode()
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time_ns()
        decode_codes(reply, LABELS)
        best = min(best, time.process_time_ns() - begin)
    return best / len(reply)


def units(length: int) -> list[str]:
    """All texts of 1 to `length` characters that do not repeat a shorter one, one of each set of rotations."""
    found = []
    for n in range(1, length + 1):
        for letters in itertools.product(ALPHABET, repeat=n):
            unit = "".join(letters)
            turned = [unit[k:] + unit[:k] for k in range(n)]
            if unit == min(turned) and turned.count(unit) == 1:
                found.append(unit)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=4, help="characters of a unit")
    parser.add_argument("--size", type=int, default=60_000, help="bytes of a reply")
    parser.add_argument("--head", default="", help="what every reply starts with")
    parser.add_argument("--show", type=int, default=30)
    options = parser.parse_args()
    every = units(options.length)
    times = {unit: ns_a_byte(options.head, unit, options.size, 2) for unit in every}
    slowest = sorted(times, key=times.__getitem__, reverse=True)[: options.show * 2]
    again = sorted(((ns_a_byte(options.head, unit, options.size, 7), unit) for unit in slowest), reverse=True)
    print(
        f"{len(every)} units of up to {options.length} characters; ns a byte at {options.size} bytes, at four times that"
    )
    for best, unit in again[: options.show]:
        print(f"{best:8.2f} {ns_a_byte(options.head, unit, 4 * options.size, 5):8.2f}  {unit!r}")


if __name__ == "__main__":
    main()
