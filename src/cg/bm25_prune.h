/* Search that skips what cannot matter. Placeholder until bounds are used: nothing is skipped. */
#ifndef BM25_PRUNE_H
#define BM25_PRUNE_H

#include "bm25_score.h"

static int bm25_prune(const Bm25Index *ix, Bm25Cursor *c, size_t n, uint64_t work, Bm25Heap *heap) {
    (void)ix; (void)c; (void)n; (void)work; (void)heap;
    return 0;
}

#endif
