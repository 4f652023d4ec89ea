/* JSON text (RFC 8259) read in place: an index, a depth limit, no recursion, no Python object.
 *
 * Every function takes a Reader whose `at` is the position in the text and returns 0 or a negative Stop; the caller
 * passes it on. What is accepted here, Python's json accepts with the same meaning: UTF-8 is strict (no surrogates
 * in the raw bytes, no overlong forms), NaN and Infinity are refused, an integer has at most MAX_NUMBER characters.
 *
 * Accepted values are also written to `out`, in one canonical spelling: no white space, strings with the shortest
 * escapes, numbers and key order as they stand. Equal canonical text means equal JSON. It is never longer than the
 * text it was made from.
 */
#ifndef CG_TRANSCRIPT_JSON_H
#define CG_TRANSCRIPT_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#define MAX_DEPTH 192    /* open containers inside one value; clients send below 20, json.loads takes about 1,000 */
#define MAX_NUMBER 4000  /* characters; int() refuses more than 4,300 digits */

typedef enum {
    STOP_TRUNCATED = -1,
    STOP_SYNTAX = -2,
    STOP_CONTROL = -3,
    STOP_UTF8 = -4,
    STOP_ESCAPE = -5,
    STOP_NUMBER = -6,
    STOP_DEPTH = -7,
    STOP_TRAILING = -8,
    STOP_DUPLICATE = -9,
    STOP_TYPE = -10,
    STOP_MISSING = -11,
    STOP_TOO_MANY = -12,
    STOP_MEMORY = -13
} Stop;

typedef struct {      /* a string token, quotes included */
    uint32_t start, end;
    uint32_t size;    /* bytes of the decoded text as UTF-8, lone surrogates as three bytes */
    uint32_t escaped; /* 1 if a backslash stands in it */
} Token;

typedef struct {
    const uint8_t *s;
    uint32_t n, at;
    uint8_t *out;     /* canonical text; NULL: looking ahead, nothing is written */
    size_t out_len, out_size;
    int overflow;     /* 1: the canonical text did not fit; cannot happen while its bound is right */
    int plain;        /* 1: the portable scan even where a vector one exists */
} Reader;

static inline uint32_t lowest_bit(uint64_t mask) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanForward64(&at, mask);
    return (uint32_t)at;
#else
    return (uint32_t)__builtin_ctzll(mask);
#endif
}

/* True if `count` more bytes are wanted and fit. */
static inline int has_room(Reader *r, size_t count) {
    if (!r->out) return 0;
    if (r->out_size - r->out_len >= count) return 1;
    r->overflow = 1;
    return 0;
}

static inline void put(Reader *r, const void *bytes, size_t count) {
    if (has_room(r, count)) {
        memcpy(r->out + r->out_len, bytes, count);
        r->out_len += count;
    }
}

static inline void put_byte(Reader *r, uint8_t byte) {
    if (has_room(r, 1)) r->out[r->out_len++] = byte;
}

#if defined(CG_SSE2)
/* One bit for each byte that ends a run of plain text. */
static inline uint32_t special_bytes(__m128i v) {
    /* signed: below 0x20 are the controls and everything from 0x80 up */
    const __m128i low = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
    const __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    const __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), low));
}
#endif

/* Position of the first byte at or after i that ends a run of plain ASCII text inside a string: a quote, a backslash,
 * a control character or the lead of a multi-byte character; n if there is none. The run is copied to `to`, if that is
 * not NULL, and up to 31 bytes of what follows it. */
static inline uint32_t plain_run(const Reader *r, uint32_t i, uint8_t *to) {
    const uint8_t *s = r->s;
    const uint32_t n = r->n;
#if defined(CG_SSE2)
    if (!r->plain) {
        /* Two vectors at a time: code has an escape every 20 to 40 bytes, so that most runs end in the first step. */
        for (; n - i >= 32; i += 32) {
            const __m128i a = _mm_loadu_si128((const __m128i *)(s + i));
            const __m128i b = _mm_loadu_si128((const __m128i *)(s + i + 16));
            if (to) {
                _mm_storeu_si128((__m128i *)to, a);
                _mm_storeu_si128((__m128i *)(to + 16), b);
                to += 32;
            }
            const uint32_t mask = special_bytes(a) | special_bytes(b) << 16;
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
    for (; i < n && s[i] >= 0x20 && s[i] < 0x80 && s[i] != '"' && s[i] != '\\'; i++)
        if (to) *to++ = s[i];
    return i;
}

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
static inline void copy_32(uint8_t *to, const uint8_t *from) {
    _mm_storeu_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)from));
    _mm_storeu_si128((__m128i *)(to + 16), _mm_loadu_si128((const __m128i *)(from + 16)));
}

static inline uint64_t special_mask(const uint8_t *p) {
    uint64_t mask = 0;
    for (int k = 0; k < 4; k++)
        mask |= (uint64_t)special_bytes(_mm_loadu_si128((const __m128i *)(p + 16 * k))) << 16 * k;
    return mask;
}

/* Decodes the text at s[*at] in steps of 64 bytes for as long as it holds nothing but plain characters and two-byte
 * escapes; the rest is walk_string's. One mask serves all escapes of a step: looked for one by one, each waits for
 * the one before it, and a megabyte of source code has fifty thousand. Copies run up to 63 bytes over on both sides,
 * so a step is made only where 128 bytes are left; what is written never overtakes what is read. */
static inline void decode_steps(const uint8_t *s, uint32_t n, uint32_t *at, uint8_t *to, uint32_t *size, uint32_t *escaped) {
    uint32_t i = *at;
    uint8_t *out = to + *size;
    while (n - i >= 128) {
        const uint8_t *block = s + i;
        uint64_t mask = special_mask(block);
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
 * on the way, which has as many bytes as the body has left, if that is not NULL: one pass instead of two, and what
 * stands between two escapes is short. */
static inline int walk_string(Reader *r, Token *token, uint8_t *to) {
    const uint8_t *s = r->s;
    const uint32_t n = r->n;
    uint32_t i = r->at + 1, size = 0, escaped = 0;
    token->start = r->at;
    for (;;) {
#if defined(CG_SSE2)
        if (to && !r->plain) decode_steps(s, n, &i, to, &size, &escaped);
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

static int scan_and_decode(Reader *r, Token *token, uint8_t *to) {
    return walk_string(r, token, to);
}

/* Next backslash in [i, end), or end. */
static inline uint32_t next_slash(const uint8_t *s, uint32_t i, uint32_t end) {
    const uint8_t *hit = (const uint8_t *)memchr(s + i, '\\', end - i);
    return hit ? (uint32_t)(hit - s) : end;
}

/* Writes a checked string's canonical token to r->out. */
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
        r->out_len += write_canonical(r->out + r->out_len, point);
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

static inline void skip_space(Reader *r) {
    const uint8_t *s = r->s;
    uint32_t i = r->at;
    while (i < r->n && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t')) i++;
    r->at = i;
}

/* The next byte that is not white space, left unread, or STOP_TRUNCATED. */
static inline int peek(Reader *r) {
    skip_space(r);
    return r->at < r->n ? r->s[r->at] : STOP_TRUNCATED;
}

static inline uint32_t digits_end(const Reader *r, uint32_t i) {
    while (i < r->n && r->s[i] >= '0' && r->s[i] <= '9') i++;
    return i;
}

static int copy_number(Reader *r) {
    const uint8_t *s = r->s;
    uint32_t i = r->at, begin;
    if (s[i] == '-') i++;
    begin = i;
    i = digits_end(r, i);
    if (i == begin || (s[begin] == '0' && i - begin > 1)) return STOP_NUMBER;
    if (i < r->n && s[i] == '.') {
        begin = i + 1;
        i = digits_end(r, begin);
        if (i == begin) return STOP_NUMBER;
    }
    if (i < r->n && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        if (i < r->n && (s[i] == '+' || s[i] == '-')) i++;
        begin = i;
        i = digits_end(r, begin);
        if (i == begin) return STOP_NUMBER;
    }
    if (i - r->at > MAX_NUMBER) return STOP_NUMBER;
    put(r, s + r->at, i - r->at);
    r->at = i;
    return 0;
}

static int copy_word(Reader *r, const char *word, uint32_t length) {
    if (r->n - r->at < length || memcmp(r->s + r->at, word, length) != 0) return STOP_SYNTAX;
    put(r, word, length);
    r->at += length;
    return 0;
}

static int copy_scalar(Reader *r, int first) {
    Token token;
    int stop;
    switch (first) {
    case '"':
        stop = scan_string(r, &token);
        if (stop == 0) put_string(r, &token);
        return stop;
    case 't': return copy_word(r, "true", 4);
    case 'f': return copy_word(r, "false", 5);
    case 'n': return copy_word(r, "null", 4);
    default: break;
    }
    if (first == '-' || (first >= '0' && first <= '9')) return copy_number(r);
    return first < 0 ? first : STOP_SYNTAX;
}

/* Reads `"key" :` and leaves r->at before the value. */
static int copy_key(Reader *r) {
    Token token;
    int c = peek(r);
    if (c != '"') return c < 0 ? c : STOP_SYNTAX;
    c = scan_string(r, &token);
    if (c < 0) return c;
    put_string(r, &token);
    c = peek(r);
    if (c != ':') return c < 0 ? c : STOP_SYNTAX;
    r->at++;
    put_byte(r, ':');
    return 0;
}

/* Checks one value of any kind and writes its canonical text; `open` holds the kinds of the open containers. */
static int copy_value(Reader *r) {
    uint8_t open[MAX_DEPTH];
    int depth = 0, stop, c = peek(r);
    for (;;) {
        if (c == '{' || c == '[') { /* a container opens; c becomes the first byte of its first value */
            if (depth == MAX_DEPTH) return STOP_DEPTH;
            const uint8_t close = c == '{' ? '}' : ']';
            put_byte(r, (uint8_t)c);
            r->at++;
            open[depth++] = close;
            c = peek(r);
            if (c != close) {
                if (close == '}') {
                    if ((stop = copy_key(r)) < 0) return stop;
                    c = peek(r);
                }
                continue;
            }
        } else {
            if ((stop = copy_scalar(r, c)) < 0) return stop;
            if (depth == 0) return 0;
            c = peek(r);
        }
        while (c == open[depth - 1]) { /* a value has ended; so may containers */
            put_byte(r, (uint8_t)c);
            r->at++;
            if (--depth == 0) return 0;
            c = peek(r);
        }
        if (c != ',') return c < 0 ? c : STOP_SYNTAX;
        put_byte(r, ',');
        r->at++;
        if (open[depth - 1] == '}' && (stop = copy_key(r)) < 0) return stop;
        c = peek(r);
    }
}

/* Checks one value and writes nothing. */
static inline int skip_value(Reader *r) {
    uint8_t *out = r->out;
    r->out = NULL;
    const int stop = copy_value(r);
    r->out = out;
    return stop;
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
