/* UTF-8, strict: no surrogates in the raw bytes, no overlong forms, nothing past U+10FFFF. */
#ifndef CG_TRANSCRIPT_UTF8_H
#define CG_TRANSCRIPT_UTF8_H

#include "transcript/reader.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CG_UTF8_AVX2 1
#define WITH_AVX2 __attribute__((target("avx2")))
#endif

/* Bytes of the UTF-8 character at s[i] (lead >= 0x80), or STOP_UTF8. */
static inline int utf8_length(const uint8_t *s, uint32_t i, uint32_t n) {
    const uint8_t a = s[i];
    const uint32_t left = n - i;
#define IS_TAIL(k) ((s[i + (k)] & 0xC0) == 0x80)
    if (a >= 0xC2 && a <= 0xDF) return left >= 2 && IS_TAIL(1) ? 2 : STOP_UTF8;
    if (a >= 0xE0 && a <= 0xEF) {
        if (left < 3 || !IS_TAIL(1) || !IS_TAIL(2)) return STOP_UTF8;
        if (a == 0xE0 && s[i + 1] < 0xA0) return STOP_UTF8; /* overlong */
        if (a == 0xED && s[i + 1] > 0x9F) return STOP_UTF8; /* surrogate */
        return 3;
    }
    if (a >= 0xF0 && a <= 0xF4) {
        if (left < 4 || !IS_TAIL(1) || !IS_TAIL(2) || !IS_TAIL(3)) return STOP_UTF8;
        if (a == 0xF0 && s[i + 1] < 0x90) return STOP_UTF8; /* overlong */
        if (a == 0xF4 && s[i + 1] > 0x8F) return STOP_UTF8; /* past U+10FFFF */
        return 4;
    }
#undef IS_TAIL
    return STOP_UTF8;
}

/* Writes a code point as UTF-8 (a surrogate as three bytes) and returns the count of bytes. */
static inline uint32_t write_utf8(uint8_t *to, uint32_t point) {
    if (point < 0x80) {
        to[0] = (uint8_t)point;
        return 1;
    }
    if (point < 0x800) {
        to[0] = (uint8_t)(0xC0 | point >> 6);
        to[1] = (uint8_t)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        to[0] = (uint8_t)(0xE0 | point >> 12);
        to[1] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
        to[2] = (uint8_t)(0x80 | (point & 0x3F));
        return 3;
    }
    to[0] = (uint8_t)(0xF0 | point >> 18);
    to[1] = (uint8_t)(0x80 | (point >> 12 & 0x3F));
    to[2] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
    to[3] = (uint8_t)(0x80 | (point & 0x3F));
    return 4;
}

static inline uint32_t utf8_size(uint32_t point) {
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

#if defined(CG_UTF8_AVX2)
/* What two bytes that stand side by side cannot be. Three look-ups, by the first byte's halves and the second one's
 * high half, each give the faults that these four bits allow; a fault that all three allow is there. The method is
 * that of Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte" (2021). */
enum {
    TOO_SHORT = 1 << 0,  /* a lead, and then no tail */
    TOO_LONG = 1 << 1,   /* ASCII, and then a tail */
    OVERLONG_3 = 1 << 2, /* E0 80-9F */
    TOO_LARGE = 1 << 3,  /* F4 90-BF, F5 and more with 90-BF */
    SURROGATE = 1 << 4,  /* ED A0-BF */
    OVERLONG_2 = 1 << 5, /* C0, C1 */
    OVERLONG_4 = 1 << 6, /* F0 80-8F; also F5 and more with 80-8F */
    TWO_TAILS = 1 << 7,  /* right only behind a lead of three or four */
    ANY_LOW = TOO_SHORT | TOO_LONG | TWO_TAILS, /* faults for which the low half of the first byte does not matter */
    HIGH_LEAD = ANY_LOW | TOO_LARGE | OVERLONG_4
};

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__) /* a table of 16 for each half of a vector */

WITH_AVX2 static inline __m256i utf8_pair_faults(__m256i bytes, __m256i one_before) {
    const __m256i low_half = _mm256_set1_epi8(0x0F);
    const __m256i by_high = TWICE(
        TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
        (char)TWO_TAILS, (char)TWO_TAILS, (char)TWO_TAILS, (char)TWO_TAILS,
        TOO_SHORT | OVERLONG_2, TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | OVERLONG_4);
    const __m256i by_low = TWICE(
        (char)(ANY_LOW | OVERLONG_2 | OVERLONG_3 | OVERLONG_4), (char)(ANY_LOW | OVERLONG_2), (char)ANY_LOW,
        (char)ANY_LOW, (char)(ANY_LOW | TOO_LARGE), (char)HIGH_LEAD, (char)HIGH_LEAD, (char)HIGH_LEAD,
        (char)HIGH_LEAD, (char)HIGH_LEAD, (char)HIGH_LEAD, (char)HIGH_LEAD,
        (char)HIGH_LEAD, (char)(HIGH_LEAD | SURROGATE), (char)HIGH_LEAD, (char)HIGH_LEAD);
    const __m256i by_next = TWICE(
        TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
        (char)(TOO_LONG | TWO_TAILS | OVERLONG_2 | OVERLONG_3 | OVERLONG_4),
        (char)(TOO_LONG | TWO_TAILS | OVERLONG_2 | OVERLONG_3 | TOO_LARGE),
        (char)(TOO_LONG | TWO_TAILS | OVERLONG_2 | SURROGATE | TOO_LARGE),
        (char)(TOO_LONG | TWO_TAILS | OVERLONG_2 | SURROGATE | TOO_LARGE),
        TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(one_before, 4), low_half);
    const __m256i low = _mm256_and_si256(one_before, low_half);
    const __m256i next = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_half);
    return _mm256_and_si256(_mm256_and_si256(_mm256_shuffle_epi8(by_high, high), _mm256_shuffle_epi8(by_low, low)),
                            _mm256_shuffle_epi8(by_next, next));
}

/* Faults in 32 bytes, given the 32 before them. */
WITH_AVX2 static inline __m256i utf8_faults(__m256i bytes, __m256i before) {
    const __m256i middle = _mm256_permute2x128_si256(before, bytes, 0x21);
    const __m256i pairs = utf8_pair_faults(bytes, _mm256_alignr_epi8(bytes, middle, 15));
    /* A tail has to follow a tail exactly where two before is a lead of three or four, or three before one of four. */
    const __m256i third = _mm256_subs_epu8(_mm256_alignr_epi8(bytes, middle, 14), _mm256_set1_epi8(0xE0 - 0x80));
    const __m256i fourth = _mm256_subs_epu8(_mm256_alignr_epi8(bytes, middle, 13), _mm256_set1_epi8(0xF0 - 0x80));
    const __m256i wanted = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
    return _mm256_xor_si256(pairs, wanted);
}

/* True if the n bytes at p are UTF-8. */
WITH_AVX2 static int is_utf8_avx2(const uint8_t *p, size_t n) {
    uint8_t last[32] = {0}; /* the rest, and a zero behind it at which a cut character shows */
    __m256i before = _mm256_setzero_si256(), faults = _mm256_setzero_si256();
    for (; n >= 32; n -= 32, p += 32) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i *)p);
        faults = _mm256_or_si256(faults, utf8_faults(bytes, before));
        before = bytes;
    }
    memcpy(last, p, n);
    faults = _mm256_or_si256(faults, utf8_faults(_mm256_loadu_si256((const __m256i *)last), before));
    return _mm256_testz_si256(faults, faults);
}
#endif

/* At the first byte at r->at that is not ASCII: looks whether all from here on is UTF-8, at once and fast, so that the
 * strings behind it can be read like ASCII. Where that cannot be said, each character is checked in its turn, which
 * also finds the place of a fault. */
static inline void check_utf8(Reader *r, uint32_t from) {
    r->utf8 = UTF8_DOUBTFUL;
#if defined(CG_UTF8_AVX2)
    if (r->ways == BEST_WAYS && __builtin_cpu_supports("avx2") && is_utf8_avx2(r->s + from, r->n - from)) r->utf8 = UTF8_VALID;
#else
    (void)from;
#endif
}

#endif
