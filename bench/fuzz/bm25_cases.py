"""Random (collection, query, k) against the written-out definition: python bench/fuzz/bm25_cases.py --cases 100000 --seed 1

Every case is answered by search() on each instruction path, then by eight threads that share the one index, and compared
bit for bit with tests/reference/bm25_oracle.py; so are rank(), scores() and search_many() for a part of them. Prints how
many cases were decided by bounds rather than by reading everything. Exit code 1 and the case on a difference.
"""

import argparse
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "reference"))

import bm25_oracle

from cg import _bm25
from cg.bm25 import BM25Index

Hit = tuple[int, float]
Case = tuple[str, int, list[Hit]]  # query, k, what is right
QUERIES, THREADS = 2000, 8
SIZES = [0, 1, 2, 7, 63, 64, 65, 200, 520, 600, 900, 1500, 1500, 2500, 4000]  # documents
ALPHABETS = ["abcdefgh", "éèßİıΣσς", "中文東京かなカナ々", "한국어हिन्दी", "\ud800x_9\u0301"]


class Words:
    """Words of a made-up language, drawn with a long tail: the probability of rank r falls with r ** -skew."""

    def __init__(self, rng: random.Random) -> None:
        count, skew = rng.choice([3, 30, 300, 3000]), rng.choice([0.6, 1.0, 1.0, 1.4])
        alphabets = ALPHABETS if rng.random() < 0.3 else ALPHABETS[:1]
        self.words = [self.word(rng, rng.choice(alphabets), i) for i in range(count)]
        self.weights = [(r + 1) ** -skew for r in range(count)]

    @staticmethod
    def word(rng: random.Random, alphabet: str, number: int) -> str:
        word = "".join(rng.choices(alphabet, k=rng.choice([1, 2, 4, 9])))
        return word + str(number) if rng.random() < 0.7 else word

    def text(self, rng: random.Random, n: int) -> str:
        return rng.choice([" ", " ", "  - ", "\n", "\u3000"]).join(rng.choices(self.words, self.weights, k=n))


def documents(rng: random.Random, words: Words) -> list[str]:
    """A collection with what is known to be awkward: ties, empty texts, long texts, one term many times."""
    n = rng.choice(SIZES)
    lengths = rng.choice([[0, 1, 2], [3, 6, 12], [10, 30], [0, 5, 60]])
    texts = [words.text(rng, rng.choice(lengths)) for _ in range(n)]
    if n and rng.random() < 0.25:
        texts = (texts[: rng.randint(1, 20)] * n)[:n]
    if n and rng.random() < 0.25:
        for at in rng.sample(range(n), max(1, n // 50)):
            texts[at] += f" {words.words[0]}" * rng.choice([20, 254, 255, 256, 700])
    return texts


def question(rng: random.Random, words: Words, texts: list[str]) -> str:
    if texts and rng.random() < 0.2:
        return rng.choice(texts)[:300]
    if rng.random() < 0.4:  # common and rare words alike
        return " ".join(rng.choices(words.words, k=rng.choice([1, 2, 3, 8, 40])))
    return words.text(rng, rng.choice([0, 1, 2, 3, 4, 6, 12, 33])) + rng.choice(["", "", " unknown!"])


def depth(rng: random.Random, n: int) -> int:
    """k: mostly what a caller asks for, otherwise anything from 0 to a little more than there is."""
    return rng.choice([1, 2, 3, 5, 10, 10, 20, 64, 65, 100, 101]) if rng.random() < 0.8 else rng.randint(0, n + 5)


def check(what: str, got: list[Hit], case: Case, shape: str) -> None:
    """Bit for bit: floats compare equal only when they are the same number, as none is NaN or a negative zero."""
    query, k, want = case
    if got != want:
        raise AssertionError(f"{what} of {query!r}, k = {k}, over {shape}: {got[:5]}... is not {want[:5]}...")


def check_everything(index: BM25Index, oracle: bm25_oracle.Oracle, query: str, shape: str) -> None:
    ranked = oracle.rank(query)
    check("rank", index.rank(query).tolist(), (query, len(ranked), ranked), shape)
    scores = list(enumerate(index.scores(query).tolist()))
    check("scores", scores, (query, len(scores), list(enumerate(oracle.scores(query)))), shape)


def check_threads(index: BM25Index, cases: list[Case], shape: str) -> None:
    """Eight threads, each with its own order of all cases, over one index; then the batch call."""

    def work(start: int) -> None:
        for case in cases[start:] + cases[:start]:
            check(f"thread {start}: search", index.search(case[0], case[1]).tolist(), case, shape)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(0, THREADS * 3, 3)))
    many = index.search_many([query for query, _, _ in cases], 10, threads=THREADS)
    for (query, k, want), hits in zip(cases, many, strict=True):
        if k >= 10:
            check("search_many", hits.tolist(), (query, 10, want[:10]), shape)


def run_collection(rng: random.Random, paths: list[str], room: int, seen: Counter[str]) -> None:
    """All cases of one collection, at most `room`."""
    words = Words(rng)
    texts = documents(rng, words)
    k1, b = rng.choice([0, 0.5, 1.2, 1.2, 1.2, 1000]), rng.choice([0, 0.4, 0.75, 0.75, 1])
    oracle = bm25_oracle.Oracle(texts, k1, b)
    indexes = {}
    for path in paths:
        _bm25._force_path(path)
        indexes[path] = BM25Index(texts, k1=k1, b=b)
    index, cases = indexes[paths[-1]], []
    shape = f"{len(texts)} documents, {index.n_terms} terms, k1 = {k1}, b = {b}"
    for number in range(min(room, QUERIES if len(texts) > 64 else 100)):
        query, k = question(rng, words, texts), depth(rng, len(texts))
        cases.append((query, k, oracle.search(query, k)))
        if number % 10 == 0:
            check_everything(index, oracle, query, shape)
    for path in paths:
        _bm25._force_path(path)
        for case in cases:
            check(f"{path}: search", indexes[path].search(case[0], case[1]).tolist(), case, shape)
            seen[f"decided by bounds, {path}"] += _bm25._is_skipping(indexes[path], case[0], case[1])
        check_threads(indexes[path], cases, f"{shape}, path {path}")
    seen["cases"] += len(cases)
    seen["collections"] += 1
    seen["cases with hits"] += sum(1 for case in cases if case[2])
    seen["cases with ties"] += sum(1 for case in cases if len({score for _, score in case[2]}) < len(case[2]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60, help="begin no further collection after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--path", choices=["all", *_bm25._paths()], default="all", help="instruction path")
    options = parser.parse_args()
    paths = list(_bm25._paths()) if options.path == "all" else [options.path]
    seen: Counter[str] = Counter()
    begin, end = time.process_time(), time.monotonic() + options.minutes * 60
    while seen["cases"] < options.cases and time.monotonic() < end:
        rng = random.Random(f"{options.seed} {seen['collections']}")
        try:
            run_collection(rng, paths, options.cases - seen["cases"], seen)
        except AssertionError as wrong:
            print(f"seed {options.seed}, collection {seen['collections']}: {wrong}")
            return 1
    print(f"no difference (seed {options.seed}; paths {', '.join(paths)}; {time.process_time() - begin:.0f} s of CPU)")
    for name, count in seen.items():
        print(f"{count:>10,}  {name}")
    print(
        f"{seen['cases'] * len(paths) * (1 + THREADS):>10,}  answers of search() compared, those of the threads included"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
