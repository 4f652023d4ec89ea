"""Queries of this build, of another one and of bm25-turbo, in turns, by number of words:

python bench/comparisons/bm25_speed.py --workload turbo --beside OTHER/src/cg/_bm25.*.so

`turbo` is what `bm25-turbo bench` makes for itself (version 0.2.0, bench.rs): 52 words, texts of 10 to 49 of them, queries
of 1 to 4, all from SipHash of a counter. `square` is the collection of its query benchmark (query.rs, with another source of
random numbers): 5,000 words, of which number u * u * 5000 is drawn, 20 to 199 a text. That benchmark asks for words its
collection does not have; here queries are drawn from texts. `zipf` is benchmarks/collections_zipf.py.

A query's time is its best of --repeats; of these a line has the median over the queries, in µs: `compact` is what
search() returns, `pairs` its tolist(), and bm25-turbo returns two lists. Ratios are to bm25-turbo.
"""

import argparse
import importlib.util
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25_turbo_python

from cg import _bm25

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from collections_zipf import zipf_collection

WORDS = """
search engine algorithm index query document ranking score term frequency inverse retrieval information text processing
natural language model vector sparse matrix column compressed binary storage memory cache parallel concurrent thread
performance benchmark latency throughput optimization fast efficient scalable distributed system library function module
interface protocol server client request response data structure implementation
""".split()  # noqa: SIM905 (52 quoted words are no easier to read)
MASK = 2**64 - 1
Search = Callable[[str, int], Any]


def rounds(v: list[int], n: int) -> None:
    """SipHash's round, n times."""
    for _ in range(n):
        for a, b, left in ((0, 1, 13), (2, 3, 16), (0, 3, 21), (2, 1, 17)):
            v[a] = (v[a] + v[b]) & MASK
            v[b] = (v[b] << left | v[b] >> (64 - left)) & MASK ^ v[a]
            if left in (13, 17):
                v[a] = (v[a] << 32 | v[a] >> 32) & MASK


def rust_hash(number: int) -> int:
    """What Rust's DefaultHasher gives for a usize: SipHash-1-3 of its eight bytes under a key of zeros."""
    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]
    for word in (number, 8 << 56):
        v[3] ^= word
        rounds(v, 1)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(v, 3)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def turbo_texts(n_docs: int) -> list[str]:
    texts = []
    for i in range(n_docs):
        seed = rust_hash(i)
        texts.append(" ".join(WORDS[((seed * (j + 1) + i) & MASK) % len(WORDS)] for j in range(10 + seed % 40)))
    return texts


def turbo_queries(texts: list[str], n: int) -> list[str]:
    words, asked = " ".join(texts[:1000]).split(), []
    for i in range(n):
        seed = rust_hash(i)
        asked.append(" ".join(words[(seed * (j + 1) & MASK) % len(words)] for j in range(1 + seed % 4)))
    return asked


def square_texts(n_docs: int) -> list[str]:
    rng = random.Random(42)
    words = [f"word{i}x{rng.randrange(100_000)}" for i in range(5000)]
    return [
        " ".join(words[int(rng.random() ** 2 * 5000)] for _ in range(rng.randrange(20, 200))) for _ in range(n_docs)
    ]


TEXTS = {"turbo": turbo_texts, "square": square_texts, "zipf": zipf_collection}


def drawn_queries(texts: list[str], n_words: int, n: int) -> list[str]:
    """n queries of n_words distinct words, each from one text."""
    rng, asked = random.Random(n_words), []
    while len(asked) < n:
        words = list(dict.fromkeys(rng.choice(texts).split()))
        if len(words) >= n_words:
            asked.append(" ".join(rng.sample(words, n_words)))
    return asked


def build(path: str) -> Any:
    """The compiled module of another build."""
    spec = importlib.util.spec_from_file_location("other._bm25", path)
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def searches(texts: list[str], beside: list[str]) -> dict[str, Search]:
    turbo = bm25_turbo_python.BM25(k1=1.2, b=0.75, method="lucene")
    turbo.index(texts)
    found: dict[str, Search] = {"bm25-turbo": lambda query, k: turbo.search(query, k=k)}
    names = [f"other {i}" for i in range(1, len(beside) + 1)]
    for name, module in zip([*names, "this"], [*map(build, beside), _bm25], strict=True):
        search = module.BM25Index(texts).search
        found[name] = search
        found[name + ", pairs"] = lambda query, k, search=search: search(query, k).tolist()
    return found


def medians(found: dict[str, Search], asked: list[str], k: int, repeats: int) -> list[float]:
    """Median over the queries of the best time of each, in µs; the libraries take turns."""
    clock, best = time.perf_counter_ns, {name: [10**12] * len(asked) for name in found}
    for _ in range(repeats):
        for name, search in found.items():
            times = best[name]
            for at, query in enumerate(asked):
                begin = clock()
                search(query, k)
                times[at] = min(times[at], clock() - begin)
    return [statistics.median(times) / 1000 for times in best.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=TEXTS, default="turbo")
    parser.add_argument("--documents", type=int, default=4096)
    parser.add_argument("--words", type=int, nargs="+", default=[1, 2, 3, 4, 6, 8, 12])
    parser.add_argument("--k", type=int, nargs="+", default=[10])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--beside", nargs="*", default=[], help="compiled modules of other builds")
    options = parser.parse_args()
    texts = TEXTS[options.workload](options.documents)
    found = searches(texts, options.beside)
    print(f"{'words':>8} {'k':>4}", *(f"{name:>16}" for name in found))
    asked = {str(n): drawn_queries(texts, n, options.queries) for n in options.words}
    if options.workload == "turbo":
        asked = {"its own": turbo_queries(texts, options.queries)} | asked
    for words, queries in asked.items():
        for k in options.k:
            times = medians(found, queries, k, options.repeats)
            print(f"{words:>8} {k:>4}", *(f"{t:9.2f} ({t / times[0]:.2f})" for t in times))


if __name__ == "__main__":
    main()
