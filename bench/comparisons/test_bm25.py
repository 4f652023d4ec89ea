"""BM25 beside other libraries on the same collection; `correct` says whether a row's ranking is the exact one.

pip install . -r bench/requirements.txt
pytest bench/comparisons/test_bm25.py --benchmark-columns=median,iqr --benchmark-group-by=group
"""

import importlib.util
import itertools
import math
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from collections_zipf import queries, zipf_collection

K1, B, K = 1.2, 0.75, 10
SIZES = [16, 4096]
QUERIES = 64


class Exact:
    """The formula, written out; what the others are held to. Ties stand in document order."""

    def __init__(self, texts):
        self.documents = [Counter(text.split()) for text in texts]
        self.lengths = [sum(d.values()) for d in self.documents]
        self.mean = sum(self.lengths) / len(self.lengths)
        self.df = Counter(word for d in self.documents for word in d)

    def search(self, query):
        n, scores = len(self.documents), []
        for position, (tf, dl) in enumerate(zip(self.documents, self.lengths, strict=True)):
            score = 0.0
            for word in sorted(set(query.split()) & tf.keys()):
                idf = math.log(1 + (n - self.df[word] + 0.5) / (self.df[word] + 0.5))
                score += idf * tf[word] * (K1 + 1) / (tf[word] + K1 * (1 - B + B * dl / self.mean))
            if score > 0:
                scores.append((-score, position))
        return [position for _, position in sorted(scores)[:K]]


def cg_search(texts):
    from cg import BM25Index

    index = BM25Index(texts, k1=K1, b=B)
    return lambda query: [document for document, _ in index.search(query, K).tolist()]


def bm25s_search(texts):
    import bm25s

    engine = bm25s.BM25(k1=K1, b=B, method="lucene")
    engine.index([text.split() for text in texts], show_progress=False)
    k = min(K, len(texts))

    def search(query):
        documents, scores = engine.retrieve([query.split()], k=k, show_progress=False)
        return [int(d) for d, s in zip(documents[0], scores[0], strict=True) if s > 0]

    return search


def bm25_turbo_search(texts):
    import bm25_turbo

    engine = bm25_turbo.BM25(k1=K1, b=B, method="lucene")
    engine.index(texts)

    def search(query):
        documents, scores = engine.search(query, K)
        return [int(d) for d, s in zip(documents, scores, strict=True) if s > 0]

    return search


def rank_bm25_search(texts):
    from rank_bm25 import BM25Okapi

    engine = BM25Okapi([text.split() for text in texts], k1=K1, b=B)

    def search(query):
        scores = engine.get_scores(list(dict.fromkeys(query.split())))
        return [int(d) for d in sorted(range(len(scores)), key=lambda d: (-scores[d], d))[:K] if scores[d] > 0]

    return search


def tantivy_search(texts):
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_unsigned_field("position", stored=True)
    schema.add_text_field("text", tokenizer_name="whitespace")
    index = tantivy.Index(schema.build())
    writer = index.writer(heap_size=50_000_000, num_threads=1)
    for position, text in enumerate(texts):
        writer.add_document(tantivy.Document(position=position, text=text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(query):
        parsed = index.parse_query(query, ["text"])
        return [searcher.doc(address)["position"][0] for _, address in searcher.search(parsed, K).hits]

    return search


PEERS = {
    "cg": ("cg", cg_search),
    "bm25s": ("bm25s", bm25s_search),
    "bm25-turbo": ("bm25_turbo", bm25_turbo_search),
    "rank-bm25": ("rank_bm25", rank_bm25_search),
    "tantivy": ("tantivy", tantivy_search),
}


@pytest.mark.parametrize("n_docs", SIZES)
@pytest.mark.parametrize("peer", PEERS)
def test_search(benchmark, peer, n_docs):
    """One query from string to a list of the ten best document positions."""
    module, make = PEERS[peer]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    texts = zipf_collection(n_docs)
    asked = queries(texts, QUERIES)
    search, exact = make(texts), Exact(texts)
    right = sum(search(query) == exact.search(query) for query in asked)
    benchmark.group = f"{n_docs} documents, k={K}"
    benchmark.extra_info["correct"] = f"{right}/{len(asked)}"
    if peer == "cg":
        assert right == len(asked)
    turn = itertools.cycle(asked)
    benchmark(lambda: search(next(turn)))
