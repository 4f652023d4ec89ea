/* The index as one block of memory, which is also the file: header, then sections, each on a 64-byte boundary.

   A term is kept in one of three ways, by its document frequency:
     short   up to 64 documents: document numbers of 32 bits and a byte of tf each, in the term's own rows
     list    more: 16-bit document numbers within windows of 65,536 documents, and a code a posting
     column  at least every eighth document: no document numbers, a code for every document of the index
   A code c in 1..254 says tf / (tf + norm) <= c / 255: a bound of the posting's share of the score, and enough to
   get tf back exactly, since the norm of the document is known. Where it would not be enough the code is 255, and
   tf stands in the exceptions, or, for a term with many such postings, in a column of its own (a "wide" list).
   A term that is not short has one row, with tf byte 0, whose document number is the number of its list. */
#ifndef BM25_IMAGE_H
#define BM25_IMAGE_H

#include "bm25/base.h"

#define BM25_MAGIC "cg-bm25\n"
#define BM25_VERSION 2u
#define BM25_BYTE_ORDER 0x01020304u
#define BM25_EMPTY 0xFFFFFFFFu
#define BM25_SHORT_MAX 64u       /* above it the 16-bit form with its window directory is the smaller one */
#define BM25_WINDOW 65536u
#define BM25_COLUMN_PART 8u      /* a byte a document beats 3 bytes a posting for speed, and costs little more */
#define BM25_ESCAPE 255u
#define BM25_PROBES 32u          /* slots tried for a term; further ones are found by binary search */
#define BM25_SMALL_DF 256u       /* weights of these document frequencies are tabulated */

enum bm25_section {
    S_TERM_OFFSET,   /* u32[n_terms + 1]  into the bytes */
    S_TERM_BYTES,    /* u8                all terms, sorted, UTF-8; padded by 8 */
    S_SLOT,          /* u32               hash table of term numbers */
    S_TERM_ROW,      /* u32[n_terms + 1]  first short row of each term */
    S_SHORT_DOC,     /* u32[rows]         document number, or list number */
    S_SHORT_TF,      /* u8[rows]          tf, 255: see the exceptions, 0: the row names a list */
    S_LIST,          /* Bm25List[n_lists] */
    S_DIRECTORY,     /* u32               per list and window: first posting, counted within the list */
    S_LIST_DOC,      /* u16[postings]     document number within its window */
    S_LIST_CODE,     /* u8[postings] */
    S_WIDE_TF,       /* u32               tf of the postings of wide lists */
    S_COLUMN,        /* u8                n_padded codes for each column term */
    S_EXCEPTION_KEY, /* u64, ascending */
    S_EXCEPTION_TF,  /* u32 */
    S_LENGTH,        /* u32[n_classes]    distinct document lengths in tokens, ascending */
    S_LENGTH_CLASS,  /* u32[n_docs]       which of them each document has */
    N_SECTIONS
};

enum bm25_kind { BM25_LIST = 0, BM25_WIDE = 1, BM25_COLUMN = 2 };

typedef struct {
    uint64_t base;        /* first posting in S_LIST_DOC and S_LIST_CODE, or first byte in S_COLUMN */
    uint64_t wide;        /* first entry in S_WIDE_TF */
    uint32_t df, directory, kind;
    uint8_t top, best10, best100, unused;   /* highest code; the 10th and 100th highest, 0 if there are fewer */
} Bm25List;

static const uint32_t bm25_width[N_SECTIONS] = {4, 1, 4, 4, 4, 1, sizeof(Bm25List), 4, 2, 1, 4, 1, 8, 4, 4, 4};

typedef struct {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t file_bytes, n_docs, n_terms, n_tokens;
    double k1, b;
    uint64_t count[N_SECTIONS], sum[N_SECTIONS];
    uint32_t analyzer, analyzer_version;   /* of the texts; a query has to be cut in the same way */
    uint64_t header_sum;  /* of everything before it */
} Bm25Header;

#define BM25_ALIGN(x) (((x) + 63) & ~(uint64_t)63)

/* The image opened for reading, with what is cheap to derive from it. */
typedef struct {
    const uint8_t *image;
    const Bm25Header *head;
    const uint32_t *term_offset, *slot, *term_row, *short_doc, *directory, *wide_tf, *exception_tf, *length, *length_class;
    const uint8_t *term_bytes, *short_tf, *list_code, *column;
    const uint16_t *list_doc;
    const uint64_t *exception_key;
    const Bm25List *list;
    uint32_t analyzer, n_docs, n_terms, n_slots, n_windows, n_classes, n_lists;
    uint64_t n_padded, n_exceptions;
    double k1, b;
    double *norm;         /* [n_classes]  k1 * (1 - b + b * dl / avgdl); owned */
    double *weight;       /* [n_weights]  by document frequency; owned */
    double *share;        /* [rows]  shares of the short rows, where bm25_derive found them worth keeping; owned */
    double ratio[256];    /* [code]  code / (255 - code) */
    uint32_t n_weights;
    int from_outside;     /* checked, so that no number in it leads out of it; but its codes may be anybody's */
} Bm25Index;

BM25_INLINE uint64_t bm25_padded(uint64_t n_docs) { return BM25_ALIGN(n_docs); }
BM25_INLINE uint64_t bm25_windows(uint64_t n_docs) { return (n_docs + BM25_WINDOW - 1) / BM25_WINDOW; }

/* Byte offset of every section and, last, of the end. 0 if a count is absurd (more than 2^48 entries). */
static int bm25_layout(const uint64_t *count, uint64_t *at) {
    uint64_t pos = BM25_ALIGN(sizeof(Bm25Header));
    for (int i = 0; i < N_SECTIONS; i++) {
        if (count[i] >> 48) return 0;
        at[i] = pos;
        pos = BM25_ALIGN(pos + count[i] * bm25_width[i]);
    }
    at[N_SECTIONS] = pos;
    return 1;
}

/* idf * (k1 + 1), with idf = ln(1 + (N - df + 0.5) / (df + 0.5)). */
BM25_INLINE double bm25_weight_of(double n_docs, double df, double k1) {
    return log(1.0 + (n_docs - df + 0.5) / (df + 0.5)) * (k1 + 1.0);
}

BM25_INLINE double bm25_weight(const Bm25Index *ix, uint32_t df) {
    return df < ix->n_weights ? ix->weight[df] : bm25_weight_of(ix->n_docs, df, ix->k1);
}

BM25_INLINE double bm25_norm_of(double length, double average, double k1, double b) {
    return k1 * (1.0 - b + b * length / average);
}

/* Average length; 1 for an index of empty documents, whose norms nothing ever reads. */
BM25_INLINE double bm25_average(uint64_t n_tokens, uint64_t n_docs) {
    return n_tokens ? (double)n_tokens / (double)n_docs : 1.0;
}

/* tf as the code and the norm tell it; the builder keeps a code only if this gives the tf it stands for. */
BM25_INLINE double bm25_decode_ratio(double ratio, double norm) {
    double x = norm * ratio * (1.0 + 1e-12);
    return (double)(int64_t)x;
}
BM25_INLINE double bm25_ratio(uint32_t code) { return (double)code / (255.0 - (double)code); }
BM25_INLINE double bm25_decode(uint32_t code, double norm) { return bm25_decode_ratio(bm25_ratio(code), norm); }

static uint32_t bm25_exception(const Bm25Index *ix, uint64_t key) {
    uint64_t lo = 0, hi = ix->n_exceptions;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (ix->exception_key[mid] < key) lo = mid + 1; else hi = mid;
    }
    return lo < ix->n_exceptions && ix->exception_key[lo] == key ? ix->exception_tf[lo] : 1;
}

/* Exceptions are keyed by where the posting stands. */
#define BM25_KEY_SHORT(row) ((uint64_t)(row))
#define BM25_KEY_LIST(at) ((1ull << 62) | (at))
#define BM25_KEY_COLUMN(at) ((2ull << 62) | (at))

/* Point `ix` into an image whose header and sizes have been checked; -1 if memory is short. */
static int bm25_attach(Bm25Index *ix, const uint8_t *image) {
    const Bm25Header *h = (const Bm25Header *)image;
    uint64_t at[N_SECTIONS + 1];
    double average = bm25_average(h->n_tokens, h->n_docs);
    bm25_layout(h->count, at);
    ix->image = image;
    ix->head = h;
    ix->term_offset = (const uint32_t *)(image + at[S_TERM_OFFSET]);
    ix->term_bytes = image + at[S_TERM_BYTES];
    ix->slot = (const uint32_t *)(image + at[S_SLOT]);
    ix->term_row = (const uint32_t *)(image + at[S_TERM_ROW]);
    ix->short_doc = (const uint32_t *)(image + at[S_SHORT_DOC]);
    ix->short_tf = image + at[S_SHORT_TF];
    ix->list = (const Bm25List *)(image + at[S_LIST]);
    ix->directory = (const uint32_t *)(image + at[S_DIRECTORY]);
    ix->list_doc = (const uint16_t *)(image + at[S_LIST_DOC]);
    ix->list_code = image + at[S_LIST_CODE];
    ix->wide_tf = (const uint32_t *)(image + at[S_WIDE_TF]);
    ix->column = image + at[S_COLUMN];
    ix->exception_key = (const uint64_t *)(image + at[S_EXCEPTION_KEY]);
    ix->exception_tf = (const uint32_t *)(image + at[S_EXCEPTION_TF]);
    ix->length = (const uint32_t *)(image + at[S_LENGTH]);
    ix->length_class = (const uint32_t *)(image + at[S_LENGTH_CLASS]);
    ix->analyzer = h->analyzer;
    ix->n_docs = (uint32_t)h->n_docs;
    ix->n_terms = (uint32_t)h->n_terms;
    ix->n_slots = (uint32_t)h->count[S_SLOT];
    ix->n_lists = (uint32_t)h->count[S_LIST];
    ix->n_classes = (uint32_t)h->count[S_LENGTH];
    ix->n_exceptions = h->count[S_EXCEPTION_KEY];
    ix->n_windows = (uint32_t)bm25_windows(h->n_docs);
    ix->n_padded = bm25_padded(h->n_docs);
    ix->k1 = h->k1;
    ix->b = h->b;
    ix->n_weights = (ix->n_docs < BM25_SMALL_DF ? ix->n_docs : BM25_SMALL_DF) + 1;
    ix->share = NULL;
    for (uint32_t i = 0; i < 256; i++) ix->ratio[i] = i < BM25_ESCAPE ? bm25_ratio(i) : 0;
    ix->norm = (double *)malloc((ix->n_classes + 1) * sizeof(double));
    ix->weight = (double *)malloc(ix->n_weights * sizeof(double));
    if (!ix->norm || !ix->weight) return -1;
    for (uint32_t i = 0; i < ix->n_classes; i++) ix->norm[i] = bm25_norm_of(ix->length[i], average, ix->k1, ix->b);
    for (uint32_t i = 0; i < ix->n_weights; i++) ix->weight[i] = bm25_weight_of(ix->n_docs, i, ix->k1);
    return 0;
}

/* Does term t read p[0..n)? */
BM25_INLINE int bm25_term_is(const Bm25Index *ix, uint32_t t, const uint8_t *p, size_t n) {
    const uint8_t *q = ix->term_bytes + ix->term_offset[t];
    if (ix->term_offset[t + 1] - ix->term_offset[t] != n) return 0;
    if (n <= 8) return n == 0 || ((bm25_load64(p) ^ bm25_load64(q)) & (~0ull >> (64 - 8 * n))) == 0;
    return memcmp(p, q, n) == 0;
}

/* < 0, 0, > 0 as term t sorts before, at or after p[0..n). */
static int bm25_term_compare(const Bm25Index *ix, uint32_t t, const uint8_t *p, size_t n) {
    size_t m = ix->term_offset[t + 1] - ix->term_offset[t];
    int c = memcmp(ix->term_bytes + ix->term_offset[t], p, m < n ? m : n);
    return c ? c : (m > n) - (m < n);
}

/* Number of a term, or BM25_EMPTY. p is padded by 8 bytes. */
static uint32_t bm25_find(const Bm25Index *ix, const uint8_t *p, size_t n, uint64_t hash) {
    uint32_t lo = 0, hi = ix->n_terms, at;
    if (hi == 0) return BM25_EMPTY;
    at = bm25_slot(hash, ix->n_slots);
    for (uint32_t tries = 0; tries < BM25_PROBES; tries++) {
        uint32_t t = ix->slot[at];
        if (t == BM25_EMPTY) return BM25_EMPTY;
        if (bm25_term_is(ix, t, p, n)) return t;
        if (++at == ix->n_slots) at = 0;
    }
    while (lo < hi) {                            /* crowded on purpose, or bad luck: the order of terms still serves */
        uint32_t mid = lo + (hi - lo) / 2;
        int c = bm25_term_compare(ix, mid, p, n);
        if (c == 0) return mid;
        if (c < 0) lo = mid + 1; else hi = mid;
    }
    return BM25_EMPTY;
}

#endif
