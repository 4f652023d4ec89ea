# cython: language_level=3
# From a str to its terms: the classes and foldings of characters, and the analysis of text/analyze.h.
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef extern from "bm25/tokens.h" nogil:
    int BM25_WORD, BM25_MARK, BM25_CJK, BM25_CJK_MARK, BM25_PAIR_MARK, BM25_PLAIN_CLASSES
    size_t BM25_BITS_WORDS(size_t n)
    ctypedef struct Bm25Token:
        size_t at, len
    int bm25_is_cjk(uint32_t c)
    int bm25_publish_classes(int table, uint32_t page, const uint8_t *kinds)
    int bm25_missing_page(const uint8_t *text, size_t n, int table)

cdef extern from "text/fold.h" nogil:
    int TEXT_NONE, TEXT_LOWER, TEXT_UPPER, TEXT_LETTER, TEXT_DIGIT, TEXT_THROUGH, TEXT_BORDER
    ctypedef struct TextPage:
        uint16_t at[257]
        uint8_t kind[256]
        uint8_t bytes[1]
    ctypedef struct TextFolded:
        uint8_t *out
        size_t n, room
        int missing
    int text_is_paired(uint32_t c)
    int text_is_ignorable(uint32_t c)
    int text_publish(uint32_t page, const TextPage *folds)
    int text_fold(const uint8_t *text, size_t n, TextFolded *f)

cdef extern from "text/analyze.h" nogil:
    ctypedef struct Bm25Analysis:
        pass
    int TEXT_PLAIN
    size_t TEXT_ROOM(size_t n)
    int text_table(uint32_t analyzer)
    void bm25_analyze(
        Bm25Analysis *a, uint32_t analyzer, const uint8_t *text, size_t n, int ascii, uint8_t *room, uint64_t *bits,
    )
    size_t bm25_next_terms(Bm25Analysis *a, Bm25Token *out, size_t room)

cdef extern from "bm25/python.h":
    PyObject *bm25_normalize     # unicodedata.normalize, set once by the module that is made of this
    const char *bm25_ascii(object text, Py_ssize_t *n)


cdef enum:
    PAGE_ROOM = 256 * 64     # bytes of the foldings of a page; the longest in Unicode 16 has 33


cdef inline int class_of(str char, int table):
    """The class of a character, by this interpreter's own tables."""
    import unicodedata
    cdef bint is_cjk = bm25_is_cjk(<uint32_t>ord(char))
    cdef bint is_paired = table != BM25_PLAIN_CLASSES and text_is_paired(<uint32_t>ord(char))
    if table != BM25_PLAIN_CLASSES and ord(char) == TEXT_BORDER:
        return BM25_MARK
    if char == "_" or char.isalnum():
        return BM25_CJK if is_cjk or (is_paired and not char.isdigit()) else BM25_WORD
    if unicodedata.category(char)[0] == "M":
        return BM25_CJK_MARK if is_cjk else BM25_PAIR_MARK if is_paired else BM25_MARK
    return 0


cdef inline int fill_page(uint32_t page, int table) except -1:
    """Classify 256 characters by this interpreter's own tables; kept for the life of the process."""
    cdef uint8_t *kinds = <uint8_t *>malloc(256)
    cdef uint32_t i
    if kinds is NULL:
        raise MemoryError("256 bytes")
    for i in range(256):
        kinds[i] = class_of(chr(page * 256 + i), table)
    if not bm25_publish_classes(table, page, kinds):
        free(kinds)          # another thread was faster, with the same content
    return 0


cdef inline str nfkc_casefold(str char):
    """NFKC_Casefold of a character, without the dot that is left on a Turkish i."""
    cdef str before = "", after = char
    while before != after:
        before = after
        after = "".join([c for c in after if not text_is_ignorable(<uint32_t>ord(c))])
        after = (<object>bm25_normalize)("NFKC", after).casefold()
        after = (<object>bm25_normalize)("NFKC", after)
    return after.replace("i\u0307", "i")


cdef inline int case_of(str char):
    """What a character is to its neighbours in an identifier."""
    import unicodedata
    cdef str category = unicodedata.category(char)
    if category[0] == "M" or text_is_ignorable(<uint32_t>ord(char)):
        return TEXT_THROUGH
    if char.isdigit():
        return TEXT_DIGIT
    if not char.isalnum():
        return TEXT_NONE
    return TEXT_LOWER if category == "Ll" else TEXT_UPPER if category in ("Lu", "Lt") else TEXT_LETTER


cdef inline int fill_folds(uint32_t page) except -1:
    """Note the foldings of 256 characters by this interpreter's own tables; kept for the life of the process."""
    cdef TextPage *folds = <TextPage *>malloc(sizeof(TextPage) + PAGE_ROOM)
    cdef uint32_t i
    cdef uint16_t at = 0
    cdef bytes folded
    if folds is NULL:
        raise MemoryError(f"{PAGE_ROOM} bytes")
    for i in range(256):
        char = chr(page * 256 + i)
        folded = (" " if ord(char) == TEXT_BORDER else nfkc_casefold(char)).encode("utf-8", "surrogatepass")
        folds.at[i], folds.kind[i] = at, case_of(char)
        memcpy(folds.bytes + at, <const char *>folded, len(folded))
        at += len(folded)
    folds.at[256] = at
    if not text_publish(page, folds):
        free(folds)          # another thread was faster, with the same content
    return 0


cdef inline str folded_with_borders(str text):
    """NFKC_Casefold of a text in NFC, with a border before every part of an identifier; not yet in NFC again."""
    cdef bytes held = str.encode(text, "utf-8", "surrogatepass")
    cdef const uint8_t *p = held
    cdef size_t n = len(held)
    cdef TextFolded f
    cdef bint ok
    f.out, f.room = NULL, 0
    try:
        while True:
            ok = text_fold(p, n, &f)
            if not ok:
                raise MemoryError(f"{n} bytes of text")
            if f.missing < 0:
                return (<char *>f.out)[:f.n].decode("utf-8", "surrogatepass") if f.n else ""
            fill_folds(<uint32_t>f.missing)
    finally:
        free(f.out)


cdef inline bint has_long_marks(str text):
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


cdef inline str with_marks_in_order(str text):
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


cdef inline str composed(str text):
    """The text in NFC, in time that grows with its length whatever its marks."""
    if has_long_marks(text):
        text = with_marks_in_order(text)
    return (<object>bm25_normalize)("NFC", text)


cdef inline bytes fold(str text, uint32_t analyzer):
    """Normalised, case-folded UTF-8, with every page that its characters need in place."""
    cdef int table = text_table(analyzer)
    text = composed(text)
    text = str.casefold(text) if analyzer == <uint32_t>TEXT_PLAIN else composed(folded_with_borders(text))
    cdef bytes folded = str.encode(text, "utf-8", "surrogatepass")
    cdef const uint8_t *p = folded
    cdef int page
    while True:
        page = bm25_missing_page(p, len(folded), table)
        if page < 0:
            return folded
        fill_page(<uint32_t>page, table)


cdef inline list tokens_of(str text, uint32_t analyzer):
    """The tokens of a text, in order, repeated as often as they occur."""
    cdef Py_ssize_t n
    cdef const uint8_t *p = <const uint8_t *>bm25_ascii(text, &n)
    cdef bint is_ascii = p is not NULL
    cdef bytes folded
    cdef Bm25Token token[64]
    cdef Bm25Analysis analysis
    cdef size_t got, i
    cdef uint8_t *room
    cdef uint64_t *bits
    cdef list out = []
    if not is_ascii:
        folded = fold(text, analyzer)
        p, n = folded, len(folded)
    room = <uint8_t *>malloc(TEXT_ROOM(n))
    bits = <uint64_t *>malloc(BM25_BITS_WORDS(n) * 8)
    try:
        if room is NULL or bits is NULL:
            raise MemoryError(f"{n} bytes of text")
        bm25_analyze(&analysis, analyzer, p, n, is_ascii, room, bits)
        while True:
            got = bm25_next_terms(&analysis, token, 64)
            if got == 0:
                return out
            for i in range(got):
                out.append((<char *>room)[token[i].at:token[i].at + token[i].len].decode("utf-8", "surrogatepass"))
    finally:
        free(room)
        free(bits)
