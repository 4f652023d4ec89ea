"""The BM25 index: query latency, build, load, memory."""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

from cg import BM25Index

from .collections_zipf import queries, zipf_collection

SIZES = [16, 1024, 4096, 65_536]
QUERIES = 64  # cycled through, so that no single query's postings stay hot


class Query:
    """One query over a built index, tokenising included."""

    params, param_names = (SIZES, ["search_10", "rank"]), ["n_docs", "call"]
    timeout = 120

    def setup_cache(self):
        return {n: zipf_collection(n) for n in SIZES}

    def setup(self, collections, n_docs, call):
        texts = collections[n_docs]
        index = BM25Index(texts)
        self.queries = itertools.cycle(queries(texts, QUERIES))
        self.call = (lambda q: index.search(q, 10)) if call == "search_10" else index.rank

    def time_query(self, collections, n_docs, call):
        self.call(next(self.queries))


class Result:
    """What reading a result costs a caller who wants Python objects."""

    params, param_names = [16, 4096], ["n_docs"]

    def setup(self, n_docs):
        texts = zipf_collection(n_docs)
        self.hits = BM25Index(texts).rank(texts[0])

    def time_tolist(self, n_docs):
        self.hits.tolist()

    def time_docs(self, n_docs):
        memoryview(self.hits.docs)


class Build:
    """Building, saving and loading an index."""

    params, param_names = [1024, 65_536], ["n_docs"]
    timeout = 120

    def setup_cache(self):
        return {n: zipf_collection(n) for n in self.params}

    def setup(self, collections, n_docs):
        self.texts = collections[n_docs]
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "index.cg"
        self.index = BM25Index(self.texts)
        self.index.save(self.path)

    def teardown(self, collections, n_docs):
        self.folder.cleanup()

    def time_build(self, collections, n_docs):
        BM25Index(self.texts)

    def time_save(self, collections, n_docs):
        self.index.save(self.path)

    def time_load(self, collections, n_docs):
        BM25Index.load(self.path)

    def peakmem_baseline(self, collections, n_docs):
        """The texts alone, to be taken off peakmem_build."""

    def peakmem_build(self, collections, n_docs):
        BM25Index(self.texts)

    def track_index_bytes_per_posting(self, collections, n_docs):
        postings = sum(len(set(text.split())) for text in self.texts)
        return self.index.nbytes / postings

    track_index_bytes_per_posting.unit = "bytes"


class Threads:
    """Two threads over one: how far a batch that releases the GIL once scales."""

    timeout = 120

    def setup(self):
        texts = zipf_collection(65_536)
        self.index = BM25Index(texts)
        self.queries = queries(texts, 2000)

    def time_one(self):
        self.index.search_many(self.queries, 10, threads=1)

    def time_two(self):
        self.index.search_many(self.queries, 10, threads=2)


class Import:
    """`import cg` beside a bare interpreter."""

    def timeraw_bare(self):
        return "pass"

    def timeraw_cg(self):
        return "import cg"

    def timeraw_index(self):
        return "from cg import BM25Index"

    def track_modules(self):
        """Modules that `import cg` brings into a bare interpreter."""
        count = "import sys; n = len(sys.modules); import cg; print(len(sys.modules) - n)"
        return int(subprocess.run([sys.executable, "-c", count], check=True, capture_output=True, text=True).stdout)

    track_modules.unit = "modules"
