# cython: language_level=3
# Part of cg._bm25, which includes it. From a str to its tokens: classes of characters, folding, the scanner.
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

cdef extern from "bm25/tokens.h" nogil:
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

cdef extern from "bm25/python.h":
    PyObject *bm25_normalize     # unicodedata.normalize, set once by the module that is made of this
    const char *bm25_ascii(object text, Py_ssize_t *n)


cdef int fill_page(uint32_t page) except -1:
    """Classify 256 characters by this interpreter's own tables; kept for the life of the process."""
    import unicodedata
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


cdef bint has_long_marks(str text):
    """Does a run of more than 64 characters stand in it that could all be combining marks? (Those are no letters.)"""
    cdef Py_UCS4 c
    cdef int run = 0
    for c in text:
        if c < 0x300 or c.isalnum():
            run = 0
        else:
            run += 1
            if run > 64:
                return True
    return False


cdef str with_marks_in_order(str text):
    """The same text, canonically, with its combining marks decomposed and in canonical order.

    The interpreter's normaliser sorts each run of marks by insertion: a run of a hundred thousand that is out of order
    would take minutes. One in order takes it a single pass.
    """
    import unicodedata
    parts, run = [], []
    for char in text:
        marks = (<object>bm25_normalize)("NFD", char)
        if unicodedata.combining(marks[0]):
            run.extend(marks)
            continue
        parts.extend(sorted(run, key=unicodedata.combining))
        run.clear()
        parts.append(char)
    parts.extend(sorted(run, key=unicodedata.combining))
    return "".join(parts)


cdef bytes fold(str text):
    """Normalised, case-folded UTF-8, with every page that its characters need in place."""
    if has_long_marks(text):
        text = with_marks_in_order(text)
    cdef bytes folded = str.encode(str.casefold((<object>bm25_normalize)("NFC", text)), "utf-8", "surrogatepass")
    cdef const uint8_t *p = folded
    cdef int page
    while True:
        page = bm25_missing_page(p, len(folded))
        if page < 0:
            return folded
        fill_page(<uint32_t>page)


cdef list tokens_of(str text):
    """The tokens of a text, in order, repeated as often as they occur."""
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
