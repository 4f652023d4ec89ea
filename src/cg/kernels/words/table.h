/* A word table's image: little-endian header, a scale a word, five ternary digits a byte, word lengths, the words.

   Everything in it is checked once, before use; after that no content can lead a reader outside of it. The checksum
   (CRC-32, over all behind the header) is for damage; the other checks are for files that somebody forged. */
#ifndef WORDS_TABLE_H
#define WORDS_TABLE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAGIC "cgwords\n"
#define WORDS_VERSION 1u
#define WORDS_BYTE_ORDER 0x01020304u
#define WORDS_DIMS 128
#define WORDS_ROW 26             /* bytes a word: 25 of five digits (3^5 = 243), one of three */
#define WORDS_MOST (1u << 24)    /* words; keeps every product below 2^32 */
#define WORDS_MOST_SCALE 1e6f    /* a sum of 2^31 words squares to less than 2^103: no float overflows */

typedef struct {
    char magic[8];
    uint32_t version, byte_order, n_words, dims, word_bytes, crc;
} WordsHeader;

typedef struct {
    const uint8_t *scale;        /* f32[n_words], unaligned: the bytes belong to a Python object */
    const uint8_t *row;          /* [n_words * WORDS_ROW] */
    const uint8_t *word;         /* all words, ascending by their bytes */
    uint64_t *prefix;            /* [n_words]  first eight bytes as a big-endian number, zeros behind a shorter word */
    uint32_t *start;             /* [n_words + 1]  into `word` */
    float digit[243][5];         /* the digits of a byte, the lowest first */
    uint32_t n_words;
} WordsTable;

static uint64_t words_prefix(const uint8_t *p, size_t n) {
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++) key = key << 8 | (i < n ? p[i] : 0);
    return key;
}

/* Below, at or above zero as word `at` comes before, is or comes after the one given. */
static int words_compare(const WordsTable *t, uint32_t at, const uint8_t *p, size_t n, uint64_t prefix) {
    size_t own = t->start[at + 1] - t->start[at], both = own < n ? own : n;
    int order;
    if (t->prefix[at] != prefix) return t->prefix[at] < prefix ? -1 : 1;
    order = memcmp(t->word + t->start[at], p, both);
    return order ? order : (own > n) - (own < n);
}

/* The number of a word, or -1. */
static int64_t words_find(const WordsTable *t, const uint8_t *p, size_t n) {
    uint64_t prefix = words_prefix(p, n);
    uint32_t low = 0, high = t->n_words;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = words_compare(t, middle, p, n, prefix);
        if (order == 0) return middle;
        if (order < 0) low = middle + 1; else high = middle;
    }
    return -1;
}

/* What is wrong with the header of an image of n bytes, or NULL. */
static const char *words_check_header(const uint8_t *image, uint64_t n) {
    WordsHeader h;
    if (n < sizeof h) return "shorter than a header";
    memcpy(&h, image, sizeof h);
    if (memcmp(h.magic, WORDS_MAGIC, 8) != 0) return "the magic number is another one";
    if (h.byte_order != WORDS_BYTE_ORDER) return "written for a machine of another byte order";
    if (h.version != WORDS_VERSION) return "a version that this release does not read";
    if (h.dims != WORDS_DIMS) return "vectors of another length";
    if (h.n_words == 0 || h.n_words > WORDS_MOST) return "an impossible number of words";
    if (n - sizeof h != (uint64_t)h.n_words * (4 + WORDS_ROW + 1) + h.word_bytes) return "its length is not the one in the header";
    return NULL;
}

/* Words with their starts and prefixes; strictly ascending, so none comes twice. */
static const char *words_attach_words(WordsTable *t, const uint8_t *length, uint64_t word_bytes) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < t->n_words; i++) {
        t->start[i] = (uint32_t)at;
        if (length[i] == 0 || at + length[i] > word_bytes) return "word lengths do not fit the words";
        t->prefix[i] = words_prefix(t->word + at, length[i]);
        at += length[i];
        t->start[i + 1] = (uint32_t)at;
        if (i && words_compare(t, i - 1, t->word + t->start[i], length[i], t->prefix[i]) >= 0) return "words out of order";
    }
    return at == word_bytes ? NULL : "word lengths do not fit the words";
}

static const char *words_check_vectors(const WordsTable *t) {
    for (uint32_t i = 0; i < t->n_words; i++) {
        const uint8_t *row = t->row + (size_t)i * WORDS_ROW;
        float scale;
        memcpy(&scale, t->scale + (size_t)i * 4, 4);
        if (!(scale >= 0 && scale <= WORDS_MOST_SCALE)) return "a scale out of range";
        for (int j = 0; j < WORDS_ROW - 1; j++) if (row[j] > 242) return "a byte of no five digits";
        if (row[WORDS_ROW - 1] > 26) return "a byte of no three digits";
    }
    return NULL;
}

static void words_fill_digits(WordsTable *t) {
    for (int byte = 0; byte < 243; byte++)
        for (int j = 0, rest = byte; j < 5; j++, rest /= 3) t->digit[byte][j] = (float)(rest % 3 - 1);
}

/* Attach an image whose header is right; *wrong says what else is not. 0 without memory. The image outlives the table. */
static int words_attach(WordsTable *t, const uint8_t *image, const char **wrong) {
    WordsHeader h;
    memcpy(&h, image, sizeof h);
    t->n_words = h.n_words;
    t->scale = image + sizeof h;
    t->row = t->scale + (size_t)h.n_words * 4;
    t->word = t->row + (size_t)h.n_words * (WORDS_ROW + 1);
    t->prefix = (uint64_t *)malloc((size_t)h.n_words * 8);
    t->start = (uint32_t *)malloc(((size_t)h.n_words + 1) * 4);
    if (!t->prefix || !t->start) return 0;
    *wrong = words_attach_words(t, t->row + (size_t)h.n_words * WORDS_ROW, h.word_bytes);
    if (!*wrong) *wrong = words_check_vectors(t);
    words_fill_digits(t);
    return 1;
}

static void words_free(WordsTable *t) {
    free(t->prefix);
    free(t->start);
}

#endif
