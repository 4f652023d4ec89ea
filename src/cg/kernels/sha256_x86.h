/* SHA-256 (FIPS 180-4) with the SHA extensions of x86-64, one or two messages at a time.
 *
 * Each round waits for the one before it, so that one message leaves the unit idle half of the time; two messages in
 * step fill it. Whether the processor can is asked at run time; elsewhere CG_SHA_X86 is not defined and the caller
 * takes hashlib.
 */
#ifndef CG_SHA256_X86_H
#define CG_SHA256_X86_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define CG_SHA_X86 1
#define WITH_SHA __attribute__((target("sha,sse4.1")))

static const uint32_t SHA_K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

typedef struct { __m128i abef, cdgh; } ShaState; /* the working variables, the first of each name in the high lane */

/* True if the processor has the instructions; asks it anew at each call, which is slow in a virtual machine. */
static int has_sha_x86(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 9) || !(c & 1u << 19)) return 0; /* SSSE3, SSE4.1 */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 29) != 0;
}

/* Four rounds with the words w, of which the first is word 4 * t. */
#define SHA_ROUNDS(s, t, w)                                                                             \
    do {                                                                                                \
        const __m128i wk = _mm_add_epi32(w, _mm_loadu_si128((const __m128i *)(SHA_K + 4 * (t))));       \
        s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, wk);                                             \
        s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(wk, 0x0E));                    \
    } while (0)

/* The same behind the first sixteen: a, which holds the words of sixteen rounds ago, becomes the next four. */
#define SHA_LATER(s, t, a, b, c, d)                                                                     \
    do {                                                                                                \
        a = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));                        \
        a = _mm_sha256msg2_epu32(a, d);                                                                 \
        SHA_ROUNDS(s, t, a);                                                                            \
    } while (0)

WITH_SHA static inline __m128i sha_words(const uint8_t *p) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), big_endian);
}

/* Takes n blocks of 64 bytes into the state. */
WITH_SHA static void sha_blocks(ShaState *state, const uint8_t *p, size_t n) {
    ShaState x = *state;
    for (; n; n--, p += 64) {
        const ShaState before = x;
        __m128i a = sha_words(p), b = sha_words(p + 16), c = sha_words(p + 32), d = sha_words(p + 48);
        SHA_ROUNDS(x, 0, a);
        SHA_ROUNDS(x, 1, b);
        SHA_ROUNDS(x, 2, c);
        SHA_ROUNDS(x, 3, d);
        for (int t = 4; t < 16; t += 4) {
            SHA_LATER(x, t, a, b, c, d);
            SHA_LATER(x, t + 1, b, c, d, a);
            SHA_LATER(x, t + 2, c, d, a, b);
            SHA_LATER(x, t + 3, d, a, b, c);
        }
        x.abef = _mm_add_epi32(x.abef, before.abef);
        x.cdgh = _mm_add_epi32(x.cdgh, before.cdgh);
    }
    *state = x;
}

/* The same for two messages in step. */
WITH_SHA static void sha_blocks_of_two(ShaState *one, ShaState *two, const uint8_t *p, const uint8_t *q, size_t n) {
    ShaState x = *one, y = *two;
    for (; n; n--, p += 64, q += 64) {
        const ShaState x_before = x, y_before = y;
        __m128i a = sha_words(p), b = sha_words(p + 16), c = sha_words(p + 32), d = sha_words(p + 48);
        __m128i e = sha_words(q), f = sha_words(q + 16), g = sha_words(q + 32), h = sha_words(q + 48);
        SHA_ROUNDS(x, 0, a);
        SHA_ROUNDS(y, 0, e);
        SHA_ROUNDS(x, 1, b);
        SHA_ROUNDS(y, 1, f);
        SHA_ROUNDS(x, 2, c);
        SHA_ROUNDS(y, 2, g);
        SHA_ROUNDS(x, 3, d);
        SHA_ROUNDS(y, 3, h);
        for (int t = 4; t < 16; t += 4) {
            SHA_LATER(x, t, a, b, c, d);
            SHA_LATER(y, t, e, f, g, h);
            SHA_LATER(x, t + 1, b, c, d, a);
            SHA_LATER(y, t + 1, f, g, h, e);
            SHA_LATER(x, t + 2, c, d, a, b);
            SHA_LATER(y, t + 2, g, h, e, f);
            SHA_LATER(x, t + 3, d, a, b, c);
            SHA_LATER(y, t + 3, h, e, f, g);
        }
        x.abef = _mm_add_epi32(x.abef, x_before.abef);
        x.cdgh = _mm_add_epi32(x.cdgh, x_before.cdgh);
        y.abef = _mm_add_epi32(y.abef, y_before.abef);
        y.cdgh = _mm_add_epi32(y.cdgh, y_before.cdgh);
    }
    *one = x;
    *two = y;
}

typedef struct { /* one message on its way */
    ShaState state;
    const uint8_t *at;
    size_t blocks;      /* left at `at`; 0: the digest is written and the lane free */
    size_t tail_blocks; /* to come from `tail` after that */
    uint8_t tail[128];  /* what does not fill a block, the closing bit and the length */
    uint8_t *to;        /* 32 bytes for the digest */
} ShaLane;

static void sha_put_words(uint8_t *to, const uint32_t *words, int high, int low) {
    for (int k = 0; k < 4; k++) {
        to[k] = (uint8_t)(words[high] >> (24 - 8 * k));
        to[4 + k] = (uint8_t)(words[low] >> (24 - 8 * k));
    }
}

/* What comes next in a lane whose blocks are used up: its tail, or the end. */
static void sha_turn(ShaLane *lane) {
    if (lane->tail_blocks) {
        lane->at = lane->tail;
        lane->blocks = lane->tail_blocks;
        lane->tail_blocks = 0;
        return;
    }
    uint32_t abef[4], cdgh[4];
    _mm_storeu_si128((__m128i *)abef, lane->state.abef);
    _mm_storeu_si128((__m128i *)cdgh, lane->state.cdgh);
    sha_put_words(lane->to, abef, 3, 2);
    sha_put_words(lane->to + 8, cdgh, 3, 2);
    sha_put_words(lane->to + 16, abef, 1, 0);
    sha_put_words(lane->to + 24, cdgh, 1, 0);
}

/* Puts a message of n bytes into a free lane; `data` stays where it is until the digest is written. */
static void sha_start(ShaLane *lane, const uint8_t *data, size_t n, uint8_t *to) {
    const size_t rest = n % 64;
    const uint64_t bits = 8 * (uint64_t)n;
    memset(lane->tail, 0, sizeof lane->tail);
    memcpy(lane->tail, data + (n - rest), rest);
    lane->tail[rest] = 0x80;
    lane->tail_blocks = rest + 9 > 64 ? 2 : 1;
    for (int k = 0; k < 8; k++) lane->tail[64 * lane->tail_blocks - 1 - k] = (uint8_t)(bits >> 8 * k);
    lane->state.abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c);
    lane->state.cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19);
    lane->at = data;
    lane->blocks = n / 64;
    lane->to = to;
    if (!lane->blocks) sha_turn(lane);
}

/* Works two busy lanes until one of them is free. */
static void sha_run_both(ShaLane *one, ShaLane *two) {
    while (one->blocks && two->blocks) {
        const size_t n = one->blocks < two->blocks ? one->blocks : two->blocks;
        sha_blocks_of_two(&one->state, &two->state, one->at, two->at, n);
        one->at += 64 * n;
        two->at += 64 * n;
        one->blocks -= n;
        two->blocks -= n;
        if (!one->blocks) sha_turn(one);
        if (!two->blocks) sha_turn(two);
    }
}

/* Works a lane to its end. */
static void sha_finish(ShaLane *lane) {
    while (lane->blocks) {
        sha_blocks(&lane->state, lane->at, lane->blocks);
        lane->blocks = 0;
        sha_turn(lane);
    }
}

#endif
#endif
