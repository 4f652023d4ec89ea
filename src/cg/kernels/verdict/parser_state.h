/* The decoder's state between two bytes: open brackets, the run of bare objects, the flags of the whole reply. */
#ifndef CG_VERDICT_PARSER_STATE_H
#define CG_VERDICT_PARSER_STATE_H

#include "verdict/sequences.h"
#include "verdict/byte_search.h"

#define NOWHERE ((size_t)-1)

enum { MAX_LEVELS = 64 };

/* Text behind a stray quote and in brackets given up is read again (R8), at most this many times the bytes before it: behind
   that the reply is given up with reason `limit`. Endless nesting alone takes 64 times. The first MiB is free, so that a
   short reply is never given up. */
enum { MAX_REREAD = 128, FREE_REREAD = 1 << 20 };

enum Mode { IN_TEXT, IN_REASONING, BETWEEN_TOKENS, IN_DOUBLE, IN_SINGLE, IN_CURLY, IN_WORD, IN_LINE_COMMENT,
            IN_BLOCK_COMMENT, GIVEN_UP };
/* What comes next in the innermost bracket, ordered for the questions below. */
enum Expect { FIRST_KEY, KEY, MEMBER, FIRST_ITEM, ITEM, AFTER_ITEM, AFTER_BRACKET, COLON, AFTER_MEMBER };
enum LabelKind { NO_LABEL, LABEL_NULL, LABEL_INTEGER, LABEL_OTHER, LABEL_DIFFERS };
enum Result { MORE, STEP, DEAD };

static inline int wants_key(int expect) { return expect <= KEY; }
static inline int wants_value(int expect) { return expect >= MEMBER && expect <= ITEM; }
static inline int wants_scalar(int expect) { return expect <= ITEM; }      /* a key or a value */

/* Whether a closing bracket fits; what an array expects and what an object expects are different things. */
static inline int closes(int is_object, int expect) {
    return is_object ? expect <= KEY || expect == AFTER_MEMBER : expect >= FIRST_ITEM && expect <= AFTER_BRACKET;
}

typedef struct {            /* one open bracket */
    size_t start;           /* its position */
    size_t items;           /* complete elements of an array */
    int64_t label;
    Value i, needed_by, quote, verdict;     /* of an object: the first of each */
    Tally *tally;           /* of an array: its verdict objects */
    Claim best;             /* among the sequences that closed inside */
    Rows objections;
    uint8_t expect, name, label_kind, need, said;
    uint8_t is_object, is_named, is_verdict, had_object, saw_verdict, has_other_key;
} Frame;

typedef struct {            /* bare verdict objects in text */
    Tally *tally;
    Rows objections;
    uint8_t may_answer;
} Run;

typedef struct {            /* a reasoning tag (R2) */
    size_t end;
    uint8_t is_closing, name, brackets;
} Tag;

typedef struct {
    const uint8_t *s;       /* the bytes so far; may move between two calls */
    size_t n, at;
    size_t token;           /* where the open string or word starts */
    size_t reread;          /* bytes that were read again, in all */
    Frame *frames;          /* [MAX_LEVELS] the open brackets of the candidate, outermost first */
    unsigned depth;         /* how many of those are open */
    Frame *top;             /* the innermost of them */
    size_t last_string;     /* where the candidate's last string starts, or NOWHERE (R8) */
    size_t tag_searched;    /* up to here the tag at `at` has no end */
    Tag reasoning;          /* what opened it */
    Offer offer;
    Run run;
    Claim best;
    Rows objections;
    int scan_level;
    uint8_t has_content;    /* the candidate showed a key of a verdict (R7, R8) */
    uint8_t mode, after_break, broke, gave_up, saw_bracket, saw_verdict, ended_inside, is_out_of_memory;
} Machine;

static inline void frame_release(Machine *m, Frame *f) {
    tally_free(&m->offer, f->tally);
    f->tally = NULL;
    claim_drop(&m->offer, &f->best);
    rows_drop(&m->offer, &f->objections);
}

/* No candidate is open any more. */
static inline void frames_clear(Machine *m) {
    for (unsigned k = 0; k < m->depth; k++) frame_release(m, m->frames + k);
    m->depth = 0;
}

/* The bracket at m->at opens; the caller checked the level. */
static inline void frame_push(Machine *m, int is_object) {
    Frame *f = m->top = m->frames + m->depth++;
    f->start = m->at++;
    f->objections = NO_ROWS;
    f->expect = is_object ? FIRST_KEY : FIRST_ITEM;
    f->is_object = (uint8_t)is_object;
    f->name = f->label_kind = f->need = f->said = 0;
    f->is_named = f->is_verdict = f->had_object = f->saw_verdict = f->has_other_key = 0;
    f->items = 0;
    f->tally = f->best.tally = NULL;
    f->best.tier = 0;
    f->needed_by.kind = f->quote.kind = f->verdict.kind = ABSENT;       /* `i` is guarded by label_kind */
    m->mode = BETWEEN_TOKENS;
}

/* The run ends (R6); a template says nothing at all. */
static void run_over(Machine *m, int how) {
    Tally *t = m->run.tally;
    m->run.tally = NULL;
    if (how == TEMPLATE) {
        rows_drop(&m->offer, &m->run.objections);
        tally_free(&m->offer, t);
        return;
    }
    rows_move(&m->offer, &m->objections, &m->run.objections);
    m->saw_verdict = 1;
    if (!m->run.may_answer || (t->objects < 2 && how == CLOSED)) {
        tally_free(&m->offer, t);
        return;
    }
    Claim claim = {t, 0, (uint8_t)(t->is_usable || how == CUT ? 1 : 2), (uint8_t)how};
    claim_merge(&m->offer, &m->best, &claim);
}

static inline void run_end(Machine *m, int how) { if (m->run.tally) run_over(m, how); }

/* R2: all before a closing tag without an opener was reasoning. */
static void forget(Machine *m) {
    run_end(m, TEMPLATE);
    claim_drop(&m->offer, &m->best);
    rows_drop(&m->offer, &m->objections);
    m->after_break = m->broke = m->gave_up = m->saw_bracket = m->saw_verdict = 0;
}

#endif
