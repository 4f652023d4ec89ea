/* Where a candidate that says nothing broke, for the ones that come to stand where it stood.

   Text behind a stray quote is read again (R8). Brackets in a comment or in a curly string each start a candidate, and all
   of them go on from the place where that ends: they stand there with the same brackets open, as far as it matters, or with
   others, and those that stand alike break at the same byte. With the first JOINS such places of the last reading at hand, the
   way from there to the break is taken once for so many of them. */
#ifndef CG_VERDICT_TAIL_H
#define CG_VERDICT_TAIL_H

#include "verdict/state.h"

enum { LONG_TAIL = 64 };    /* bytes; below, reading it again costs less */

/* One more place; `joins` is emptied at each string. */
static inline void join_add(Tail *joins, size_t at, uint64_t objects, unsigned depth, unsigned expect) {
    if (joins->n == JOINS) return;
    joins->join[joins->n++] = (Join){at, objects, (uint8_t)depth, (uint8_t)expect, (uint8_t)depth, (uint8_t)depth};
}

static inline void join_deepen(Tail *joins, unsigned depth) {
    if (joins->n && joins->join[joins->n - 1].most < depth) joins->join[joins->n - 1].most = (uint8_t)depth;
}

static inline void join_rise(Tail *joins, unsigned depth) {
    if (joins->n && joins->join[joins->n - 1].least > depth) joins->join[joins->n - 1].least = (uint8_t)depth;
}

/* The candidate that is being read broke at `at`. */
static void tail_keep(Machine *m, size_t at) {
    Tail *t = &m->joins;
    if (!t->n || at - t->join[0].at < LONG_TAIL) return;
    t->breaks_at = at;
    for (unsigned k = t->n - 1; k-- > 0;) {
        if (t->join[k].least > t->join[k + 1].least) t->join[k].least = t->join[k + 1].least;
        if (t->join[k].most < t->join[k + 1].most) t->join[k].most = t->join[k + 1].most;
    }
    m->tail[1] = m->tail[0];
    m->tail[0] = *t;
}

/* Whether what happens behind the join is the same for these open brackets: none that it closes differs, the outermost stays
   open, and none is one too many. */
static inline int is_alike(const Join *j, uint64_t objects, unsigned depth, unsigned expect) {
    const unsigned closed = (unsigned)(j->depth - j->least);
    return j->expect == expect && depth > closed && depth + (unsigned)(j->most - j->depth) <= MAX_LEVELS
        && (objects ^ j->objects) << (MAX_LEVELS - 1 - closed) == 0;
}

/* Where a candidate that stands at `at` breaks, if that is known; NOWHERE otherwise. */
static size_t tail_break(const Machine *m, size_t at, uint64_t objects, unsigned depth, unsigned expect) {
    for (int k = 0; k < TAILS; k++) {
        const Tail *t = &m->tail[k];
        unsigned low = 0, high = t->n;
        if (!high || at < t->join[0].at || at > t->join[high - 1].at) continue;
        while (low < high) {
            unsigned middle = (low + high) / 2;
            if (t->join[middle].at < at) low = middle + 1; else high = middle;
        }
        if (t->join[low].at == at && is_alike(&t->join[low], objects, depth, expect)) return t->breaks_at;
    }
    return NOWHERE;
}

#endif
