/* Exact scores: every posting of every query term, window by window, and the orders made of them. */
#ifndef BM25_SCORE_H
#define BM25_SCORE_H

#include "bm25/image.h"

#define BM25_SPAN 4096u          /* documents scored together: their sums fill half of a first-level cache */
#define BM25_ROWS 128u           /* postings decoded together */
#define BM25_FEW_DOCS 64u        /* documents up to which a query is one loop over shares that are already known */
#define BM25_MOST_SHARES 131072u /* of them: 1 MiB */
#define BM25_DIGIT_BITS 10       /* of the radix sort */
#define BM25_DIGIT (1u << BM25_DIGIT_BITS)

/* One query term, and how far its postings have been read. */
typedef struct {
    uint32_t term, df;
    double weight;               /* idf * (k1 + 1) */
    const Bm25List *list;        /* NULL: short */
    uint64_t at, end;            /* next row, and the end of the rows of this window (list) or of the term (short) */
} Bm25Cursor;

static void bm25_cursor_open(const Bm25Index *ix, uint32_t term, Bm25Cursor *c) {
    uint32_t row = ix->term_row[term], end = ix->term_row[term + 1];
    c->term = term;
    c->list = end > row && ix->short_tf[row] == 0 ? &ix->list[ix->short_doc[row]] : NULL;
    c->df = c->list ? c->list->df : end - row;
    c->weight = bm25_weight(ix, c->df);
    c->at = row;
    c->end = end;
}

BM25_INLINE double bm25_norm(const Bm25Index *ix, uint32_t doc) { return ix->norm[ix->length_class[doc]]; }

/* One posting's share of the score; every path computes it with these operations in this order. */
BM25_INLINE double bm25_share(double weight, double tf, double norm) { return weight * tf / (tf + norm); }

static double bm25_list_tf(const Bm25Index *ix, const Bm25List *list, uint64_t at, double norm) {
    uint32_t code = ix->list_code[at];
    if (list->kind == BM25_WIDE) return ix->wide_tf[list->wide + (at - list->base)];
    return code == BM25_ESCAPE ? bm25_exception(ix, BM25_KEY_LIST(at)) : bm25_decode_ratio(ix->ratio[code], norm);
}

static double bm25_column_tf(const Bm25Index *ix, uint64_t at, double norm) {
    uint32_t code = ix->column[at];
    return code == BM25_ESCAPE ? bm25_exception(ix, BM25_KEY_COLUMN(at)) : bm25_decode_ratio(ix->ratio[code], norm);
}

BM25_INLINE double bm25_short_tf(const Bm25Index *ix, uint64_t row) {
    uint32_t tf = ix->short_tf[row];
    return tf == 255 ? bm25_exception(ix, BM25_KEY_SHORT(row)) : tf;
}

/* The rows of a list that lie in window w. */
BM25_INLINE void bm25_list_window(const Bm25Index *ix, const Bm25List *list, uint32_t w, uint64_t *at, uint64_t *end) {
    const uint32_t *d = ix->directory + list->directory;
    *at = list->base + d[w];
    *end = list->base + d[w + 1];
}

/* Add the shares of up to BM25_ROWS postings whose documents, norms and tf stand in arrays. */
BM25_INLINE void bm25_add_rows(double weight, const uint32_t *doc, const double *tf, double *norm, uint32_t n, double *score) {
    for (uint32_t i = 0; i < n; i++) norm[i] = bm25_share(weight, tf[i], norm[i]);
    for (uint32_t i = 0; i < n; i++) score[doc[i]] += norm[i];
}

static void bm25_add_short(const Bm25Index *ix, Bm25Cursor *c, uint32_t base, uint32_t limit, double *score) {
    uint32_t doc[BM25_ROWS], n = 0;
    double tf[BM25_ROWS], norm[BM25_ROWS];
    while (c->at < c->end && n < BM25_ROWS) {    /* a short term has fewer rows than the arrays */
        uint32_t d = ix->short_doc[c->at];
        if (d >= limit) break;
        doc[n] = d - base;
        norm[n] = bm25_norm(ix, d);
        tf[n++] = bm25_short_tf(ix, c->at++);
    }
    bm25_add_rows(c->weight, doc, tf, norm, n, score);
}

static void bm25_add_list(const Bm25Index *ix, Bm25Cursor *c, uint32_t base, uint32_t limit, double *score) {
    uint32_t doc[BM25_ROWS], window = base & ~(BM25_WINDOW - 1), last = limit - 1 - window, n;
    double tf[BM25_ROWS], norm[BM25_ROWS];
    if (base == window) bm25_list_window(ix, c->list, base / BM25_WINDOW, &c->at, &c->end);
    do {
        for (n = 0; n < BM25_ROWS && c->at < c->end && ix->list_doc[c->at] <= last; n++, c->at++) {
            uint32_t d = window + ix->list_doc[c->at];
            doc[n] = d - base;
            norm[n] = bm25_norm(ix, d);
            tf[n] = bm25_list_tf(ix, c->list, c->at, norm[n]);
        }
        bm25_add_rows(c->weight, doc, tf, norm, n, score);
    } while (n == BM25_ROWS);
}

static void bm25_add_column(const Bm25Index *ix, const Bm25Cursor *c, uint32_t base, uint32_t limit, double *score) {
    uint32_t doc[BM25_ROWS], n = 0;
    double tf[BM25_ROWS], norm[BM25_ROWS];
    for (uint32_t d = base; d < limit; d += 8) { /* the column is padded to whole words with zeros */
        uint64_t word = bm25_load64(ix->column + c->list->base + d);
        /* A bit in the top of every byte that is not zero. */
        uint64_t some = (((word & 0x7F7F7F7F7F7F7F7Full) + 0x7F7F7F7F7F7F7F7Full) | word) & 0x8080808080808080ull;
        for (; some; some &= some - 1) {
            uint32_t at = d + (uint32_t)bm25_ctz64(some) / 8;
            doc[n] = at - base;
            norm[n] = bm25_norm(ix, at);
            tf[n] = bm25_column_tf(ix, c->list->base + at, norm[n]);
            n++;
        }
        if (n > BM25_ROWS - 8) {
            bm25_add_rows(c->weight, doc, tf, norm, n, score);
            n = 0;
        }
    }
    bm25_add_rows(c->weight, doc, tf, norm, n, score);
}

/* Sums of all terms for documents base..limit, which lie in one window; cursors stand in order of their terms. */
static void bm25_score_span(const Bm25Index *ix, Bm25Cursor *c, size_t n, uint32_t base, uint32_t limit, double *score) {
    memset(score, 0, (limit - base) * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        if (c[i].list == NULL) bm25_add_short(ix, &c[i], base, limit, score);
        else if (c[i].list->kind == BM25_COLUMN) bm25_add_column(ix, &c[i], base, limit, score);
        else bm25_add_list(ix, &c[i], base, limit, score);
    }
}

/* ---- few documents -------------------------------------------------------------------------------------------- */

/* Keep the shares of all rows of a small index whose content has been checked; -1 if memory is short. */
static int bm25_derive(Bm25Index *ix) {
    uint32_t rows = ix->term_row[ix->n_terms];
    if (ix->n_docs > BM25_FEW_DOCS || ix->n_lists || rows > BM25_MOST_SHARES) return 0;
    ix->share = (double *)malloc((rows + 1) * sizeof(double));
    if (!ix->share) return -1;
    for (uint32_t t = 0; t < ix->n_terms; t++) {
        uint32_t end = ix->term_row[t + 1];
        double weight = bm25_weight(ix, end - ix->term_row[t]);
        for (uint32_t r = ix->term_row[t]; r < end; r++)
            ix->share[r] = bm25_share(weight, bm25_short_tf(ix, r), bm25_norm(ix, ix->short_doc[r]));
    }
    return 0;
}

/* All documents of an index with shares, best first, in doc and score; returns how many are
   positive, the others stand behind them with a score of 0. */
static size_t bm25_rank_few(const Bm25Index *ix, const Bm25Cursor *c, size_t n, uint32_t *doc, double *score) {
    double sum[BM25_FEW_DOCS] = {0};
    uint32_t rest[BM25_FEW_DOCS], n_docs = ix->n_docs, got = 0, others = 0, falls = 1;
    for (size_t i = 0; i < n; i++) {
        const double *share = ix->share + c[i].at;
        const uint32_t *row = ix->short_doc + c[i].at;
        uint32_t rows = (uint32_t)(c[i].end - c[i].at);
        if (rows == n_docs) for (uint32_t d = 0; d < n_docs; d++) sum[d] += share[d];
        else for (uint32_t r = 0; r < rows; r++) sum[row[r]] += share[r];
    }
    for (uint32_t d = 1; d < n_docs; d++) falls &= sum[d - 1] >= sum[d];
    if (falls) {                                 /* alike or already in order: often so where documents are few */
        for (uint32_t d = 0; d < n_docs; d++) { doc[d] = d; score[d] = sum[d]; got += sum[d] > 0; }
        return got;
    }
    for (uint32_t d = 0; d < n_docs; d++) {      /* no branch: which documents match is not foreseeable */
        doc[got] = rest[others] = d;
        got += sum[d] > 0;
        others += !(sum[d] > 0);
    }
    for (uint32_t i = 1; i < got; i++) {
        uint32_t d = doc[i], j = i;
        double x = sum[d];
        for (; j > 0 && x > sum[doc[j - 1]]; j--) doc[j] = doc[j - 1];
        doc[j] = d;
    }
    for (uint32_t i = 0; i < others; i++) doc[got + i] = rest[i];
    for (uint32_t i = 0; i < n_docs; i++) score[i] = sum[doc[i]];
    return got;
}

/* ---- orders -------------------------------------------------------------------------------------------------- */

typedef struct { double score; uint32_t doc; } Bm25Hit;

BM25_INLINE int bm25_before(const Bm25Hit *x, const Bm25Hit *y) {
    return x->score > y->score || (x->score == y->score && x->doc < y->doc);
}

/* The best k hits so far, the worst of them at the root. */
typedef struct { Bm25Hit *hit; size_t n, k; } Bm25Heap;

static void bm25_sift(Bm25Hit *h, size_t n, size_t at) {
    Bm25Hit x = h[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && bm25_before(&h[child], &h[child + 1])) child++;
        if (!bm25_before(&x, &h[child])) break;
        h[at] = h[child];
        at = child;
    }
    h[at] = x;
}

static void bm25_offer(Bm25Heap *heap, double score, uint32_t doc) {
    Bm25Hit x = {score, doc};
    if (heap->n < heap->k) {
        size_t at = heap->n++;
        for (; at > 0 && bm25_before(&heap->hit[(at - 1) / 2], &x); at = (at - 1) / 2) heap->hit[at] = heap->hit[(at - 1) / 2];
        heap->hit[at] = x;
    } else if (heap->k && bm25_before(&x, &heap->hit[0])) {
        heap->hit[0] = x;
        bm25_sift(heap->hit, heap->n, 0);
    }
}

/* Turn the heap into its hits in order. */
static void bm25_heap_sort(Bm25Heap *heap) {
    for (size_t n = heap->n; n > 1;) {
        Bm25Hit x = heap->hit[0];
        n--;
        heap->hit[0] = heap->hit[n];
        heap->hit[n] = x;
        bm25_sift(heap->hit, n, 0);
    }
}

static void bm25_insertion_sort(Bm25Hit *h, size_t n) {
    for (size_t i = 1; i < n; i++) {
        Bm25Hit x = h[i];
        size_t j = i;
        for (; j > 0 && x.score > h[j - 1].score; j--) h[j] = h[j - 1];
        h[j] = x;
    }
}

BM25_INLINE uint64_t bm25_bits(double score) {   /* positive doubles order as their bits do */
    uint64_t bits;
    memcpy(&bits, &score, 8);
    return bits;
}

/* Stable counting sort by `passes` digits of (most - bits) >> shift; the result is in the buffer returned. */
static Bm25Hit *bm25_radix(Bm25Hit *from, Bm25Hit *to, size_t n, uint64_t most, int shift, int passes) {
    uint32_t count[7][BM25_DIGIT];
    memset(count, 0, (size_t)passes * sizeof count[0]);
    for (size_t i = 0; i < n; i++) {
        uint64_t key = (most - bm25_bits(from[i].score)) >> shift;
        for (int p = 0; p < passes; p++) count[p][key >> (BM25_DIGIT_BITS * p) & (BM25_DIGIT - 1)]++;
    }
    for (int p = 0; p < passes; p++) {
        Bm25Hit *swap = from;
        int by = shift + BM25_DIGIT_BITS * p;
        uint32_t sum = 0;
        for (uint32_t i = 0; i < BM25_DIGIT; i++) { uint32_t c = count[p][i]; count[p][i] = sum; sum += c; }
        for (size_t i = 0; i < n; i++)
            to[count[p][(most - bm25_bits(from[i].score)) >> by & (BM25_DIGIT - 1)]++] = from[i];
        from = to;
        to = swap;
    }
    return from;
}

/* Insertion sort that gives up, with 0, once it has moved more than `budget` hits. */
static int bm25_repair(Bm25Hit *h, size_t n, size_t budget) {
    size_t moved = 0;
    for (size_t i = 1; i < n; i++) {
        Bm25Hit x = h[i];
        size_t j = i;
        if (!(x.score > h[i - 1].score)) continue;
        for (; j > 0 && x.score > h[j - 1].score; j--) h[j] = h[j - 1];
        h[j] = x;
        moved += i - j;
        if (moved > budget) return 0;
    }
    return 1;
}

/* Order n hits that stand in ascending documents by descending score; `spare` has room for as many. The leading 20
   bits of the range in which the scores lie leave next to nothing out of order: two passes instead of seven. */
static void bm25_sort_hits(Bm25Hit *hit, Bm25Hit *spare, size_t n) {
    Bm25Hit *sorted;
    uint64_t most = 0, least = ~0ull;
    int passes = n < 16384 ? 2 : 3, shift = 0;
    if (n <= 64) { bm25_insertion_sort(hit, n); return; }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = bm25_bits(hit[i].score);
        most = bits > most ? bits : most;
        least = bits < least ? bits : least;
    }
    while ((most - least) >> shift >> (BM25_DIGIT_BITS * passes)) shift++;
    sorted = most == least ? hit : bm25_radix(hit, spare, n, most, shift, passes);
    if (shift && !bm25_repair(sorted, n, 8 * n)) sorted = bm25_radix(sorted, sorted == hit ? spare : hit, n, most, 0, 7);
    if (sorted != hit) memcpy(hit, sorted, n * sizeof(Bm25Hit));
}

/* All positive documents, in ascending order, into `hit` (room for one more than there are), and all others, in
   ascending order, into `other` (room for n_docs) unless it is NULL; returns how many are positive. */
static size_t bm25_collect(const Bm25Index *ix, Bm25Cursor *c, size_t n, Bm25Hit *hit, uint32_t *other) {
    double score[BM25_SPAN];
    uint32_t nowhere, keep = other != NULL, *rest = keep ? other : &nowhere;
    size_t got = 0, others = 0;
    for (uint32_t base = 0; base < ix->n_docs;) {
        uint32_t limit = ix->n_docs - base < BM25_SPAN ? ix->n_docs : base + BM25_SPAN;
        bm25_score_span(ix, c, n, base, limit, score);
        for (uint32_t d = base; d < limit; d++) {          /* no branch: which documents match is not foreseeable */
            double x = score[d - base];
            hit[got].score = x;
            hit[got].doc = d;
            got += x > 0;
            rest[others] = d;
            others += keep & !(x > 0);
        }
        base = limit;
    }
    return got;
}

/* The best of documents from..n_docs into the heap; `from` is a multiple of BM25_WINDOW. */
static void bm25_exhaust(const Bm25Index *ix, Bm25Cursor *c, size_t n, uint32_t from, Bm25Heap *heap) {
    double score[BM25_SPAN];
    for (uint32_t base = from; base < ix->n_docs;) {
        uint32_t limit = ix->n_docs - base < BM25_SPAN ? ix->n_docs : base + BM25_SPAN;
        double bar = heap->n == heap->k && heap->k ? heap->hit[0].score : 0.0;
        bm25_score_span(ix, c, n, base, limit, score);
        for (uint32_t d = 0; d < limit - base; d++)
            if (score[d] > bar) {                /* a later document with the same score does not get in */
                bm25_offer(heap, score[d], base + d);
                if (heap->n == heap->k) bar = heap->hit[0].score;
            }
        base = limit;
    }
}

#endif
