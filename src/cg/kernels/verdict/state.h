/* The decoder's state between two bytes: open brackets, the run of bare objects, the flags of the whole reply. */
#ifndef CG_VERDICT_STATE_H
#define CG_VERDICT_STATE_H

#include "verdict/answer.h"
#include "verdict/scan.h"

enum { MAX_LEVELS = 64 };      /* a power of two: the frames of a deck are a ring */

/* Work spent again behind stray quotes and deep brackets may be this many times the bytes before it; ordinary and
   hostile replies stay under 70, past it the reply is given up with reason `limit`. */
enum { REWORK = 128, REWORK_FREE = 1 << 20 };

enum Mode { IN_TEXT, IN_REASONING, BETWEEN_TOKENS, IN_DOUBLE, IN_SINGLE, IN_CURLY, IN_WORD, IN_LINE_COMMENT,
            IN_BLOCK_COMMENT, GIVEN_UP };
enum Expect { FIRST_ITEM, ITEM, AFTER_ITEM, AFTER_BRACKET, FIRST_KEY, KEY, COLON, MEMBER, AFTER_MEMBER };
enum Name { OTHER_NAME, NAME_I, NAME_VERDICT, NAME_NEEDED_BY, NAME_QUOTE };
enum LabelKind { NO_LABEL, LABEL_NULL, LABEL_INTEGER, LABEL_OTHER, LABEL_DIFFERS };
enum Need { UNASKED, NEED_NULL, NEED_EMPTY, NEED_NONE, NEED_OTHER };       /* what needed_by says */
enum Said { UNSAID, SAID_KEEP, SAID_DROP, SAID_OTHER };                    /* what verdict says */
enum Result { MORE, STEP, DEAD };

static inline int wants_value(int expect) { return expect <= ITEM || expect == MEMBER; }
static inline int wants_key(int expect) { return expect == FIRST_KEY || expect == KEY; }

/* Whether a closing bracket fits; what an array expects and what an object expects are different things. */
static inline int closes(int is_object, int expect) {
    return is_object ? expect == FIRST_KEY || expect == KEY || expect == AFTER_MEMBER : expect <= AFTER_BRACKET;
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
    uint8_t is_object, is_named, is_verdict, had_object, saw_verdict;
} Frame;

typedef struct {            /* bare verdict objects in text */
    Tally *tally;
    Rows objections;
    uint8_t may_answer;
} Run;

/* The open brackets of one candidate. The positions are NOWHERE where there is none in it (R7, R8). */
typedef struct {
    Frame *frame;           /* [MAX_LEVELS], a ring */
    unsigned base, depth;   /* where the outermost stands, and how many are open */
    size_t last_string, last_content;
    size_t last_objection;  /* of a verdict object that one of the frames lists */
} Deck;

typedef struct {            /* a candidate that nested too deep, while what stands before its second bracket is read as text */
    Deck deck;
    size_t at;              /* where reading it stood */
    size_t next;            /* its second bracket, which starts the candidate that goes on from there */
} Shelf;

/* Where an idle candidate stood behind a comment or a curly string, between two tokens. */
typedef struct {
    size_t at;
    uint64_t objects;       /* its open brackets, a bit each, the innermost lowest: set for an object */
    uint8_t depth, expect;  /* how many those are, and what could follow */
    uint8_t least, most;    /* depths between here and the break */
} Join;

enum { JOINS = 64, TAILS = 2 };

typedef struct {            /* the first joins of an idle candidate behind its last string, and where it broke */
    Join join[JOINS];
    unsigned n;
    size_t breaks_at;
} Tail;

typedef struct {            /* searched from `from`, without a hit before `end` */
    size_t from, end;
} Span;

/* With strings that hold brackets, several ways of reading the same bytes take turns; this many of them may wait. */
enum { SHELVES = 3 };

typedef struct {
    const uint8_t *s;       /* the bytes so far; may move between two calls */
    size_t n, at;
    size_t token;           /* where the open string or word starts */
    size_t reworked;        /* bytes that were read again */
    size_t in_full;         /* the last bracket that has to be read in full */
    Span line, block, curly;
    Tail tail[TAILS], joins;        /* of the candidates before, the last first; of the one that is being read */
    Frame *frames;          /* of all decks */
    Deck open;              /* the candidate that is being read */
    Shelf shelf[SHELVES];   /* the first `shelved` are in use */
    int shelved;
    size_t shelf_next;      /* the least `next` of those, or NOWHERE */
    Offer offer;
    Run run;
    Claim best;
    Rows objections;
    Scan scan;
    int scan_level;
    uint8_t is_final;       /* no more bytes will come */
    uint8_t mode, after_break, broke, gave_up, saw_bracket, saw_verdict, ended_inside, is_out_of_memory;
} Machine;

/* The open bracket of a level, from 0. */
static inline Frame *frame_of(const Deck *d, unsigned level) { return d->frame + ((d->base + level) & (MAX_LEVELS - 1)); }
static inline Frame *top_of(Machine *m) { return frame_of(&m->open, m->open.depth - 1); }

static inline void frame_release(Machine *m, Frame *f) {
    tally_free(&m->offer, f->tally);
    f->tally = NULL;
    claim_drop(&m->offer, &f->best);
    rows_drop(&m->offer, &f->objections);
}

static void deck_clear(Machine *m, Deck *d) {
    for (unsigned k = 0; k < d->depth; k++) frame_release(m, frame_of(d, k));
    d->base = d->depth = 0;
    d->last_string = d->last_content = d->last_objection = NOWHERE;
}

/* The bracket at s[at] opens in this frame. */
static inline void frame_open(Frame *f, size_t at, int is_object) {
    f->start = at;
    f->items = 0;
    f->needed_by.kind = f->quote.kind = f->verdict.kind = ABSENT;       /* `i` is guarded by label_kind */
    f->tally = NULL;
    f->best.tier = 0;
    f->best.tally = NULL;
    f->objections = NO_ROWS;
    f->expect = is_object ? FIRST_KEY : FIRST_ITEM;
    f->name = OTHER_NAME;
    f->label_kind = f->need = f->said = 0;
    f->is_object = (uint8_t)is_object;
    f->is_named = f->is_verdict = f->had_object = f->saw_verdict = 0;
}

/* A new open bracket on top; the caller checked the level. */
static inline void frame_push(Machine *m, int is_object) {
    m->open.depth++;
    frame_open(top_of(m), m->at, is_object);
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

/* R7: only blanks stand before the bracket on its line. */
static int is_first_on_line(const uint8_t *s, size_t i) {
    int length;
    while (i && s[i - 1] != '\n' && s[i - 1] != '\r') {
        if (!(length = blank_before(s, i))) return 0;
        i -= (size_t)length;
    }
    return 1;
}

/* R3: an empty array that is an index or a task-list box is no answer. */
static int is_index_or_box(const uint8_t *s, size_t open, size_t close) {
    size_t i = open, digits;
    if (i == 0) return 0;
    uint8_t c = s[i - 1];
    if ((lowered(c) >= 'a' && lowered(c) <= 'z') || is_digit(c) || c == '_' || c == ')' || c == ']') return 1;
    if (close - open != 2 || s[open + 1] != ' ') return 0;
    while (i && (s[i - 1] == ' ' || s[i - 1] == '\t')) i--;
    if (i == open || i == 0) return 0;
    c = s[--i];
    if (c == '.') {
        for (digits = i; i && is_digit(s[i - 1]); i--) {}
        if (digits == i) return 0;
    } else if (c != '-' && c != '*') return 0;
    while (i && (s[i - 1] == ' ' || s[i - 1] == '\t')) i--;
    return i == 0 || s[i - 1] == '\n' || s[i - 1] == '\r';
}

#endif
