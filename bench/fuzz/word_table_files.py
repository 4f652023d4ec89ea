"""Hostile word tables: python bench/fuzz/word_table_files.py --seconds 60 --seed 1

Tables of a few words with numbers replaced, bytes moved and the end cut, nine in ten with a checksum made to fit; a load
gives ValueError or a table that answers. Says how many were tried and accepted. Worth most on the sanitized build
(tools/sanitize.sh shows how that is preloaded).
"""

import argparse
import array
import random
import struct
import sys
import time
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "reference"))

import word_table_oracle as oracle

from cg.word_table import WordTable, WordVectors

NUMBERS = [0, 1, 2, 127, 128, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0x7FC00000]


def image_of(rng: random.Random) -> tuple[bytes, list[str]]:
    words = {
        rng.choice(("", "sameprefix", "날")) + rng.choice("abcdef") * rng.randrange(1, 9)
        for _ in range(rng.randrange(1, 40))
    }
    rows = {word: (rng.uniform(0, 2), rng.choices((-1, 0, 1), k=128)) for word in words}
    return oracle.image(rows), sorted(words)


def mutate(rng: random.Random, image: bytes) -> bytes:
    forged = bytearray(image)
    for _ in range(rng.choice((1, 1, 2, 10))):
        choice, at = rng.random(), rng.randrange(len(forged))
        if choice < 0.3:
            struct.pack_into(
                "<I", forged, rng.randrange(8, 32, 4), rng.choice([*NUMBERS, len(forged), rng.randrange(60)])
            )
        elif choice < 0.7:
            forged[at] = rng.choice((0, 1, 26, 27, 242, 243, 255, rng.randrange(256)))
        elif choice < 0.85:
            at, other = rng.randrange(len(forged) - 8), rng.randrange(len(forged) - 8)
            forged[at : at + 8] = forged[other : other + 8]
        else:
            del forged[max(33, at) :]
    if rng.random() < 0.9:
        struct.pack_into("<I", forged, 28, zlib.crc32(forged[32:]))
    return bytes(forged)


def ask(table: WordTable, words: list[str]) -> None:
    vectors = WordVectors(table, [[word] for word in words] + [words])
    n = len(vectors)
    order = vectors.order(words, memoryview(array.array("I", range(n))), memoryview(array.array("d", [1.0] * n)))
    assert sorted(order) == list(range(n))
    assert all(abs(cosine) < 1.001 for cosine in vectors.cosines(words))


def main() -> None:
    parser = argparse.ArgumentParser(description="Load forged word tables for a while.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    rng = random.Random(flags.seed)
    end, tried, accepted = time.monotonic() + flags.seconds, 0, 0
    while time.monotonic() < end:
        image, words = image_of(rng)
        for _ in range(20):
            tried += 1
            try:
                table = WordTable(mutate(rng, image))
            except ValueError:
                continue
            accepted += 1
            ask(table, words)
    print(f"{tried} tables tried, {accepted} accepted")


if __name__ == "__main__":
    main()
