"""Hostile index files and any text at all: python bench/fuzz/bm25_files.py --seconds 180 --seed 1

Files: images of small, awkward collections with numbers replaced, moved and cut, nine in ten with checksums made to fit;
a load gives ValueError or an index that answers every kind of query. Texts: any string, on each instruction path,
against the tokenizer of tests/reference/bm25_oracle.py. Says how often each was tried, and how many forged files were
accepted. Worth most on the sanitized build (tools/sanitize.sh shows how that is preloaded). Exit code 1 on a difference.
"""

import argparse
import random
import struct
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "reference"))

import bm25_oracle
from bm25_format import HEADER_SIZE, WIDTHS, resealed, sealed, sections

from cg import _bm25
from cg.bm25 import BM25Index, tokenize

ANALYZERS = ["plain", "text", "code"]
NUMBERS = [0, 1, 2, 255, 256, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]
QUERIES = ["w1 w2 w3 often many", "only1", "東京 한국어 w9", "", " ".join(f"w{i}" for i in range(80)), "w1", "often"]
LETTERS = [
    "aZ09_ -.,\n\0\x1f", "éßİıΣςﬁ\u0301\u0308\u0345", "中文日本語カナ゙々〇\u3099\uff9e", "한국어हिन्दीก็ا́",
    "\ud800\udfff𠀀😀\U000e0100\u200d\u00ad\u034f", "abXY_12ⅧＡｂ１ǅ²i\u0307", "ㄱᄀ\u1161ำ๒ເງျះ្ក\u0f77", "the runs of generously",
]  # fmt: skip


def texts(rng: random.Random) -> list[str]:
    """Short terms, lists, wide lists, columns and exceptions, in a collection that is quick to load."""
    out = []
    for i in range(rng.choice([0, 1, 3, 70, 300, 700])):
        words = [f"w{min(90, int(rng.paretovariate(0.7)))}" for _ in range(rng.choice([0, 2, 12]))] + [f"only{i}"]
        out.append(" ".join(words + ["often"] * (i % 5) * 90 + ["many"] * (300 if i % 11 == 0 else 0)))
    return [*out, "", "한국어 東京"][: rng.choice([0, 1, 10**6, 10**6, 10**6])]


def image_of(rng: random.Random) -> bytes:
    analyzer = rng.choice(ANALYZERS)
    index = BM25Index(texts(rng), analyzer=analyzer, k1=rng.choice([0, 1.2, 1000]), b=rng.choice([0, 0.75, 1]))
    return index.__reduce__()[1][0]


def mutate(rng: random.Random, image: bytes) -> tuple[bytes, set[int]]:
    """A file that a forger might write, and the sections touched (16: the header)."""
    forged, touched = bytearray(image), set[int]()
    places = sections(image)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 40])):
        choice = rng.random()
        if choice < 0.15:  # a number of the header
            struct.pack_into("<I", forged, rng.randrange(8, HEADER_SIZE - 8, 4), rng.choice(NUMBERS))
            touched.add(16)
            continue
        section = rng.randrange(16)
        start, end = places[section]
        if start == end:
            continue
        touched.add(section)
        width = min(WIDTHS[section], 4)
        at = start + rng.randrange((end - start) // width) * width
        if choice < 0.55:
            value = rng.choice(NUMBERS) if rng.random() < 0.5 else rng.randrange(2**32)
            forged[at : at + width] = struct.pack("<I", value)[:width]
        elif choice < 0.75:  # a number near the right one
            value = int.from_bytes(forged[at : at + width], "little") + rng.choice([-64, -2, -1, 1, 2, 64])
            forged[at : at + width] = (value % 256**width).to_bytes(width, "little")
        elif choice < 0.9:  # a stretch of one section repeated in another place of it
            size = rng.randrange(1, min(64, end - start) + 1)
            source = start + rng.randrange(end - start - size + 1) // width * width
            size = min(size, end - at)
            forged[at : at + size] = forged[source : source + size]
        else:
            forged[at] ^= 1 << rng.randrange(8)
    if rng.random() < 0.05:
        del forged[rng.randrange(len(forged)) :]
    return bytes(forged), touched


def fits(image: bytes, touched: set[int]) -> bytes:
    """Checksums made to fit, where the header still says where the sections are."""
    try:
        if sections(image)[-1][1] != len(image):
            return image
        if 16 in touched:
            return sealed(image)
        for section in touched:
            image = resealed(bytearray(image), section)
        return image
    except (struct.error, IndexError):
        return image


def try_file(rng: random.Random, image: bytes, seen: Counter[str]) -> None:
    forged, touched = mutate(rng, image)
    if rng.random() < 0.9:
        forged = fits(forged, touched)
    seen["files"] += 1
    try:
        index = _bm25._from_bytes(forged)
    except ValueError:
        seen["files refused"] += 1
        return
    seen["files accepted"] += 1
    for query in QUERIES:
        for k in (1, 10, 100, 10**6):
            index.search(query, k)
        index.rank(query)
        index.scores(query)
    index.search_many(QUERIES, 5, threads=2)
    repr(index), index.__reduce__()


def any_text(rng: random.Random) -> str:
    choice = rng.random()
    n = rng.choice([0, 1, 3, 10, 63, 64, 65, 130, 1000])
    if choice < 0.3:
        return "".join(chr(rng.randrange(128)) for _ in range(n))
    if choice < 0.5:
        return "".join(chr(rng.randrange(0x110000)) for _ in range(n))
    if choice < 0.6:
        page = rng.randrange(0x300) * 256
        return "".join(chr(page + rng.randrange(256)) for _ in range(n))
    alphabet = "".join(rng.sample(LETTERS, rng.randint(1, 3)))
    return "".join(rng.choices(alphabet, k=n))


def try_text(rng: random.Random, seen: Counter[str]) -> None:
    text = any_text(rng)
    analyzer = rng.choice(ANALYZERS)
    want = bm25_oracle.tokenize(text, analyzer)
    for path in _bm25._paths():
        _bm25._force_path(path)
        seen["texts"] += 1
        got = tokenize(text, analyzer)
        if got != want:
            raise AssertionError(f"{path}, {analyzer}: {text!r} gives {got}, not {want}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, seen = random.Random(options.seed), Counter[str]()
    end = time.monotonic() + options.seconds
    image = image_of(rng)
    while time.monotonic() < end:
        if rng.random() < 0.02:
            image = image_of(rng)
        try_file(rng, image, seen)
        for _ in range(5):
            try_text(rng, seen)
    print(f"no crash, no difference (seed {options.seed}): " + ", ".join(f"{n:,} {name}" for name, n in seen.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
