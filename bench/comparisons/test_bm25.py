"""BM25 beside other libraries on the same collection; `correct` says how many of the queries got the exact ranking.

    pip install . -r bench/requirements.txt
    pytest bench/comparisons/test_bm25.py --benchmark-columns=median,iqr --benchmark-json=bm25.json
    python bench/comparisons/table.py bm25.json

Everybody gets the same words: the texts are lower-case ASCII words between spaces, which every tokenizer here reads alike,
and no query repeats a word, which some of them would count twice.
"""

import importlib.util
import itertools
import math
from collections import Counter

import pytest
from collections_zipf import queries, zipf_collection

K1, B, K = 1.2, 0.75, 10
SIZES = [16, 4096]
QUERIES = 64
TOLERANCE = 1e-5  # relative; peers add in single precision, and a closer pair than that is a tie to them


class Exact:
    """The formula, written out; what everybody is held to. Ties stand in document order."""

    def __init__(self, texts):
        self.documents = [Counter(text.split()) for text in texts]
        self.lengths = [sum(d.values()) for d in self.documents]
        self.mean = sum(self.lengths) / len(self.lengths)
        self.df = Counter(word for d in self.documents for word in d)

    def scores(self, query):
        """One score a document; a repeated query word counts once."""
        n, scores = len(self.documents), []
        for tf, dl in zip(self.documents, self.lengths, strict=True):
            score = 0.0
            for word in sorted(set(query.split()) & tf.keys()):
                idf = math.log(1 + (n - self.df[word] + 0.5) / (self.df[word] + 0.5))
                score += idf * tf[word] * (K1 + 1) / (tf[word] + K1 * (1 - B + B * dl / self.mean))
            scores.append(score)
        return scores


def best(scores):
    """Positions of the K highest positive scores, ties in document order."""
    matching = [position for position, score in enumerate(scores) if score > 0]
    return sorted(matching, key=lambda position: (-scores[position], position))[:K]


def is_exact_up_to_ties(found, scores):
    """Whether `found` has, place by place, the scores of the exact ranking, and no document twice."""
    wanted = [scores[position] for position in best(scores)]
    got = [scores[position] for position in found]
    return len(set(found)) == len(wanted) == len(got) and all(
        abs(a - b) <= TOLERANCE * wanted[0] for a, b in zip(got, wanted, strict=True)
    )


def cg_search(texts):
    from cg import BM25Index

    index = BM25Index(texts, k1=K1, b=B)
    return lambda query: [document for document, _ in index.search(query, K).tolist()]


def bm25s_search(texts, backend="numpy"):
    import bm25s

    engine = bm25s.BM25(k1=K1, b=B, method="lucene", backend=backend)
    engine.index([text.split() for text in texts], show_progress=False)
    k = min(K, len(texts))

    def search(query):
        documents, scores = engine.retrieve([query.split()], k=k, show_progress=False)
        return [d for d, s in zip(documents[0].tolist(), scores[0].tolist(), strict=True) if s > 0]

    return search


def bm25s_numba_search(texts):
    return bm25s_search(texts, backend="numba")


def bm25_turbo_search(texts):
    from bm25_turbo_python import BM25

    engine = BM25(k1=K1, b=B, method="lucene")
    engine.index(texts)
    k = min(K, len(texts))

    def search(query):
        documents, scores = engine.search(query, k=k)
        return [d for d, s in zip(documents, scores, strict=True) if s > 0]

    return search


def rank_bm25_search(texts):
    import numpy
    from rank_bm25 import BM25Okapi

    engine = BM25Okapi([text.split() for text in texts], k1=K1, b=B)

    def search(query):
        scores = engine.get_scores(query.split())
        order = numpy.argsort(-scores, kind="stable")[:K]
        return [d for d in order.tolist() if scores[d] > 0]

    return search


def tantivy_search(texts):
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_unsigned_field("position", stored=False, fast=True)
    schema.add_text_field("text", stored=False, tokenizer_name="whitespace", index_option="freq")
    index = tantivy.Index(schema.build())
    writer = index.writer(heap_size=50_000_000, num_threads=1)
    for position, text in enumerate(texts):
        document = tantivy.Document()
        document.add_unsigned("position", position)
        document.add_text("text", text)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query):
        hits = searcher.search(index.parse_query(query, ["text"]), K, count=False).hits
        return searcher.fast_field_values("position", [address for _, address in hits])

    return search


PEERS = {  # name -> (module, how to build it)
    "cg": ("cg", cg_search),
    "bm25s": ("bm25s", bm25s_search),
    "bm25s, numba": ("numba", bm25s_numba_search),
    "bm25-turbo": ("bm25_turbo_python", bm25_turbo_search),
    "rank-bm25": ("rank_bm25", rank_bm25_search),
    "tantivy": ("tantivy", tantivy_search),
}


@pytest.mark.filterwarnings("default")  # another library's warnings are not ours to fail on
@pytest.mark.parametrize("n_docs", SIZES)
@pytest.mark.parametrize("peer", PEERS)
def test_search(benchmark, peer, n_docs):
    """One query, from the string to a list of the ten best document positions."""
    module, make = PEERS[peer]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    texts = zipf_collection(n_docs)
    asked = queries(texts, QUERIES)
    search, exact = make(texts), Exact(texts)
    found = [(search(query), exact.scores(query)) for query in asked]
    benchmark.group = f"{n_docs} documents, k={K}"
    benchmark.extra_info["peer"] = peer
    benchmark.extra_info["correct"] = sum(is_exact_up_to_ties(got, scores) for got, scores in found) / len(asked)
    benchmark.extra_info["ties_in_order"] = sum(got == best(scores) for got, scores in found) / len(asked)
    if peer == "cg":
        assert benchmark.extra_info["ties_in_order"] == 1.0
    turn = itertools.cycle(asked)
    for query in asked:  # every peer is warm before the clock runs
        search(query)
    benchmark(lambda: search(next(turn)))


@pytest.mark.parametrize(
    ("found", "correct"),
    [([2, 0, 1], True), ([2, 1, 0], True), ([2, 0], False), ([0, 2, 1], False), ([2, 0, 0], False), ([2, 0, 3], False)],
)
def test_correct_means_the_exact_scores_place_by_place(found, correct):
    """Tied documents may change places; a missing, repeated, foreign or misplaced one is wrong."""
    assert is_exact_up_to_ties(found, [1.0, 1.0, 3.0, 0.0]) is correct
