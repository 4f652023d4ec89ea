/* Building: texts are cut and counted one after the other, then laid out as an image in one pass over the counts. */
#ifndef BM25_BUILD_H
#define BM25_BUILD_H

#include "bm25/image.h"
#include "text/analyze.h"

#define BM25_CHUNK (1u << 20)    /* postings a chunk: 5 MiB */
#define BM25_BATCH 128           /* tokens looked up together, so that their cache misses overlap */

enum bm25_stop { BM25_OK = 0, BM25_NO_MEMORY = -1, BM25_TOO_MANY_TERMS = -2, BM25_TOO_MANY_ROWS = -3, BM25_TOO_LONG = -4 };

typedef struct {
    uint32_t offset, length;     /* into the bytes */
    uint32_t last_doc, df;
    uint64_t at;                 /* its posting in the document being read; later: where its next posting goes */
    uint32_t big, list;          /* its entry among the big ones, while it has one; later: its list, if it has one */
} Bm25Term;

typedef struct { uint32_t hash, term; } Bm25Slot;

typedef struct { uint32_t *term; uint8_t *tf; } Bm25Chunk;

typedef struct { uint64_t at; uint32_t tf; } Bm25Big;   /* a posting whose tf does not fit a byte */

typedef struct {
    uint32_t analyzer;
    uint64_t seed;               /* of the hash table here: chosen by the process, so that nobody can aim at it */
    Bm25Slot *slot;
    uint64_t n_slots;
    Bm25Term *term;
    uint64_t n_terms, term_room;
    uint8_t *bytes;
    uint64_t n_bytes, byte_room;
    Bm25Chunk *chunk;
    uint64_t n_chunks, chunk_room, n_postings;
    Bm25Big *big;
    uint64_t n_big, big_room;
    uint32_t *length;            /* [n_docs] */
    uint32_t *distinct;          /* [n_docs]  postings of each document */
    uint64_t n_docs, doc_room, n_tokens;
    uint8_t *fold;               /* scratch of the text being read */
    uint64_t *bits;
    size_t fold_room;
} Bm25Builder;

/* Room for one entry more in an array that doubles; 0 if memory is short. */
static int bm25_grow(void **array, uint64_t *room, uint64_t need, size_t width) {
    uint64_t want = *room ? *room : 64;
    void *p;
    if (need <= *room) return 1;
    while (want < need) want += want / 2 + 64;
    if (want > SIZE_MAX / width) return 0;
    p = realloc(*array, (size_t)want * width);
    if (!p) return 0;
    *array = p;
    *room = want;
    return 1;
}

static void bm25_builder_free(Bm25Builder *b) {
    for (uint64_t i = 0; i < b->n_chunks; i++) {
        free(b->chunk[i].term);
        free(b->chunk[i].tf);
    }
    free(b->chunk); free(b->slot); free(b->term); free(b->bytes); free(b->big);
    free(b->length); free(b->distinct); free(b->fold); free(b->bits);
    memset(b, 0, sizeof *b);
}

static int bm25_rehash(Bm25Builder *b, uint64_t n_slots) {
    Bm25Slot *slot = (Bm25Slot *)malloc((size_t)n_slots * sizeof(Bm25Slot));
    if (!slot) return BM25_NO_MEMORY;
    memset(slot, 0xFF, (size_t)n_slots * sizeof(Bm25Slot));
    for (uint64_t i = 0; i < b->n_slots; i++) {
        uint64_t at;
        if (b->slot[i].term == BM25_EMPTY) continue;
        /* The low half of the hash places a term, so that the slot alone is enough to move it. */
        at = b->slot[i].hash & (n_slots - 1);
        while (slot[at].term != BM25_EMPTY) at = (at + 1) & (n_slots - 1);
        slot[at] = b->slot[i];
    }
    free(b->slot);
    b->slot = slot;
    b->n_slots = n_slots;
    return BM25_OK;
}

static int bm25_builder_start(Bm25Builder *b, uint32_t analyzer, uint64_t seed) {
    memset(b, 0, sizeof *b);
    b->analyzer = analyzer;
    b->seed = seed;
    return bm25_rehash(b, 1024);
}

/* Are n bytes the same? Both places are padded by 8; most tokens are so short that a call would be the larger part. */
BM25_INLINE int bm25_same(const uint8_t *p, const uint8_t *q, size_t n) {
    if (n <= 8) return n == 0 || ((bm25_load64(p) ^ bm25_load64(q)) & (~0ull >> (64 - 8 * n))) == 0;
    return bm25_load64(p) == bm25_load64(q) && memcmp(p + 8, q + 8, n - 8) == 0;
}

/* Number of the term, entered if it is new; or a Stop. p is padded by 8 bytes. */
static int64_t bm25_enter(Bm25Builder *b, const uint8_t *p, size_t n, uint64_t hash) {
    uint64_t at = hash & (uint32_t)(b->n_slots - 1);
    Bm25Term *term;
    for (; b->slot[at].term != BM25_EMPTY; at = (at + 1) & (b->n_slots - 1)) {
        if (b->slot[at].hash != (uint32_t)hash) continue;
        term = &b->term[b->slot[at].term];
        if (term->length == n && bm25_same(b->bytes + term->offset, p, n)) return b->slot[at].term;
    }
    if (b->n_terms >= 0x7FFFFFFFu || b->n_bytes + n > 0xFFFFFFF0u) return BM25_TOO_MANY_TERMS;
    if (!bm25_grow((void **)&b->term, &b->term_room, b->n_terms + 1, sizeof(Bm25Term))) return BM25_NO_MEMORY;
    if (!bm25_grow((void **)&b->bytes, &b->byte_room, b->n_bytes + n + 8, 1)) return BM25_NO_MEMORY;
    term = &b->term[b->n_terms];
    term->offset = (uint32_t)b->n_bytes;
    term->length = (uint32_t)n;
    term->last_doc = BM25_EMPTY;
    term->df = 0;
    term->at = 0;
    memcpy(b->bytes + b->n_bytes, p, n);
    b->n_bytes += n;
    b->slot[at].hash = (uint32_t)hash;
    b->slot[at].term = (uint32_t)b->n_terms;
    b->n_terms++;
    if (b->n_terms * 2 > b->n_slots) {
        int stop = bm25_rehash(b, b->n_slots * 2);
        if (stop) return stop;
    }
    return (int64_t)b->n_terms - 1;
}

/* Count one more occurrence of a term in the document being read. */
static int bm25_count(Bm25Builder *b, uint32_t t, uint32_t doc) {
    Bm25Term *term = &b->term[t];
    if (term->last_doc == doc) {
        uint8_t *tf = &b->chunk[term->at / BM25_CHUNK].tf[term->at % BM25_CHUNK];
        if (*tf < 255) { ++*tf; return BM25_OK; }
        if (term->big != BM25_EMPTY) { b->big[term->big].tf++; return BM25_OK; }
        if (b->n_big >= BM25_EMPTY) return BM25_TOO_MANY_ROWS;
        if (!bm25_grow((void **)&b->big, &b->big_room, b->n_big + 1, sizeof(Bm25Big))) return BM25_NO_MEMORY;
        b->big[b->n_big].at = term->at;
        b->big[b->n_big].tf = 256;
        term->big = (uint32_t)b->n_big++;
        return BM25_OK;
    }
    term->last_doc = doc;
    term->big = BM25_EMPTY;
    term->df++;
    term->at = b->n_postings;
    if (b->n_postings % BM25_CHUNK == 0) {
        Bm25Chunk *c;
        if (!bm25_grow((void **)&b->chunk, &b->chunk_room, b->n_chunks + 1, sizeof(Bm25Chunk))) return BM25_NO_MEMORY;
        c = &b->chunk[b->n_chunks];
        c->term = (uint32_t *)malloc(BM25_CHUNK * sizeof(uint32_t));
        c->tf = (uint8_t *)malloc(BM25_CHUNK);
        b->n_chunks++;
        if (!c->term || !c->tf) return BM25_NO_MEMORY;
    }
    b->chunk[b->n_chunks - 1].term[b->n_postings % BM25_CHUNK] = t;
    b->chunk[b->n_chunks - 1].tf[b->n_postings % BM25_CHUNK] = 1;
    b->n_postings++;
    b->distinct[doc]++;
    return BM25_OK;
}

static int bm25_count_batch(Bm25Builder *b, const uint8_t *text, const Bm25Token *token, size_t n, uint32_t doc) {
    uint64_t hash[BM25_BATCH];
    for (size_t i = 0; i < n; i++) {
        hash[i] = bm25_hash(text + token[i].at, token[i].len, b->seed);
        BM25_PREFETCH(&b->slot[hash[i] & (uint32_t)(b->n_slots - 1)]);
    }
    for (size_t i = 0; i < n; i++) {
        const Bm25Slot *slot = &b->slot[hash[i] & (uint32_t)(b->n_slots - 1)];
        if (slot->term != BM25_EMPTY) BM25_PREFETCH(&b->term[slot->term]);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t t = bm25_enter(b, text + token[i].at, token[i].len, hash[i]);
        int stop;
        if (t < 0) return (int)t;
        stop = bm25_count(b, (uint32_t)t, doc);
        if (stop) return stop;
    }
    return BM25_OK;
}

/* One document more. ASCII texts come as they are, others normalised, folded and in UTF-8. */
static int bm25_add(Bm25Builder *b, const uint8_t *text, size_t n, int ascii) {
    Bm25Token token[BM25_BATCH];
    Bm25Analysis analysis;
    uint32_t doc = (uint32_t)b->n_docs;
    uint64_t room = b->doc_room, tokens = 0;
    size_t got;
    if (n + BM25_TEXT_PAD > b->fold_room) {
        size_t want = n + n / 2 + 4096;              /* with the padding */
        free(b->fold); free(b->bits);
        b->fold_room = 0;
        b->bits = (uint64_t *)malloc(BM25_BITS_WORDS(want) * 8);
        b->fold = (uint8_t *)malloc(TEXT_ROOM(want));
        if (!b->fold || !b->bits) return BM25_NO_MEMORY;
        b->fold_room = want;
    }
    if (!bm25_grow((void **)&b->length, &room, b->n_docs + 1, 4)) return BM25_NO_MEMORY;
    if (!bm25_grow((void **)&b->distinct, &b->doc_room, b->n_docs + 1, 4)) return BM25_NO_MEMORY;
    b->distinct[doc] = 0;
    bm25_analyze(&analysis, b->analyzer, text, n, ascii, b->fold, b->bits);
    while ((got = bm25_next_terms(&analysis, token, BM25_BATCH)) > 0) {
        int stop = bm25_count_batch(b, b->fold, token, got, doc);
        if (stop) return stop;
        tokens += got;
    }
    if (tokens > 0xFFFFFFFFu) return BM25_TOO_LONG;
    b->length[doc] = (uint32_t)tokens;
    b->n_tokens += tokens;
    b->n_docs++;
    return BM25_OK;
}

#endif
