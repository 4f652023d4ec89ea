/* Queries whose lists and short terms have few postings: only documents of these are scored, each of them exactly.

   Shares are added in order of terms, as everywhere. A document that stands in columns alone is left out: that is right
   where the upper bounds of all columns together are below the threshold (prune.h has both words). */
#ifndef BM25_ROWS_H
#define BM25_ROWS_H

#include "bm25/candidate.h"

#define BM25_SPAN_WORDS (BM25_SPAN / 64)
#define BM25_ROWS_A_TERM 192u    /* up to which scoring them all is cheaper than bounds; of 128, 192 and 256 the best */

/* A term alone, and no column: no sums, and of a list only the postings whose codes can be among the best. At least k
   shares are weight * (kth - 1) / 255 or more, so that a code below kth - 1 is out. */
static void bm25_search_one(const Bm25Index *ix, const Bm25Cursor *c, Bm25Heap *heap) {
    uint32_t kth = c->list ? bm25_kth_code(c->list, heap->k) : 0, windows = c->list ? ix->n_windows : 1;
    for (uint32_t w = 0; w < windows; w++) {
        uint64_t at = c->at, end = c->end;
        if (c->list) bm25_list_window(ix, c->list, w, &at, &end);
        for (; at < end; at++) {
            uint32_t d;
            double norm, tf;
            if (c->list && ix->list_code[at] + 1u < kth) continue;
            d = c->list ? w * BM25_WINDOW + ix->list_doc[at] : ix->short_doc[at];
            norm = bm25_norm(ix, d);
            tf = c->list ? bm25_list_tf(ix, c->list, at, norm) : bm25_short_tf(ix, at);
            bm25_offer(heap, bm25_share(c->weight, tf, norm), d);
        }
    }
}

/* Note the documents base..limit that a cursor will read next, and clear their sums; it is no column. */
static void bm25_note_rows(const Bm25Index *ix, const Bm25Cursor *c, uint32_t base, uint32_t limit, uint64_t *noted,
                           double *score) {
    uint64_t at = c->at, end = c->end;
    if (c->list) {
        uint32_t window = base & ~(BM25_WINDOW - 1), offset = base - window, last = limit - 1 - window;
        if (base == window) bm25_list_window(ix, c->list, base / BM25_WINDOW, &at, &end);
        for (; at < end && ix->list_doc[at] <= last; at++) {
            uint32_t i = ix->list_doc[at] - offset;
            noted[i / 64] |= 1ull << (i % 64);
            score[i] = 0;
        }
    } else {
        for (; at < end && ix->short_doc[at] < limit; at++) {
            uint32_t i = ix->short_doc[at] - base;
            noted[i / 64] |= 1ull << (i % 64);
            score[i] = 0;
        }
    }
}

/* Add what a column has of the noted documents. */
static void bm25_add_noted(const Bm25Index *ix, const Bm25Cursor *c, uint32_t base, const uint64_t *noted, double *score) {
    for (uint32_t w = 0; w < BM25_SPAN_WORDS; w++)
        for (uint64_t bits = noted[w]; bits; bits &= bits - 1) {
            uint32_t i = w * 64 + (uint32_t)bm25_ctz64(bits);
            uint64_t at = c->list->base + base + i;
            double norm;
            if (!ix->column[at]) continue;
            norm = bm25_norm(ix, base + i);
            score[i] += bm25_share(c->weight, bm25_column_tf(ix, at, norm), norm);
        }
}

/* Offer the noted documents, and clear the notes. */
static void bm25_offer_noted(Bm25Pruner *p, uint32_t base, uint64_t *noted, const double *score) {
    for (uint32_t w = 0; w < BM25_SPAN_WORDS; w++) {
        for (uint64_t bits = noted[w]; bits; bits &= bits - 1) {
            uint32_t i = w * 64 + (uint32_t)bm25_ctz64(bits);
            if (score[i] > p->threshold) {       /* a later document with the same score does not get in */
                bm25_offer(p->heap, score[i], base + i);
                if (p->heap->n == p->heap->k && p->heap->hit[0].score > p->threshold) p->threshold = p->heap->hit[0].score;
            }
        }
        noted[w] = 0;
    }
}

/* The best of all documents that have a row. The threshold that terms start with is less than any score of the top k. */
static void bm25_search_rows(Bm25Pruner *p, Bm25Cursor *c) {
    const Bm25Index *ix = p->ix;
    double score[BM25_SPAN];
    uint64_t noted[BM25_SPAN_WORDS] = {0};
    for (uint32_t base = 0; base < ix->n_docs;) {
        uint32_t limit = ix->n_docs - base < BM25_SPAN ? ix->n_docs : base + BM25_SPAN;
        for (size_t i = 0; i < p->n; i++)
            if (!bm25_is_column(&c[i])) bm25_note_rows(ix, &c[i], base, limit, noted, score);
        for (size_t i = 0; i < p->n; i++) {
            if (c[i].list == NULL) bm25_add_short(ix, &c[i], base, limit, score);
            else if (bm25_is_column(&c[i])) bm25_add_noted(ix, &c[i], base, noted, score);
            else bm25_add_list(ix, &c[i], base, limit, score);
        }
        bm25_offer_noted(p, base, noted, score);
        base = limit;
    }
}

/* Is that all there is to do: are there few rows, and can no document of columns alone be in the top k? */
static int bm25_rows_decide(const Bm25Pruner *p) {
    double bound = 0;
    uint64_t rows = 0, columns = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (!bm25_is_column(&p->cursor[i])) { rows += p->cursor[i].df; continue; }
        bound += p->upper_bound[i];
        columns++;
    }
    return rows * (1 + columns) <= BM25_ROWS_A_TERM * p->n && (columns == 0 || bound * (1 + BM25_SLACK) < p->threshold);
}

#endif
