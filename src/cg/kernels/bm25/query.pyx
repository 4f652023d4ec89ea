# cython: language_level=3
# Part of cg._bm25, which includes it. One query from its text to its hits, and the checks of what a caller asks for.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "bm25/query.h" nogil:
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

cdef extern from "bm25/batch.h" nogil:
    ctypedef struct Bm25Batch:
        const uint8_t **text
        Py_ssize_t *size         # bytes; negative: ASCII, ~size bytes
        Bm25Answer *answer
        Py_ssize_t n
        uint64_t k
        int failed
    int bm25_batch_open(Bm25Batch *b, size_t n, uint64_t k)
    void bm25_batch_close(Bm25Batch *b)
    int bm25_batch_work(const Bm25Index *ix, Bm25Batch *b, int most)


cdef double checked(object value, str name, double most) except -1:
    """A parameter as a double in 0..most; refuses NaN, booleans and anything that is no real number."""
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    cdef double number = float(value)
    if not 0 <= number <= most:
        raise ValueError(f"{name} = {value!r} is not in 0..{most:g}")
    return number


cdef inline uint64_t checked_k(object k) except? 0:
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


cdef inline int make_plan(const Bm25Index *ix, str query, Bm25Plan *plan) except -1:
    """Terms and cursors of a query; free the plan after use."""
    cdef Bm25Terms terms
    cdef Py_ssize_t n
    cdef const uint8_t *p = <const uint8_t *>bm25_ascii(query, &n)
    cdef bytes folded
    cdef bint ok
    if p is not NULL:
        ok = bm25_parse(ix, p, n, 1, &terms)
    else:
        folded = fold(query)
        ok = bm25_parse(ix, folded, len(folded), 0, &terms)
    ok = ok and bm25_plan(ix, &terms, plan)
    bm25_terms_free(&terms)
    if not ok:
        raise MemoryError("terms of a query")
    return 0
