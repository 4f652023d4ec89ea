/* The vector steps through strings: to the end of a run of plain text, and through escapes while decoding them. */
#ifndef CG_TRANSCRIPT_VECTOR_H
#define CG_TRANSCRIPT_VECTOR_H

#include "transcript/utf8.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define CG_SSE2 1
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define CG_NEON 1
#endif
#if defined(_MSC_VER)
#include <intrin.h>
#endif

#define DECODE_SLACK 128 /* bytes behind a decoded text that may be written over */
#define NO_MEMORY UINT32_MAX

static inline uint32_t lowest_bit(uint64_t mask) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanForward64(&at, mask);
    return (uint32_t)at;
#else
    return (uint32_t)__builtin_ctzll(mask);
#endif
}

/* What the letter behind a backslash stands for; 0 where it needs more than this table, or is wrong. */
static const uint8_t SIMPLE_ESCAPE[256] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};

#if defined(CG_SSE2)
/* What ends a run of plain text: a quote, a backslash, and what is below `bound` once `flip` is put to it. Compared as
 * signed numbers, with flip 0 that are the controls and all that is not ASCII, with flip 0x80 the controls alone. */
typedef struct { __m128i flip, bound; } Special;

static inline Special special(const Reader *r) {
    const char flip = r->utf8 == UTF8_VALID ? (char)0x80 : 0;
    const Special found = {_mm_set1_epi8(flip), _mm_set1_epi8((char)(0x20 ^ flip))};
    return found;
}

/* One bit for each byte that ends a run of plain text. */
static inline uint32_t special_bytes(__m128i v, Special by) {
    const __m128i low = _mm_cmplt_epi8(_mm_xor_si128(v, by.flip), by.bound);
    const __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    const __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), low));
}
#endif

static inline int is_special(const Reader *r, uint8_t c) {
    return c < 0x20 || c == '"' || c == '\\' || (c >= 0x80 && r->utf8 != UTF8_VALID);
}

/* Position of the first byte at or after i that ends a run of plain text inside a string: a quote, a backslash, a
 * control character or, unless all is known to be UTF-8, what is not ASCII; n if there is none. */
static inline uint32_t plain_run(const Reader *r, uint32_t i) {
    const uint8_t *s = r->s;
    const uint32_t n = r->n;
#if defined(CG_SSE2)
    if (r->ways != PLAIN_WAYS) {
        const Special by = special(r);
        /* Two vectors at a time: code has an escape every 20 to 40 bytes, so that most runs end in the first step. */
        for (; n - i >= 32; i += 32) {
            const __m128i a = _mm_loadu_si128((const __m128i *)(s + i));
            const __m128i b = _mm_loadu_si128((const __m128i *)(s + i + 16));
            const uint32_t mask = special_bytes(a, by) | special_bytes(b, by) << 16;
            if (mask) return i + lowest_bit(mask);
        }
    }
#elif defined(CG_NEON)
    if (r->ways != PLAIN_WAYS) {
        const uint8x16_t quote = vdupq_n_u8('"'), slash = vdupq_n_u8('\\');
        const int8x16_t space = vdupq_n_s8(0x20);
        for (; n - i >= 16; i += 16) {
            uint8x16_t v = vld1q_u8(s + i);
            uint8x16_t hit = vorrq_u8(vorrq_u8(vceqq_u8(v, quote), vceqq_u8(v, slash)),
                                      vcltq_s8(vreinterpretq_s8_u8(v), space));
            uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(hit), 4)), 0);
            if (mask) return i + (lowest_bit(mask) >> 2);
        }
    }
#endif
    while (i < n && !is_special(r, s[i])) i++;
    return i;
}

#if defined(CG_SSE2)
static inline void copy_32(uint8_t *to, const uint8_t *from) {
    _mm_storeu_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)from));
    _mm_storeu_si128((__m128i *)(to + 16), _mm_loadu_si128((const __m128i *)(from + 16)));
}

static inline uint64_t special_mask(const uint8_t *p, Special by) {
    uint64_t mask = 0;
    for (int k = 0; k < 4; k++)
        mask |= (uint64_t)special_bytes(_mm_loadu_si128((const __m128i *)(p + 16 * k)), by) << 16 * k;
    return mask;
}

/* Decodes the text at s[i] in steps of 64 bytes for as long as it holds nothing but plain characters and two-byte
 * escapes; behind *size bytes that are decoded already, into `decoded`, which grows. Returns where it stopped, which is
 * the caller's to look at, or NO_MEMORY. One mask serves all escapes of a step: looked for one by one, each waits for
 * the one before it, and a megabyte of source code has fifty thousand. Copies run up to 63 bytes over on both sides,
 * so a step is made only where 128 bytes are left. */
static inline uint32_t decode_steps_sse2(const Reader *r, uint32_t i, Buffer *decoded, uint32_t *size) {
    const uint8_t *s = r->s;
    const Special by = special(r);
    while (r->n - i >= 128) {
        if (!reserve(decoded, (size_t)*size + DECODE_SLACK)) return NO_MEMORY;
        uint8_t *const to = decoded->bytes + decoded->len + *size, *out = to;
        const uint8_t *block = s + i;
        uint64_t mask = special_mask(block, by);
        uint32_t begin = 0; /* of the run that is not copied yet */
        for (; mask; mask &= ~((uint64_t)3 << (begin - 2))) {
            const uint32_t k = lowest_bit(mask);
            const uint8_t simple = block[k] == '\\' ? SIMPLE_ESCAPE[block[k + 1]] : 0;
            copy_32(out, block + begin);
            if (k - begin > 32) copy_32(out + 32, block + begin + 32);
            out += k - begin;
            if (!simple) {
                *size += (uint32_t)(out - to);
                return i + k;
            }
            *out++ = simple;
            begin = k + 2;
        }
        if (begin < 64) {
            copy_32(out, block + begin);
            if (64 - begin > 32) copy_32(out + 32, block + begin + 32);
            out += 64 - begin;
            begin = 64;
        }
        *size += (uint32_t)(out - to);
        i += begin;
    }
    return i;
}
#endif

#if defined(CG_UTF8_AVX2)
static uint8_t KEEP[256][8]; /* for each byte of bits, where the bytes stand whose bit is not set */

/* Fills KEEP; once, before anything is decoded. */
static void fill_tables(void) {
    for (int bits = 0; bits < 256; bits++)
        for (int at = 0, k = 0; k < 8; k++)
            if (!(bits >> k & 1)) KEEP[bits][at++] = (uint8_t)k;
}

/* The bytes whose bits are set, as a mask for all 32. */
WITH_AVX2 static inline __m256i bytes_of(uint32_t bits) {
    const __m256i which = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ULL);
    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), which), bit), bit);
}

WITH_AVX2 static inline uint64_t bits_of(__m256i a, __m256i b) {
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* What stands for n, t and r behind a backslash, as the difference to the letter; `letter` marks these and '/'. */
WITH_AVX2 static inline __m256i letter_changes(__m256i v, __m256i *letter) {
    const __m256i n = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('n')), t = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('t'));
    const __m256i r = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('r')), f = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('/'));
    *letter = _mm256_or_si256(_mm256_or_si256(n, t), _mm256_or_si256(r, f));
    return _mm256_or_si256(_mm256_or_si256(_mm256_and_si256(n, _mm256_set1_epi8('n' ^ '\n')),
                                           _mm256_and_si256(t, _mm256_set1_epi8('t' ^ '\t'))),
                           _mm256_and_si256(r, _mm256_set1_epi8('r' ^ '\r')));
}

/* Characters that a backslash before them escapes: behind a run of backslashes only if the run is odd. The runs that
 * begin at odd places are added to their own bits, and the carry comes out at the run's end. */
static inline uint64_t escaped_by(uint64_t slash) {
    const uint64_t even = 0x5555555555555555ULL, behind = slash << 1;
    const uint64_t odd_starts = slash & ~even & ~behind;
    return (even ^ (odd_starts + slash) << 1) & behind;
}

/* As decode_steps_sse2, with no branch for an escape: all of a step are changed at once, and their backslashes are
 * squeezed out eight bytes at a time. */
__attribute__((target("avx2,popcnt"))) static uint32_t decode_steps_avx2(
    const Reader *r, uint32_t i, Buffer *decoded, uint32_t *size) {
    const uint8_t *s = r->s;
    const __m256i flip = _mm256_set1_epi8(r->utf8 == UTF8_VALID ? (char)0x80 : 0);
    const __m256i bound = _mm256_set1_epi8(r->utf8 == UTF8_VALID ? (char)0xA0 : 0x20);
    while (r->n - i >= 128) {
        if (!reserve(decoded, (size_t)*size + DECODE_SLACK)) return NO_MEMORY;
        uint8_t *const to = decoded->bytes + decoded->len + *size, *out = to;
        const __m256i a = _mm256_loadu_si256((const __m256i *)(s + i));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(s + i + 32));
        const __m256i backslash = _mm256_set1_epi8('\\'), double_quote = _mm256_set1_epi8('"');
        const uint64_t slash = bits_of(_mm256_cmpeq_epi8(a, backslash), _mm256_cmpeq_epi8(b, backslash));
        const uint64_t quote = bits_of(_mm256_cmpeq_epi8(a, double_quote), _mm256_cmpeq_epi8(b, double_quote));
        const uint64_t low = bits_of(_mm256_cmpgt_epi8(bound, _mm256_xor_si256(a, flip)),
                                     _mm256_cmpgt_epi8(bound, _mm256_xor_si256(b, flip)));
        if (!(slash | quote | low)) {
            _mm256_storeu_si256((__m256i *)out, a);
            _mm256_storeu_si256((__m256i *)(out + 32), b);
            *size += 64;
            i += 64;
            continue;
        }
        __m256i a_letter, b_letter;
        const __m256i a_change = letter_changes(a, &a_letter), b_change = letter_changes(b, &b_letter);
        const uint64_t escaped = escaped_by(slash);
        uint64_t dropped = slash & ~escaped;
        /* An escape that is not of two simple bytes is left at its backslash. */
        const uint64_t odd = (escaped & ~(slash | quote | bits_of(a_letter, b_letter))) >> 1;
        const uint64_t stop = (quote & ~escaped) | low | odd;
        uint32_t end = dropped >> 63 ? 63 : 64; /* a backslash at the end is the next step's */
        if (stop) end = lowest_bit(stop);
        if (end < 64) dropped |= ~(uint64_t)0 << end;
        uint8_t changed[64];
        _mm256_storeu_si256((__m256i *)changed,
                            _mm256_xor_si256(a, _mm256_and_si256(a_change, bytes_of((uint32_t)escaped))));
        _mm256_storeu_si256((__m256i *)(changed + 32),
                            _mm256_xor_si256(b, _mm256_and_si256(b_change, bytes_of((uint32_t)(escaped >> 32)))));
        for (int k = 0; k < 8; k++) {
            const uint32_t bits = (uint8_t)(dropped >> 8 * k);
            const __m128i eight = _mm_loadl_epi64((const __m128i *)(changed + 8 * k));
            _mm_storel_epi64((__m128i *)out,
                             _mm_shuffle_epi8(eight, _mm_loadl_epi64((const __m128i *)KEEP[bits])));
            out += 8 - __builtin_popcount(bits);
        }
        *size += (uint32_t)(out - to);
        i += end;
        if (stop) return i;
    }
    return i;
}
#else
static void fill_tables(void) {}
#endif

/* decode_steps_sse2, by the best way there is; without any, nothing is done and the caller goes on by itself. */
static inline uint32_t decode_steps(const Reader *r, uint32_t i, Buffer *decoded, uint32_t *size) {
    if (r->ways == PLAIN_WAYS) return i;
#if defined(CG_UTF8_AVX2)
    if (r->ways == BEST_WAYS && __builtin_cpu_supports("avx2")) return decode_steps_avx2(r, i, decoded, size);
#endif
#if defined(CG_SSE2)
    return decode_steps_sse2(r, i, decoded, size);
#else
    (void)decoded;
    (void)size;
    return i;
#endif
}

#endif
