/* JSON strings read in place: checked, decoded, and written in their canonical spelling. */
#ifndef CG_TRANSCRIPT_STRING_H
#define CG_TRANSCRIPT_STRING_H

#include "transcript_utf8.h"

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

static inline uint32_t lowest_bit(uint64_t mask) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanForward64(&at, mask);
    return (uint32_t)at;
#else
    return (uint32_t)__builtin_ctzll(mask);
#endif
}

/* Value of four hex digits at s[i], or -1. */
static inline int32_t hex4(const uint8_t *s, uint32_t i) {
    int32_t value = 0;
    for (uint32_t k = i; k < i + 4; k++) {
        const uint8_t c = s[k];
        if (c >= '0' && c <= '9') value = value * 16 + (c - '0');
        else if (c >= 'a' && c <= 'f') value = value * 16 + (c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') value = value * 16 + (c - 'A' + 10);
        else return -1;
    }
    return value;
}

/* Length of the escape at s[i] (a backslash) with its code point in *point, or STOP_ESCAPE. Two \u escapes that are a
 * surrogate pair are one escape of 12 bytes; a surrogate alone stands for itself. */
static inline int read_escape(const uint8_t *s, uint32_t i, uint32_t n, uint32_t *point) {
    if (n - i < 2) return STOP_ESCAPE;
    switch (s[i + 1]) {
    case '"': *point = '"'; return 2;
    case '\\': *point = '\\'; return 2;
    case '/': *point = '/'; return 2;
    case 'b': *point = '\b'; return 2;
    case 'f': *point = '\f'; return 2;
    case 'n': *point = '\n'; return 2;
    case 'r': *point = '\r'; return 2;
    case 't': *point = '\t'; return 2;
    case 'u': break;
    default: return STOP_ESCAPE;
    }
    if (n - i < 6) return STOP_ESCAPE;
    int32_t high = hex4(s, i + 2);
    if (high < 0) return STOP_ESCAPE;
    *point = (uint32_t)high;
    if (high >= 0xD800 && high <= 0xDBFF && n - i >= 12 && s[i + 6] == '\\' && s[i + 7] == 'u') {
        int32_t low = hex4(s, i + 8);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *point = 0x10000 + (((uint32_t)high - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
            return 12;
        }
    }
    return 6;
}

/* Writes a decoded character inside a canonical string: escaped only where JSON demands it. At most the six bytes
 * of the escape it came from. */
static inline uint32_t write_canonical(uint8_t *to, uint32_t point) {
    static const char digits[] = "0123456789abcdef";
    char letter;
    switch (point) {
    case '"': letter = '"'; break;
    case '\\': letter = '\\'; break;
    case '\b': letter = 'b'; break;
    case '\f': letter = 'f'; break;
    case '\n': letter = 'n'; break;
    case '\r': letter = 'r'; break;
    case '\t': letter = 't'; break;
    default:
        if (point >= 0x20) return write_utf8(to, point);
        memcpy(to, "\\u00", 4);
        to[4] = (uint8_t)digits[point >> 4];
        to[5] = (uint8_t)digits[point & 15];
        return 6;
    }
    to[0] = '\\';
    to[1] = (uint8_t)letter;
    return 2;
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
 * control character or, unless all is known to be UTF-8, what is not ASCII; n if there is none. The run is copied to
 * `to`, if that is not NULL, and up to 31 bytes of what follows it. */
static inline uint32_t plain_run(const Reader *r, uint32_t i, uint8_t *to) {
    const uint8_t *s = r->s;
    const uint32_t n = r->n;
#if defined(CG_SSE2)
    if (!r->plain) {
        const Special by = special(r);
        /* Two vectors at a time: code has an escape every 20 to 40 bytes, so that most runs end in the first step. */
        for (; n - i >= 32; i += 32) {
            const __m128i a = _mm_loadu_si128((const __m128i *)(s + i));
            const __m128i b = _mm_loadu_si128((const __m128i *)(s + i + 16));
            if (to) {
                _mm_storeu_si128((__m128i *)to, a);
                _mm_storeu_si128((__m128i *)(to + 16), b);
                to += 32;
            }
            const uint32_t mask = special_bytes(a, by) | special_bytes(b, by) << 16;
            if (mask) return i + lowest_bit(mask);
        }
    }
#elif defined(CG_NEON)
    if (!r->plain) {
        const uint8x16_t quote = vdupq_n_u8('"'), slash = vdupq_n_u8('\\');
        const int8x16_t space = vdupq_n_s8(0x20);
        for (; n - i >= 16; i += 16) {
            uint8x16_t v = vld1q_u8(s + i);
            if (to) {
                vst1q_u8(to, v);
                to += 16;
            }
            uint8x16_t hit = vorrq_u8(vorrq_u8(vceqq_u8(v, quote), vceqq_u8(v, slash)),
                                      vcltq_s8(vreinterpretq_s8_u8(v), space));
            uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(hit), 4)), 0);
            if (mask) return i + (lowest_bit(mask) >> 2);
        }
    }
#endif
    for (; i < n && !is_special(r, s[i]); i++)
        if (to) *to++ = s[i];
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

/* Decodes the text at s[*at] in steps of 64 bytes for as long as it holds nothing but plain characters and two-byte
 * escapes; the rest is walk_string's. One mask serves all escapes of a step: looked for one by one, each waits for
 * the one before it, and a megabyte of source code has fifty thousand. Copies run up to 63 bytes over on both sides,
 * so a step is made only where 128 bytes are left, and DECODE_SLACK is asked for behind the decoded text; what is
 * written never overtakes what is read. */
static inline void decode_steps(const Reader *r, uint32_t *at, uint8_t *to, uint32_t *size, uint32_t *escaped) {
    const uint8_t *s = r->s;
    const uint32_t n = r->n;
    const Special by = special(r);
    uint32_t i = *at;
    uint8_t *out = to + *size;
    while (n - i >= 128) {
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
                *at = i + k;
                *size = (uint32_t)(out - to);
                return;
            }
            *out++ = simple;
            *escaped = 1;
            begin = k + 2;
        }
        if (begin < 64) {
            copy_32(out, block + begin);
            if (64 - begin > 32) copy_32(out + 32, block + begin + 32);
            out += 64 - begin;
            begin = 64;
        }
        i += begin;
    }
    *at = i;
    *size = (uint32_t)(out - to);
}
#endif

/* Checks the string that opens at r->at, leaves r->at behind it and its span in *token. Its decoded text goes to `to`
 * on the way, if that is not NULL, which has as many bytes as the token and DECODE_SLACK: one pass instead of two, and
 * what stands between two escapes is short. */
static inline int walk_string(Reader *r, Token *token, uint8_t *to) {
    const uint8_t *s = r->s;
    const uint32_t n = r->n;
    uint32_t i = r->at + 1, size = 0, escaped = 0;
    token->start = r->at;
    for (;;) {
#if defined(CG_SSE2)
        if (to && !r->plain) decode_steps(r, &i, to, &size, &escaped);
#endif
        const uint32_t run = plain_run(r, i, to ? to + size : NULL);
        size += run - i;
        i = run;
        if (i >= n) {
            r->at = n;
            return STOP_TRUNCATED;
        }
        const uint8_t c = s[i];
        if (c == '\\') {
            const uint8_t simple = n - i >= 2 ? SIMPLE_ESCAPE[s[i + 1]] : 0;
            escaped = 1;
            if (simple) {
                if (to) to[size] = simple;
                size++;
                i += 2;
                continue;
            }
            uint32_t point;
            const int length = read_escape(s, i, n, &point);
            if (length < 0) {
                r->at = i;
                return length;
            }
            if (to) write_utf8(to + size, point);
            size += utf8_size(point);
            i += (uint32_t)length;
        } else if (c == '"') {
            break;
        } else if (c >= 0x80) {
            if (r->utf8 == UTF8_UNCHECKED) check_utf8(r, i);
            if (r->utf8 == UTF8_VALID) continue;
            do { /* text in another script: one character after the other, no vector step between */
                const int length = utf8_length(s, i, n);
                if (length < 0) {
                    r->at = i;
                    return length;
                }
                if (to) memcpy(to + size, s + i, (size_t)length);
                size += (uint32_t)length;
                i += (uint32_t)length;
            } while (i < n && s[i] >= 0x80);
        } else {
            r->at = i;
            return STOP_CONTROL;
        }
    }
    token->end = i + 1;
    token->size = size;
    token->escaped = escaped;
    r->at = i + 1;
    return 0;
}

static int scan_string(Reader *r, Token *token) {
    return walk_string(r, token, NULL);
}

/* Position of the quote that ends the string that opens at r->at, or n if there is none; nothing else is checked. */
static inline uint32_t closing_quote(const Reader *r) {
    const uint8_t *s = r->s;
    uint32_t i = r->at + 1;
    while (i < r->n) {
        const uint8_t *hit = (const uint8_t *)memchr(s + i, '"', r->n - i);
        if (!hit) break;
        const uint32_t quote = (uint32_t)(hit - s);
        uint32_t slashes = quote; /* an odd count of backslashes before it makes it a character of the text */
        while (slashes > i && s[slashes - 1] == '\\') slashes--;
        if (!((quote - slashes) & 1)) return quote;
        i = quote + 1;
    }
    return r->n;
}

/* Checks the string that opens at r->at like scan_string. Its decoded text is put at the end of `decoded`, without
 * becoming part of it, but where the token itself says the same: *copied is 0 then. */
static int decode_text(Reader *r, Token *token, Buffer *decoded, int *copied) {
    const uint32_t end = closing_quote(r);
    *copied = end < r->n && memchr(r->s + r->at, '\\', end - r->at) != NULL;
    if (!*copied) return scan_string(r, token);
    if (!reserve(decoded, (size_t)(end - r->at) + DECODE_SLACK)) return STOP_MEMORY;
    return walk_string(r, token, decoded->bytes + decoded->len);
}

/* Next backslash in [i, end), or end. */
static inline uint32_t next_slash(const uint8_t *s, uint32_t i, uint32_t end) {
    const uint8_t *hit = (const uint8_t *)memchr(s + i, '\\', end - i);
    return hit ? (uint32_t)(hit - s) : end;
}

/* Writes a checked string's canonical token. */
static inline void put_string(Reader *r, const Token *token) {
    if (!has_room(r, token->end - token->start)) return;
    if (!token->escaped) {
        put(r, r->s + token->start, token->end - token->start);
        return;
    }
    const uint32_t end = token->end - 1;
    uint32_t i = token->start + 1, point = 0;
    put_byte(r, '"');
    while (i < end) {
        uint32_t run = next_slash(r->s, i, end);
        put(r, r->s + i, run - i);
        if (run == end) break;
        i = run + (uint32_t)read_escape(r->s, run, end, &point);
        r->canon.len += write_canonical(r->canon.bytes + r->canon.len, point);
    }
    put_byte(r, '"');
}

/* Writes a checked string's decoded text (token->size bytes) to `to`. */
static inline void decode_string(const uint8_t *s, const Token *token, uint8_t *to) {
    const uint32_t end = token->end - 1;
    uint32_t i = token->start + 1, point = 0;
    while (i < end) {
        uint32_t run = next_slash(s, i, end);
        memcpy(to, s + i, run - i);
        to += run - i;
        if (run == end) break;
        i = run + (uint32_t)read_escape(s, run, end, &point);
        to += write_utf8(to, point);
    }
}

/* True if the decoded text of a checked string holds the opening of a marker. */
static int holds_marker(const uint8_t *text, uint32_t n) {
    static const char opening[] = "<<cg:";
    uint32_t i = 0;
    while (n - i >= 5) {
        const uint8_t *hit = (const uint8_t *)memchr(text + i, '<', n - i - 4);
        if (!hit) return 0;
        if (memcmp(hit, opening, 5) == 0) return 1;
        i = (uint32_t)(hit - text) + 1;
    }
    return 0;
}

#endif
