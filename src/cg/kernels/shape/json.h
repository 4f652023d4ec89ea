/* Is this text one JSON value (RFC 8259)? No recursion and no depth limit: open brackets are bits on a heap stack. */
#ifndef CG_SHAPE_JSON_H
#define CG_SHAPE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_VALID = 0, JSON_CUT = 1, JSON_BAD = 2, JSON_NO_MEMORY = 3 };

typedef struct {
    size_t reach;     /* position of the first byte that no JSON text has there; n if there is none */
    uint64_t records; /* elements of the outermost array so far */
    int status;       /* CUT: every byte was fine, more had to come */
} JsonScan;

#define JSON_INLINE_DEPTH 2048 /* levels that need no heap */

typedef struct {
    uint8_t first[JSON_INLINE_DEPTH / 8];
    uint8_t *bits; /* bit set: an array is open at that level; clear: an object */
    size_t room;   /* levels */
    size_t depth;
} BracketStack;

static int push_bracket(BracketStack *b, int is_array) {
    uint8_t *byte;
    if (b->depth == b->room) {
        size_t bytes = b->room / 4; /* twice as many levels; depth is bounded by the length of the text */
        uint8_t *grown = (uint8_t *)(b->bits == b->first ? malloc(bytes) : realloc(b->bits, bytes));
        if (!grown) return 0;
        if (b->bits == b->first) memcpy(grown, b->first, sizeof b->first);
        b->bits = grown;
        b->room *= 2;
    }
    byte = b->bits + b->depth / 8;
    *byte = (uint8_t)((*byte & ~(1u << (b->depth & 7))) | ((unsigned)is_array << (b->depth & 7)));
    b->depth++;
    return 1;
}

static int in_array(const BracketStack *b) { return b->bits[(b->depth - 1) / 8] >> ((b->depth - 1) & 7) & 1; }

static int is_json_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static int is_hex(uint8_t c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

static size_t skip_json_space(const uint8_t *s, size_t i, size_t n) {
    while (i < n && is_json_space(s[i])) i++;
    return i;
}

/* 1 if one of these eight bytes is a quote, a backslash or below 0x20. */
static int has_string_stop(const uint8_t *s) {
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    uint64_t w, quote, slash;
    memcpy(&w, s, 8);
    quote = w ^ (ones * '"');
    slash = w ^ (ones * '\\');
    /* The borrow of a lower byte can only raise a false alarm above a true one, which the byte loop then settles. */
    return ((((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & tops) != 0;
}

/* Each skip_ function starts at s[i], moves *at past what it read, and returns VALID, CUT or BAD (with *at = reach). */
static int skip_json_string(const uint8_t *s, size_t n, size_t *at) {
    size_t i = *at + 1;
    for (;;) {
        while (n - i >= 8 && !has_string_stop(s + i)) i += 8;
        while (i < n && s[i] != '"' && s[i] != '\\' && s[i] >= 0x20) i++;
        *at = i;
        if (i == n) return JSON_CUT;
        if (s[i] == '"') {
            *at = i + 1;
            return JSON_VALID;
        }
        if (s[i] < 0x20) return JSON_BAD;
        *at = ++i;
        if (i == n) return JSON_CUT;
        if (s[i] == 'u') {
            size_t k;
            for (k = 1; k <= 4; k++) {
                *at = i + k;
                if (i + k == n) return JSON_CUT;
                if (!is_hex(s[i + k])) return JSON_BAD;
            }
            i += 5;
        } else {
            if (!strchr("\"\\/bfnrt", s[i]) || s[i] == 0) return JSON_BAD;
            i++;
        }
    }
}

static int skip_json_word(const uint8_t *s, size_t n, size_t *at, const char *word) {
    for (; *word; word++, ++*at) {
        if (*at == n) return JSON_CUT;
        if (s[*at] != (uint8_t)*word) return JSON_BAD;
    }
    return JSON_VALID;
}

static int skip_json_digits(const uint8_t *s, size_t n, size_t *at) {
    if (*at == n) return JSON_CUT;
    if (!is_digit(s[*at])) return JSON_BAD;
    while (*at < n && is_digit(s[*at])) ++*at;
    return JSON_VALID;
}

static int skip_json_number(const uint8_t *s, size_t n, size_t *at) {
    int status;
    if (s[*at] == '-') ++*at;
    if (*at < n && s[*at] == '0') {
        ++*at;
    } else if ((status = skip_json_digits(s, n, at)) != JSON_VALID) {
        return status;
    }
    if (*at < n && s[*at] == '.') {
        ++*at;
        if ((status = skip_json_digits(s, n, at)) != JSON_VALID) return status;
    }
    if (*at < n && (s[*at] | 0x20) == 'e') {
        ++*at;
        if (*at < n && (s[*at] == '+' || s[*at] == '-')) ++*at;
        return skip_json_digits(s, n, at);
    }
    return JSON_VALID;
}

static int skip_json_scalar(const uint8_t *s, size_t n, size_t *at) {
    switch (s[*at]) {
    case '"': return skip_json_string(s, n, at);
    case 't': return skip_json_word(s, n, at, "true");
    case 'f': return skip_json_word(s, n, at, "false");
    case 'n': return skip_json_word(s, n, at, "null");
    default: return s[*at] == '-' || is_digit(s[*at]) ? skip_json_number(s, n, at) : JSON_BAD;
    }
}

/* From a member's name to the first byte of its value. */
static int skip_json_name(const uint8_t *s, size_t n, size_t *at) {
    int status;
    *at = skip_json_space(s, *at, n);
    if (*at == n) return JSON_CUT;
    if (s[*at] != '"') return JSON_BAD;
    if ((status = skip_json_string(s, n, at)) != JSON_VALID) return status;
    *at = skip_json_space(s, *at, n);
    if (*at == n) return JSON_CUT;
    if (s[*at] != ':') return JSON_BAD;
    ++*at;
    return JSON_VALID;
}

/* One step into `[` or `{`: VALID with *closed set if it is empty, else *at stands where a value has to start. */
static int open_json(const uint8_t *s, size_t n, size_t *at, BracketStack *b, int *closed) {
    int is_array = s[*at] == '[';
    *closed = 0;
    if (!push_bracket(b, is_array)) return JSON_NO_MEMORY;
    *at = skip_json_space(s, *at + 1, n);
    if (*at == n) return JSON_CUT;
    if (s[*at] == (is_array ? ']' : '}')) {
        *closed = 1;
        return JSON_VALID;
    }
    return is_array ? JSON_VALID : skip_json_name(s, n, at);
}

/* After a value: closes what ends here; *more set if a comma promised another value, clear once all closed. */
static int after_json_value(const uint8_t *s, size_t n, size_t *at, BracketStack *b, uint64_t *records, int *more) {
    *more = 0;
    while (b->depth) {
        int array = in_array(b);
        *at = skip_json_space(s, *at, n);
        if (*at == n) return JSON_CUT;
        if (s[*at] == ',') {
            ++*at;
            *more = 1;
            if (array) {
                *records += b->depth == 1;
                return JSON_VALID;
            }
            return skip_json_name(s, n, at);
        }
        if (s[*at] != (array ? ']' : '}')) return JSON_BAD;
        ++*at;
        b->depth--;
    }
    return JSON_VALID;
}

/* Reads the one value that starts at s[at]; VALID leaves `reach` behind it, whatever follows. */
static JsonScan scan_json(const uint8_t *s, size_t at, size_t n) {
    BracketStack b;
    JsonScan out = {0, 0, JSON_VALID};
    int more = 1, closed;
    b.bits = b.first;
    b.room = JSON_INLINE_DEPTH;
    b.depth = 0;
    while (more && out.status == JSON_VALID) {
        at = skip_json_space(s, at, n);
        if (at == n) {
            out.status = JSON_CUT;
        } else if (s[at] == '[' || s[at] == '{') {
            out.status = open_json(s, n, &at, &b, &closed);
            if (out.status != JSON_VALID) break;
            if (b.depth == 1 && !closed && in_array(&b)) out.records = 1;
            if (!closed) continue;
            out.status = after_json_value(s, n, &at, &b, &out.records, &more);
        } else if ((out.status = skip_json_scalar(s, n, &at)) == JSON_VALID) {
            out.status = after_json_value(s, n, &at, &b, &out.records, &more);
        }
    }
    if (b.bits != b.first) free(b.bits);
    out.reach = at;
    return out;
}

#endif
