"""Fuzz the compiled decoder against the slow one: equal results, whole and in random pieces, and no wrong drop.

python bench/fuzz/verdict_differential.py --count 1000000 --seed 1
python bench/fuzz/verdict_differential.py --count 20000 --seed 1 --deep 1      (every reply nests past the limit: slow)
python bench/fuzz/verdict_differential.py --count 100000 --seed 1 --ends 1     (candidates that share an end, in tiny pieces)
"""

import argparse
import sys
import time
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "reference")]

import verdict_ends  # noqa: E402
import verdict_grammar  # noqa: E402
import verdict_oracle  # noqa: E402

from cg.verdicts import Decoder, decode  # noqa: E402

SIZES = (1, 2, 3, 11, 60)  # bytes; every state of the machine is met at a cut
TINY = (1, 2, 3, 4, 5, 6, 7)


def in_pieces(rng: Random, reply: bytes, labels: list[int], sizes: tuple[int, ...] = SIZES) -> dict:
    decoder, at = Decoder(labels), 0
    while at < len(reply):
        size = rng.choice(sizes)
        decoder.feed(reply[at : at + size])
        at += size
    return decoder.finish().to_dict()


def check(rng: Random, deep: float, ends: float) -> tuple[int, int]:
    """One reply; returns (drops found, drops meant)."""
    allowed, sizes = None, SIZES
    if ends and rng.random() < ends:
        reply, labels, sizes = verdict_ends.reply(rng), rng.choice(([0, 1], [0], [])), rng.choice((TINY, (1,)))
    elif deep < 1 and rng.random() < 0.3:
        text, labels, allowed = verdict_grammar.meant(rng)
        reply = text.encode()
    else:
        reply, labels = verdict_grammar.soup(rng, deep), rng.choice(([0, 1, 2], [0], [1, 2], [3, 0, 1], []))
    got = decode(reply, labels).to_dict()
    want = verdict_oracle.decode(reply, labels)
    assert got == want, f"\nreply  {reply!r}\nlabels {labels}\ngot    {got}\nwant   {want}"
    pieces = in_pieces(rng, reply, labels, sizes)
    assert pieces == got, f"\nreply  {reply!r}\nlabels {labels}\npieces {pieces}\nwhole  {got}"
    if allowed is not None:
        assert set(got["drops"]) <= allowed, f"\nwrong drop\nreply  {reply!r}\nallowed {allowed}\ngot    {got}"
    return len(got["drops"]), len(allowed or ())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--deep", type=float, default=0.01, help="share of replies that nest past the limit")
    parser.add_argument("--ends", type=float, default=0.1, help="share of replies whose candidates share an end")
    options = parser.parse_args()
    rng, end, done, drops, meant = Random(options.seed), time.monotonic() + options.minutes * 60, 0, 0, 0
    while done < options.count and time.monotonic() < end:
        found, wanted = check(rng, options.deep, options.ends)
        done, drops, meant = done + 1, drops + found, meant + wanted
        if done % 10_000 == 0:
            print(f"{done} replies, {drops} drops", flush=True)
    print(f"seed {options.seed}: {done} replies equal, {drops} drops, {meant} meant in the known part, none wrong")


if __name__ == "__main__":
    main()
