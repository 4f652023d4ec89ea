/* From a folded text to the terms of an analyser.

   plain   the tokens of bm25/tokens.h
   code    those, and behind each word that is made of several parts its parts. (A name like __init__ has one part: to
           give that too was measured, and loses two questions of a thousand.)
   text    as code, without stop words, and words of the letters a to z as their English stems */
#ifndef TEXT_ANALYZE_H
#define TEXT_ANALYZE_H

#include "bm25/tokens.h"
#include "text/fold.h"
#include "text/stem.h"
#include "text/stopwords.h"

enum text_analyzer { TEXT_PLAIN = 0, TEXT_TEXT = 1, TEXT_CODE = 2, N_ANALYZERS = 3 };

/* Raised whenever an analyser gives other terms than before for some text: an index keeps the number it was made with. */
static const uint32_t text_analyzer_version[N_ANALYZERS] = {1, 1, 1};

static int text_table(uint32_t analyzer) { return analyzer == TEXT_PLAIN ? BM25_PLAIN_CLASSES : BM25_TEXT_CLASSES; }

#define TEXT_HELD 32             /* tokens of the scan that wait for their parts to be given */

typedef struct {
    Bm25Scan scan;
    uint32_t analyzer;
    const uint8_t *raw;          /* ASCII: the text before folding, where case still shows; NULL: borders stand in it */
    size_t copy;                 /* where the next whole word is copied to, behind the text */
    size_t part, end;            /* what is left of a word that has parts */
    size_t n_held, i_held;
    Bm25Token held[TEXT_HELD];
} Bm25Analysis;

/* Bytes of `room` for a text of n bytes: itself, and a copy of each word that has parts. */
#define TEXT_ROOM(n) (2 * ((n) + BM25_TEXT_PAD))

/* Begin with a text: ASCII as it is, or folded UTF-8. Room: TEXT_ROOM(n) bytes and BM25_BITS_WORDS(n) words. */
BM25_INLINE void bm25_analyze(Bm25Analysis *a, uint32_t analyzer, const uint8_t *text, size_t n, int ascii, uint8_t *room, uint64_t *bits) {
    if (ascii) bm25_open_ascii(&a->scan, text, n, room, bits);
    else bm25_open_utf8(&a->scan, text, n, room, text_table(analyzer));
    a->analyzer = analyzer;
    a->raw = ascii ? text : NULL;
    a->copy = n + BM25_TEXT_PAD;
    a->part = a->end = a->n_held = a->i_held = 0;
}

static const uint8_t text_ascii_kind[128] = {
    ['0'] = 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    ['A'] = 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    ['a'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};

/* How many letters a to z w[0..n) begins with. */
BM25_INLINE size_t text_letters(const uint8_t *w, size_t n) {
    size_t i = 0;
    while (i < n && w[i] >= 'a' && w[i] <= 'z') i++;
    return i;
}

/* ASCII: does a part begin at raw[i], at < i < end? */
static int text_begins_part(const uint8_t *raw, size_t i, size_t end) {
    int before = text_ascii_kind[raw[i - 1]], kind = text_ascii_kind[raw[i]];
    if (text_is_border(before, kind)) return 1;
    return before == TEXT_UPPER && kind == TEXT_UPPER && i + 1 < end && text_ascii_kind[raw[i + 1]] == TEXT_LOWER;
}

static int text_separates(uint8_t c) { return c == '_' || c == TEXT_BORDER; }

/* The next part of s[at..end) in *out, and in *next where to go on; 0 if there is none. */
static int text_next_part(const Bm25Analysis *a, size_t at, size_t end, Bm25Token *out, size_t *next) {
    const uint8_t *s = a->scan.text;
    while (at < end && text_separates(s[at])) at++;
    if (at == end) return 0;
    out->at = at;
    for (at++; at < end && !text_separates(s[at]); at++) if (a->raw && text_begins_part(a->raw, at, end)) break;
    out->len = at - out->at;
    *next = at;
    return 1;
}

/* Turn a word of the letters a to z into its term, in place; 0 if it is left out. */
BM25_INLINE int text_english(const Bm25Analysis *a, Bm25Token *word) {
    uint8_t *w = a->scan.text + word->at;
    if (a->analyzer != TEXT_TEXT) return 1;
    if (text_is_stop_word(w, word->len)) return 0;
    word->len = text_stem(w, word->len);
    return 1;
}

/* The same for any word. */
BM25_INLINE int text_term(const Bm25Analysis *a, Bm25Token *word) {
    return text_letters(a->scan.text + word->at, word->len) < word->len ? 1 : text_english(a, word);
}

/* Copy a word behind the text without its borders: its parts are turned into terms where they stand. */
static Bm25Token text_whole(Bm25Analysis *a, const Bm25Token *word) {
    uint8_t *s = a->scan.text;
    Bm25Token whole = {a->copy, 0};
    for (size_t i = 0; i < word->len; i++)
        if (s[word->at + i] != TEXT_BORDER) s[whole.at + whole.len++] = s[word->at + i];
    a->copy += whole.len;
    return whole;
}

/* Is it a word, rather than a pair of characters? */
static int text_is_word(const Bm25Analysis *a, const Bm25Token *token) {
    const uint8_t *p = a->scan.text + token->at;
    int size;
    uint32_t c;
    if (p[0] < 0x80) return 1;
    c = bm25_char(p, &size);
    return BM25_PAGE(a->scan.pages, c >> 8)[c & 255] == BM25_WORD;
}

/* Take the next token of the scan: it becomes *out, and if it has parts they are to be given next. 0 if it gives nothing. */
static int text_take(Bm25Analysis *a, Bm25Token *out) {
    Bm25Token token = a->held[a->i_held++], part;
    const uint8_t *raw = a->raw ? a->raw + token.at : NULL;
    size_t end = token.at + token.len, next;
    /* Most words: small letters behind a first letter of any size. */
    if (raw && text_letters(a->scan.text + token.at, 1) && text_letters(raw + 1, token.len - 1) == token.len - 1) {
        *out = token;
        return text_english(a, out);
    }
    *out = token;
    if (!text_is_word(a, &token) || !text_next_part(a, token.at, end, &part, &next)) return 1;
    if (part.len < token.len) {
        *out = text_whole(a, &token);
        if (text_next_part(a, next, end, &part, &next)) {
            a->part = token.at;
            a->end = end;
        }
    }
    return text_term(a, out);
}

/* Up to `room` further terms of an analyser other than plain. */
static size_t text_next(Bm25Analysis *a, Bm25Token *out, size_t room) {
    size_t got = 0;
    while (got < room) {
        if (a->part < a->end) {
            if (text_next_part(a, a->part, a->end, &out[got], &a->part)) got += (size_t)text_term(a, &out[got]);
            else a->part = a->end;
        } else if (a->i_held < a->n_held) {
            got += (size_t)text_take(a, &out[got]);
        } else {
            if (got) return got;                 /* the scan may move characters of tokens that it gave before */
            a->i_held = 0;
            a->n_held = bm25_next(&a->scan, a->held, TEXT_HELD);
            if (a->n_held == 0) return 0;
        }
    }
    return got;
}

/* Up to `room` (>= 2) further terms in text order, a word before its parts; 0 at the end. They are ranges of the room,
   good until the next call. */
BM25_INLINE size_t bm25_next_terms(Bm25Analysis *a, Bm25Token *out, size_t room) {
    return a->analyzer == TEXT_PLAIN ? bm25_next(&a->scan, out, room) : text_next(a, out, room);
}

#endif
