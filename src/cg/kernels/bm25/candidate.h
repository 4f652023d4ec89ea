/* One document under MaxScore (prune.h): its upper bound against the threshold, and its exact score. */
#ifndef BM25_CANDIDATE_H
#define BM25_CANDIDATE_H

#include "bm25/score.h"
#include "bm25/sums.h"
#include "debug.h"

#define BM25_PRUNE_K 100         /* the image has the 10th and the 100th best code of a list: where thresholds start */
#define BM25_SLACK 1e-9          /* relative; 32 additions of doubles err by less than 32 * 2**-53, or 4e-15 */

/* What holds where codes are those of their postings. A forged image may answer as it likes, as long as it is safe. */
#define BM25_ASSERT_BOUND(p, x) CG_ASSERT((p)->ix->from_outside || (x))

typedef struct {
    const Bm25Index *ix;
    const Bm25Cursor *cursor;    /* in order of terms: the order of summation */
    size_t n;
    Bm25Heap *heap;
    uint32_t order[BM25_PRUNE_TERMS];        /* cursors by upper bound, descending */
    double upper_bound[BM25_PRUNE_TERMS];    /* greatest share of a posting, by cursor */
    double suffix_bound[BM25_PRUNE_TERMS + 1];   /* upper bounds from this place in `order` on, together */
    uint8_t traversed[BM25_PRUNE_TERMS];     /* by cursor: all of its documents are done */
    size_t first;                            /* place in `order` of the first list that is not traversed */
    double threshold;                        /* lower bound of the k-th best score; never falls */
    uint64_t scored, budget;                 /* documents scored exactly, and how many may be */
    double scale;
    uint32_t wq[BM25_PRUNE_TERMS];           /* by cursor */
    uint64_t at[BM25_PRUNE_TERMS], end[BM25_PRUNE_TERMS];   /* by cursor: unread rows of the window */
} Bm25Pruner;

BM25_INLINE int bm25_is_column(const Bm25Cursor *c) { return c->list && c->list->kind == BM25_COLUMN; }

/* A code that at least k postings of a list have or exceed, 0 if none is known. */
BM25_INLINE uint32_t bm25_kth_code(const Bm25List *list, size_t k) {
    return k <= 10 ? list->best10 : k <= BM25_PRUNE_K ? list->best100 : 0;
}

/* ---- one document --------------------------------------------------------------------------------------------- */

/* Row of document d in a short term, or -1. */
BM25_INLINE int64_t bm25_short_find(const Bm25Index *ix, const Bm25Cursor *c, uint32_t d) {
    uint64_t lo = c->at, n = c->end - c->at;
    while (n > 1) {
        uint64_t half = n / 2;
        if (ix->short_doc[lo + half] <= d) lo += half;
        n -= half;
    }
    return n && ix->short_doc[lo] == d ? (int64_t)lo : -1;
}

/* Posting of document d in a list, or -1. */
BM25_INLINE int64_t bm25_list_find(const Bm25Index *ix, const Bm25List *list, uint32_t d) {
    uint64_t lo, end, n;
    uint16_t low = (uint16_t)(d % BM25_WINDOW);
    bm25_list_window(ix, list, d / BM25_WINDOW, &lo, &end);
    n = end - lo;
    while (n > 1) {
        uint64_t half = n / 2;
        lo += ix->list_doc[lo + half] <= low ? half : 0;
        n -= half;
    }
    return n && ix->list_doc[lo] == low ? (int64_t)lo : -1;
}

/* tf of document d under a term, 0 if it has none. */
static double bm25_tf_of(const Bm25Index *ix, const Bm25Cursor *c, uint32_t d, double norm) {
    int64_t at;
    if (c->list == NULL) {
        at = bm25_short_find(ix, c, d);
        return at < 0 ? 0 : bm25_short_tf(ix, (uint64_t)at);
    }
    if (c->list->kind == BM25_COLUMN)
        return ix->column[c->list->base + d] ? bm25_column_tf(ix, c->list->base + d, norm) : 0;
    at = bm25_list_find(ix, c->list, d);
    return at < 0 ? 0 : bm25_list_tf(ix, c->list, (uint64_t)at, norm);
}

#ifdef CG_DEBUG
/* Is document d rightly left out? It stands in a list that has been traversed, or its score is at most `limit`. */
static int bm25_is_decided(const Bm25Pruner *p, uint32_t d, double limit) {
    double norm = bm25_norm(p->ix, d), score = 0.0;
    for (size_t i = 0; i < p->n; i++) {
        double tf = bm25_tf_of(p->ix, &p->cursor[i], d, norm);
        if (tf != 0 && p->traversed[i]) return 1;
        if (tf != 0) score += bm25_share(p->cursor[i].weight, tf, norm);
    }
    return score <= limit;
}

static int bm25_is_offered(const Bm25Pruner *p, uint32_t d) {
    for (size_t i = 0; i < p->heap->n; i++)
        if (p->heap->hit[i].doc == d) return 1;
    return 0;
}
#endif

/* Score a document exactly and offer it, unless it stands in a list, other than `traversed_now`, that is done. */
static void bm25_score_document(Bm25Pruner *p, uint32_t d, uint32_t traversed_now) {
    double norm = bm25_norm(p->ix, d), score = 0.0;
    p->scored++;
    for (size_t i = 0; i < p->n; i++) {
        double tf = bm25_tf_of(p->ix, &p->cursor[i], d, norm);
        if (tf == 0) continue;
        if (p->traversed[i] && i != traversed_now) return;
        score += bm25_share(p->cursor[i].weight, tf, norm);
        BM25_ASSERT_BOUND(p, bm25_share(p->cursor[i].weight, tf, norm) <= p->upper_bound[i] * (1 + BM25_SLACK));
    }
    BM25_ASSERT_BOUND(p, score <= p->suffix_bound[0] * (1 + BM25_SLACK));
    bm25_offer(p->heap, score, d);
    if (p->heap->n == p->heap->k && p->heap->hit[0].score > p->threshold) p->threshold = p->heap->hit[0].score;
    CG_ASSERT(p->heap->n < p->heap->k || p->threshold >= p->heap->hit[0].score);
}

/* Terms that a bound does not know yet: columns first, which are asked at once, then lists, which are searched. */
typedef struct { double total; size_t n; uint32_t term[BM25_PRUNE_TERMS]; } Bm25Unknown;

/* Gather the unknown among the places from..n of `order`; `known`, by cursor, marks the others. */
static void bm25_unknown(const Bm25Pruner *p, size_t from, const uint8_t *known, Bm25Unknown *u) {
    u->total = 0;
    u->n = 0;
    for (int columns = 1; columns >= 0; columns--)
        for (size_t o = from; o < p->n; o++) {
            uint32_t i = p->order[o];
            if ((known && known[i]) || bm25_is_column(&p->cursor[i]) != columns) continue;
            u->total += p->upper_bound[i];
            u->term[u->n++] = i;
        }
}

/* Can `known` and what the unknown terms say of document d not reach the threshold? */
BM25_INLINE int bm25_cannot_reach(const Bm25Pruner *p, double known, const Bm25Unknown *u, uint32_t d) {
    double bound = known + u->total, threshold = p->threshold * (1 - BM25_SLACK);
    const Bm25Index *ix = p->ix;
    if (bound < threshold) { BM25_ASSERT_BOUND(p, bm25_is_decided(p, d, p->threshold)); return 1; }
    for (size_t j = 0; j < u->n; j++) {
        const Bm25Cursor *c = &p->cursor[u->term[j]];
        uint32_t code;
        if (c->list == NULL) {
            code = bm25_short_find(ix, c, d) < 0 ? 0 : 255;
        } else if (c->list->kind == BM25_COLUMN) {
            code = ix->column[c->list->base + d];
        } else {
            int64_t at = bm25_list_find(ix, c->list, d);
            code = at < 0 ? 0 : ix->list_code[at];
        }
        bound -= p->upper_bound[u->term[j]] - c->weight * code * (1 / 255.0);
        if (bound < threshold) { BM25_ASSERT_BOUND(p, bm25_is_decided(p, d, p->threshold)); return 1; }
    }
    return 0;
}

#endif
