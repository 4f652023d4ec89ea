"""BM25 over texts in memory: build an index once, then search it from any number of threads."""

from cg._bm25 import BM25Index, Hits, tokenize

__all__ = ["BM25Index", "Hits", "tokenize"]
