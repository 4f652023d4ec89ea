# cython: language_level=3
# Part of cg._bm25, which includes it. Where the image of an index comes from, texts or bytes, and who frees it.
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef extern from "bm25/layout.h" nogil:
    enum: BM25_NO_MEMORY, BM25_TOO_MANY_TERMS, BM25_TOO_MANY_ROWS, BM25_TOO_LONG
    ctypedef struct Bm25Builder:
        uint32_t analyzer
        uint64_t n_docs
    int bm25_builder_start(Bm25Builder *b, uint32_t analyzer, uint64_t seed)
    int bm25_add(Bm25Builder *b, const uint8_t *text, size_t n, int ascii)
    int bm25_finish(Bm25Builder *b, double k1, double norm_b, uint8_t **image)
    void bm25_builder_free(Bm25Builder *b)

cdef extern from "bm25/check.h" nogil:
    ctypedef struct Bm25Header:
        uint64_t file_bytes, n_docs, n_terms, n_tokens
    ctypedef struct Bm25Index:
        const uint8_t *image
        const Bm25Header *head
        uint32_t analyzer, n_docs, n_terms, n_classes, n_weights
        const uint32_t *term_row
        const uint32_t *term_offset
        const uint8_t *term_bytes
        double k1, b
        double *norm
        double *weight
        double *share
        bint from_outside
    int bm25_attach(Bm25Index *ix, const uint8_t *image)
    void bm25_seal(const uint8_t *image, Bm25Header *sealed)
    const char *bm25_check_header(const uint8_t *image, uint64_t n)
    const char *bm25_check_content(const Bm25Index *ix)

cdef extern from "bm25/query.h" nogil:
    int bm25_derive(Bm25Index *ix)

cdef enum:
    MOST_DOCS = 0x7FFFFFFF   # documents; their numbers have 32 bits
    BATCH = 256              # texts handed to the builder in one release of the GIL
    BATCH_BYTES = 1 << 20

cdef struct Store:           # zeroed at first; closing it is always allowed
    Bm25Index ix
    uint8_t *owned           # the image, if it is ours
    Py_buffer view           # else a view of the file that holds it
    bint viewed


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


cdef int add_texts(Bm25Builder *builder, object texts, object progress) except -1:
    """Count every text of an iterable."""
    cdef list batch = []
    cdef Py_ssize_t n, count = 0, n_bytes = 0
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"text {count} must be a str, not {type(text).__name__}")
        if count >= MOST_DOCS:
            raise OverflowError(f"more than {MOST_DOCS} documents")
        if bm25_ascii(text, &n) is NULL:
            text = fold(text, builder.analyzer)
            n = len(text)
        batch.append(text)
        count += 1
        n_bytes += n
        if len(batch) == BATCH or n_bytes >= BATCH_BYTES:
            add_batch(builder, batch)
            batch.clear()
            n_bytes = 0
            if progress is not None:
                progress(count)
    add_batch(builder, batch)
    if progress is not None:
        progress(count)
    return 0


cdef int build_store(
    Store *store, object texts, uint32_t analyzer, double k1, double b, object progress, uint64_t seed,
) except -1:
    """Fill an empty store with the index of texts."""
    cdef Bm25Builder builder
    cdef int stop = bm25_builder_start(&builder, analyzer, seed)
    try:
        if stop:
            stopped(stop, 0)
        add_texts(&builder, texts, progress)
        with nogil:
            stop = bm25_finish(&builder, k1, b, &store.owned)
        if stop:
            stopped(stop, <Py_ssize_t>builder.n_docs)
    finally:
        bm25_builder_free(&builder)
    if bm25_attach(&store.ix, store.owned) or bm25_derive(&store.ix):
        raise MemoryError("tables of an index")
    return 0


cdef int open_store(Store *store, object data, bint copy, str where) except -1:
    """Fill an empty store with the image `data`, after every check; a view of it is kept unless it is copied."""
    cdef const uint8_t *image
    cdef const char *wrong = NULL
    cdef bint ok = True
    cdef uint64_t n
    PyObject_GetBuffer(data, &store.view, PyBUF_SIMPLE)
    store.viewed = True
    n = <uint64_t>store.view.len
    image = <const uint8_t *>store.view.buf
    if copy:
        store.owned = <uint8_t *>malloc(n if n else 1)
        if store.owned is NULL:
            raise MemoryError(f"{n} bytes of an index")
        memcpy(store.owned, image, n)
        image = store.owned
        PyBuffer_Release(&store.view)
        store.viewed = False
    with nogil:
        wrong = bm25_check_header(image, n)
        if wrong is NULL:
            ok = bm25_attach(&store.ix, image) == 0
            store.ix.from_outside = True
            if ok:
                wrong = bm25_check_content(&store.ix)
                if wrong is NULL:
                    ok = bm25_derive(&store.ix) == 0
    if not ok:
        raise MemoryError("tables of an index")
    if wrong is not NULL:
        raise ValueError(f"{where}not a usable index: {wrong.decode()}")
    return 0


cdef void close_store(Store *store):
    free(store.ix.norm)
    free(store.ix.weight)
    free(store.ix.share)
    free(store.owned)
    if store.viewed:
        PyBuffer_Release(&store.view)


cdef uint64_t derived_bytes(const Store *store) noexcept nogil:
    """Bytes of the tables that are not in the image."""
    cdef uint64_t derived = 8 * (<uint64_t>store.ix.n_classes + store.ix.n_weights)
    if store.ix.share is not NULL:
        derived += 8 * <uint64_t>store.ix.term_row[store.ix.n_terms]
    return derived


cdef bytes sealed_header(const Store *store):
    """The header as a file has it, checksums included."""
    cdef Bm25Header header
    with nogil:
        bm25_seal(store.ix.image, &header)
    return PyBytes_FromStringAndSize(<char *>&header, sizeof(Bm25Header))
