"""Seeded collections with a Zipf vocabulary: natural text's skew without shipping text."""

import random
from bisect import bisect
from itertools import accumulate

VOCABULARY = 20_000  # words; the size of a mid-sized code base's identifiers
WORDS = 60  # a document; passages of about 400 bytes


def zipf_collection(n_docs: int, *, seed: int = 1) -> list[str]:
    """`n_docs` texts of about 60 words each; word r of the vocabulary has weight 1/r."""
    rng = random.Random(seed)
    cumulative = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    total = cumulative[-1]
    draw = rng.random
    return [
        " ".join(f"w{bisect(cumulative, draw() * total):x}" for _ in range(rng.randint(WORDS // 2, WORDS * 3 // 2)))
        for _ in range(n_docs)
    ]


def queries(texts: list[str], n: int, *, seed: int = 2) -> list[str]:
    """`n` queries of two to eight distinct words each, taken from one document."""
    rng = random.Random(seed)
    asked = []
    for _ in range(n):
        words = list(dict.fromkeys(rng.choice(texts).split()))
        asked.append(" ".join(rng.sample(words, min(len(words), rng.randint(2, 8)))))
    return asked
