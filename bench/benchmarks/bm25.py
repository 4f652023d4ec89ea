"""The BM25 index: query latency, reading a result, build, save and load, memory, threads, import."""

import ctypes
import gc
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.collections_zipf import queries, zipf_collection
from cg import BM25Index

SIZES = [16, 1024, 4096, 65_536]
LARGE = 65_536  # documents; about 27 MB of text, past every cache of the processor
QUERIES = 64  # cycled through, so that no single query's postings stay hot
PASSES = 10  # passes over the queries in one sample; the clock's own cost vanishes at 16 documents


class Query:
    """One query over a built index, tokenising included; k = "all" ranks every document."""

    params, param_names = (SIZES, [1, 10, 100, "all"]), ["n_docs", "k"]
    number = QUERIES * PASSES  # every sample asks every query equally often
    timeout = 120

    def setup_cache(self):
        return {n: zipf_collection(n) for n in SIZES}

    def setup(self, collections, n_docs, k):
        texts = collections[n_docs]
        index = BM25Index(texts)
        self.queries = itertools.cycle(queries(texts, QUERIES))
        self.call = index.rank if k == "all" else lambda query: index.search(query, k)

    def time_query(self, collections, n_docs, k):
        self.call(next(self.queries))


class Result:
    """What reading a full ranking costs a caller: Python objects, or a view of the arrays."""

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

    params, param_names = [1024, LARGE], ["n_docs"]
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


class Memory:
    """Memory of a build and of the index that stays; the texts are in memory before either is looked at."""

    params, param_names = [1024, LARGE], ["n_docs"]
    timeout = 120

    def setup_cache(self):
        return {n: zipf_collection(n) for n in self.params}

    def setup(self, collections, n_docs):
        self.texts = collections[n_docs]

    def peakmem_baseline(self, collections, n_docs):
        """Interpreter, package and texts, to be taken off peakmem_build."""

    def peakmem_build(self, collections, n_docs):
        self.index = BM25Index(self.texts)

    def track_nbytes_per_posting(self, collections, n_docs):
        postings = sum(len(set(text.split())) for text in self.texts)
        return BM25Index(self.texts).nbytes / postings

    def track_resident(self, collections, n_docs):
        """What the process grows by for keeping the index; pages of the allocator blur it at 1,024 documents."""
        BM25Index(self.texts[:16])
        before = resident_bytes()
        index = BM25Index(self.texts)
        grown = resident_bytes() - before
        assert len(index) == n_docs  # and it was alive while measured
        return grown

    track_nbytes_per_posting.unit = "bytes"
    track_resident.unit = "bytes"


def resident_bytes():
    """Resident memory now, with what the allocator holds back given up; NotImplementedError where there is no /proc."""
    if not Path("/proc/self/statm").exists():
        raise NotImplementedError("needs /proc")
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Batch:
    """search_many over 65,536 documents, by threads."""

    params, param_names = [1, 2], ["threads"]
    timeout = 120

    def setup_cache(self):
        return zipf_collection(LARGE)

    def setup(self, texts, threads):
        self.index = BM25Index(texts)
        self.queries = queries(texts, 2000)

    def time_search_many(self, texts, threads):
        self.index.search_many(self.queries, 10, threads=threads)

    def track_speedup(self, texts, threads):
        """One thread's time over this many threads', the best of seven runs of each, taken in turns."""
        best = {1: float("inf"), threads: float("inf")}
        for _ in range(7):
            for n in best:
                start = time.perf_counter()
                self.index.search_many(self.queries, 10, threads=n)
                best[n] = min(best[n], time.perf_counter() - start)
        return best[1] / best[threads]

    track_speedup.unit = "times"


class Import:
    """The import alone, in a fresh interpreter."""

    def timeraw_cg(self):
        return "import cg"

    def timeraw_index(self):
        return "from cg import BM25Index"

    def track_modules(self):
        """Modules that `import cg` brings into a bare interpreter."""
        count = "import sys; n = len(sys.modules); import cg; print(len(sys.modules) - n)"
        return int(subprocess.run([sys.executable, "-c", count], check=True, capture_output=True, text=True).stdout)

    track_modules.unit = "modules"
