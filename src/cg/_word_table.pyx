# cython: language_level=3, auto_pickle=False
"""A table of word vectors, ternary with a scale a word, and the order that it gives to documents.

A text's vector is the sum of its words' vectors, as often as they occur, divided by its length; a word that the table
does not have adds nothing. words/table.h has the format and its checks, words/vectors.h the arithmetic.
"""
import zlib

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from cython cimport final
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

cdef extern from "words/vectors.h" nogil:
    enum: WORDS_DIMS
    ctypedef struct WordsHeader:
        uint32_t crc
    ctypedef struct WordsTable:
        uint32_t n_words
    ctypedef struct WordsPlace:
        uint32_t doc
    const char *words_check_header(const uint8_t *image, uint64_t n)
    int words_attach(WordsTable *t, const uint8_t *image, const char **wrong)
    void words_free(WordsTable *t)
    int64_t words_find(const WordsTable *t, const uint8_t *p, size_t n)
    void words_add(const WordsTable *t, uint32_t at, float *sum)
    void words_normalize(float *v)
    void words_cosines(const float *query, const float *docs, size_t n, double *cosine)
    void words_order(const double *cosine, const uint32_t *doc, const double *score, size_t n, WordsPlace *place)

__all__ = ["WordTable", "WordVectors"]

cdef enum:
    FIRST_ROOM = 16          # documents


@final
cdef class WordTable:
    """The table whose image is `data` (bytes), immutable; ValueError says what is wrong with an image."""

    cdef WordsTable table
    cdef bytes data          # `table` points into it

    def __cinit__(self, bytes data not None):
        cdef const uint8_t *image = data
        cdef const char *wrong = words_check_header(image, <uint64_t>len(data))
        cdef WordsHeader header
        cdef bint ok
        if wrong is NULL:
            memcpy(&header, image, sizeof(WordsHeader))
            if zlib.crc32(memoryview(data)[<Py_ssize_t>sizeof(WordsHeader):]) != header.crc:
                wrong = b"the checksum does not fit"
        if wrong is NULL:
            self.data = data
            with nogil:
                ok = words_attach(&self.table, image, &wrong)
            if not ok:
                raise MemoryError("tables of a word table")
        if wrong is not NULL:
            raise ValueError(f"not a usable word table: {wrong.decode()}")

    def __dealloc__(self):
        words_free(&self.table)

    def __len__(self):
        return self.table.n_words

    def __contains__(self, str word not None):
        return find(&self.table, word) >= 0


cdef int64_t find(const WordsTable *table, str word) except -2:
    """The number of a word, or -1; one that holds half a surrogate pair is in no table."""
    cdef Py_ssize_t n
    cdef const char *p
    try:
        p = PyUnicode_AsUTF8AndSize(word, &n)
    except UnicodeEncodeError:
        return -1
    return words_find(table, <const uint8_t *>p, <size_t>n)


cdef int add_words(const WordsTable *table, object words, float *v) except -1:
    """Set v[WORDS_DIMS] to the unit vector of an iterable of words; to zeros if the table has none of them."""
    cdef int64_t at
    memset(v, 0, WORDS_DIMS * sizeof(float))
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"a word must be a str, not {type(word).__name__}")
        at = find(table, word)
        if at >= 0:
            words_add(table, <uint32_t>at, v)
    words_normalize(v)
    return 0


@final
cdef class WordVectors:
    """The vectors of documents, an iterable with an iterable of words for each, in their order; immutable."""

    cdef WordTable table
    cdef float *vector       # [n * WORDS_DIMS], each of length 1 or 0
    cdef Py_ssize_t n

    def __cinit__(self, WordTable table not None, documents):
        cdef Py_ssize_t room = 0
        cdef float *grown
        self.table = table
        for words in documents:
            if self.n == room:
                room = max(FIRST_ROOM, 2 * room)
                grown = <float *>realloc(self.vector, <size_t>room * WORDS_DIMS * sizeof(float))
                if grown is NULL:
                    raise MemoryError(f"{room} vectors")
                self.vector = grown
            add_words(&table.table, words, self.vector + self.n * WORDS_DIMS)
            self.n += 1

    def __dealloc__(self):
        free(self.vector)

    def __len__(self):
        return self.n

    def cosines(self, words):
        """The cosine of a query, an iterable of words, with each document; 0 where the table knows no word of it."""
        cdef Py_ssize_t i
        cdef double *cosine = self.cosines_of(words)
        try:
            return [cosine[i] for i in range(self.n)]
        finally:
            free(cosine)

    cdef double *cosines_of(self, object words) except NULL:
        """The cosines, to be freed."""
        cdef float query[WORDS_DIMS]
        cdef double *cosine
        add_words(&self.table.table, words, query)
        cosine = <double *>malloc((self.n if self.n else 1) * sizeof(double))
        if cosine is NULL:
            raise MemoryError(f"{self.n} cosines")
        with nogil:
            words_cosines(query, self.vector, <size_t>self.n, cosine)
        return cosine

    def order(self, words, const uint32_t[::1] docs not None, const double[::1] scores not None):
        """The positions of `docs` by score divided by the highest, plus cosine: best first, ties by position.

        `docs` and `scores` are a ranking's columns. Raises ValueError unless they are of one length, every position is
        one of a document and every score is finite and not negative.
        """
        cdef Py_ssize_t i, n = docs.shape[0]
        cdef double *cosine
        cdef WordsPlace *place
        if scores.shape[0] != n:
            raise ValueError(f"{n} documents with {scores.shape[0]} scores")
        for i in range(n):
            if docs[i] >= <uint64_t>self.n:
                raise ValueError(f"document {docs[i]} of {self.n}")
            if not 0 <= scores[i] < INFINITY:
                raise ValueError(f"a score of {scores[i]}")
        if n == 0:
            return []
        cosine = self.cosines_of(words)
        place = <WordsPlace *>malloc(n * sizeof(WordsPlace))
        try:
            if place is NULL:
                raise MemoryError(f"{n} places")
            with nogil:
                words_order(cosine, &docs[0], &scores[0], <size_t>n, place)
            return [place[i].doc for i in range(n)]
        finally:
            free(cosine)
            free(place)
