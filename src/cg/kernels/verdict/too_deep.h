/* Reading text between candidates, and a candidate of more than MAX_LEVELS: its outermost bracket is given up, and scanning resumes behind it (R8).

   Done as it is written, that reads 64 levels again for every bracket. But the candidate that starts at the second bracket
   is already open, all of it but its outermost frame: so the frames wait on a shelf while the bytes between the two
   brackets are read as text, and reading goes on from them when the scan arrives at that second bracket. If the scan goes
   past it, the shelf is thrown away and the bytes are read again. */
#ifndef CG_VERDICT_DEPTH_H
#define CG_VERDICT_DEPTH_H

#include "verdict/idle.h"

/* The first opener in at..end that has to be read in full, or what may be a tag; a place behind `end` if something that says
   nothing reaches over it. */
static inline size_t past_all_idle(Machine *m, size_t at, size_t end) {
    const uint8_t *s = m->s;
    while (at < end && (at = opener_near(m->scan, m->scan_level, s, at, end)) < end) {
        if (s[at] == '<') {
            if (at + 1 == m->n || s[at + 1] == '/' || lowered(s[at + 1]) == 't') break;
            at++;
            continue;
        }
        size_t after = past_idle(m, at);
        if (after == NOWHERE) break;
        m->saw_bracket = 1;
        at = after;
    }
    return at;
}

/* The outermost bracket is gone; the one inside it, which opened at `start`, starts the candidate. */
static inline void root_given_up(Machine *m, Frame *root, size_t start) {
    Deck *d = &m->open;
    frame_release(m, root);
    d->base++;
    d->depth--;
    if (d->last_content != NOWHERE && d->last_content < start) d->last_content = NOWHERE;
    if (d->last_string != NOWHERE && d->last_string < start) d->last_string = NOWHERE;
}

/* A long row of '[' at m->at, all brackets open so far standing in the same row: only its last MAX_LEVELS matter, as each
   of the others would be given up in turn. Without this a megabyte of '[' costs a frame a byte. */
static int skip_row(Machine *m) {
    size_t first = m->at - MAX_LEVELS, end;
    if (opener_row(m->s, first, m->at) != m->at) return 0;
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
        if (m->shelf[k].at > m->at) read_again(m, m->shelf[k].at - m->at, m->shelf[k].at);
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
        root_given_up(m, frame_of(&m->open, 0), frame_of(&m->open, 1)->start);
        m->mode = BETWEEN_TOKENS;
        return 1;
    }
    return 0;
}

/* The open candidate waits for the scan, which goes on at `at`, to meet its second bracket. */
static void shelf_put(Machine *m, size_t at, size_t next) {
    Deck spare;
    if (m->shelf_next < at) shelves_drop(m, at);
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
    Frame *root = frame_of(&m->open, 0);
    const size_t start = root->start, next = frame_of(&m->open, 1)->start;
    size_t at = start + 1;
    run_end(m, CLOSED);
    m->gave_up = 1;
    if (m->open.last_content != NOWHERE) m->after_break = 1;
    if (m->at - start == MAX_LEVELS && m->s[m->at] == '[' && skip_row(m)) return STEP;
    if (at != next) {
        at = past_all_idle(m, at, m->shelf_next > start && m->shelf_next < next ? m->shelf_next : next);
        if (m->mode == GIVEN_UP) return STEP;
    }
    if (at == next) {       /* nothing to be read in full between them; the ring's place of the outermost is the next free one */
        root_given_up(m, root, next);
        m->open.depth++;
        frame_open(root, m->at, m->s[m->at] == '{');
        m->at++;
        return STEP;
    }
    /* What a frame lists hides the same label from objections that are read between, and the other way round. */
    if (m->open.last_objection != NOWHERE) return resume(m, at);
    shelf_put(m, at, next);
    return STEP;
}

#endif
