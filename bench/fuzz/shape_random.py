"""Random texts, and the compiled rules against the slow ones: python bench/fuzz/shape_random.py --seconds 60 --seed 1

Texts are cuts, splices and line shuffles of the recorded tool outputs with bytes changed to those that the rules look for.
Runs under the sanitized build too (tools/sanitize.sh shows how that is preloaded). Exit code 1 and the input on a difference.
"""

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "reference"))

import shape_leaks
import shape_oracle

from cg._shape import facts
from cg.shape import Kind

KINDS = [kind.value for kind in Kind]
BITS = [b"\n", b" ", b":", b"-", b"12", b"\t", b",", b'"', b"{", b"}", b".", b"\xff", b"**", b"#", b"\r", b"```", b" = ", b"(",
        b")", b"at ", b"[", b"]", b"\x1b[", b"\\", b"\xe2\x86\x92", b"|", b"=", b"/", b"\xed\xa0\x80", b"\xc3\xa9", b"1e", b"null", b"-", b"0"]  # fmt: skip


def make(outputs: list[str], lines: list[str], rng: random.Random) -> bytes:
    """One input."""
    choice = rng.random()
    if choice < 0.45:
        base = rng.choice(outputs)
        start = rng.randrange(len(base) + 1)
        text = base[start : start + rng.randrange(1, 800)]
    elif choice < 0.9:
        text = "\n".join(rng.choice(lines) for _ in range(rng.randrange(1, 8)))
    elif choice < 0.95:
        text = "".join(rng.choice('[]{},:"1a \n') for _ in range(rng.randrange(60)))
    else:
        text = (rng.choice(lines) + "\n") * rng.randrange(1, 600)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice([0, 0, 1, 2, 5]) if data else 0):
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.randrange(2)] = rng.choice(BITS)
    return bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    outputs = list(shape_leaks.tool_outputs())
    lines = [line for text in outputs for line in text.split("\n")]
    end, runs = time.monotonic() + options.seconds, 0
    seen: set[int] = set()
    while time.monotonic() < end:
        data = make(outputs, lines, rng)
        runs += 1
        kind, records, line_count, size = facts(data)
        seen.add(kind)
        if facts(data, False) != (kind, records, line_count, size):
            print(f"the two paths differ on {data!r}")
            return 1
        expected = shape_oracle.describe(data)
        if (KINDS[kind], None if records < 0 else records, line_count, size) != expected:
            print(f"{KINDS[kind]} {records} {line_count} {size} is not {expected} on {data!r}")
            return 1
    print(f"{runs} inputs, {len(seen)} of {len(KINDS)} kinds, no difference (seed {options.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
