/* What a reply claims: sequences of verdicts, the best one so far, and the objections that veto a drop.
   Memory is bounded by the labels on offer: a sequence keeps each label's first mention, objections are linked lists
   through one row a label. */
#ifndef CG_VERDICT_SEQUENCES_H
#define CG_VERDICT_SEQUENCES_H

#include <stdlib.h>
#include "verdict/scalars.h"

enum Action { NO_ACTION, KEEP, DROP, REFUSED, UNUSABLE, CONFLICT };
enum How { CLOSED, CUT, BROKEN, TEMPLATE };
enum { NO_ROW = 0xFFFFFFFFu, SMALL = 16 };

typedef struct {            /* an offered label's first mention in one sequence */
    Value needed_by, quote, verdict;
    uint32_t row;           /* into the sorted labels */
    uint8_t action, unanswered;
} Entry;

typedef struct Tally {      /* the verdict objects of one sequence */
    Entry *entries;
    uint32_t *place;        /* [n_labels] 1 + entry of a label; only past SMALL entries */
    uint32_t n, room;
    size_t objects, no_label, unknown_label, duplicates;
    uint8_t is_usable, names_past_end;
    struct Tally *next;     /* in the pool */
} Tally;

typedef struct {            /* a sequence that may answer (R9); tier 1 is the best, 0 is none */
    Tally *tally;           /* NULL: no verdict object in it */
    size_t stray;
    uint8_t tier, how;
} Claim;

typedef struct { uint32_t head, tail; } Rows;   /* labels objected to, linked through Offer.next */

typedef struct {
    int64_t *label;         /* [n] ascending */
    uint32_t *next;         /* [n] the following row of the same list */
    uint8_t *listed;        /* [n] the row is in some list */
    uint32_t n;
    uint8_t is_dense;       /* label[k] == label[0] + k */
    Tally *pool;
} Offer;

static const Rows NO_ROWS = {NO_ROW, NO_ROW};

/* The row of a label, or NO_ROW. */
static uint32_t row_of(const Offer *o, int64_t label) {
    uint32_t low = 0, high = o->n;
    if (o->n == 0 || label < o->label[0] || label > o->label[o->n - 1]) return NO_ROW;
    if (o->is_dense) return (uint32_t)(label - o->label[0]);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (o->label[middle] < label) low = middle + 1; else high = middle;
    }
    return o->label[low] == label ? low : NO_ROW;
}

/* A row that is listed already stands in a list that lives at least as long as `rows`. */
static inline void rows_add(Offer *o, Rows *rows, uint32_t row) {
    if (o->listed[row]) return;
    o->listed[row] = 1;
    o->next[row] = rows->head;
    if (rows->head == NO_ROW) rows->tail = row;
    rows->head = row;
}

static inline void rows_move(Offer *o, Rows *to, Rows *from) {
    if (from->head == NO_ROW) return;
    o->next[from->tail] = to->head;
    if (to->head == NO_ROW) to->tail = from->tail;
    to->head = from->head;
    *from = NO_ROWS;
}

static inline void rows_drop(Offer *o, Rows *rows) {
    for (uint32_t row = rows->head; row != NO_ROW; row = o->next[row]) o->listed[row] = 0;
    *rows = NO_ROWS;
}

static Tally *tally_new(Offer *o) {
    Tally *t = o->pool;
    if (t) {
        o->pool = t->next;
        t->n = 0;
        t->objects = t->no_label = t->unknown_label = t->duplicates = 0;
        t->is_usable = t->names_past_end = 0;
        t->next = NULL;
        return t;
    }
    return (Tally *)calloc(1, sizeof(Tally));
}

static inline void tally_free(Offer *o, Tally *t) {
    if (!t) return;
    if (t->place) for (uint32_t k = 0; k < t->n; k++) t->place[t->entries[k].row] = 0;
    t->next = o->pool;
    o->pool = t;
}

static void pool_clear(Offer *o) {
    while (o->pool) {
        Tally *t = o->pool;
        o->pool = t->next;
        free(t->entries);
        free(t->place);
        free(t);
    }
}

/* The entry of a row, or NULL. */
static Entry *tally_find(const Tally *t, uint32_t row) {
    if (t->place) return t->place[row] ? t->entries + (t->place[row] - 1) : NULL;
    for (uint32_t k = 0; k < t->n; k++) if (t->entries[k].row == row) return t->entries + k;
    return NULL;
}

/* Room for one more entry; NULL without memory. */
static Entry *tally_append(const Offer *o, Tally *t, uint32_t row) {
    if (t->n == t->room) {
        uint32_t room = t->room ? t->room * 2 : 4;
        Entry *grown = (Entry *)realloc(t->entries, room * sizeof(Entry));
        if (!grown) return NULL;
        t->entries = grown;
        t->room = room;
    }
    if (t->n == SMALL && !t->place) {
        t->place = (uint32_t *)calloc(o->n, sizeof(uint32_t));
        if (!t->place) return NULL;
        for (uint32_t k = 0; k < t->n; k++) t->place[t->entries[k].row] = k + 1;
    }
    if (t->place) t->place[row] = t->n + 1;
    return t->entries + t->n++;
}

/* Better of two claims, the later one if they are alike (R9); the other is given back. */
static inline void claim_merge(Offer *o, Claim *to, Claim *from) {
    if (from->tier == 0) return;
    if (to->tier == 0 || from->tier <= to->tier) {
        if (to->tier) tally_free(o, to->tally);
        *to = *from;
    } else {
        tally_free(o, from->tally);
    }
    from->tier = 0;
    from->tally = NULL;
}

static inline void claim_drop(Offer *o, Claim *claim) {
    if (claim->tier) tally_free(o, claim->tally);
    claim->tier = 0;
    claim->tally = NULL;
}

#endif
