/* The whole description of a text: its size in lines, its kind, its records. */
#ifndef CG_SHAPE_DESCRIBE_H
#define CG_SHAPE_DESCRIBE_H

#include "shape/json.h"
#include "shape/rules.h"
#include "shape/scan.h"

typedef struct {
    int kind;
    int64_t records; /* -1: not defined */
    int64_t lines;
    int failed;      /* 1: no memory for the bracket stack */
} ShapeFacts;

/* One line of JSON lines: an object or array from its first byte to its last. */
static int is_bracketed(const uint8_t *s, size_t a, size_t b) {
    return b - a >= 2 && ((s[a] == '{' && s[b - 1] == '}') || (s[a] == '[' && s[b - 1] == ']'));
}

/* Every line that is not blank is an object or array by its brackets, and those that end in the front window are valid
   JSON. Number of such lines; 0 if it is something else; a cut last line is forgiven and makes *cut 1. */
static int64_t count_json_lines(const uint8_t *s, size_t at, size_t n, int *cut, int *failed) {
    int64_t records = 0;
    size_t window = at + HEAD_BYTES;
    *cut = 0;
    while (at < n) {
        const uint8_t *newline = (const uint8_t *)memchr(s + at, '\n', n - at);
        size_t end = newline ? (size_t)(newline - s) : n, a = at, b = end;
        while (a < b && is_blank(s[a])) a++;
        while (b > a && is_blank(s[b - 1])) b--;
        at = end + 1;
        if (a == b) continue;
        if (is_bracketed(s, a, b)) {
            if (end <= window || !records) {
                JsonScan j = scan_json(s, a, b);
                *failed |= j.status == JSON_NO_MEMORY;
                if (j.status != JSON_VALID || j.reach != b) return 0;
            }
            records++;
        } else if (!newline && records >= 2 && (s[a] == '{' || s[a] == '[')) {
            *cut = 1;
        } else {
            return 0;
        }
    }
    return records >= 2 ? records : 0;
}

/* Fills kind and records and returns 1 if the text is JSON of some sort; s[at] is its first byte that is not blank. */
static int describe_json(const uint8_t *s, size_t at, size_t n, int is_utf8, ShapeFacts *out) {
    JsonScan j = scan_json(s, at, n);
    int cut;
    int64_t records;
    out->failed = j.status == JSON_NO_MEMORY;
    if (out->failed) return 1;
    if (j.status == JSON_VALID) {
        j.reach = skip_json_space(s, j.reach, n);
        if (j.reach < n) {
            records = count_json_lines(s, at, n, &cut, &out->failed);
            if (records || out->failed) {
                out->kind = KIND_JSON_LINES;
                out->records = cut || !is_utf8 ? -1 : records;
                return 1;
            }
        }
    }
    if (j.reach < n && (j.reach - at < 256 || 2 * j.reach < n)) return 0; /* brackets, but no JSON */
    if (j.status == JSON_CUT && n - at < 16) return 0;
    out->kind = s[at] == '[' ? KIND_JSON_ARRAY : KIND_JSON_OBJECT;
    if (out->kind == KIND_JSON_ARRAY && j.status == JSON_VALID && j.reach == n && is_utf8)
        out->records = (int64_t)j.records;
    return 1;
}

static void shape_describe(const uint8_t *s, size_t n, int vectors, ShapeFacts *out) {
    ByteCounts c;
    Tally t;
    uint64_t stray;
    size_t from = 0, at;
    count_bytes(s, n, vectors, &c);
    out->failed = 0;
    out->records = -1;
    out->kind = KIND_OTHER;
    out->lines = (int64_t)c.newlines + (n > 0 && s[n - 1] != '\n');
    stray = c.high ? count_stray_bytes(s, n) : 0;
    if (c.nuls || 32 * c.controls > n || 8 * stray > n) {
        out->kind = KIND_BINARY;
        return;
    }
    if (c.escapes >= 2 && 20 * c.escapes >= (uint64_t)out->lines) {
        out->kind = KIND_COLOURED_TERMINAL;
        return;
    }
    if (n >= 3 && s[0] == 0xEF && s[1] == 0xBB && s[2] == 0xBF) from = 3; /* a byte-order mark is no content */
    for (at = from; at < n && (is_blank(s[at]) || s[at] == 0x0A); at++) {}
    if (at < n && (s[at] == '{' || s[at] == '[') && describe_json(s, at, n, stray == 0, out)) {
        /* A form feed before the bracket is blank to the kinds, but no JSON. */
        if (out->kind == KIND_JSON_ARRAY && skip_json_space(s, from, n) != at) out->records = -1;
        return;
    }
    tally_text(s + from, n - from, &t);
    out->kind = kind_of_lines(&t);
}

#endif
