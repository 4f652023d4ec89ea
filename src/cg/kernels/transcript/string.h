/* JSON strings read in place: checked, decoded, and written in their canonical spelling. */
#ifndef CG_TRANSCRIPT_STRING_H
#define CG_TRANSCRIPT_STRING_H

#include "transcript/vector.h"

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

/* Puts n bytes behind the `size` bytes that stand past the end of `decoded`; 0 if memory is short. */
static inline int keep_decoded(Buffer *decoded, uint32_t size, const uint8_t *from, uint32_t n) {
    if (!reserve(decoded, (size_t)size + n + DECODE_SLACK)) return 0;
    memcpy(decoded->bytes + decoded->len + size, from, n);
    return 1;
}

/* Length and code point of the escape at i, or a stop. */
static inline int walk_escape(const Reader *r, uint32_t i, uint32_t *point) {
    *point = r->n - i >= 2 ? SIMPLE_ESCAPE[r->s[i + 1]] : 0;
    return *point ? 2 : read_escape(r->s, i, r->n, point);
}

/* Steps past characters beyond ASCII, one after the other, no vector step between; a stop leaves *i at the fault. */
static inline int walk_characters(const Reader *r, uint32_t *i) {
    do {
        const int length = utf8_length(r->s, *i, r->n);
        if (length < 0) return length;
        *i += (uint32_t)length;
    } while (*i < r->n && r->s[*i] >= 0x80);
    return 0;
}

/* Checks the string that opens at r->at, leaves r->at behind it and its span in *token. What it says goes to the end of
 * `decoded`, if that is not NULL, without becoming part of it; where no escape stands, the token says the same and
 * nothing is put there. */
static inline int walk_string(Reader *r, Token *token, Buffer *decoded) {
    const uint8_t *s = r->s;
    const uint32_t n = r->n;
    uint32_t i = r->at + 1, size = 0, escaped = 0;
    token->start = r->at;
    for (;;) {
        if (escaped && decoded && (i = decode_steps(r, i, decoded, &size)) == NO_MEMORY) return STOP_MEMORY;
        const uint32_t run = plain_run(r, i);
        if (escaped && decoded && !keep_decoded(decoded, size, s + i, run - i)) return STOP_MEMORY;
        size += run - i;
        i = run;
        r->at = i;               /* where a stop is found; the end in one that is cut */
        if (i >= n) return STOP_TRUNCATED;
        const uint8_t c = s[i];
        if (c == '\\') {
            uint32_t point;
            const int length = walk_escape(r, i, &point);
            /* At the first one, what stands before it was not copied. */
            if (!escaped && decoded && !keep_decoded(decoded, 0, s + token->start + 1, size)) return STOP_MEMORY;
            escaped = 1;
            if (length < 0) return length;
            if (decoded) write_utf8(decoded->bytes + decoded->len + size, point);
            size += utf8_size(point);
            i += (uint32_t)length;
        } else if (c == '"') {
            break;
        } else if (c >= 0x80) {
            if (r->utf8 == UTF8_UNCHECKED) check_utf8(r, i);
            if (r->utf8 == UTF8_VALID) continue;
            const uint32_t begin = i;
            const int stop = walk_characters(r, &i);
            r->at = i;
            if (stop < 0) return stop;
            if (escaped && decoded && !keep_decoded(decoded, size, s + begin, i - begin)) return STOP_MEMORY;
            size += i - begin;
        } else {
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

/* Checks a string like scan_string, and puts what it says at the end of `decoded` if an escape stands in it. */
static int decode_text(Reader *r, Token *token, Buffer *decoded) {
    return walk_string(r, token, decoded);
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
