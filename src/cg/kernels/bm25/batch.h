/* Many queries shared by threads: each query is taken, and its answer written, by one of them. */
#ifndef BM25_BATCH_H
#define BM25_BATCH_H

#include "bm25/query.h"

typedef struct {
    const uint8_t **text;        /* [n] */
    ptrdiff_t *size;             /* [n] bytes; negative: ASCII, ~size bytes */
    Bm25Answer *answer;          /* [n] */
    ptrdiff_t n;
    uint64_t k;
    int64_t taken;               /* how many queries somebody has begun */
    int failed;                  /* memory is short, or the caller gave up: nobody begins another */
} Bm25Batch;

/* The next number of a counter that threads share. */
static int64_t bm25_take(int64_t *counter) {
#if defined(_MSC_VER)
    return _InterlockedExchangeAdd64((volatile __int64 *)counter, 1);
#else
    return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
#endif
}

/* Room for n queries in a zeroed batch; 0 if memory is short. Close it in either case. */
static int bm25_batch_open(Bm25Batch *b, size_t n, uint64_t k) {
    b->text = (const uint8_t **)calloc(n + 1, sizeof *b->text);
    b->size = (ptrdiff_t *)calloc(n + 1, sizeof *b->size);
    b->answer = (Bm25Answer *)calloc(n + 1, sizeof *b->answer);
    b->k = k;
    if (!b->text || !b->size || !b->answer) return 0;
    b->n = (ptrdiff_t)n;
    return 1;
}

static void bm25_batch_close(Bm25Batch *b) {
    for (ptrdiff_t i = 0; i < b->n; i++) bm25_answer_free(&b->answer[i]);
    free((void *)b->text);
    free(b->size);
    free(b->answer);
}

static int bm25_batch_answer(const Bm25Index *ix, Bm25Batch *b, int64_t i) {
    Bm25Terms terms;
    Bm25Plan plan;
    int ascii = b->size[i] < 0;
    int ok = bm25_parse(ix, b->text[i], (size_t)(ascii ? ~b->size[i] : b->size[i]), ascii, &terms);
    ok = ok && bm25_plan(ix, &terms, &plan);
    bm25_terms_free(&terms);
    if (ok) {
        ok = bm25_search(ix, &plan, b->k, &b->answer[i]);
        bm25_plan_free(&plan);
    }
    return ok;
}

/* Take and answer queries until none is left (0), or `most` were answered and more may be left (1). */
static int bm25_batch_work(const Bm25Index *ix, Bm25Batch *b, int most) {
    for (int done = 0; !b->failed; done++) {
        int64_t i;
        if (done == most) return 1;
        i = bm25_take(&b->taken);
        if (i >= b->n) return 0;
        if (!bm25_batch_answer(ix, b, i)) b->failed = 1;
    }
    return 0;
}

#endif
