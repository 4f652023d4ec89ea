/* The 33 English stop words of Lucene's standard analyser. */
#ifndef TEXT_STOPWORDS_H
#define TEXT_STOPWORDS_H

#include "bm25/base.h"

#define STOP_WORD_BYTES 5u       /* of the longest */
#define STOP_WORD(a, b, c, d, e) \
    ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 | (uint64_t)(e) << 32)

/* Is the word, of n >= 1 small letters with 8 readable bytes behind its start, a stop word? */
static int text_is_stop_word(const uint8_t *w, size_t n) {
    if (n > STOP_WORD_BYTES) return 0;
    switch (bm25_load64(w) & (~0ull >> (64 - 8 * n))) {
    case STOP_WORD('a', 0, 0, 0, 0):
    case STOP_WORD('a', 'n', 0, 0, 0):
    case STOP_WORD('a', 'n', 'd', 0, 0):
    case STOP_WORD('a', 'r', 'e', 0, 0):
    case STOP_WORD('a', 's', 0, 0, 0):
    case STOP_WORD('a', 't', 0, 0, 0):
    case STOP_WORD('b', 'e', 0, 0, 0):
    case STOP_WORD('b', 'u', 't', 0, 0):
    case STOP_WORD('b', 'y', 0, 0, 0):
    case STOP_WORD('f', 'o', 'r', 0, 0):
    case STOP_WORD('i', 'f', 0, 0, 0):
    case STOP_WORD('i', 'n', 0, 0, 0):
    case STOP_WORD('i', 'n', 't', 'o', 0):
    case STOP_WORD('i', 's', 0, 0, 0):
    case STOP_WORD('i', 't', 0, 0, 0):
    case STOP_WORD('n', 'o', 0, 0, 0):
    case STOP_WORD('n', 'o', 't', 0, 0):
    case STOP_WORD('o', 'f', 0, 0, 0):
    case STOP_WORD('o', 'n', 0, 0, 0):
    case STOP_WORD('o', 'r', 0, 0, 0):
    case STOP_WORD('s', 'u', 'c', 'h', 0):
    case STOP_WORD('t', 'h', 'a', 't', 0):
    case STOP_WORD('t', 'h', 'e', 0, 0):
    case STOP_WORD('t', 'h', 'e', 'i', 'r'):
    case STOP_WORD('t', 'h', 'e', 'n', 0):
    case STOP_WORD('t', 'h', 'e', 'r', 'e'):
    case STOP_WORD('t', 'h', 'e', 's', 'e'):
    case STOP_WORD('t', 'h', 'e', 'y', 0):
    case STOP_WORD('t', 'h', 'i', 's', 0):
    case STOP_WORD('t', 'o', 0, 0, 0):
    case STOP_WORD('w', 'a', 's', 0, 0):
    case STOP_WORD('w', 'i', 'l', 'l', 0):
    case STOP_WORD('w', 'i', 't', 'h', 0):
        return 1;
    default:
        return 0;
    }
}

#endif
