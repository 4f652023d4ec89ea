/* Where a curly string or a comment ends. Brackets inside one may each start a candidate whose own string or comment ends at
   the same place, so what was looked through once is not looked through again. */
#ifndef CG_VERDICT_SPAN_H
#define CG_VERDICT_SPAN_H

#include "verdict/state.h"

/* Start of a search at i: where an earlier one that passed i stands. */
static inline size_t span_enter(Span *span, size_t i) {
    if (i >= span->from && i <= span->end) return span->end;
    span->from = i;
    return i;
}

/* The first line break at or behind i, or the end of the bytes. */
static size_t line_stop(Machine *m, size_t i) {
    const uint8_t *s = m->s;
    i = span_enter(&m->line, i);
    while (i < m->n && s[i] != '\n' && s[i] != '\r') i++;
    return m->line.end = i;
}

/* The first asterisk at or behind i with a slash next to it, or m->n if there is none yet. */
static size_t block_stop(Machine *m, size_t i) {
    const uint8_t *s = m->s;
    i = span_enter(&m->block, i);
    while (i < m->n) {
        const uint8_t *found = (const uint8_t *)memchr(s + i, '*', m->n - i);
        i = found ? (size_t)(found - s) : m->n;
        m->block.end = i;
        if (m->n - i < 2) return m->n;
        if (s[i + 1] == '/') return i;
        i++;
    }
    m->block.end = i;
    return i;
}

/* The U+201D that closes a curly string, from a place inside it, or m->n if there is none yet. Searches that start in one
   another agree: no token ends in a backslash, so none that is active stands before an opening quote. */
static size_t curly_stop(Machine *m, size_t i, int is_final) {
    const uint8_t *s = m->s;
    const size_t n = m->n;
    i = span_enter(&m->curly, i);
    for (;;) {
        m->curly.end = i = string_stop(s, i, n, 0xE2, m->scan_level);
        if (i >= n) return n;
        if (s[i] == '\\') {
            if (i + 1 == n || (s[i + 1] == 0xE2 && n - i < 4 && !is_final)) return n;
            if (n - i >= 4 && is_three(s + i + 1, 0xE2, 0x80, 0x9D)) i += 4;
            else i += s[i + 1] < 0x80 ? 2 : 1;
        } else {
            if (n - i < 3) return n;
            if (is_three(s + i, 0xE2, 0x80, 0x9D)) return i;
            i++;
        }
    }
}

/* The byte that closes a string in straight quotes, from a place inside it; where to go on when there are more bytes, m->n or
   a backslash, if there is none yet. */
static inline size_t straight_stop(const Machine *m, size_t i, uint8_t quote, int is_final) {
    const uint8_t *s = m->s;
    const size_t n = m->n;
    while ((i = string_stop(s, i, n, quote, m->scan_level)) < n && s[i] != quote) {
        if (i + 1 == n || (s[i + 1] == 0xE2 && n - i < 4 && !is_final)) return i;
        if (n - i >= 4 && is_three(s + i + 1, 0xE2, 0x80, 0x9D)) i += 4;
        else i += s[i + 1] < 0x80 ? 2 : 1;
    }
    return i;
}

#endif
