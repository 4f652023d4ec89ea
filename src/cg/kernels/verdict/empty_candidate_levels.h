/* The open brackets of a candidate that says nothing: only where they stand is kept. */
#ifndef CG_VERDICT_NEST_H
#define CG_VERDICT_NEST_H

#include "verdict/candidate_tree.h"

/* `[]` in text (R3, R9), from the bracket at s[at] to the one at s[close]: where text goes on. */
static size_t empty_array(Machine *m, size_t at, size_t close) {
    Claim claim = {NULL, 0, (uint8_t)!is_index_or_box(m->s, at, close), CLOSED};
    if (claim.tier && may_answer(m, at)) claim_merge(&m->offer, &m->best, &claim);
    return close + 1;
}

/* The last open brackets of a candidate, of which more than MAX_LEVELS have been read: the outer ones are given up (R8), and
   between them there was nothing to be read. */
typedef struct {
    size_t start[MAX_LEVELS];   /* a ring */
    size_t opened;
} Nest;

static inline void nest_add(Nest *nest, size_t at) { nest->start[nest->opened++ & (MAX_LEVELS - 1)] = at; }

static inline size_t nest_root(const Nest *nest, unsigned depth) {
    return nest->start[(nest->opened - depth) & (MAX_LEVELS - 1)];
}

/* The outermost bracket is given up. Its text up to the second one is read as text: 0 if there is more in it than empty
   brackets; otherwise the second one's place. */
static inline size_t nest_give_up(Machine *m, const Nest *nest) {
    const uint8_t *s = m->s;
    size_t at = nest_root(nest, MAX_LEVELS) + 1;
    const size_t next = nest_root(nest, MAX_LEVELS - 1);
    while (at < next && (at = opener_near(m->scan, m->scan_level, s, at, next)) < next) {
        if (s[at] == '<' || s[at + 1] != s[at] + 2) return 0;       /* a bracket's closing one is two behind it */
        at = s[at] == '[' ? empty_array(m, at, at + 1) : at + 2;
    }
    return next;
}

/* The row of '[' that goes on at s[at], where MAX_LEVELS of them are open: its end, of which only the last ones matter. */
static size_t nest_row(Machine *m, Nest *nest, size_t at) {
    size_t end = opener_row(m->s, at, m->n);
    for (size_t k = end - at > MAX_LEVELS ? end - MAX_LEVELS : at; k < end; k++) nest_add(nest, k);
    return end;
}

/* The reply ends in the string at s[string], the candidate says nothing so far (R6, R9): whether it could be ended here. */
static int cut_in_string(Machine *m, const Nest *nest, unsigned depth, unsigned expect) {
    if (!m->is_final || (expect != FIRST_ITEM && (depth > 1 || expect < FIRST_KEY))) return 0;
    m->ended_inside = 1;
    if (expect == FIRST_ITEM && may_answer(m, nest_root(nest, depth))) {
        Claim claim = {NULL, 0, 3, CUT};
        claim_merge(&m->offer, &m->best, &claim);
    }
    return 1;
}

#endif
