/* What every part of the BM25 core shares: loads, hashing, bit counting, the choice of instruction path. */
#ifndef BM25_BASE_H
#define BM25_BASE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_MSC_VER)
#include <intrin.h>
#define BM25_INLINE static __forceinline
#define BM25_APART static __declspec(noinline)
#define BM25_PREFETCH(p) ((void)(p))
#else
#define BM25_INLINE static inline __attribute__((always_inline, unused))
#define BM25_APART static __attribute__((noinline, unused))
#define BM25_PREFETCH(p) __builtin_prefetch(p)
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define BM25_HAS_AVX2 1
#define BM25_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#else
#define BM25_HAS_AVX2 0
#endif

/* The instruction paths; every one of them gives the same bytes. */
enum bm25_path { BM25_PLAIN = 0, BM25_PATH_AVX2 = 1 };

static int bm25_path = BM25_PLAIN;   /* set once on import; tests force it */

static int bm25_best_path(void) {
#if BM25_HAS_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) return BM25_PATH_AVX2;
#endif
    return BM25_PLAIN;
}

/* Index files and hashes are defined on little-endian words; a big-endian machine swaps where it matters. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BM25_LE64(x) __builtin_bswap64(x)
#else
#define BM25_LE64(x) (x)
#endif

BM25_INLINE uint64_t bm25_load64(const void *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return BM25_LE64(v);
}

#define BM25_ONES 0x0101010101010101ull

/* Number of zero bits below the lowest one; x is not zero. */
BM25_INLINE int bm25_ctz64(uint64_t x) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanForward64(&at, x);
    return (int)at;
#else
    return __builtin_ctzll(x);
#endif
}

/* Mixing constants: odd 64-bit numbers with about half of their bits set (fractional parts of square roots). */
#define BM25_MIX_A 0x9E3779B97F4A7C15ull
#define BM25_MIX_B 0xBB67AE8584CAA73Bull

/* Hash of a token. Reads up to 7 bytes past its end: every buffer handed in is padded by 8 bytes or more. */
BM25_INLINE uint64_t bm25_hash(const uint8_t *p, size_t n, uint64_t seed) {
    uint64_t h = seed ^ ((uint64_t)n * BM25_MIX_B);
    while (n > 8) {
        h = (h ^ bm25_load64(p)) * BM25_MIX_A;
        h ^= h >> 32;
        p += 8;
        n -= 8;
    }
    h = (h ^ (n ? bm25_load64(p) & (~0ull >> (64 - 8 * n)) : 0)) * BM25_MIX_A;
    h ^= h >> 32;
    h *= BM25_MIX_B;
    return h ^ (h >> 29);
}

/* Where a hash falls among n slots, without a division. */
BM25_INLINE uint32_t bm25_slot(uint64_t hash, uint32_t n) { return (uint32_t)(((hash >> 32) * n) >> 32); }

/* Checksum of a section of an index file: four independent lanes, so that it runs at the speed of memory. */
static uint64_t bm25_checksum(const uint8_t *p, size_t n) {
    uint64_t lane[4] = {1, 2, 3, 4}, tail = 0, all = (uint64_t)n;
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int j = 0; j < 4; j++) {
            lane[j] = (lane[j] ^ bm25_load64(p + i + 8 * j)) * BM25_MIX_A;
            lane[j] ^= lane[j] >> 32;
        }
    for (; i < n; i++) {
        tail = (tail ^ p[i]) * BM25_MIX_B;
        tail ^= tail >> 29;
    }
    for (int j = 0; j < 4; j++) all = ((all ^ lane[j]) * BM25_MIX_B) ^ (all >> 31);
    return (all ^ tail) * BM25_MIX_A;
}

#endif
