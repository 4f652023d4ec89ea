/* Search that skips what cannot get into the top k; whatever it returns has been scored exactly.

   1. A start for the bar: a term's k-th best code bounds the k-th best score from below.
   2. The rarest terms drive: each of their documents is scored exactly, unless a bound says that it cannot matter.
      When all other terms together stay under the bar, that was the whole search.
   3. Otherwise the index is scanned in spans. Terms that even together cannot lift a document over the bar are not
      read at all; the others add upper bounds of 16 bits, from codes alone, and the few documents whose bound
      reaches the bar are scored exactly. The bar rises as they are found.

   Bounds: share = weight * sat <= weight * code / 255. With `scale` and integer weights wq >= weight * scale, a
   posting adds floor(wq * code / 256) > wq * code / 256 - 1, so the score of a document under n terms is less than
   (sum + n) * 256 / (255 * scale). wq >= 256 keeps every posting from adding nothing. SLACK covers the rounding of
   the doubles on both sides, which is smaller by six orders of magnitude. */
#ifndef BM25_PRUNE_H
#define BM25_PRUNE_H

#include "bm25/score.h"
#include "bm25/sums.h"

#define BM25_PRUNE_K 100
#define BM25_PRUNE_WORK 512      /* postings below which reading everything is cheaper than planning */
#define BM25_SCAN 16384u         /* documents a span: 32 KiB of sums */
#define BM25_SPARSE 1024u        /* postings in a span up to which they are walked again instead of all its sums */
#define BM25_WORTH 384u         /* postings in a span from which a column is read rather than asked for each of them */
#define BM25_SLACK 1e-9
#define BM25_SCALE_ROOM 56000.0  /* of the 65,535 that a sum can hold; the rest is for 32 weights raised to 256 */

typedef struct {
    const Bm25Index *ix;
    const Bm25Cursor *cursor;    /* in order of terms: the order of summation */
    size_t n;
    Bm25Heap *heap;
    uint32_t order[BM25_PRUNE_TERMS];        /* cursors by greatest share, descending */
    double most[BM25_PRUNE_TERMS];           /* greatest share of a posting, by cursor */
    double rest[BM25_PRUNE_TERMS + 1];       /* of the terms from this place in `order` on, together */
    uint8_t driven[BM25_PRUNE_TERMS];        /* by cursor: all of its documents are done */
    size_t first;                            /* place in `order` of the first term that is not driven */
    double bar;                              /* lower bound of the k-th best score */
    uint64_t scored, budget;                 /* documents scored exactly, and how many may be */
    double scale;
    uint32_t wq[BM25_PRUNE_TERMS];           /* by cursor */
    uint64_t at[BM25_PRUNE_TERMS], end[BM25_PRUNE_TERMS];   /* by cursor: unread rows of the window */
} Bm25Pruner;

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

/* Score a document exactly and offer it, unless a driving term other than `driver` shows that this was done. */
static void bm25_try(Bm25Pruner *p, uint32_t d, uint32_t driver) {
    double norm = bm25_norm(p->ix, d), score = 0.0;
    p->scored++;
    for (size_t i = 0; i < p->n; i++) {
        double tf = bm25_tf_of(p->ix, &p->cursor[i], d, norm);
        if (tf == 0) continue;
        if (p->driven[i] && i != driver) return;
        score += bm25_share(p->cursor[i].weight, tf, norm);
    }
    bm25_offer(p->heap, score, d);
    if (p->heap->n == p->heap->k && p->heap->hit[0].score > p->bar) p->bar = p->heap->hit[0].score;
}

/* Terms that a bound does not know yet: columns first, which are asked at once, then lists, which are searched. */
typedef struct { double total; size_t n; uint32_t term[BM25_PRUNE_TERMS]; } Bm25Unknown;

BM25_INLINE int bm25_is_column(const Bm25Cursor *c) { return c->list && c->list->kind == BM25_COLUMN; }

/* Gather the unknown among the places from..n of `order`; `known`, by cursor, marks the others. */
static void bm25_unknown(const Bm25Pruner *p, size_t from, const uint8_t *known, Bm25Unknown *u) {
    u->total = 0;
    u->n = 0;
    for (int columns = 1; columns >= 0; columns--)
        for (size_t o = from; o < p->n; o++) {
            uint32_t i = p->order[o];
            if ((known && known[i]) || bm25_is_column(&p->cursor[i]) != columns) continue;
            u->total += p->most[i];
            u->term[u->n++] = i;
        }
}

/* Can `known` and what the unknown terms say of document d not reach the bar? */
BM25_INLINE int bm25_hopeless(const Bm25Pruner *p, double known, const Bm25Unknown *u, uint32_t d) {
    double bound = known + u->total, bar = p->bar * (1 - BM25_SLACK);
    const Bm25Index *ix = p->ix;
    if (bound < bar) return 1;
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
        bound -= p->most[u->term[j]] - c->weight * code * (1 / 255.0);
        if (bound < bar) return 1;
    }
    return 0;
}

/* ---- planning and driving ------------------------------------------------------------------------------------- */

static void bm25_prune_start(Bm25Pruner *p) {
    for (size_t i = 0; i < p->n; i++) {
        const Bm25Cursor *c = &p->cursor[i];
        size_t at = i;
        double most = c->list ? c->weight * c->list->top / 255.0 : c->weight;
        uint32_t kth = !c->list ? 0 : p->heap->k <= 10 ? c->list->best10 : c->list->best100;
        p->most[i] = most;
        p->driven[i] = 0;
        for (; at > 0 && p->most[p->order[at - 1]] < most; at--) p->order[at] = p->order[at - 1];
        p->order[at] = (uint32_t)i;
        if (kth > 1 && c->weight * (kth - 1) / 255.0 * (1 - BM25_SLACK) > p->bar)
            p->bar = c->weight * (kth - 1) / 255.0 * (1 - BM25_SLACK);
    }
    p->rest[p->n] = 0;
    for (size_t i = p->n; i-- > 0;) p->rest[i] = p->rest[i + 1] + p->most[p->order[i]];
}

BM25_INLINE int bm25_hopeful(const Bm25Pruner *p, size_t from) {
    return from < p->n && p->rest[from] * (1 + BM25_SLACK) >= p->bar;
}

static void bm25_drive(Bm25Pruner *p, size_t place) {
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
                if (bm25_hopeless(p, c->weight * ix->list_code[at] / 255.0, &others, d)) continue;
            } else {
                norm = bm25_norm(ix, d);
                tf = bm25_short_tf(ix, at);
                if (bm25_hopeless(p, bm25_share(c->weight, tf, norm), &others, d)) continue;
            }
            bm25_try(p, d, i);
        }
    }
    p->driven[i] = 1;
}

/* ---- scanning ------------------------------------------------------------------------------------------------- */

static void bm25_set_scale(Bm25Pruner *p) {
    double total = 0;
    for (size_t i = p->first; i < p->n; i++) total += p->cursor[p->order[i]].weight;
    p->scale = BM25_SCALE_ROOM / total;
    for (size_t i = p->first; i < p->n; i++) {
        uint32_t wq = (uint32_t)(p->cursor[p->order[i]].weight * p->scale) + 1;
        p->wq[p->order[i]] = wq < 256 ? 256 : wq;    /* so that no posting adds 0 */
    }
}

typedef struct {                 /* one span being scanned */
    uint32_t base, count;        /* documents, and how many sums: whole groups of 64 */
    uint16_t *sum;
    Bm25Unknown unknown;         /* terms that are not in the sums */
    uint16_t need;               /* the least sum that reaches the bar `need_bar` */
    uint16_t hot[BM25_SCAN / 64];                /* groups of 64 documents in which a sum may reach it */
    uint32_t n_hot;
    double need_bar;
    const uint8_t *column[BM25_PRUNE_TERMS];     /* what is in the sums: columns */
    uint32_t wq[BM25_PRUNE_TERMS];
    uint64_t rows[BM25_PRUNE_TERMS][2];          /* and rows of lists */
    uint32_t list[BM25_PRUNE_TERMS];
    size_t columns, lists;
    uint64_t postings;
} Bm25Span;

/* Bring the least useful sum up to date with the bar. */
BM25_INLINE void bm25_set_need(const Bm25Pruner *p, Bm25Span *s) {
    double need = (p->bar * (1 - BM25_SLACK) - s->unknown.total * (1 + BM25_SLACK)) * p->scale * (255.0 / 256.0);
    need -= (double)(s->columns + s->lists);     /* every posting was rounded down, by less than 1 */
    s->need = need < 1 ? 1 : need > 65535 ? 65535 : (uint16_t)need;
    s->need_bar = p->bar;
}

BM25_INLINE void bm25_consider(Bm25Pruner *p, Bm25Span *s, uint32_t i) {
    double known = (double)(s->sum[i] + s->columns + s->lists) * (256.0 / 255.0) / p->scale;
    s->sum[i] = 0;               /* considered once */
    if (bm25_hopeless(p, known, &s->unknown, s->base + i)) return;
    bm25_try(p, s->base + i, BM25_EMPTY);
    if (p->bar > s->need_bar) bm25_set_need(p, s);
}

/* While the bar is low, the documents with the highest bounds come first: they lift it at once. */
static void bm25_seed(Bm25Pruner *p, Bm25Span *s) {
    Bm25Hit room[BM25_PRUNE_K];
    Bm25Heap best = {room, 0, p->heap->k};
    uint16_t need = s->need;
    for (uint32_t h = 0; h < s->n_hot; h++) {
        uint32_t g = s->hot[h] * 64u;
        for (uint64_t bits = bm25_reached(s->sum + g, need); bits; bits &= bits - 1) {
            uint32_t i = g + (uint32_t)bm25_ctz64(bits);
            if (s->sum[i] < need) continue;      /* it has risen since */
            bm25_offer(&best, s->sum[i], i);
            if (best.n == best.k && best.hit[0].score >= need && best.hit[0].score < 65535) need = (uint16_t)(best.hit[0].score + 1);
        }
    }
    bm25_heap_sort(&best);
    for (size_t j = 0; j < best.n; j++) bm25_consider(p, s, best.hit[j].doc);
}

static void bm25_sweep(Bm25Pruner *p, Bm25Span *s) {
    for (uint32_t h = 0; h < s->n_hot && p->scored <= p->budget; h++) {
        uint32_t g = s->hot[h] * 64u;
        for (uint64_t bits = bm25_reached(s->sum + g, s->need); bits; bits &= bits - 1) {
            uint32_t i = g + (uint32_t)bm25_ctz64(bits);
            if (s->sum[i] >= s->need) bm25_consider(p, s, i);
        }
        memset(s->sum + g, 0, 64 * sizeof *s->sum);
    }
}

/* Rows of term i that lie in the span: from `from` up to the return value. */
BM25_INLINE uint64_t bm25_span_end(const Bm25Pruner *p, uint32_t i, uint32_t base) {
    uint32_t last = base % BM25_WINDOW + BM25_SCAN - 1;
    uint64_t lo = p->at[i], n = p->end[i] - lo;
    if (n == 0 || p->ix->list_doc[p->end[i] - 1] <= last) return p->end[i];
    while (n > 0) {
        uint64_t half = n / 2;
        if (p->ix->list_doc[lo + half] <= last) { lo += half + 1; n -= half + 1; } else n = half;
    }
    return lo;
}

/* Add the bounds of a list's rows to the sums of a span. */
static void bm25_scatter(const Bm25Index *ix, uint64_t from, uint64_t to, uint32_t offset, uint32_t wq, uint16_t *sum) {
    const uint16_t *doc = ix->list_doc;
    const uint8_t *code = ix->list_code;
    for (uint64_t r = from; r < to; r++) {
        uint32_t i = doc[r] - offset;
        sum[i] = (uint16_t)(sum[i] + (code[r] * wq >> 8));
    }
}

/* A span that holds few postings and no column: they are walked again, and leave the sums clear behind them. */
static void bm25_sweep_sparse(Bm25Pruner *p, Bm25Span *s) {
    uint32_t offset = s->base % BM25_WINDOW;
    for (size_t j = 0; j < s->lists; j++)
        for (uint64_t r = s->rows[j][0]; r < s->rows[j][1]; r++) {
            uint32_t i = p->ix->list_doc[r] - offset;
            if (s->sum[i] >= s->need) bm25_consider(p, s, i);
            s->sum[i] = 0;
        }
}

/* Choose what the sums of a span are made of: the terms before `stop`, and others where that costs little. */
static void bm25_open_span(Bm25Pruner *p, Bm25Span *s, uint64_t base, size_t stop) {
    const Bm25Index *ix = p->ix;
    uint8_t known[BM25_PRUNE_TERMS] = {0};
    s->base = (uint32_t)base;
    s->count = ix->n_padded - base < BM25_SCAN ? (uint32_t)(ix->n_padded - base) : BM25_SCAN;
    s->columns = s->lists = 0;
    s->postings = 0;
    for (size_t o = p->first; o < p->n; o++) {
        uint32_t i = p->order[o];
        const Bm25List *list = p->cursor[i].list;
        if (list->kind == BM25_COLUMN) {
            if (o >= stop && s->postings < BM25_WORTH) continue;
            s->column[s->columns] = ix->column + list->base + base;
            s->wq[s->columns++] = p->wq[i];
        } else {
            uint64_t *rows = s->rows[s->lists];
            if (base % BM25_WINDOW == 0) bm25_list_window(ix, list, (uint32_t)(base / BM25_WINDOW), &p->at[i], &p->end[i]);
            rows[0] = p->at[i];
            rows[1] = p->at[i] = bm25_span_end(p, i, (uint32_t)base);
            if (o >= stop && (rows[1] - rows[0]) > 2 * s->postings + 64 * s->columns) continue;
            s->postings += rows[1] - rows[0];
            s->list[s->lists++] = i;
        }
        known[i] = 1;
    }
    bm25_unknown(p, p->first, known, &s->unknown);
    bm25_set_need(p, s);
}

/* Scan everything; 0 if so many documents had to be scored that plain reading is the better way. */
static int bm25_scan(Bm25Pruner *p) {
    uint16_t sum[BM25_SCAN];
    Bm25Span s;
    size_t stop = p->n;
    bm25_set_scale(p);
    s.sum = sum;
    /* Every span leaves its sums clear. */
    memset(sum, 0, (size_t)(p->ix->n_padded < BM25_SCAN ? p->ix->n_padded : BM25_SCAN) * sizeof *sum);
    for (uint64_t base = 0; base < p->ix->n_docs; base += BM25_SCAN) {
        int seeds;
        while (stop > p->first && !bm25_hopeful(p, stop - 1)) stop--;
        if (stop == p->first) return 1;
        bm25_open_span(p, &s, base, stop);
        if (s.columns == 0 && s.postings == 0) continue;
        for (size_t j = 0; j < s.lists; j++)
            bm25_scatter(p->ix, s.rows[j][0], s.rows[j][1], (uint32_t)(base % BM25_WINDOW), p->wq[s.list[j]], sum);
        seeds = p->heap->n < p->heap->k || base == 0;
        if (seeds || s.columns || s.postings > BM25_SPARSE) {
            s.n_hot = bm25_columns(sum, s.column, s.wq, s.columns, s.count, s.need, s.hot);
            if (seeds) bm25_seed(p, &s);
            bm25_sweep(p, &s);
        } else {
            bm25_sweep_sparse(p, &s);
        }
        if (p->scored > p->budget) return 0;
    }
    return 1;
}

/* The top k into the heap; 0, with an empty heap, where reading everything is the better way. */
static int bm25_prune(const Bm25Index *ix, const Bm25Cursor *c, size_t n, uint64_t work, Bm25Heap *heap) {
    Bm25Pruner p;
    uint32_t cheap = ix->n_docs / 512;           /* documents of a term that may drive: less work than one scan */
    if (n == 0 || n > BM25_PRUNE_TERMS || heap->k > BM25_PRUNE_K || work < BM25_PRUNE_WORK) return 0;
    cheap = cheap < BM25_SHORT_MAX ? BM25_SHORT_MAX : cheap > 512 ? 512 : cheap;
    p.ix = ix;
    p.cursor = c;
    p.n = n;
    p.heap = heap;
    p.bar = 0;
    p.scored = 0;
    p.budget = 256 + ix->n_docs / 64 + work / 64;
    bm25_prune_start(&p);
    for (p.first = 0; bm25_hopeful(&p, p.first) && p.cursor[p.order[p.first]].df <= cheap; p.first++) bm25_drive(&p, p.first);
    if (!bm25_hopeful(&p, p.first) || bm25_scan(&p)) return 1;
    heap->n = 0;
    return 0;
}

#endif
