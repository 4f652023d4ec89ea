/* Reading text between candidates, and a candidate of more than MAX_LEVELS: its outermost bracket is given up, and scanning resumes behind it (R8).

   Done as it is written, that reads 64 levels again for every bracket. But the candidate that starts at the second bracket
   is already open, all of it but its outermost frame: so the frames wait on a shelf while the bytes between the two
   brackets are read as text, and reading goes on from them when the scan arrives at that second bracket. If the scan goes
   past it, the shelf is thrown away and the bytes are read again. */
#ifndef CG_VERDICT_DEPTH_H
#define CG_VERDICT_DEPTH_H

#include "verdict_tree.h"

/* The next opener in at..end is often near, where setting up the wide scan costs more than it saves. */
static inline size_t next_opener(const Machine *m, size_t at, size_t end) {
    const uint8_t *s = m->s;
    size_t near = end - at < 8 ? end : at + 8;
    for (; at < near; at++) if ((s[at] | 0x20) == '{' || s[at] == '<') return at;
    return at < end ? m->scan(s, at, end) : at;
}

/* Brackets that prose is full of, told apart without a frame: `[]`, `[word]`, and whatever breaks before anything in it is
   complete, `{word}` or `[[{=`. Where text goes on behind the one at s[at], with the same outcome as reading it in full;
   NOWHERE if that has to be done, or if the reply was given up. */
static size_t past_small(Machine *m, size_t at) {
    const uint8_t *s = m->s;
    const size_t n = m->n, end = n - at < 32 ? n : at + 32;
    size_t i = at;
    int is_object, is_root = 1;
    uint8_t c;
    for (;;) {
        is_object = s[i++] == '{';
        while (i < end && is_ascii_blank(s[i])) i++;
        if (i == end) return NOWHERE;
        c = s[i];
        if (is_object || (c != '[' && c != '{')) break;
        is_root = 0;
    }
    if (c == '"') {
        size_t next = i + 1;
        while ((next = string_stop(s, next, n, '"', m->scan_level)) < n && s[next] == '\\') {
            if (next + 1 == n || s[next + 1] >= 0x80) return NOWHERE;
            next += 2;
        }
        do next++; while (next < n && is_ascii_blank(s[next]));
        if (next >= n) return NOWHERE;
        c = s[next];
        if (c >= 0x80 || c == '/' || c == '#' || c == (is_object ? ':' : ',')) return NOWHERE;
        if (c == ']' && !is_object) return NOWHERE;
        return read_again(m, next, i + 1) ? i + 1 : NOWHERE;
    }
    if (is_word_byte(c)) {
        if (c == '.') return NOWHERE;                   /* a template, perhaps */
        while (i < end && is_word_byte(s[i])) i++;
        while (i < end && is_ascii_blank(s[i])) i++;
        if (i == end) return NOWHERE;
        c = s[i];
        if (c >= 0x80 || c == '/' || c == '#' || c == (is_object ? ':' : ',')) return NOWHERE;
        if (c != ']' || is_object) return i;
        return is_root ? i + 1 : NOWHERE;
    }
    if (c >= 0x80 || c == '\'' || c == '/' || c == '#') return NOWHERE;
    if (c != (is_object ? '}' : ']')) return i;
    if (!is_root) return NOWHERE;
    if (!is_object) {
        Claim claim = {NULL, 0, (uint8_t)!is_index_or_box(s, at, i), CLOSED};
        if (claim.tier && may_answer(m, at)) claim_merge(&m->offer, &m->best, &claim);
    }
    return i + 1;
}

/* The first opener in at..end that has to be read in full. */
static inline size_t past_all_small(Machine *m, size_t at, size_t end) {
    while ((at = next_opener(m, at, end)) < end && m->s[at] != '<') {
        size_t after = past_small(m, at);
        if (after == NOWHERE) break;
        m->saw_bracket = 1;
        at = after;
    }
    return at;
}

/* The outermost bracket is gone; the one inside it starts the candidate. */
static inline void root_given_up(Machine *m) {
    Deck *d = &m->open;
    size_t start = frame_of(d, 1)->start;
    frame_release(m, frame_of(d, 0));
    d->base++;
    d->depth--;
    if (d->last_content != NOWHERE && d->last_content < start) d->last_content = NOWHERE;
    if (d->last_string != NOWHERE && d->last_string < start) d->last_string = NOWHERE;
}

/* A long row of '[' at m->at, all brackets open so far standing in the same row: only its last MAX_LEVELS matter, as each
   of the others would be given up in turn. Without this a megabyte of '[' costs a frame a byte. */
static int skip_row(Machine *m) {
    size_t first = m->at - MAX_LEVELS, end;
    if (frame_of(&m->open, 0)->start != first || opener_row(m->s, first, m->at) != m->at) return 0;
    end = opener_row(m->s, m->at, m->n);
    if (end - m->at <= MAX_LEVELS) return 0;
    deck_clear(m, &m->open);
    for (m->at = end - MAX_LEVELS; m->at < end; m->at++) frame_push(m, 0);
    return 1;
}

static void shelf_remove(Machine *m, int k) {
    Shelf free = m->shelf[k];
    m->shelf[k] = m->shelf[--m->shelved];
    m->shelf[m->shelved] = free;
    m->shelf_next = NOWHERE;
    for (k = 0; k < m->shelved; k++) if (m->shelf[k].next < m->shelf_next) m->shelf_next = m->shelf[k].next;
}

/* Throw away what waits for a bracket before `end`; the bytes that were read for it may be read again. */
static void shelves_drop(Machine *m, size_t end) {
    for (int k = m->shelved; k-- > 0;) {
        if (m->shelf[k].next >= end) continue;
        if (m->shelf[k].at > m->at) read_again(m, m->shelf[k].at, m->at);
        deck_clear(m, &m->shelf[k].deck);
        shelf_remove(m, k);
    }
}

/* The scan met an opener at m->at: 1 if a shelf waits for it, from which reading then goes on. */
static int shelf_take(Machine *m) {
    for (int k = 0; k < m->shelved; k++) {
        if (m->shelf[k].next != m->at) continue;
        Deck spare = m->open;
        m->open = m->shelf[k].deck;
        m->shelf[k].deck = spare;
        m->at = m->shelf[k].at;
        shelf_remove(m, k);
        root_given_up(m);
        m->mode = BETWEEN_TOKENS;
        return 1;
    }
    return 0;
}

/* The open candidate waits for the scan, which goes on at `at`, to meet its second bracket. */
static void shelf_put(Machine *m, size_t at, size_t next) {
    Deck spare;
    shelves_drop(m, at);
    if (m->shelved == SHELVES) {
        size_t last = 0;
        for (int k = 0; k < SHELVES; k++) if (m->shelf[k].next > last) last = m->shelf[k].next;
        for (int k = 0; k < m->shelved; k++) if (m->shelf[k].next == last) m->shelf[k].next = 0;     /* the last to be met */
        shelves_drop(m, 1);
    }
    spare = m->shelf[m->shelved].deck;
    m->shelf[m->shelved].deck = m->open;
    m->shelf[m->shelved].at = m->at;
    m->shelf[m->shelved++].next = next;
    if (next < m->shelf_next) m->shelf_next = next;
    m->open = spare;
    m->at = at;
    if (m->mode != GIVEN_UP) m->mode = IN_TEXT;
}

/* A bracket at m->at that stands in MAX_LEVELS others. */
static int too_deep(Machine *m) {
    const size_t start = frame_of(&m->open, 0)->start, next = frame_of(&m->open, 1)->start;
    run_end(m, CLOSED);
    m->gave_up = 1;
    if (m->open.last_content != NOWHERE) m->after_break = 1;
    if (m->s[m->at] == '[' && skip_row(m)) return STEP;
    size_t at = past_all_small(m, start + 1, next);
    if (m->mode == GIVEN_UP) return STEP;
    if (at == next) {       /* nothing to be read in full between them */
        root_given_up(m);
        frame_push(m, m->s[m->at] == '{');
        m->at++;
        return STEP;
    }
    /* What a frame lists hides the same label from objections that are read between, and the other way round. */
    if (m->open.last_objection != NOWHERE) return resume(m, at);
    shelf_put(m, at, next);
    return STEP;
}

#endif
