/* Tokens of a text: runs of word characters, Han and kana cut out as pairs of characters.

   ASCII text is copied, folded and classified 32 or 8 bytes at a time into a bit per byte. Any other text arrives
   as UTF-8 (lone surrogates included), already normalised and case-folded, and is walked character by character;
   the class of a character comes from pages that the caller has filled from the running interpreter's own tables. */
#ifndef BM25_TOKENS_H
#define BM25_TOKENS_H

#include "bm25/base.h"

typedef struct { size_t at, len; } Bm25Token;   /* a byte range of the folded text */

/* BM25_CJK: a character of a script that is cut into pairs. A mark with a script of its own begins nothing:
   BM25_CJK_MARK begins a stretch within a run, BM25_PAIR_MARK counts as a character inside of stretches too. */
enum bm25_class { BM25_OTHER = 0, BM25_WORD = 1, BM25_MARK = 2, BM25_CJK = 3, BM25_CJK_MARK = 4, BM25_PAIR_MARK = 5 };

/* Tables of pages: the classes of characters in plain texts, and in those of the other analysers. Page by page,
   256 characters each; NULL until a text needs it. Filled with the same values by whoever comes first. */
enum bm25_table { BM25_PLAIN_CLASSES = 0, BM25_TEXT_CLASSES = 1 };
static const uint8_t *bm25_pages[2][0x1100];

#if defined(_MSC_VER)
#define BM25_PAGE(pages, i) (*(const uint8_t *const volatile *)&(pages)[i])
static int bm25_publish(const uint8_t **pages, uint32_t i, const uint8_t *page) {
    return _InterlockedCompareExchangePointer((void *volatile *)&pages[i], (void *)page, NULL) == NULL;
}
#else
#define BM25_PAGE(pages, i) __atomic_load_n(&(pages)[i], __ATOMIC_ACQUIRE)
static int bm25_publish(const uint8_t **pages, uint32_t i, const uint8_t *page) {
    const uint8_t *none = NULL;
    return __atomic_compare_exchange_n(&pages[i], &none, page, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
#endif
static int bm25_publish_classes(int table, uint32_t i, const uint8_t *page) { return bm25_publish(bm25_pages[table], i, page); }

/* Han and kana: the scripts that write no spaces and are cut into pairs. */
static int bm25_is_cjk(uint32_t c) {
    if (c < 0x3005) return 0;
    return c == 0x3005 || c == 0x3007 || (c >= 0x3040 && c <= 0x30FF) || (c >= 0x31F0 && c <= 0x31FF) ||
           (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0xFF66 && c <= 0xFF9F) || (c >= 0x20000 && c <= 0x323AF);
}

/* The character at p (well-formed UTF-8, surrogates allowed) and its size in bytes. */
BM25_INLINE uint32_t bm25_char(const uint8_t *p, int *size) {
    if (p[0] < 0x80) { *size = 1; return p[0]; }
    if (p[0] < 0xE0) { *size = 2; return (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F); }
    if (p[0] < 0xF0) { *size = 3; return (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F); }
    *size = 4;
    return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
}

/* First page that the text needs and that is still missing, or -1. */
static int bm25_missing_page(const uint8_t *p, size_t n, int table) {
    const uint8_t **pages = bm25_pages[table];
    int size;
    for (size_t i = 0; i < n; i += (size_t)size) {
        uint32_t c = bm25_char(p + i, &size);
        if (BM25_PAGE(pages, c >> 8) == NULL) return (int)(c >> 8);
    }
    return -1;
}

/* ---- ASCII ------------------------------------------------------------------------------------------------- */

/* 0x80 in every byte of x that lies in lo..hi; all bytes of x are below 0x80. */
#define BM25_ONES 0x0101010101010101ull
#define BM25_BETWEEN(x, lo, hi) \
    (((x) + BM25_ONES * (0x80 - (lo))) & ~((x) + BM25_ONES * (0x7F - (hi))) & (BM25_ONES * 0x80))

/* Fold 64 bytes in place; returns a bit for each that is a letter, a digit or an underscore. */
static uint64_t bm25_fold64_plain(uint8_t *s) {
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t x = bm25_load64(s + 8 * i), w;
        x |= BM25_BETWEEN(x, 'A', 'Z') >> 2;
        w = BM25_BETWEEN(x, 'a', 'z') | BM25_BETWEEN(x, '0', '9') | BM25_BETWEEN(x, '_', '_');
        bits |= (((w >> 7) * 0x0102040810204080ull) >> 56) << (8 * i);
        x = BM25_LE64(x);
        memcpy(s + 8 * i, &x, 8);
    }
    return bits;
}

#if BM25_HAS_AVX2
BM25_AVX2 static uint64_t bm25_fold64_avx2(uint8_t *s) {
    uint64_t bits = 0;
    for (int i = 0; i < 2; i++) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(s + 32 * i));
        __m256i upper = _mm256_and_si256(_mm256_cmpgt_epi8(x, _mm256_set1_epi8('A' - 1)),
                                         _mm256_cmpgt_epi8(_mm256_set1_epi8('Z' + 1), x));
        x = _mm256_or_si256(x, _mm256_and_si256(upper, _mm256_set1_epi8(0x20)));
        __m256i letter = _mm256_and_si256(_mm256_cmpgt_epi8(x, _mm256_set1_epi8('a' - 1)),
                                          _mm256_cmpgt_epi8(_mm256_set1_epi8('z' + 1), x));
        __m256i digit = _mm256_and_si256(_mm256_cmpgt_epi8(x, _mm256_set1_epi8('0' - 1)),
                                         _mm256_cmpgt_epi8(_mm256_set1_epi8('9' + 1), x));
        __m256i under = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('_'));
        __m256i word = _mm256_or_si256(_mm256_or_si256(letter, digit), under);
        _mm256_storeu_si256((__m256i *)(s + 32 * i), x);
        bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(word) << (32 * i);
    }
    return bits;
}
#endif

/* A text being cut: `text` is folded, padded by at least 64 bytes. */
typedef struct {
    uint8_t *text;
    size_t n, at;            /* length; where to go on */
    uint64_t *bits;          /* ASCII: a bit per byte, (n + 127) / 64 words; NULL for UTF-8 */
    const uint8_t **pages;   /* UTF-8: classes of characters */
    size_t prev;             /* UTF-8: start of the last character of an open stretch */
    int state, alone;        /* UTF-8: one of the states below; the stretch has one character so far */
} Bm25Scan;

#define BM25_BITS_WORDS(n) ((n) / 64 + 2)
#define BM25_TEXT_PAD 64

/* Copy and fold an ASCII text into `room` (n + BM25_TEXT_PAD bytes) with its bits (BM25_BITS_WORDS(n) words). */
static void bm25_open_ascii(Bm25Scan *scan, const uint8_t *text, size_t n, uint8_t *room, uint64_t *bits) {
    size_t words = n / 64 + 1, i;
    memcpy(room, text, n);
    memset(room + n, 0, BM25_TEXT_PAD);
#if BM25_HAS_AVX2
    if (bm25_path == BM25_PATH_AVX2)
        for (i = 0; i < words; i++) bits[i] = bm25_fold64_avx2(room + 64 * i);
    else
#endif
        for (i = 0; i < words; i++) bits[i] = bm25_fold64_plain(room + 64 * i);
    bits[words] = 0;
    scan->text = room;
    scan->n = n;
    scan->at = 0;
    scan->bits = bits;
}

static void bm25_open_utf8(Bm25Scan *scan, const uint8_t *folded, size_t n, uint8_t *room, int table) {
    memcpy(room, folded, n);
    memset(room + n, 0, BM25_TEXT_PAD);
    scan->text = room;
    scan->n = n;
    scan->at = 0;
    scan->bits = NULL;
    scan->pages = bm25_pages[table];
    scan->prev = 0;
    scan->state = 0;
    scan->alone = 0;
}

BM25_INLINE size_t bm25_next_ascii(Bm25Scan *scan, Bm25Token *out, size_t room) {
    const uint64_t *bits = scan->bits;
    size_t at = scan->at, n = scan->n, words = n / 64 + 1, got = 0;
    while (got < room) {
        size_t w = at >> 6, start;
        uint64_t x = bits[w] & (~0ull << (at & 63));
        while (x == 0) {
            if (++w >= words) { scan->at = n; return got; }
            x = bits[w];
        }
        start = w * 64 + (size_t)bm25_ctz64(x);
        x = ~bits[w] & (~0ull << (start & 63));
        while (x == 0) x = ~bits[++w];           /* the word past the last is all zero: the walk ends there */
        at = w * 64 + (size_t)bm25_ctz64(x);
        out[got].at = start;
        out[got++].len = at - start;
    }
    scan->at = at;
    return got;
}

enum { BM25_IN_GAP = 0, BM25_IN_WORD = 1, BM25_IN_STRETCH = 2 };

/* What a character of the class is at the state of the scan. */
BM25_INLINE int bm25_kind(int kind, int state) {
    switch (kind) {
    case BM25_MARK: return state == BM25_IN_GAP ? BM25_OTHER : state == BM25_IN_WORD ? BM25_WORD : BM25_MARK;
    case BM25_CJK_MARK: return state == BM25_IN_GAP ? BM25_OTHER : state == BM25_IN_WORD ? BM25_CJK : BM25_MARK;
    case BM25_PAIR_MARK: return state == BM25_IN_GAP ? BM25_OTHER : BM25_CJK;
    default: return kind;
    }
}

/* One character makes at most two tokens (the end of one thing and a pair never fall together): room >= 2.
   A mark inside of a stretch is as if it were not there: the character before it is moved over it, so that pairs stay
   contiguous; tokens that were found before are handed out first, as they may share that character. */
static size_t bm25_next_utf8(Bm25Scan *scan, Bm25Token *out, size_t room) {
    uint8_t *s = scan->text;
    size_t got = 0;
    int size;
    while (got + 2 <= room && scan->at <= scan->n) {
        size_t at = scan->at;
        int kind = BM25_OTHER;
        if (at < scan->n) {
            uint32_t c = bm25_char(s + at, &size);
            kind = bm25_kind(BM25_PAGE(scan->pages, c >> 8)[c & 255], scan->state);
        } else {
            size = 1;                            /* past the end stands one more gap, which closes what is open */
        }
        if (kind == BM25_MARK) {
            if (got) return got;
            memmove(s + scan->prev + size, s + scan->prev, at - scan->prev);
            scan->prev += (size_t)size;
            scan->at = at + (size_t)size;
            continue;
        }
        if (scan->state == BM25_IN_WORD && kind != BM25_WORD) {
            out[got].at = scan->prev;
            out[got++].len = at - scan->prev;
        }
        if (scan->state == BM25_IN_STRETCH && kind != BM25_CJK && scan->alone) {
            out[got].at = scan->prev;
            out[got++].len = at - scan->prev;
        }
        switch (kind) {
        case BM25_WORD:
            if (scan->state != BM25_IN_WORD) scan->prev = at;
            scan->state = BM25_IN_WORD;
            break;
        case BM25_CJK:
            if (scan->state == BM25_IN_STRETCH) {
                out[got].at = scan->prev;
                out[got++].len = at + (size_t)size - scan->prev;
            }
            scan->alone = scan->state != BM25_IN_STRETCH;
            scan->prev = at;
            scan->state = BM25_IN_STRETCH;
            break;
        default:
            scan->state = BM25_IN_GAP;
        }
        scan->at = at + (size_t)size;
    }
    return got;
}

/* Up to `room` (>= 2) further tokens in text order; 0 at the end. */
BM25_INLINE size_t bm25_next(Bm25Scan *scan, Bm25Token *out, size_t room) {
    return scan->bits ? bm25_next_ascii(scan, out, room) : bm25_next_utf8(scan, out, room);
}

#endif
