# cython: language_level=3, cdivision=True, auto_pickle=False
"""Okapi BM25 with the (k1 + 1) factor; idf is ln(1 + (N - df + 0.5) / (df + 0.5)), never negative.

score(d) = sum over the query's distinct terms, in sorted order, of idf * (k1 + 1) * tf / (tf + norm(d)), with
norm(d) = k1 * (1 - b + b * dl / avgdl), in double precision. Here is what Python sees. Under it, each with its headers:
bm25/text.pyx, from a str to tokens; bm25/store.pyx, building and opening an index; bm25/query.pyx, asking one.

The three are included, as the module is one: its C state, the table of characters and the instruction path, must be
there once, and a second compiled module would have to be imported by the first, which no compiled module does.
"""
import os
import stat
import unicodedata

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from cython cimport final, freelist, no_gc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

include "kernels/bm25/text.pyx"
include "kernels/bm25/store.pyx"
include "kernels/bm25/query.pyx"

cdef extern from "bm25/base.h" nogil:
    int bm25_path
    int bm25_best_path()

cdef extern from "bm25/python.h":
    list bm25_pairs(const uint32_t *doc, const double *score, Py_ssize_t n)

__all__ = ["BM25Index", "Hits", "tokenize"]

cdef enum:
    FEW_HITS = 16            # hits that live inside of their object: most answers over small catalogs
    FEW_DOUBLES = 24         # their scores, then their documents, two to a double
    RELEASE_WORK = 4096      # postings (some microseconds) from which letting the GIL go costs less than it gives
    CHECK_EVERY = 256        # queries of a batch between two looks for a signal

cdef object _UNBUILT = object()          # stands for the texts where an index is opened rather than built

cdef object _normalize = unicodedata.normalize
bm25_normalize = <PyObject *>_normalize

cdef tuple bm25_path_names = ("plain", "avx2")
bm25_path = bm25_best_path()


def _force_path(str name):
    """Name of the instruction path used so far; from now on `name` is, which this machine must have (tests only)."""
    global bm25_path
    cdef str before = bm25_path_names[bm25_path]
    cdef int want = bm25_path_names.index(name)
    if want > bm25_best_path():
        raise ValueError(f"this machine has no instruction path {name!r}")
    bm25_path = want
    return before


def _paths():
    """Names of the instruction paths that this machine can run, the best last."""
    return bm25_path_names[:bm25_best_path() + 1]


def tokenize(str text not None):
    """The tokens of a text, in order, repeated as often as they occur.

    A token is a run of word characters (str.isalnum, underscore, combining marks that follow) of the NFC-normalised,
    case-folded text; Han and kana inside a run give their overlapping pairs of characters instead.
    """
    return tokens_of(text)


@final
@no_gc                       # what owns memory here never leads back to a view of it
cdef class _View:
    """Memory of an immutable object, as a read-only buffer that keeps the object alive."""

    cdef object owner
    cdef const void *start
    cdef bytes kind          # format of an item
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

    def __getbuffer__(self, Py_buffer *view, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError(f"{type(self.owner).__name__} never changes")
        view.obj = self
        view.buf = <void *>self.start
        view.len = self.shape[0] * self.strides[0]
        view.itemsize = self.strides[0]
        view.readonly = 1
        view.ndim = 1
        view.format = <char *>self.kind if flags & PyBUF_FORMAT else NULL
        view.shape = self.shape if flags & PyBUF_ND else NULL
        view.strides = self.strides if (flags & PyBUF_STRIDES) == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = NULL


cdef _View view_of(object owner, const void *start, Py_ssize_t n, Py_ssize_t itemsize, bytes kind):
    cdef _View view = _View.__new__(_View)
    view.owner, view.start, view.kind = owner, start, kind
    view.shape[0], view.strides[0] = n, itemsize
    return view


# ---- results --------------------------------------------------------------------------------------------------

@final
@freelist(8)
cdef class Hits:
    """Documents with their scores, best first; owns its two columns and never changes."""

    cdef Py_ssize_t n
    cdef double *score                   # [n]
    cdef uint32_t *doc                   # [n]  behind the scores, in the same block
    cdef void *block                     # NULL: both live in `few`
    cdef double few[FEW_DOUBLES]

    def __dealloc__(self):
        free(self.block)

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, Py_ssize_t at):
        """(document, score) of the hit at position `at`, from 0; negative positions count from the end."""
        cdef Py_ssize_t i = at + self.n if at < 0 else at
        if i < 0 or i >= self.n:
            raise IndexError(f"hit {at} of {self.n}")
        return self.doc[i], self.score[i]

    def tolist(self):
        """A list of (document, score) tuples."""
        return bm25_pairs(self.doc, self.score, self.n)

    @property
    def docs(self):
        """Document positions as a read-only memoryview of uint32; numpy.asarray takes it without a copy."""
        return memoryview(view_of(self, self.doc, self.n, 4, b"I"))

    @property
    def scores(self):
        """Scores as a read-only memoryview of float64; numpy.asarray takes it without a copy."""
        return memoryview(view_of(self, self.score, self.n, 8, b"d"))

    def __eq__(self, other):
        if not isinstance(other, Hits):
            return NotImplemented
        return self.tolist() == other.tolist()

    __hash__ = None

    def __repr__(self):
        return f"Hits({self.tolist()!r})"

    def __reduce__(self):
        return _hits_from, (bytes(self.docs), bytes(self.scores))


cdef Hits new_hits(Py_ssize_t n):
    """A result with room for n hits, to be filled."""
    cdef Hits hits = Hits.__new__(Hits)
    hits.block = NULL
    hits.n = 0
    hits.score = hits.few
    if n > FEW_HITS:
        hits.block = malloc(<size_t>n * 12)
        if hits.block is NULL:
            raise MemoryError(f"{n} hits")
        hits.score = <double *>hits.block
        hits.doc = <uint32_t *>(hits.score + n)
    else:
        hits.doc = <uint32_t *>(hits.few + FEW_HITS)
    hits.n = n
    return hits


cdef Hits hits_of(const Bm25Hit *hit, size_t n):
    cdef Hits hits = new_hits(<Py_ssize_t>n)
    cdef size_t i
    for i in range(n):
        hits.score[i] = hit[i].score
        hits.doc[i] = hit[i].doc
    return hits


def _hits_from(bytes docs not None, bytes scores not None):
    """The Hits whose columns have these bytes."""
    cdef Hits hits
    if len(docs) % 4 or len(docs) * 2 != len(scores):
        raise ValueError(f"{len(docs)} bytes of documents do not go with {len(scores)} bytes of scores")
    hits = new_hits(len(docs) // 4)
    memcpy(hits.doc, <const char *>docs, len(docs))
    memcpy(hits.score, <const char *>scores, len(scores))
    return hits


# ---- the index ------------------------------------------------------------------------------------------------

@final
cdef class BM25Index:
    """A BM25 index over texts, immutable: any number of threads may query it at once.

    `texts` is any iterable of str, read once; empty documents are allowed. `progress`, if given, is called with the
    number of texts read so far, now and then and at the end. Raises TypeError for a text that is no str and
    ValueError unless 0 <= k1 <= 1000 and 0 <= b <= 1.
    """

    cdef Store store

    def __cinit__(self, texts, *, k1=1.2, b=0.75, progress=None):
        cdef double checked_k1, checked_b
        if texts is _UNBUILT:
            return
        if isinstance(texts, (str, bytes)):
            raise TypeError(f"texts must be an iterable of str, not one {type(texts).__name__}")
        checked_k1 = checked(k1, "k1", 1000)
        checked_b = checked(b, "b", 1)
        build_store(&self.store, texts, checked_k1, checked_b, progress, <uint64_t>(<int64_t>hash(f"{id(self)}")))

    def __dealloc__(self):
        close_store(&self.store)

    @property
    def n_docs(self):
        """Number of documents."""
        return self.store.ix.n_docs

    @property
    def n_terms(self):
        """Number of distinct terms."""
        return self.store.ix.n_terms

    @property
    def nbytes(self):
        """Bytes of the index: the image, which is also its file, and the tables derived from it."""
        return (self.store.ix.head.file_bytes if self.store.ix.head is not NULL else 0) + derived_bytes(&self.store)

    @property
    def k1(self):
        """Saturation of the term frequency."""
        return self.store.ix.k1

    @property
    def b(self):
        """Weight of the document length, 0 to 1."""
        return self.store.ix.b

    def __len__(self):
        return self.store.ix.n_docs

    def __repr__(self):
        return f"<BM25Index of {self.store.ix.n_docs} documents, {self.store.ix.n_terms} terms>"

    def search(self, str query not None, k):
        """The best k documents of positive score as Hits: score descending, then position ascending.

        Raises TypeError for a query that is no str or a k that is no int, ValueError for a negative k.
        """
        cdef uint64_t wanted = checked_k(k)
        cdef Bm25Plan plan
        cdef Bm25Answer answer
        cdef bint ok
        make_plan(&self.store.ix, query, &plan)
        if plan.work < RELEASE_WORK:
            ok = bm25_search(&self.store.ix, &plan, wanted, &answer)
        else:
            with nogil:
                ok = bm25_search(&self.store.ix, &plan, wanted, &answer)
        bm25_plan_free(&plan)
        try:
            if not ok:
                raise MemoryError(f"{k} hits")
            return hits_of(answer.hit, answer.n)
        finally:
            bm25_answer_free(&answer)

    def rank(self, str query not None):
        """All documents as Hits: score descending, then position ascending; those without a match have score 0."""
        cdef Bm25Plan plan
        cdef Hits hits = new_hits(self.store.ix.n_docs)
        cdef bint ok
        make_plan(&self.store.ix, query, &plan)
        if plan.work + self.store.ix.n_docs < RELEASE_WORK:
            ok = bm25_rank(&self.store.ix, &plan, hits.doc, hits.score)
        else:
            with nogil:
                ok = bm25_rank(&self.store.ix, &plan, hits.doc, hits.score)
        bm25_plan_free(&plan)
        if not ok:
            raise MemoryError(f"{self.store.ix.n_docs} hits")
        return hits

    def scores(self, str query not None):
        """The score of every document by position: numpy float64[n_docs]."""
        import numpy
        cdef Bm25Plan plan
        out = numpy.empty(self.store.ix.n_docs, numpy.float64)
        cdef double[::1] view = out
        cdef double *score = &view[0] if self.store.ix.n_docs else NULL
        make_plan(&self.store.ix, query, &plan)
        with nogil:
            bm25_scores(&self.store.ix, &plan, score)
        bm25_plan_free(&plan)
        return out

    def search_many(self, queries, k, threads=1):
        """A list with search(query, k) of every query, worked off by `threads` threads without the GIL.

        Raises as search does, and ValueError unless 1 <= threads <= 256.
        """
        cdef uint64_t wanted = checked_k(k)
        if isinstance(threads, bool) or not isinstance(threads, int):
            raise TypeError(f"threads must be an int, not {type(threads).__name__}")
        if not 1 <= threads <= 256:
            raise ValueError(f"threads = {threads} is not in 1..256")
        if isinstance(queries, (str, bytes)):
            raise TypeError(f"queries must be an iterable of str, not one {type(queries).__name__}")
        cdef _Batch batch = _Batch(self, queries, wanted)
        return batch.run(min(threads, max(1, batch.batch.n)))

    def save(self, path):
        """Write the index to one file, which appears under its name only when it is complete."""
        path = os.fspath(path)
        temporary = f"{os.fsdecode(path)}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(sealed_header(&self.store))
                file.write(memoryview(image_of(self))[<Py_ssize_t>sizeof(Bm25Header):])
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise

    @staticmethod
    def load(path, mmap=True):
        """The index that save() wrote, mapped read-only and shared between processes, or copied if `mmap` is false.

        Everything in the file is checked before use: ValueError says what is wrong with it, OSError that it cannot
        be read. A mapped file must not be changed in place while it is in use (save() replaces it, which is safe).
        """
        import mmap as mapping
        path = os.fspath(path)
        where = f"{os.fsdecode(path)}: "
        with open(path, "rb", opener=_open_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):  # a device may never end, a pipe may never begin
                raise ValueError(f"{where}not a usable index: no regular file")
            mmap = mmap and found.st_size > 0    # an empty file cannot be mapped
            data = (
                mapping.mmap(file.fileno(), found.st_size, access=mapping.ACCESS_READ)
                if mmap else file.read(found.st_size)
            )
        return opened(data, not mmap, where)

    def __reduce__(self):
        columns = memoryview(image_of(self))[<Py_ssize_t>sizeof(Bm25Header):]
        return _from_bytes, (sealed_header(&self.store) + bytes(columns),)

def _open_at_once(path, flags):
    """An opener that does not wait for somebody to write into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


cdef _View image_of(BM25Index index):
    return view_of(index, index.store.ix.image, <Py_ssize_t>index.store.ix.head.file_bytes, 1, b"B")


cdef BM25Index opened(object data, bint copy, str where):
    """The index whose image `data` is, after every check; a view of `data` is kept unless it is copied."""
    cdef BM25Index index = BM25Index.__new__(BM25Index, _UNBUILT)
    open_store(&index.store, data, copy, where)
    return index


def _is_skipping(BM25Index index not None, str query not None, k):
    """Do bounds choose what search(query, k) reads? False where every posting is read after all (tests only)."""
    cdef uint64_t wanted = checked_k(k)
    cdef Bm25Plan plan
    cdef Bm25Answer answer
    make_plan(&index.store.ix, query, &plan)
    if not bm25_search(&index.store.ix, &plan, wanted, &answer):
        answer.skipped = 0
    bm25_plan_free(&plan)
    bm25_answer_free(&answer)
    return answer.skipped != 0


def _from_bytes(data):
    """The index with this image (pickle)."""
    return opened(data, True, "")


# ---- many queries ---------------------------------------------------------------------------------------------

@final
cdef class _Batch:
    """Queries of one search_many, shared by its threads."""

    cdef BM25Index index
    cdef list held           # str and folded bytes that the pointers lead into
    cdef Bm25Batch batch

    def __cinit__(self, BM25Index index, queries, uint64_t k):
        cdef Py_ssize_t i, n
        cdef bytes folded
        self.index, self.held = index, list(queries)
        n = len(self.held)
        if not bm25_batch_open(&self.batch, n, k):
            raise MemoryError(f"{n} queries")
        for i in range(n):
            query = self.held[i]
            if not isinstance(query, str):
                raise TypeError(f"query {i} must be a str, not {type(query).__name__}")
            self.batch.text[i] = <const uint8_t *>bm25_ascii(query, &self.batch.size[i])
            if self.batch.text[i] is NULL:
                folded = fold(query)
                self.held[i] = folded
                self.batch.text[i], self.batch.size[i] = folded, len(folded)
            else:
                self.batch.size[i] = ~self.batch.size[i]

    def __dealloc__(self):
        bm25_batch_close(&self.batch)

    cdef int work(self, bint watch) except -1:
        """Take queries until none is left; `watch`: look for signals between (the main thread's duty)."""
        with nogil:
            while bm25_batch_work(&self.index.store.ix, &self.batch, CHECK_EVERY):
                if watch:
                    with gil:
                        PyErr_CheckSignals()
        return 0

    def help(self):
        """What every further thread runs."""
        self.work(False)

    def run(self, int threads):
        """Answer everything; the calling thread takes part."""
        cdef list helpers = []
        cdef Py_ssize_t i
        if threads > 1:
            from threading import Thread
            helpers = [Thread(target=self.help) for _ in range(threads - 1)]
        try:
            for helper in helpers:
                helper.start()
            self.work(True)
        except BaseException:
            self.batch.failed = True
            raise
        finally:
            for helper in helpers:
                if helper.ident is not None:
                    helper.join()
        if self.batch.failed:
            raise MemoryError("answers of a batch")
        return [hits_of(self.batch.answer[i].hit, self.batch.answer[i].n) for i in range(self.batch.n)]
