# cython: language_level=3, cdivision=True, auto_pickle=False
"""Okapi BM25 with the (k1 + 1) factor; idf is ln(1 + (N - df + 0.5) / (df + 0.5)), never negative.

score(d) = sum over the query's distinct terms, in sorted order, of idf * (k1 + 1) * tf / (tf + norm(d)), with
norm(d) = k1 * (1 - b + b * dl / avgdl), in double precision. The layout of an index is in bm25_image.h, building in
bm25_build.h and bm25_layout.h, exhaustive scoring in bm25_score.h, skipping in bm25_prune.h; here is what Python sees.
"""
import os
import unicodedata

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.buffer cimport PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cython cimport final, freelist
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

cdef extern from "bm25_tokens.h" nogil:
    const uint8_t *bm25_pages[0x1100]
    int bm25_path
    int bm25_best_path()
    int BM25_WORD, BM25_MARK, BM25_CJK, BM25_CJK_MARK
    size_t BM25_TEXT_PAD
    size_t BM25_BITS_WORDS(size_t n)
    ctypedef struct Bm25Token:
        size_t at, len
    ctypedef struct Bm25Scan:
        pass
    int bm25_is_cjk(uint32_t c)
    int bm25_publish(uint32_t page, const uint8_t *kinds)
    int bm25_missing_page(const uint8_t *text, size_t n)
    void bm25_open_ascii(Bm25Scan *scan, const uint8_t *text, size_t n, uint8_t *room, uint64_t *bits)
    void bm25_open_utf8(Bm25Scan *scan, const uint8_t *text, size_t n, uint8_t *room)
    size_t bm25_next(Bm25Scan *scan, Bm25Token *out, size_t room)

cdef extern from "bm25_layout.h" nogil:
    enum: BM25_NO_MEMORY, BM25_TOO_MANY_TERMS, BM25_TOO_MANY_ROWS, BM25_TOO_LONG
    ctypedef struct Bm25Builder:
        uint64_t n_docs
    int bm25_builder_start(Bm25Builder *b, uint64_t seed)
    int bm25_add(Bm25Builder *b, const uint8_t *text, size_t n, int ascii)
    int bm25_finish(Bm25Builder *b, double k1, double norm_b, uint8_t **image)
    void bm25_builder_free(Bm25Builder *b)

cdef extern from "bm25_check.h" nogil:
    ctypedef struct Bm25Header:
        uint64_t file_bytes, n_docs, n_terms, n_tokens
    ctypedef struct Bm25Index:
        const uint8_t *image
        const Bm25Header *head
        uint32_t n_docs, n_terms, n_classes, n_weights
        const uint32_t *term_row
        double k1, b
        double *norm
        double *weight
        double *share
    int bm25_attach(Bm25Index *ix, const uint8_t *image)
    void bm25_seal(const uint8_t *image, Bm25Header *sealed)
    const char *bm25_check_header(const uint8_t *image, uint64_t n)
    const char *bm25_check_content(const Bm25Index *ix)

cdef extern from "bm25_query.h" nogil:
    int bm25_derive(Bm25Index *ix)
    ctypedef struct Bm25Hit:
        double score
        uint32_t doc
    ctypedef struct Bm25Terms:
        size_t n
    ctypedef struct Bm25Plan:
        uint64_t postings, work
    ctypedef struct Bm25Answer:
        Bm25Hit *hit
        size_t n
        int skipped
    int bm25_parse(const Bm25Index *ix, const uint8_t *text, size_t n, int ascii, Bm25Terms *q)
    void bm25_terms_free(Bm25Terms *q)
    int bm25_plan(const Bm25Index *ix, const Bm25Terms *q, Bm25Plan *plan)
    void bm25_plan_free(Bm25Plan *plan)
    int bm25_search(const Bm25Index *ix, Bm25Plan *plan, uint64_t k, Bm25Answer *a)
    void bm25_answer_free(Bm25Answer *a)
    int bm25_rank(const Bm25Index *ix, Bm25Plan *plan, uint32_t *doc, double *score)
    void bm25_scores(const Bm25Index *ix, Bm25Plan *plan, double *score)

cdef extern from "bm25_python.h":
    const char *bm25_ascii(object text, Py_ssize_t *n)
    list bm25_pairs(const uint32_t *doc, const double *score, Py_ssize_t n)

__all__ = ["BM25Index", "Hits", "tokenize"]

cdef enum:
    FEW_HITS = 16            # hits that live inside of their object: most answers over small catalogs
    FEW_DOUBLES = 24         # their scores, then their documents, two to a double
    RELEASE_WORK = 4096      # postings (some microseconds) from which letting the GIL go costs less than it gives
    MOST_DOCS = 0x7FFFFFFF   # documents; their numbers have 32 bits
    BATCH = 256              # texts handed to the builder in one release of the GIL
    BATCH_BYTES = 1 << 20
    CHECK_EVERY = 256        # queries of a batch between two looks for a signal

cdef object _UNBUILT = object()          # stands for the texts where an index is opened rather than built

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


# ---- text -----------------------------------------------------------------------------------------------------

cdef int fill_page(uint32_t page) except -1:
    """Classify 256 characters by this interpreter's own tables; kept for the life of the process."""
    cdef uint8_t *kinds = <uint8_t *>malloc(256)
    cdef uint32_t i, c
    if kinds is NULL:
        raise MemoryError("256 bytes")
    for i in range(256):
        c = page * 256 + i
        char = chr(c)
        if char == "_" or char.isalnum():
            kinds[i] = BM25_CJK if bm25_is_cjk(c) else BM25_WORD
        elif unicodedata.category(char)[0] == "M":
            kinds[i] = BM25_CJK_MARK if bm25_is_cjk(c) else BM25_MARK
        else:
            kinds[i] = 0
    if not bm25_publish(page, kinds):
        free(kinds)          # another thread was faster, with the same content
    return 0


cdef bytes fold(str text):
    """Normalised, case-folded UTF-8, with every page that its characters need in place."""
    cdef bytes folded = str.encode(str.casefold(unicodedata.normalize("NFC", text)), "utf-8", "surrogatepass")
    cdef const uint8_t *p = folded
    cdef int page
    while True:
        page = bm25_missing_page(p, len(folded))
        if page < 0:
            return folded
        fill_page(<uint32_t>page)


def tokenize(str text not None):
    """The tokens of a text, in order, repeated as often as they occur.

    A token is a run of word characters (str.isalnum, underscore, combining marks that follow) of the NFC-normalised,
    case-folded text; Han and kana inside a run give their overlapping pairs of characters instead.
    """
    cdef Py_ssize_t n
    cdef const uint8_t *p = <const uint8_t *>bm25_ascii(text, &n)
    cdef bint is_ascii = p is not NULL
    cdef bytes folded
    cdef Bm25Token token[64]
    cdef Bm25Scan scan
    cdef size_t got, i
    cdef uint8_t *room
    cdef uint64_t *bits
    cdef list out = []
    if not is_ascii:
        folded = fold(text)
        p, n = folded, len(folded)
    room = <uint8_t *>malloc(n + BM25_TEXT_PAD)
    bits = <uint64_t *>malloc(BM25_BITS_WORDS(n) * 8)
    try:
        if room is NULL or bits is NULL:
            raise MemoryError(f"{n} bytes of text")
        if is_ascii:
            bm25_open_ascii(&scan, p, n, room, bits)
        else:
            bm25_open_utf8(&scan, p, n, room)
        while True:
            got = bm25_next(&scan, token, 64)
            if got == 0:
                return out
            for i in range(got):
                out.append((<char *>room)[token[i].at:token[i].at + token[i].len].decode("utf-8", "surrogatepass"))
    finally:
        free(room)
        free(bits)


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
        return memoryview(column_of(self, b"I"))

    @property
    def scores(self):
        """Scores as a read-only memoryview of float64; numpy.asarray takes it without a copy."""
        return memoryview(column_of(self, b"d"))

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


@final
cdef class _Column:
    """One column of a Hits, as a buffer that keeps it alive."""

    cdef Hits hits
    cdef bytes kind
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

    def __getbuffer__(self, Py_buffer *view, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("hits never change")
        view.obj = self
        view.buf = <void *>self.hits.doc if self.kind == b"I" else <void *>self.hits.score
        view.len = self.shape[0] * self.strides[0]
        view.itemsize = self.strides[0]
        view.readonly = 1
        view.ndim = 1
        view.format = <char *>self.kind if flags & PyBUF_FORMAT else NULL
        view.shape = self.shape if flags & PyBUF_ND else NULL
        view.strides = self.strides if (flags & PyBUF_STRIDES) == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = NULL


cdef _Column column_of(Hits hits, bytes kind):
    cdef _Column column = _Column.__new__(_Column)
    column.hits = hits
    column.kind = kind
    column.shape[0] = hits.n
    column.strides[0] = 4 if kind == b"I" else 8
    return column


# ---- the index ------------------------------------------------------------------------------------------------

cdef double checked(object value, str name, double most) except -1:
    """A parameter as a double in 0..most; refuses NaN, booleans and anything that is no real number."""
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    cdef double number = float(value)
    if not 0 <= number <= most:
        raise ValueError(f"{name} = {value!r} is not in 0..{most:g}")
    return number


cdef uint64_t checked_k(object k) except? 0:
    cdef int64_t number
    if type(k) is int:
        try:
            number = k
        except OverflowError:
            number = MOST_DOCS if k > 0 else -1
        if number >= 0:
            return <uint64_t>min(number, <int64_t>MOST_DOCS)
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"k must be an int, not {type(k).__name__}")
    if k < 0:
        raise ValueError(f"k = {k} is below 0")
    return <uint64_t>min(k, MOST_DOCS)


cdef int stopped(int stop, Py_ssize_t doc) except -1:
    if stop == BM25_TOO_MANY_TERMS:
        raise OverflowError(f"document {doc}: more than 2**31 - 1 terms, or 4 GiB of them")
    if stop == BM25_TOO_MANY_ROWS:
        raise OverflowError("more than 2**32 - 2 postings of rare terms")
    if stop == BM25_TOO_LONG:
        raise OverflowError(f"document {doc} has more than 2**32 - 1 tokens")
    raise MemoryError(f"after document {doc}")


cdef int add_batch(Bm25Builder *builder, list batch) except -1:
    """Count a batch of texts: str that are ASCII, and folded bytes."""
    cdef const uint8_t *text[BATCH]
    cdef Py_ssize_t size[BATCH]
    cdef bint is_ascii[BATCH]
    cdef Py_ssize_t i, n = len(batch)
    cdef bytes folded
    cdef int stop = 0
    for i in range(n):
        item = batch[i]
        is_ascii[i] = isinstance(item, str)
        if is_ascii[i]:
            text[i] = <const uint8_t *>bm25_ascii(item, &size[i])
        else:
            folded = item
            text[i], size[i] = folded, len(folded)
    with nogil:
        for i in range(n):
            stop = bm25_add(builder, text[i], size[i], is_ascii[i])
            if stop:
                break
    if stop:
        stopped(stop, <Py_ssize_t>builder.n_docs)
    PyErr_CheckSignals()
    return 0


cdef uint8_t *built(object texts, double k1, double b, object progress, uint64_t seed) except NULL:
    """The image of an index over the texts; the caller frees it."""
    cdef Bm25Builder builder
    cdef uint8_t *image = NULL
    cdef list batch = []
    cdef Py_ssize_t n, count = 0, n_bytes = 0
    cdef int stop = bm25_builder_start(&builder, seed)
    try:
        if stop:
            stopped(stop, 0)
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"text {count} must be a str, not {type(text).__name__}")
            if count >= MOST_DOCS:
                raise OverflowError(f"more than {MOST_DOCS} documents")
            if bm25_ascii(text, &n) is NULL:
                text = fold(text)
                n = len(text)
            batch.append(text)
            count += 1
            n_bytes += n
            if len(batch) == BATCH or n_bytes >= BATCH_BYTES:
                add_batch(&builder, batch)
                batch.clear()
                n_bytes = 0
                if progress is not None:
                    progress(count)
        add_batch(&builder, batch)
        if progress is not None:
            progress(count)
        with nogil:
            stop = bm25_finish(&builder, k1, b, &image)
        if stop:
            stopped(stop, count)
        return image
    finally:
        bm25_builder_free(&builder)


@final
cdef class BM25Index:
    """A BM25 index over texts, immutable: any number of threads may query it at once.

    `texts` is any iterable of str, read once; empty documents are allowed. `progress`, if given, is called with the
    number of texts read so far, now and then and at the end. Raises TypeError for a text that is no str and
    ValueError unless 0 <= k1 <= 1000 and 0 <= b <= 1.
    """

    cdef Bm25Index ix
    cdef uint8_t *owned      # the image, if it is ours
    cdef Py_buffer view      # else a view of the file that holds it
    cdef bint viewed

    def __cinit__(self, texts, *, k1=1.2, b=0.75, progress=None):
        cdef double checked_k1, checked_b
        if texts is _UNBUILT:
            return
        if isinstance(texts, (str, bytes)):
            raise TypeError(f"texts must be an iterable of str, not one {type(texts).__name__}")
        checked_k1 = checked(k1, "k1", 1000)
        checked_b = checked(b, "b", 1)
        self.owned = built(texts, checked_k1, checked_b, progress, <uint64_t>(<int64_t>hash(f"{id(self)}")))
        if bm25_attach(&self.ix, self.owned) or bm25_derive(&self.ix):
            raise MemoryError("tables of an index")

    def __dealloc__(self):
        free(self.ix.norm)
        free(self.ix.weight)
        free(self.ix.share)
        free(self.owned)
        if self.viewed:
            PyBuffer_Release(&self.view)

    @property
    def n_docs(self):
        """Number of documents."""
        return self.ix.n_docs

    @property
    def n_terms(self):
        """Number of distinct terms."""
        return self.ix.n_terms

    @property
    def nbytes(self):
        """Bytes of the index: the image, which is also its file, and the tables derived from it."""
        cdef uint64_t derived = 8 * (<uint64_t>self.ix.n_classes + self.ix.n_weights)
        if self.ix.share is not NULL:
            derived += 8 * <uint64_t>self.ix.term_row[self.ix.n_terms]
        return (self.ix.head.file_bytes if self.ix.head is not NULL else 0) + derived

    @property
    def k1(self):
        """Saturation of the term frequency."""
        return self.ix.k1

    @property
    def b(self):
        """Weight of the document length, 0 to 1."""
        return self.ix.b

    def __len__(self):
        return self.ix.n_docs

    def __repr__(self):
        return f"<BM25Index of {self.ix.n_docs} documents, {self.ix.n_terms} terms>"

    cdef int plan(self, str query, Bm25Plan *plan) except -1:
        """Terms and cursors of a query; free the plan after use."""
        cdef Bm25Terms terms
        cdef Py_ssize_t n
        cdef const uint8_t *p = <const uint8_t *>bm25_ascii(query, &n)
        cdef bytes folded
        cdef bint ok
        if p is not NULL:
            ok = bm25_parse(&self.ix, p, n, 1, &terms)
        else:
            folded = fold(query)
            ok = bm25_parse(&self.ix, folded, len(folded), 0, &terms)
        ok = ok and bm25_plan(&self.ix, &terms, plan)
        bm25_terms_free(&terms)
        if not ok:
            raise MemoryError("terms of a query")
        return 0

    def search(self, str query not None, k):
        """The best k documents of positive score as Hits: score descending, then position ascending.

        Raises TypeError for a query that is no str or a k that is no int, ValueError for a negative k.
        """
        cdef uint64_t checked = checked_k(k)
        cdef Bm25Plan plan
        cdef Bm25Answer answer
        cdef bint ok
        self.plan(query, &plan)
        if plan.work < RELEASE_WORK:
            ok = bm25_search(&self.ix, &plan, checked, &answer)
        else:
            with nogil:
                ok = bm25_search(&self.ix, &plan, checked, &answer)
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
        cdef Hits hits = new_hits(self.ix.n_docs)
        cdef bint ok
        self.plan(query, &plan)
        if plan.work + self.ix.n_docs < RELEASE_WORK:
            ok = bm25_rank(&self.ix, &plan, hits.doc, hits.score)
        else:
            with nogil:
                ok = bm25_rank(&self.ix, &plan, hits.doc, hits.score)
        bm25_plan_free(&plan)
        if not ok:
            raise MemoryError(f"{self.ix.n_docs} hits")
        return hits

    def scores(self, str query not None):
        """The score of every document by position: numpy float64[n_docs]."""
        import numpy
        cdef Bm25Plan plan
        out = numpy.empty(self.ix.n_docs, numpy.float64)
        cdef double[::1] view = out
        cdef double *score = &view[0] if self.ix.n_docs else NULL
        self.plan(query, &plan)
        with nogil:
            bm25_scores(&self.ix, &plan, score)
        bm25_plan_free(&plan)
        return out

    def search_many(self, queries, k, threads=1):
        """A list with search(query, k) of every query, worked off by `threads` threads without the GIL.

        Raises as search does, and ValueError unless 1 <= threads <= 256.
        """
        cdef uint64_t checked = checked_k(k)
        if isinstance(threads, bool) or not isinstance(threads, int):
            raise TypeError(f"threads must be an int, not {type(threads).__name__}")
        if not 1 <= threads <= 256:
            raise ValueError(f"threads = {threads} is not in 1..256")
        if isinstance(queries, (str, bytes)):
            raise TypeError(f"queries must be an iterable of str, not one {type(queries).__name__}")
        cdef _Batch batch = _Batch(self, queries, checked)
        return batch.run(min(threads, max(1, batch.n)))

    def save(self, path):
        """Write the index to one file, which appears under its name only when it is complete."""
        path = os.fspath(path)
        temporary = f"{os.fsdecode(path)}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(sealed_header(self))
                file.write(memoryview(_image_of(self))[<Py_ssize_t>sizeof(Bm25Header):])
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
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            mmap = mmap and size > 0             # an empty file cannot be mapped
            data = mapping.mmap(file.fileno(), size, access=mapping.ACCESS_READ) if mmap else file.read()
        return opened(data, not mmap, f"{os.fsdecode(path)}: ")

    def __reduce__(self):
        return _from_bytes, (sealed_header(self) + bytes(memoryview(_image_of(self))[<Py_ssize_t>sizeof(Bm25Header):]),)


@final
cdef class _Image:
    """The bytes of an index as a buffer that keeps it alive."""

    cdef BM25Index index
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

    def __getbuffer__(self, Py_buffer *view, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("an index never changes")
        view.obj = self
        view.buf = <void *>self.index.ix.image
        view.len = self.shape[0]
        view.itemsize = 1
        view.readonly = 1
        view.ndim = 1
        view.format = <char *>b"B" if flags & PyBUF_FORMAT else NULL
        view.shape = self.shape if flags & PyBUF_ND else NULL
        view.strides = self.strides if (flags & PyBUF_STRIDES) == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = NULL


cdef _Image _image_of(BM25Index index):
    cdef _Image image = _Image.__new__(_Image)
    image.index = index
    image.shape[0] = <Py_ssize_t>index.ix.head.file_bytes
    image.strides[0] = 1
    return image


cdef bytes sealed_header(BM25Index index):
    """The header as a file has it, checksums included."""
    cdef Bm25Header header
    with nogil:
        bm25_seal(index.ix.image, &header)
    return PyBytes_FromStringAndSize(<char *>&header, sizeof(Bm25Header))


cdef BM25Index opened(object data, bint copy, str where):
    """The index whose image `data` is, after every check; a view of `data` is kept unless it is copied."""
    cdef BM25Index index = BM25Index.__new__(BM25Index, _UNBUILT)
    cdef const uint8_t *image
    cdef const char *wrong = NULL
    cdef bint ok = True
    PyObject_GetBuffer(data, &index.view, PyBUF_SIMPLE)
    index.viewed = True
    cdef uint64_t n = <uint64_t>index.view.len
    image = <const uint8_t *>index.view.buf
    if copy:
        index.owned = <uint8_t *>malloc(n if n else 1)
        if index.owned is NULL:
            raise MemoryError(f"{n} bytes of an index")
        memcpy(index.owned, image, n)
        image = index.owned
        PyBuffer_Release(&index.view)
        index.viewed = False
    with nogil:
        wrong = bm25_check_header(image, n)
        if wrong is NULL:
            ok = bm25_attach(&index.ix, image) == 0
            if ok:
                wrong = bm25_check_content(&index.ix)
                if wrong is NULL:
                    ok = bm25_derive(&index.ix) == 0
    if not ok:
        raise MemoryError("tables of an index")
    if wrong is not NULL:
        raise ValueError(f"{where}not a usable index: {wrong.decode()}")
    return index


def _is_skipping(BM25Index index not None, str query not None, k):
    """Do bounds choose what search(query, k) reads? False where every posting is read after all (tests only)."""
    cdef uint64_t checked = checked_k(k)
    cdef Bm25Plan plan
    cdef Bm25Answer answer
    index.plan(query, &plan)
    if not bm25_search(&index.ix, &plan, checked, &answer):
        answer.skipped = 0
    bm25_plan_free(&plan)
    bm25_answer_free(&answer)
    return answer.skipped != 0


def _from_bytes(data):
    """The index with this image (pickle)."""
    return opened(data, True, "")


# ---- many queries ---------------------------------------------------------------------------------------------

cdef extern from *:
    """
    /* The next number of a counter that threads share. */
    static int64_t bm25_take(int64_t *counter) {
    #if defined(_MSC_VER)
        return _InterlockedExchangeAdd64((volatile __int64 *)counter, 1);
    #else
        return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    #endif
    }
    """
    int64_t bm25_take(int64_t *counter) nogil


@final
cdef class _Batch:
    """Queries of one search_many, shared by its threads; each query is taken, and its answer written, by one."""

    cdef BM25Index index
    cdef list held           # str and folded bytes that the pointers lead into
    cdef const uint8_t **text
    cdef Py_ssize_t *size    # bytes; negative: ASCII, ~size bytes
    cdef Bm25Answer *answer
    cdef Py_ssize_t n
    cdef uint64_t k
    cdef int64_t taken
    cdef bint failed

    def __cinit__(self, BM25Index index, queries, uint64_t k):
        cdef Py_ssize_t i, n
        cdef bytes folded
        self.index, self.k, self.held = index, k, list(queries)
        n = len(self.held)
        self.text = <const uint8_t **>calloc(n + 1, sizeof(void *))
        self.size = <Py_ssize_t *>calloc(n + 1, sizeof(Py_ssize_t))
        self.answer = <Bm25Answer *>calloc(n + 1, sizeof(Bm25Answer))
        if self.text is NULL or self.size is NULL or self.answer is NULL:
            raise MemoryError(f"{n} queries")
        for i in range(n):
            query = self.held[i]
            if not isinstance(query, str):
                raise TypeError(f"query {i} must be a str, not {type(query).__name__}")
            self.text[i] = <const uint8_t *>bm25_ascii(query, &self.size[i])
            if self.text[i] is NULL:
                folded = fold(query)
                self.held[i] = folded
                self.text[i], self.size[i] = folded, len(folded)
            else:
                self.size[i] = ~self.size[i]
        self.n = n

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n):
            bm25_answer_free(&self.answer[i])
        free(self.text)
        free(self.size)
        free(self.answer)

    cdef bint answer_one(self, int64_t i) noexcept nogil:
        cdef Bm25Terms terms
        cdef Bm25Plan plan
        cdef bint ascii = self.size[i] < 0
        cdef bint ok = bm25_parse(&self.index.ix, self.text[i], ~self.size[i] if ascii else self.size[i], ascii, &terms)
        ok = ok and bm25_plan(&self.index.ix, &terms, &plan)
        bm25_terms_free(&terms)
        if ok:
            ok = bm25_search(&self.index.ix, &plan, self.k, &self.answer[i])
            bm25_plan_free(&plan)
        return ok

    cdef int work(self, bint watch) except -1:
        """Take queries until none is left; `watch`: look for signals between (the main thread's duty)."""
        cdef int64_t i = 0
        cdef int done = 0
        with nogil:
            while not self.failed:
                i = bm25_take(&self.taken)
                if i >= self.n:
                    break
                if not self.answer_one(i):
                    self.failed = True
                done += 1
                if watch and done % CHECK_EVERY == 0:
                    with gil:
                        PyErr_CheckSignals()
        return 0

    def help(self):
        """What every further thread runs."""
        self.work(False)

    def run(self, int threads):
        """Answer everything; the calling thread takes part."""
        cdef list helpers = []
        if threads > 1:
            from threading import Thread
            helpers = [Thread(target=self.help) for _ in range(threads - 1)]
        try:
            for helper in helpers:
                helper.start()
            self.work(True)
        except BaseException:
            self.failed = True
            raise
        finally:
            for helper in helpers:
                if helper.ident is not None:
                    helper.join()
        if self.failed:
            raise MemoryError("answers of a batch")
        return [hits_of(self.answer[i].hit, self.answer[i].n) for i in range(self.n)]
