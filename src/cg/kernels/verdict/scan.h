/* Finding bytes: the next opener in text, the end of a string. Vector paths are chosen at run time and can be forced;
   each gives the same position as the plain loop. */
#ifndef CG_VERDICT_SCAN_H
#define CG_VERDICT_SCAN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>
#define CG_SSE2 1
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CG_AVX2 1
#endif
#if defined(__aarch64__) && defined(__GNUC__)
#include <arm_neon.h>
#define CG_NEON 1
#endif
#if defined(_MSC_VER)
#include <intrin.h>
static inline int cg_low_bit(uint32_t mask) { unsigned long at; _BitScanForward(&at, mask); return (int)at; }
#else
static inline int cg_low_bit(uint32_t mask) { return __builtin_ctz(mask); }
#endif

enum { SCAN_PLAIN = 0, SCAN_VECTOR = 1, SCAN_WIDE = 2 };

typedef size_t (*Scan)(const uint8_t *s, size_t i, size_t n);

/* '[' and '{' differ in one bit, so two comparisons find the three openers. */
static size_t opener_plain(const uint8_t *s, size_t i, size_t n) {
    while (i < n && (s[i] | 0x20) != '{' && s[i] != '<') i++;
    return i;
}

/* Position of the first byte that is no '['. */
static inline size_t opener_row(const uint8_t *s, size_t i, size_t n) {
    while (i < n && s[i] == '[') i++;
    return i;
}

#ifdef CG_SSE2
static size_t opener_vector(const uint8_t *s, size_t i, size_t n) {
    const __m128i bit = _mm_set1_epi8(0x20), brace = _mm_set1_epi8('{'), less = _mm_set1_epi8('<');
    for (; i + 16 <= n; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(s + i));
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(_mm_or_si128(v, bit), brace), _mm_cmpeq_epi8(v, less));
        int mask = _mm_movemask_epi8(hit);
        if (mask) return i + (size_t)cg_low_bit((uint32_t)mask);
    }
    return opener_plain(s, i, n);
}
#elif defined(CG_NEON)
static size_t opener_vector(const uint8_t *s, size_t i, size_t n) {
    const uint8x16_t bit = vdupq_n_u8(0x20), brace = vdupq_n_u8('{'), less = vdupq_n_u8('<');
    for (; i + 16 <= n; i += 16) {
        uint8x16_t v = vld1q_u8(s + i);
        if (vmaxvq_u8(vorrq_u8(vceqq_u8(vorrq_u8(v, bit), brace), vceqq_u8(v, less)))) break;
    }
    return opener_plain(s, i, n);
}
#else
#define opener_vector opener_plain
#endif

#ifdef CG_AVX2
__attribute__((target("avx2"))) static size_t opener_wide(const uint8_t *s, size_t i, size_t n) {
    const __m256i bit = _mm256_set1_epi8(0x20), brace = _mm256_set1_epi8('{'), less = _mm256_set1_epi8('<');
    for (; i + 64 <= n; i += 64) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(s + i)), b = _mm256_loadu_si256((const __m256i *)(s + i + 32));
        __m256i x = _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_or_si256(a, bit), brace), _mm256_cmpeq_epi8(a, less));
        __m256i y = _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_or_si256(b, bit), brace), _mm256_cmpeq_epi8(b, less));
        uint32_t first = (uint32_t)_mm256_movemask_epi8(x), second = (uint32_t)_mm256_movemask_epi8(y);
        if (first) return i + (size_t)cg_low_bit(first);
        if (second) return i + 32 + (size_t)cg_low_bit(second);
    }
    return opener_vector(s, i, n);
}
#endif

/* The next opener in text is often near, where setting up the wide scan costs more than it saves. */
static inline size_t opener_near(Scan scan, int level, const uint8_t *s, size_t i, size_t n) {
#ifdef CG_SSE2
    if (level >= SCAN_VECTOR && i + 16 <= n) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(s + i));
        const __m128i brackets = _mm_cmpeq_epi8(_mm_or_si128(v, _mm_set1_epi8(0x20)), _mm_set1_epi8('{'));
        int mask = _mm_movemask_epi8(_mm_or_si128(brackets, _mm_cmpeq_epi8(v, _mm_set1_epi8('<'))));
        if (mask) return i + (size_t)cg_low_bit((uint32_t)mask);
        i += 16;
    }
#else
    (void)level;
#endif
    size_t near = n - i < 8 ? n : i + 8;
    for (; i < near; i++) if ((s[i] | 0x20) == '{' || s[i] == '<') return i;
    return i < n ? scan(s, i, n) : i;
}

/* The best path that this processor has and `level` allows. */
static inline Scan opener_scan(int level) {
#ifdef CG_AVX2
    __builtin_cpu_init();
    if (level >= SCAN_WIDE && __builtin_cpu_supports("avx2")) return opener_wide;
#endif
    return level >= SCAN_VECTOR ? opener_vector : opener_plain;
}

/* Position of the first `quote` or backslash; strings are skipped with the vectors that every x86-64 has. */
static inline size_t string_stop(const uint8_t *s, size_t i, size_t n, uint8_t quote, int level) {
#ifdef CG_SSE2
    if (level >= SCAN_VECTOR) {
        const __m128i close = _mm_set1_epi8((char)quote), slash = _mm_set1_epi8('\\');
        for (; i + 16 <= n; i += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(s + i));
            int mask = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, close), _mm_cmpeq_epi8(v, slash)));
            if (mask) return i + (size_t)cg_low_bit((uint32_t)mask);
        }
    }
#elif defined(CG_NEON)
    if (level >= SCAN_VECTOR) {
        const uint8x16_t close = vdupq_n_u8(quote), slash = vdupq_n_u8('\\');
        for (; i + 16 <= n; i += 16) {
            uint8x16_t v = vld1q_u8(s + i);
            if (vmaxvq_u8(vorrq_u8(vceqq_u8(v, close), vceqq_u8(v, slash)))) break;
        }
    }
#else
    (void)level;
#endif
    while (i < n && s[i] != quote && s[i] != '\\') i++;
    return i;
}

#endif
