/* Finding bytes: the next opener in text, the end of a string. Vector paths are chosen at run time and can be forced;
   each gives the same position as the plain loop. */
#ifndef CG_VERDICT_BYTE_SEARCH_H
#define CG_VERDICT_BYTE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>
#define CG_SSE2 1
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

enum { SCAN_PLAIN = 0, SCAN_VECTOR = 1 };

/* Position of the first '[', '{' or '<', or byte that may start a wide bracket of a tag (U+FF1C, U+25C1). '[' and '{' differ in
   one bit. */
static inline size_t opener_stop(const uint8_t *s, size_t i, size_t n, int level) {
#ifdef CG_SSE2
    if (level >= SCAN_VECTOR) {
        const __m128i bit = _mm_set1_epi8(0x20), brace = _mm_set1_epi8('{'), less = _mm_set1_epi8('<');
        const __m128i triangle = _mm_set1_epi8((char)0xE2), wide = _mm_set1_epi8((char)0xEF);
        for (; i + 16 <= n; i += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(s + i));
            __m128i ascii = _mm_or_si128(_mm_cmpeq_epi8(_mm_or_si128(v, bit), brace), _mm_cmpeq_epi8(v, less));
            __m128i others = _mm_or_si128(_mm_cmpeq_epi8(v, triangle), _mm_cmpeq_epi8(v, wide));
            int mask = _mm_movemask_epi8(_mm_or_si128(ascii, others));
            if (mask) return i + (size_t)cg_low_bit((uint32_t)mask);
        }
    }
#elif defined(CG_NEON)
    if (level >= SCAN_VECTOR) {
        const uint8x16_t bit = vdupq_n_u8(0x20), brace = vdupq_n_u8('{'), less = vdupq_n_u8('<');
        const uint8x16_t triangle = vdupq_n_u8(0xE2), wide = vdupq_n_u8(0xEF);
        for (; i + 16 <= n; i += 16) {
            uint8x16_t v = vld1q_u8(s + i);
            uint8x16_t ascii = vorrq_u8(vceqq_u8(vorrq_u8(v, bit), brace), vceqq_u8(v, less));
            if (vmaxvq_u8(vorrq_u8(ascii, vorrq_u8(vceqq_u8(v, triangle), vceqq_u8(v, wide))))) break;
        }
    }
#else
    (void)level;
#endif
    while (i < n && (s[i] | 0x20) != '{' && s[i] != '<' && s[i] != 0xE2 && s[i] != 0xEF) i++;
    return i;
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
