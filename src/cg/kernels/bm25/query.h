/* One query from its text to its hits. */
#ifndef BM25_QUERY_H
#define BM25_QUERY_H

#include "bm25/prune.h"
#include "text/analyze.h"

#define BM25_FEW 64              /* terms, and hits, that need no allocation */
#define BM25_SHORT_TEXT 960      /* bytes of a query that need no allocation */
#define BM25_FAR_TERMS 4096u     /* terms from which the vocabulary does not stay in the nearest caches */

/* Distinct term numbers of a query, ascending. */
typedef struct { uint32_t *term; size_t n, room; uint32_t few[BM25_FEW]; } Bm25Terms;

static void bm25_terms_free(Bm25Terms *q) { if (q->term != q->few) free(q->term); }

static int bm25_terms_add(Bm25Terms *q, uint32_t t) {
    size_t at = q->n;
    if (q->n < BM25_FEW) {                       /* a few: kept sorted and distinct as they come */
        while (at > 0 && q->term[at - 1] > t) at--;
        if (at > 0 && q->term[at - 1] == t) return 1;
        for (size_t i = q->n; i > at; i--) q->term[i] = q->term[i - 1];
    } else if (q->n == q->room) {
        uint32_t *more = (uint32_t *)malloc(q->room * 2 * sizeof(uint32_t));
        if (!more) return 0;
        memcpy(more, q->term, q->n * sizeof(uint32_t));
        bm25_terms_free(q);
        q->term = more;
        q->room *= 2;
    }
    q->term[at] = t;
    q->n++;
    return 1;
}

static int bm25_compare_terms(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

static void bm25_terms_settle(Bm25Terms *q) {
    size_t kept = 0;
    if (q->n < BM25_FEW) return;
    qsort(q->term, q->n, sizeof(uint32_t), bm25_compare_terms);
    for (size_t i = 0; i < q->n; i++)
        if (i == 0 || q->term[i] != q->term[kept - 1]) q->term[kept++] = q->term[i];
    q->n = kept;
}

/* Add the known ones of n tokens; 0 if memory is short. In a large vocabulary all of them are on their way from memory
   before the first is asked for. */
static int bm25_look_up(const Bm25Index *ix, const uint8_t *text, const Bm25Token *token, size_t n, Bm25Terms *q) {
    uint64_t hash[BM25_FEW];
    int far = ix->n_terms > BM25_FAR_TERMS;
    for (size_t i = 0; i < n; i++) {
        hash[i] = bm25_hash(text + token[i].at, token[i].len, 0);
        if (far) BM25_PREFETCH(&ix->slot[bm25_slot(hash[i], ix->n_slots)]);
    }
    for (size_t i = 0; i < n && far; i++) {
        uint32_t t = ix->slot[bm25_slot(hash[i], ix->n_slots)];
        if (t == BM25_EMPTY) continue;
        BM25_PREFETCH(&ix->term_offset[t]);
        BM25_PREFETCH(&ix->term_row[t]);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t t = bm25_find(ix, text + token[i].at, token[i].len, hash[i]);
        if (t == BM25_EMPTY) continue;
        if (far) BM25_PREFETCH(&ix->short_tf[ix->term_row[t]]);
        if (far) BM25_PREFETCH(&ix->short_doc[ix->term_row[t]]);
        if (!bm25_terms_add(q, t)) return 0;
    }
    return 1;
}

/* The known terms of a text; 0 if memory is short. Free them in either case. */
static int bm25_parse(const Bm25Index *ix, const uint8_t *text, size_t n, int ascii, Bm25Terms *q) {
    uint8_t few_bytes[TEXT_ROOM(BM25_SHORT_TEXT)], *room = few_bytes;
    uint64_t few_bits[BM25_BITS_WORDS(BM25_SHORT_TEXT)], *bits = few_bits;
    Bm25Token token[BM25_FEW];
    Bm25Analysis analysis;
    size_t got;
    int ok = 1;
    q->term = q->few;
    q->n = 0;
    q->room = BM25_FEW;
    if (n > BM25_SHORT_TEXT) {
        room = (uint8_t *)malloc(TEXT_ROOM(n));
        bits = (uint64_t *)malloc(BM25_BITS_WORDS(n) * 8);
        ok = room && bits;
    }
    if (ok) {
        bm25_analyze(&analysis, ix->analyzer, text, n, ascii, room, bits);
        while (ok && (got = bm25_next_terms(&analysis, token, BM25_FEW)) > 0) ok = bm25_look_up(ix, room, token, got, q);
        bm25_terms_settle(q);
    }
    if (room != few_bytes) { free(room); free(bits); }
    return ok;
}

/* Cursors of a query's terms, and how much work they promise. */
typedef struct { Bm25Cursor *cursor; size_t n; uint64_t postings, work; Bm25Cursor few[BM25_FEW]; } Bm25Plan;

static int bm25_plan(const Bm25Index *ix, const Bm25Terms *q, Bm25Plan *plan) {
    plan->n = q->n;
    plan->postings = plan->work = 0;
    plan->cursor = q->n <= BM25_FEW ? plan->few : (Bm25Cursor *)malloc(q->n * sizeof(Bm25Cursor));
    if (!plan->cursor) return 0;
    for (size_t i = 0; i < q->n; i++) {
        Bm25Cursor *c = &plan->cursor[i];
        bm25_cursor_open(ix, q->term[i], c);
        plan->postings += c->df;
        plan->work += c->list && c->list->kind == BM25_COLUMN ? ix->n_docs / 8 : c->df;
    }
    return 1;
}

/* The plan of one term alone; it needs no memory of its own. */
static void bm25_plan_term(const Bm25Index *ix, uint32_t term, Bm25Plan *plan) {
    Bm25Terms one;
    one.term = one.few;
    one.few[0] = term;
    one.n = 1;
    bm25_plan(ix, &one, plan);
}

static void bm25_plan_free(Bm25Plan *plan) { if (plan->cursor != plan->few) free(plan->cursor); }

/* Hits of a query; `hit` is `few` or owned. `skipped`: bounds chose what was read (told to tests alone). */
typedef struct { Bm25Hit *hit; size_t n; int skipped; Bm25Hit few[BM25_FEW]; } Bm25Answer;

static void bm25_answer_free(Bm25Answer *a) { if (a->hit != a->few) free(a->hit); }

/* The best k positive documents in order; 0 if memory is short. Free the answer in either case. */
static int bm25_search(const Bm25Index *ix, Bm25Plan *plan, uint64_t k, Bm25Answer *a) {
    uint64_t most = plan->postings < ix->n_docs ? plan->postings : ix->n_docs;
    Bm25Heap heap;
    a->hit = a->few;
    a->n = 0;
    a->skipped = 0;
    if (k > most) k = most;
    if (k == 0) return 1;
    if (ix->share) {
        uint32_t doc[BM25_FEW_DOCS];
        double score[BM25_FEW_DOCS];
        size_t n = bm25_rank_few(ix, plan->cursor, plan->n, doc, score);
        a->n = n < k ? n : (size_t)k;
        for (size_t i = 0; i < a->n; i++) { a->hit[i].score = score[i]; a->hit[i].doc = doc[i]; }
        return 1;
    }
    if (k > BM25_FEW) {
        int all = k == most && k > 1024;
        a->hit = (Bm25Hit *)malloc(((size_t)k + 1) * sizeof(Bm25Hit) * (all ? 2 : 1));
        if (!a->hit) { a->hit = a->few; return 0; }
        if (all) {
            a->n = bm25_collect(ix, plan->cursor, plan->n, a->hit, NULL);
            bm25_sort_hits(a->hit, a->hit + a->n, a->n);
            return 1;
        }
    }
    heap.hit = a->hit;
    heap.n = 0;
    heap.k = (size_t)k;
    a->skipped = bm25_prune(ix, plan->cursor, plan->n, plan->work, &heap);
    if (!a->skipped) bm25_exhaust(ix, plan->cursor, plan->n, 0, &heap);
    bm25_heap_sort(&heap);
    a->n = heap.n;
    return 1;
}

/* All documents: those with a positive score in order, the others behind them by position; 0 if memory is short. */
static int bm25_rank(const Bm25Index *ix, Bm25Plan *plan, uint32_t *doc, double *score) {
    uint64_t most = plan->postings < ix->n_docs ? plan->postings : ix->n_docs;
    Bm25Hit few[BM25_FEW * 2], *hit = few;
    size_t n = 0;
    if (ix->share) { bm25_rank_few(ix, plan->cursor, plan->n, doc, score); return 1; }
    if (most >= BM25_FEW) hit = (Bm25Hit *)malloc(((size_t)most + 1) * 2 * sizeof(Bm25Hit));
    if (!hit) return 0;
    n = bm25_collect(ix, plan->cursor, plan->n, hit, doc);
    memmove(doc + n, doc, (ix->n_docs - n) * sizeof(uint32_t));
    bm25_sort_hits(hit, hit + n, n);
    for (size_t i = 0; i < n; i++) { doc[i] = hit[i].doc; score[i] = hit[i].score; }
    memset(score + n, 0, (ix->n_docs - n) * sizeof(double));
    if (hit != few) free(hit);
    return 1;
}

/* The score of every document. */
static void bm25_scores(const Bm25Index *ix, Bm25Plan *plan, double *score) {
    for (uint32_t base = 0; base < ix->n_docs;) {
        uint32_t limit = ix->n_docs - base < BM25_SPAN ? ix->n_docs : base + BM25_SPAN;
        bm25_score_span(ix, plan->cursor, plan->n, base, limit, score + base);
        base = limit;
    }
}

#endif
