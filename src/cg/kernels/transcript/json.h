/* JSON values (RFC 8259) read in place: an index, a depth limit, no recursion, no Python object.
 *
 * What is accepted here, Python's json accepts with the same meaning: UTF-8 is strict, NaN and Infinity are refused, an
 * integer has at most MAX_NUMBER characters.
 */
#ifndef CG_TRANSCRIPT_JSON_H
#define CG_TRANSCRIPT_JSON_H

#include "transcript/string.h"

#define MAX_DEPTH 192    /* open containers inside one value; clients send below 20, json.loads takes about 1,000 */
#define MAX_NUMBER 4000  /* characters; int() refuses more than 4,300 digits */

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
    const int quiet = r->quiet;
    r->quiet = 1;
    const int stop = copy_value(r);
    r->quiet = quiet;
    return stop;
}

#endif
