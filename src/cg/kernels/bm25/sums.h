/* Sums of upper bounds, 16 bits a document, and which of them reach a limit: the loops that have an instruction path. */
#ifndef BM25_SUMS_H
#define BM25_SUMS_H

#include "bm25/base.h"

#define BM25_PRUNE_TERMS 32      /* terms of a query that bounds are used for */

/* Add columns to the sums of whole groups of 64 documents. Groups in which a sum reaches `least` are noted in `group` and
   keep their sums; the others are left clear. Returns the number of groups noted. */
static uint32_t bm25_columns_plain(uint16_t *sum, const uint8_t *const *column, const uint32_t *wq, size_t n,
                                   uint32_t count, uint16_t least, uint16_t *group) {
    uint32_t found = 0;
    for (uint32_t g = 0; g < count; g += 64) {
        uint16_t *to = sum + g;
        int any = 0;
        for (size_t j = 0; j < n; j++) {
            const uint8_t *c = column[j] + g;
            uint32_t w = wq[j];
            for (uint32_t i = 0; i < 64; i++) to[i] = (uint16_t)(to[i] + (c[i] * w >> 8));
        }
        for (int i = 0; i < 64; i++) any |= to[i] >= least;
        if (any) group[found++] = (uint16_t)(g / 64); else memset(to, 0, 64 * sizeof *to);
    }
    return found;
}

/* A bit for each of 64 sums that reaches `least`. */
static uint64_t bm25_reached_plain(const uint16_t *sum, uint16_t least) {
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++) bits |= (uint64_t)(sum[i] >= least) << i;
    return bits;
}

#if BM25_HAS_AVX2
BM25_AVX2 static uint64_t bm25_reached_avx2(const uint16_t *sum, uint16_t least) {
    __m256i limit = _mm256_set1_epi16((short)least), reached[4];
    uint64_t bits = 0;
    for (int v = 0; v < 4; v++) {
        __m256i x = _mm256_loadu_si256((const __m256i *)sum + v);
        reached[v] = _mm256_cmpeq_epi16(_mm256_max_epu16(x, limit), x);
    }
    for (int v = 0; v < 2; v++) {                /* packing works within halves of 128 bits: put them in order */
        __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(reached[2 * v], reached[2 * v + 1]), 0xD8);
        bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(both) << (32 * v);
    }
    return bits;
}

BM25_AVX2 static uint32_t bm25_columns_avx2(uint16_t *sum, const uint8_t *const *column, const uint32_t *wq, size_t n,
                                            uint32_t count, uint16_t least, uint16_t *group) {
    __m256i w[BM25_PRUNE_TERMS], limit = _mm256_set1_epi16((short)least);
    uint32_t found = 0;
    for (size_t j = 0; j < n; j++) w[j] = _mm256_set1_epi16((short)wq[j]);
    for (uint32_t g = 0; g < count; g += 64) {
        __m256i *to = (__m256i *)(sum + g), total[4], most, reached;
        for (int v = 0; v < 4; v++) total[v] = _mm256_loadu_si256(to + v);
        for (size_t j = 0; j < n; j++)
            for (int v = 0; v < 4; v++) {
                __m256i code = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(column[j] + g) + v));
                total[v] = _mm256_add_epi16(total[v], _mm256_mulhi_epu16(_mm256_slli_epi16(code, 8), w[j]));
            }
        most = _mm256_max_epu16(_mm256_max_epu16(total[0], total[1]), _mm256_max_epu16(total[2], total[3]));
        reached = _mm256_cmpeq_epi16(_mm256_max_epu16(most, limit), most);
        if (_mm256_testz_si256(reached, reached)) {
            for (int v = 0; v < 4; v++) total[v] = _mm256_setzero_si256();
        } else {
            group[found++] = (uint16_t)(g / 64);
        }
        for (int v = 0; v < 4; v++) _mm256_storeu_si256(to + v, total[v]);
    }
    return found;
}
#endif

BM25_INLINE uint32_t bm25_columns(uint16_t *sum, const uint8_t *const *column, const uint32_t *wq, size_t n,
                                  uint32_t count, uint16_t least, uint16_t *group) {
#if BM25_HAS_AVX2
    if (bm25_path == BM25_PATH_AVX2) return bm25_columns_avx2(sum, column, wq, n, count, least, group);
#endif
    return bm25_columns_plain(sum, column, wq, n, count, least, group);
}

BM25_INLINE uint64_t bm25_reached(const uint16_t *sum, uint16_t least) {
#if BM25_HAS_AVX2
    if (bm25_path == BM25_PATH_AVX2) return bm25_reached_avx2(sum, least);
#endif
    return bm25_reached_plain(sum, least);
}

#endif
