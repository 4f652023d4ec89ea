/* Top-k search by MaxScore: whatever it returns has been scored exactly, and whatever it leaves out cannot be in it.

   MaxScore: H. Turtle, J. Flood, "Query evaluation: strategies and optimizations", Information Processing & Management
   31(6), 1995, with the lists parted as in T. Strohman, H. Turtle, W. B. Croft, "Optimization strategies for complex
   queries", SIGIR 2005. Terms stand in order of their upper bounds: the greatest share that a posting of theirs has.
   The *threshold* is a lower bound of the k-th best score. The *essential lists* are the shortest head of that order for
   which the upper bounds of all others together stay below it: a document in none of them cannot be in the top k.
   It is not WAND, as no pivot moves the lists, and not Block-Max, as a list has one maximum, not one a block. Instead
   each posting has an impact of 8 bits, its code (V. N. Anh, A. Moffat, "Pruned query evaluation using pre-computed
   impacts", SIGIR 2006), so that a bound is known document by document.

   Where postings are few, none of this pays, and rows.h does the rest after step 1.

   1. The threshold starts at the greatest k-th best code of a term: k documents have that share at least.
   2. Essential lists that are short are traversed from the one with the greatest bound on: each of their documents is
      scored exactly, unless its bound is below the threshold. If the other lists are no longer essential, that is all.
   3. Otherwise documents are taken in spans. Codes of the essential lists are added up as upper bounds of 16 bits, and
      the few documents whose bound reaches the threshold are scored exactly, which raises it. Lists that are not
      essential are asked for these documents alone.

   Bounds: share = weight * sat <= weight * code / 255. With `scale` and integer weights wq >= weight * scale, a
   posting adds floor(wq * code / 256) > wq * code / 256 - 1, so the score of a document under n terms is less than
   (sum + n) * 256 / (255 * scale). wq >= 256 keeps every posting from adding nothing. BM25_SLACK covers the rounding of
   the doubles on both sides, which is smaller by six orders of magnitude. */
#ifndef BM25_PRUNE_H
#define BM25_PRUNE_H

#include "bm25/rows.h"

/* The three numbers of postings are where two ways cost about the same, found by measuring: over 4,096 and 100,000 Zipf
   passages of 60 words twice of all three makes a query of 6 to 12 words 1.01 to 1.07 times as long, half of them 1.00. */
#define BM25_PRUNE_WORK 256      /* postings below which reading everything is cheaper than planning */
#define BM25_BOUND_SPAN 16384u   /* documents a span: its 32 KiB of sums are what a first-level cache holds */
#define BM25_SPARSE_POSTINGS 512u   /* in a span, up to which they are walked again instead of all its sums */
#define BM25_COLUMN_POSTINGS 192u    /* in a span, from which a column is read rather than asked for each of them */
#define BM25_SCALE_ROOM 56000.0  /* of the 65,535 that a sum can hold; the rest is for 32 weights raised to 256 each */

/* ---- the order of the lists, and the short ones of the essential --------------------------------------------- */

/* Upper bounds, the order of terms by them, and the first threshold. */
static void bm25_order_terms(Bm25Pruner *p) {
    for (size_t i = 0; i < p->n; i++) {
        const Bm25Cursor *c = &p->cursor[i];
        size_t at = i;
        double upper_bound = c->list ? c->weight * c->list->top / 255.0 : c->weight;
        uint32_t kth = c->list ? bm25_kth_code(c->list, p->heap->k) : 0;
        p->upper_bound[i] = upper_bound;
        p->traversed[i] = 0;
        for (; at > 0 && p->upper_bound[p->order[at - 1]] < upper_bound; at--) p->order[at] = p->order[at - 1];
        p->order[at] = (uint32_t)i;
        if (kth > 1 && c->weight * (kth - 1) / 255.0 * (1 - BM25_SLACK) > p->threshold)
            p->threshold = c->weight * (kth - 1) / 255.0 * (1 - BM25_SLACK);
    }
    p->suffix_bound[p->n] = 0;
    for (size_t i = p->n; i-- > 0;) p->suffix_bound[i] = p->suffix_bound[i + 1] + p->upper_bound[p->order[i]];
    for (size_t i = 1; i < p->n; i++) CG_ASSERT(p->upper_bound[p->order[i - 1]] >= p->upper_bound[p->order[i]]);
}

/* Is the list at this place of the order essential: can a document that is in no list before it be in the top k? */
BM25_INLINE int bm25_is_essential(const Bm25Pruner *p, size_t from) {
    return from < p->n && p->suffix_bound[from] * (1 + BM25_SLACK) >= p->threshold;
}

/* Settle every document of the list at this place of the order. */
static void bm25_traverse(Bm25Pruner *p, size_t place) {
    const Bm25Index *ix = p->ix;
    uint32_t i = p->order[place];
    const Bm25Cursor *c = &p->cursor[i];
    uint32_t windows = c->list ? ix->n_windows : 1;
    Bm25Unknown others;
    bm25_unknown(p, place + 1, NULL, &others);
    for (uint32_t w = 0; w < windows; w++) {
        uint64_t at = c->at, end = c->end;
        if (c->list) bm25_list_window(ix, c->list, w, &at, &end);
        for (; at < end; at++) {
            uint32_t d = c->list ? w * BM25_WINDOW + ix->list_doc[at] : ix->short_doc[at];
            double norm, tf;
            if (c->list) {
                if (bm25_cannot_reach(p, c->weight * ix->list_code[at] / 255.0, &others, d)) continue;
            } else {
                norm = bm25_norm(ix, d);
                tf = bm25_short_tf(ix, at);
                if (bm25_cannot_reach(p, bm25_share(c->weight, tf, norm), &others, d)) continue;
            }
            bm25_score_document(p, d, i);
        }
    }
    p->traversed[i] = 1;
}

/* ---- spans: bounds of many documents at once ------------------------------------------------------------------ */

static void bm25_set_scale(Bm25Pruner *p) {
    double total = 0;
    uint64_t most = 0;
    for (size_t i = p->first; i < p->n; i++) total += p->cursor[p->order[i]].weight;
    p->scale = BM25_SCALE_ROOM / total;
    for (size_t i = p->first; i < p->n; i++) {
        uint32_t wq = (uint32_t)(p->cursor[p->order[i]].weight * p->scale) + 1;
        p->wq[p->order[i]] = wq < 256 ? 256 : wq;    /* so that no posting adds 0 */
        most += p->wq[p->order[i]];
    }
    CG_ASSERT(most <= 65535);                        /* no sum overflows */
}

typedef struct {
    uint32_t base, count;        /* documents, and how many sums: whole groups of 64 */
    uint16_t *sum;               /* upper bounds, scaled */
    Bm25Unknown unknown;         /* terms that are not in the sums */
    uint16_t least_sum;          /* the least sum that reaches the threshold `least_sum_threshold` */
    double least_sum_threshold;
    uint16_t group[BM25_BOUND_SPAN / 64];        /* groups of 64 documents in which a sum may reach it */
    uint32_t n_groups;
    const uint8_t *column[BM25_PRUNE_TERMS];     /* what is in the sums: columns */
    uint32_t wq[BM25_PRUNE_TERMS];
    uint64_t rows[BM25_PRUNE_TERMS][2];          /* and rows of lists */
    uint32_t list[BM25_PRUNE_TERMS];
    size_t columns, lists;
    uint64_t postings;
} Bm25Span;

/* Bring the least useful sum up to date with the threshold. */
BM25_INLINE void bm25_set_least_sum(const Bm25Pruner *p, Bm25Span *s) {
    double missing = p->threshold * (1 - BM25_SLACK) - s->unknown.total * (1 + BM25_SLACK);
    double sum = missing * p->scale * (255.0 / 256.0);
    sum -= (double)(s->columns + s->lists);      /* every posting was rounded down, by less than 1 */
    s->least_sum = sum < 1 ? 1 : sum > 65535 ? 65535 : (uint16_t)sum;
    s->least_sum_threshold = p->threshold;
}

/* Settle the document with sum i, whose bound by the sum alone reaches the threshold. */
BM25_INLINE void bm25_check_candidate(Bm25Pruner *p, Bm25Span *s, uint32_t i) {
    double known = (double)(s->sum[i] + s->columns + s->lists) * (256.0 / 255.0) / p->scale;
    s->sum[i] = 0;               /* considered once */
    if (bm25_cannot_reach(p, known, &s->unknown, s->base + i)) return;
    bm25_score_document(p, s->base + i, BM25_EMPTY);
    if (p->threshold > s->least_sum_threshold) bm25_set_least_sum(p, s);
}

/* While the threshold is low, the documents with the highest bounds come first: they raise it at once. */
static void bm25_score_highest_bounds(Bm25Pruner *p, Bm25Span *s) {
    Bm25Hit hit[BM25_PRUNE_K];
    Bm25Heap best = {hit, 0, p->heap->k};
    uint16_t least_sum = s->least_sum;
    for (uint32_t h = 0; h < s->n_groups; h++) {
        uint32_t g = s->group[h] * 64u;
        for (uint64_t bits = bm25_reached(s->sum + g, least_sum); bits; bits &= bits - 1) {
            uint32_t i = g + (uint32_t)bm25_ctz64(bits);
            if (s->sum[i] < least_sum) continue;      /* it has risen since */
            bm25_offer(&best, s->sum[i], i);
            if (best.n == best.k && best.hit[0].score >= least_sum && best.hit[0].score < 65535)
                least_sum = (uint16_t)(best.hit[0].score + 1);
        }
    }
    bm25_heap_sort(&best);
    for (size_t j = 0; j < best.n; j++) bm25_check_candidate(p, s, best.hit[j].doc);
}

/* Score the documents of the noted groups whose sums reach the threshold, and clear the sums. */
static void bm25_score_candidates(Bm25Pruner *p, Bm25Span *s) {
    for (uint32_t h = 0; h < s->n_groups && p->scored <= p->budget; h++) {
        uint32_t g = s->group[h] * 64u;
        for (uint64_t bits = bm25_reached(s->sum + g, s->least_sum); bits; bits &= bits - 1) {
            uint32_t i = g + (uint32_t)bm25_ctz64(bits);
            if (s->sum[i] >= s->least_sum) bm25_check_candidate(p, s, i);
        }
        memset(s->sum + g, 0, 64 * sizeof *s->sum);
    }
}

/* Rows of term i that lie in the span: from `from` up to the return value. */
BM25_INLINE uint64_t bm25_span_end(const Bm25Pruner *p, uint32_t i, uint32_t base) {
    uint32_t last = base % BM25_WINDOW + BM25_BOUND_SPAN - 1;
    uint64_t lo = p->at[i], n = p->end[i] - lo;
    if (n == 0 || p->ix->list_doc[p->end[i] - 1] <= last) return p->end[i];
    while (n > 0) {
        uint64_t half = n / 2;
        if (p->ix->list_doc[lo + half] <= last) { lo += half + 1; n -= half + 1; } else n = half;
    }
    return lo;
}

/* Add the bounds of a list's rows to the sums of a span. */
static void bm25_add_bounds(const Bm25Index *ix, const uint64_t *rows, uint32_t offset, uint32_t wq, uint16_t *sum) {
    const uint16_t *doc = ix->list_doc;
    const uint8_t *code = ix->list_code;
    for (uint64_t r = rows[0]; r < rows[1]; r++) {
        uint32_t i = doc[r] - offset;
        sum[i] = (uint16_t)(sum[i] + (code[r] * wq >> 8));
    }
}

/* A span that holds few postings and no column: they are walked again, and leave the sums clear behind them. */
static void bm25_score_candidates_of_lists(Bm25Pruner *p, Bm25Span *s) {
    uint32_t offset = s->base % BM25_WINDOW;
    for (size_t j = 0; j < s->lists; j++)
        for (uint64_t r = s->rows[j][0]; r < s->rows[j][1]; r++) {
            uint32_t i = p->ix->list_doc[r] - offset;
            if (s->sum[i] >= s->least_sum) bm25_check_candidate(p, s, i);
            s->sum[i] = 0;
        }
}

/* Choose what the sums of a span are made of: the essential lists, and others where that costs little. */
static void bm25_open_span(Bm25Pruner *p, Bm25Span *s, uint64_t base, size_t n_essential) {
    const Bm25Index *ix = p->ix;
    uint8_t known[BM25_PRUNE_TERMS] = {0};
    s->base = (uint32_t)base;
    s->count = ix->n_padded - base < BM25_BOUND_SPAN ? (uint32_t)(ix->n_padded - base) : BM25_BOUND_SPAN;
    s->columns = s->lists = 0;
    s->postings = 0;
    for (size_t o = p->first; o < p->n; o++) {
        uint32_t i = p->order[o];
        const Bm25List *list = p->cursor[i].list;
        if (list->kind == BM25_COLUMN) {
            if (o >= n_essential && s->postings < BM25_COLUMN_POSTINGS) continue;
            s->column[s->columns] = ix->column + list->base + base;
            s->wq[s->columns++] = p->wq[i];
        } else {
            uint64_t *rows = s->rows[s->lists];
            if (base % BM25_WINDOW == 0)
                bm25_list_window(ix, list, (uint32_t)(base / BM25_WINDOW), &p->at[i], &p->end[i]);
            rows[0] = p->at[i];
            rows[1] = p->at[i] = bm25_span_end(p, i, (uint32_t)base);
            if (o >= n_essential && (rows[1] - rows[0]) > 2 * s->postings + 64 * s->columns) continue;
            s->postings += rows[1] - rows[0];
            s->list[s->lists++] = i;
        }
        known[i] = 1;
    }
    bm25_unknown(p, p->first, known, &s->unknown);
    bm25_set_least_sum(p, s);
}

#ifdef CG_DEBUG
/* After a span: its sums are clear, and no document of it that could be in the top k was left out. */
static void bm25_check_span(const Bm25Pruner *p, const Bm25Span *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        CG_ASSERT(s->sum[i] == 0);
        if (s->base + i < p->ix->n_docs)
            BM25_ASSERT_BOUND(p, bm25_is_decided(p, s->base + i, p->threshold) || bm25_is_offered(p, s->base + i));
    }
}
#endif

/* Go through all spans; 0 if so many documents had to be scored that plain reading is the better way. */
static int bm25_scan_spans(Bm25Pruner *p) {
    uint16_t sum[BM25_BOUND_SPAN];
    Bm25Span s;
    size_t n_essential = p->n;
    bm25_set_scale(p);
    s.sum = sum;
    /* Every span leaves its sums clear. */
    memset(sum, 0, (size_t)(p->ix->n_padded < BM25_BOUND_SPAN ? p->ix->n_padded : BM25_BOUND_SPAN) * sizeof *sum);
    for (uint64_t base = 0; base < p->ix->n_docs; base += BM25_BOUND_SPAN) {
        int by_bound;
        while (n_essential > p->first && !bm25_is_essential(p, n_essential - 1)) n_essential--;
        if (n_essential == p->first) return 1;
        bm25_open_span(p, &s, base, n_essential);
        if (s.columns == 0 && s.postings == 0) continue;
        for (size_t j = 0; j < s.lists; j++)
            bm25_add_bounds(p->ix, s.rows[j], (uint32_t)(base % BM25_WINDOW), p->wq[s.list[j]], sum);
        by_bound = p->heap->n < p->heap->k || base == 0;
        if (by_bound || s.columns || s.postings > BM25_SPARSE_POSTINGS) {
            s.n_groups = bm25_columns(sum, s.column, s.wq, s.columns, s.count, s.least_sum, s.group);
            if (by_bound) bm25_score_highest_bounds(p, &s);
            bm25_score_candidates(p, &s);
        } else {
            bm25_score_candidates_of_lists(p, &s);
        }
        if (p->scored > p->budget) return 0;
#ifdef CG_DEBUG
        bm25_check_span(p, &s);
#endif
    }
    return 1;
}

/* The top k into the heap; 0, with an empty heap, where reading everything is the better way. */
static int bm25_prune(const Bm25Index *ix, Bm25Cursor *c, size_t n, uint64_t work, Bm25Heap *heap) {
    Bm25Pruner p;
    uint32_t cheap = ix->n_docs / 512;           /* documents of a list that is traversed: less work than one scan */
    if (n == 1 && !bm25_is_column(c)) { bm25_search_one(ix, c, heap); return 1; }
    if (n == 0 || n > BM25_PRUNE_TERMS || heap->k > BM25_PRUNE_K) return 0;
    cheap = cheap < BM25_SHORT_MAX ? BM25_SHORT_MAX : cheap > 512 ? 512 : cheap;
    p.ix = ix;
    p.cursor = c;
    p.n = n;
    p.heap = heap;
    p.threshold = 0;
    p.scored = 0;
    p.budget = 256 + ix->n_docs / 64 + work / 64;
    bm25_order_terms(&p);
    if (bm25_rows_decide(&p)) { bm25_search_rows(&p, c); return 1; }
    if (work < BM25_PRUNE_WORK) return 0;
    for (p.first = 0; bm25_is_essential(&p, p.first) && p.cursor[p.order[p.first]].df <= cheap; p.first++)
        bm25_traverse(&p, p.first);
    if (!bm25_is_essential(&p, p.first) || bm25_scan_spans(&p)) return 1;
    heap->n = 0;
    return 0;
}

#endif
