/* Counts over every byte of a text: one pass, vectors where the processor has them, the same numbers either way. */
#ifndef CG_SHAPE_SCAN_H
#define CG_SHAPE_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define CG_SHAPE_AVX2 1
#include <immintrin.h>
#else
#define CG_SHAPE_AVX2 0
#endif

typedef struct {
    uint64_t newlines; /* 0x0A */
    uint64_t escapes;  /* 0x1B */
    uint64_t nuls;     /* 0x00 */
    uint64_t controls; /* below 0x20, not one of 08..0D, not 1B; NULs are among them */
    uint64_t high;     /* 0x80 and up */
} ByteCounts;

static void count_bytes_plain(const uint8_t *s, size_t n, ByteCounts *out) {
    while (n) { /* byte-sized counters in blocks that cannot overflow them: compilers turn that into vectors too */
        size_t block = n < 255 ? n : 255, i;
        uint8_t newlines = 0, escapes = 0, nuls = 0, controls = 0, high = 0;
        for (i = 0; i < block; i++) {
            uint8_t c = s[i];
            newlines = (uint8_t)(newlines + (c == 0x0A));
            escapes = (uint8_t)(escapes + (c == 0x1B));
            nuls = (uint8_t)(nuls + (c == 0));
            controls = (uint8_t)(controls + ((c < 0x20) & ((uint8_t)(c - 8) > 5) & (c != 0x1B)));
            high = (uint8_t)(high + (c >> 7));
        }
        out->newlines += newlines;
        out->escapes += escapes;
        out->nuls += nuls;
        out->controls += controls;
        out->high += high;
        s += block;
        n -= block;
    }
}

#if CG_SHAPE_AVX2

__attribute__((target("avx2"))) static uint64_t sum_lanes(__m256i bytes) {
    __m256i s = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
    uint64_t part[4];
    _mm256_storeu_si256((__m256i *)part, s);
    return part[0] + part[1] + part[2] + part[3];
}

/* Counters are bytes, so they are emptied every 255 vectors at the latest. A vector without any byte below 0x20 but
   newlines is the common case, but a branch on it costs more than the five compares (measured on source code). */
__attribute__((target("avx2"))) static void count_bytes_avx2(const uint8_t *s, size_t n, ByteCounts *out) {
    const __m256i newline = _mm256_set1_epi8(0x0A), escape = _mm256_set1_epi8(0x1B), zero = _mm256_setzero_si256();
    const __m256i low = _mm256_set1_epi8(0x1F), eight = _mm256_set1_epi8(8), five = _mm256_set1_epi8(5);
    size_t i = 0;
    while (n - i >= 32) {
        size_t rounds = (n - i) / 32 < 255 ? (n - i) / 32 : 255;
        __m256i a = zero, b = zero, c = zero, d = zero, e = zero;
        for (; rounds; rounds--, i += 32) {
            __m256i v = _mm256_loadu_si256((const __m256i *)(s + i));
            __m256i is_escape = _mm256_cmpeq_epi8(v, escape);
            __m256i is_low = _mm256_cmpeq_epi8(_mm256_min_epu8(v, low), v);
            __m256i shifted = _mm256_sub_epi8(v, eight);
            __m256i is_space = _mm256_cmpeq_epi8(_mm256_min_epu8(shifted, five), shifted);
            __m256i is_control = _mm256_andnot_si256(_mm256_or_si256(is_space, is_escape), is_low);
            a = _mm256_sub_epi8(a, _mm256_cmpeq_epi8(v, newline));
            b = _mm256_sub_epi8(b, is_escape);
            c = _mm256_sub_epi8(c, _mm256_cmpeq_epi8(v, zero));
            d = _mm256_sub_epi8(d, is_control);
            e = _mm256_sub_epi8(e, _mm256_cmpgt_epi8(zero, v));
        }
        out->newlines += sum_lanes(a);
        out->escapes += sum_lanes(b);
        out->nuls += sum_lanes(c);
        out->controls += sum_lanes(d);
        out->high += sum_lanes(e);
    }
    count_bytes_plain(s + i, n - i, out);
}

#endif

/* 1 where the vector path can run. */
static int shape_has_avx2(void) {
#if CG_SHAPE_AVX2
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}

static void count_bytes(const uint8_t *s, size_t n, int vectors, ByteCounts *out) {
    memset(out, 0, sizeof *out);
#if CG_SHAPE_AVX2
    if (vectors) {
        count_bytes_avx2(s, n, out);
        return;
    }
#endif
    (void)vectors;
    count_bytes_plain(s, n, out);
}

/* Length of the well-formed UTF-8 character at s[0], 0 if there is none: no overlong form, no surrogate, no value past
   U+10FFFF (Unicode 15, table 3-7). */
static size_t utf8_length(const uint8_t *s, size_t n) {
    uint8_t c = s[0], lo = 0x80, hi = 0xBF;
    size_t len, k;
    if (c < 0x80) return 1;
    if (c < 0xC2 || c > 0xF4) return 0;
    len = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (c == 0xE0) lo = 0xA0;
    if (c == 0xED) hi = 0x9F;
    if (c == 0xF0) lo = 0x90;
    if (c == 0xF4) hi = 0x8F;
    if (n < len || s[1] < lo || s[1] > hi) return 0;
    for (k = 2; k < len; k++)
        if ((s[k] & 0xC0) != 0x80) return 0;
    return len;
}

/* How many bytes belong to no well-formed UTF-8 character. */
static uint64_t count_stray_bytes(const uint8_t *s, size_t n) {
    uint64_t stray = 0;
    size_t i = 0;
    while (i < n) {
        size_t len;
        uint64_t eight;
        if (n - i >= 8) {
            memcpy(&eight, s + i, 8);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                i += 8;
                continue;
            }
        }
        /* Most of what is not ASCII is three bytes with no exception to them. */
        if (n - i >= 3 && s[i] >= 0xE1 && s[i] <= 0xEC && (s[i + 1] & 0xC0) == 0x80 && (s[i + 2] & 0xC0) == 0x80) {
            i += 3;
            continue;
        }
        len = utf8_length(s + i, n - i);
        stray += len == 0;
        i += len ? len : 1;
    }
    return stray;
}

#endif
