/* What closing, cutting and breaking do to the open brackets: values recorded, verdicts tallied, candidates ended. */
#ifndef CG_VERDICT_TREE_H
#define CG_VERDICT_TREE_H

#include "verdict/state.h"

/* Which of the four names the key spells, unescaped and without ASCII case. */
static int name_of(const uint8_t *s, size_t at, size_t end) {
    char text[9];
    int k = 0;
    size_t n = end - at;
    uint8_t first = n ? lowered(s[at]) : 0;
    if (first != 'i' && first != 'q' && first != 'v' && first != 'n' && first != '\\') return OTHER_NAME;
    if (n == 1) return lowered(s[at]) == 'i' ? NAME_I : OTHER_NAME;
    if (n == 5 && !memcmp(s + at, "quote", 5)) return NAME_QUOTE;
    if (n == 7 && !memcmp(s + at, "verdict", 7)) return NAME_VERDICT;
    if (n == 9 && !memcmp(s + at, "needed_by", 9)) return NAME_NEEDED_BY;
    if (n > 9 * 6) return OTHER_NAME;
    while (at < end) {
        uint32_t c = char_next(s, &at, end);
        if (c >= 0x80 || k == 9) return OTHER_NAME;
        text[k++] = (char)lowered((uint8_t)c);
    }
    if (spells(text, k, "i")) return NAME_I;
    if (spells(text, k, "quote")) return NAME_QUOTE;
    if (spells(text, k, "verdict")) return NAME_VERDICT;
    return spells(text, k, "needed_by") ? NAME_NEEDED_BY : OTHER_NAME;
}

/* R10 for one value of `i`: an integer that some label could be, or not. */
static int label_integer(const uint8_t *s, const Value *v, int64_t *label) {
    char text[24];
    int length, plain, negative, k;
    uint64_t sum = 0;
    if (v->kind == NUMBER) {
        size_t n = v->end - v->at;
        if (n == 1 && is_digit(s[v->at])) { *label = s[v->at] - '0'; return 1; }
        if (n > 2 && s[v->end - 2] == '.' && s[v->end - 1] == '0') n -= 2;
        if (n > sizeof text) return 0;
        memcpy(text, s + v->at, n);
        length = (int)n;
    } else if (v->kind == TEXT) {
        length = trimmed(s, v->at, v->end, text, sizeof text);
    } else return 0;
    if (length <= 0 || number_length((const uint8_t *)text, (size_t)length, &plain) != (size_t)length || !plain) return 0;
    negative = text[0] == '-';
    for (k = negative; k < length; k++) {
        uint64_t digit = (uint64_t)(text[k] - '0');
        if (sum > ((uint64_t)INT64_MAX - digit) / 10) return 0;
        sum = sum * 10 + digit;
    }
    *label = negative ? -(int64_t)sum : (int64_t)sum;
    return 1;
}

static int is_same_text(const uint8_t *s, const Value *a, const Value *b) {
    size_t i = a->at, k = b->at;
    if (a->kind != b->kind || a->kind == CONTAINER) return 0;
    if (a->kind == BOOLEAN) return lowered(s[a->at]) == lowered(s[b->at]);
    if (a->kind == IS_NULL) return 1;
    while (i < a->end && k < b->end) if (char_next(s, &i, a->end) != char_next(s, &k, b->end)) return 0;
    return i == a->end && k == b->end;
}

static void record_label(const uint8_t *s, Frame *f, const Value *v) {
    int64_t label = 0;
    int kind = v->kind == IS_NULL ? LABEL_NULL : label_integer(s, v, &label) ? LABEL_INTEGER : LABEL_OTHER;
    if (f->label_kind == NO_LABEL) {
        f->label_kind = (uint8_t)kind;
        f->label = label;
        f->i = *v;
    } else if (f->label_kind != kind || (kind == LABEL_INTEGER && label != f->label)
               || (kind == LABEL_OTHER && !is_same_text(s, &f->i, v))) {
        f->label_kind = LABEL_DIFFERS;
    }
}

static int said_by(const uint8_t *s, const Value *v) {
    char text[4];
    int length;
    if (v->kind != TEXT) return SAID_OTHER;
    if (v->end - v->at == 4) {      /* no letter of either word is 0x20 away from anything but its capital */
        uint32_t word = four(s + v->at);
        if (word == four((const uint8_t *)"drop")) return SAID_DROP;
        if (word == four((const uint8_t *)"keep")) return SAID_KEEP;
    }
    length = trimmed(s, v->at, v->end, text, sizeof text);
    return spells(text, length, "drop") ? SAID_DROP : spells(text, length, "keep") ? SAID_KEEP : SAID_OTHER;
}

static int need_by(const uint8_t *s, const Value *v) {
    char text[4];
    int length;
    if (v->kind == IS_NULL) return NEED_NULL;
    if (v->kind != TEXT) return NEED_OTHER;
    if (v->end == v->at) return NEED_EMPTY;
    if (v->end - v->at == 4 && four(s + v->at) == four((const uint8_t *)"none")) return NEED_NONE;
    if (v->end - v->at == 1 && s[v->at] > ' ') return NEED_OTHER;
    length = trimmed(s, v->at, v->end, text, sizeof text);
    return length == 0 ? NEED_EMPTY : spells(text, length, "none") ? NEED_NONE : NEED_OTHER;
}

/* A value of the top object's pending member (R4, R10, R11). A repeated key with another value can only take away. */
static void record_value(Machine *m, Frame *f, const Value *v) {
    int name = f->name, was;
    if (name == OTHER_NAME) return;
    if (name == NAME_I) { record_label(m->s, f, v); return; }
    if (v->kind != IS_NULL && !(v->kind == TEXT && v->at == v->end)) f->is_verdict = 1;
    if (name == NAME_VERDICT) {
        was = said_by(m->s, v);
        if (f->verdict.kind == ABSENT) { f->verdict = *v; f->said = (uint8_t)was; }
        else if (f->said != was) f->said = SAID_OTHER;
    } else if (name == NAME_NEEDED_BY) {
        was = need_by(m->s, v);
        if (f->needed_by.kind == ABSENT) { f->needed_by = *v; f->need = (uint8_t)was; }
        else if (f->need != was) f->need = NEED_OTHER;
    } else if (f->quote.kind == ABSENT) f->quote = *v;
}

static inline int action_of(const Frame *f) {
    if (f->said == SAID_KEEP) return KEEP;
    if (f->said != SAID_DROP) return UNUSABLE;
    return f->need == NEED_OTHER ? REFUSED : DROP;
}

/* R11: a complete verdict object that keeps or refuses its label objects to a drop of it, wherever it stands. */
static inline void object_to(Machine *m, Rows *objections, int action, uint32_t row) {
    if (row != NO_ROW && (action == KEEP || action == REFUSED)) rows_add(&m->offer, objections, row);
}

static inline uint32_t row_named(Machine *m, const Frame *f) {
    return f->label_kind == LABEL_INTEGER ? row_of(&m->offer, f->label) : NO_ROW;
}

/* Count a complete verdict object; -1 without memory. */
static int tally_object(Machine *m, Tally **where, Rows *objections, const Frame *f) {
    Offer *o = &m->offer;
    int action = action_of(f);
    uint32_t row = row_named(m, f);
    Tally *t = *where;
    Entry *e;
    if (!t && !(t = *where = tally_new(o))) return -1;
    t->objects++;
    t->is_usable |= action != UNUSABLE;
    if (row == NO_ROW) {
        if (f->label_kind == LABEL_INTEGER || f->label_kind == LABEL_OTHER) t->unknown_label++; else t->no_label++;
        if (f->label_kind == LABEL_INTEGER && o->n && f->label == o->label[o->n - 1] + 1) t->names_past_end = 1;
        return 0;
    }
    object_to(m, objections, action, row);
    if ((e = tally_find(t, row))) {
        t->duplicates++;
        if (e->action != action) e->action = CONFLICT;
        return 0;
    }
    if (!(e = tally_append(o, t, row))) return -1;
    e->row = row;
    e->action = (uint8_t)action;
    e->unanswered = f->need == UNASKED || f->need == NEED_NULL || f->need == NEED_EMPTY;
    e->needed_by = f->needed_by;
    e->quote = f->quote;
    e->verdict = f->verdict;
    return 0;
}

/* The array as a sequence that may answer (R3, R9); its tally goes along. `close` is the position of its bracket. */
static Claim claim_of(Machine *m, Frame *f, int how, int level, size_t close) {
    Claim claim = {f->tally, 0, 0, (uint8_t)how};
    if (f->tally) {
        claim.stray = f->items - f->tally->objects;
        claim.tier = f->tally->is_usable || how == CUT ? 1 : 2;
    } else {
        claim.stray = f->items;
        if (how == CUT) claim.tier = f->had_object ? 1 : f->items ? 0 : 3;
        else if (how == CLOSED && f->items == 0) {
            if (level == 0) claim.tier = is_index_or_box(m->s, f->start, close) ? 0 : 1;
            else claim.tier = m->frames[level - 1].is_object ? 3 : 0;
        }
    }
    f->tally = NULL;
    return claim;
}

/* What a frame found goes to the reply; `may_answer` as R7 has it. */
static void frame_keep(Machine *m, Frame *f, int may_answer) {
    rows_move(&m->offer, &m->objections, &f->objections);
    m->saw_verdict |= f->saw_verdict;
    if (may_answer) claim_merge(&m->offer, &m->best, &f->best);
    else claim_drop(&m->offer, &f->best);
}

static int may_answer(Machine *m, size_t root) { return !m->after_break || is_first_on_line(m->s, root); }

/* The candidate's outermost bracket closed at m->at - 1. */
static int root_closed(Machine *m, Frame *f) {
    m->mode = IN_TEXT;
    m->depth = 0;
    if (f->is_object && f->is_verdict) {
        if (!m->run.tally) m->run.may_answer = !m->after_break;
        return tally_object(m, &m->run.tally, &m->run.objections, f);
    }
    run_end(m, CLOSED);
    frame_keep(m, f, may_answer(m, f->start));
    return 0;
}

/* The top bracket closed at m->at - 1; -1 without memory. */
static int close_top(Machine *m) {
    Frame *f = top_of(m), *under;
    if (f->is_object && f->is_verdict) {        /* R4: what sits inside is data */
        claim_drop(&m->offer, &f->best);
        rows_drop(&m->offer, &f->objections);
        f->saw_verdict = 1;
    } else if (!f->is_object && (f->tally || f->items == 0)) {
        Claim claim = claim_of(m, f, CLOSED, (int)m->depth - 1, m->at - 1);
        claim_merge(&m->offer, &f->best, &claim);
    }
    if (m->depth == 1) return root_closed(m, f);
    m->depth--;
    m->top--;
    under = top_of(m);
    under->saw_verdict |= f->saw_verdict;
    if (f->best.tier) claim_merge(&m->offer, &under->best, &f->best);
    rows_move(&m->offer, &under->objections, &f->objections);
    if (under->is_object) {
        Value v = {f->start, m->at, CONTAINER};
        if (f->is_object && f->is_verdict) object_to(m, &under->objections, action_of(f), row_named(m, f));
        record_value(m, under, &v);
        under->expect = AFTER_MEMBER;
        return 0;
    }
    under->items++;
    under->expect = AFTER_BRACKET;
    return f->is_object && f->is_verdict ? tally_object(m, &under->tally, &under->objections, f) : 0;
}

/* R6: read off what an unfinished candidate still says, in order of closing; the innermost open array comes last. */
static void unfinished(Machine *m, int how) {
    Frame *innermost = NULL;
    int answers = may_answer(m, m->frames[0].start), level = 0;
    for (unsigned k = 0; k < m->depth; k++) {
        Frame *f = m->frames + k;
        if (f->is_object && f->is_verdict) break;
        if (!f->is_object) { innermost = f; level = (int)k; }
        frame_keep(m, f, answers);
    }
    if (!innermost || !answers || (how != CUT && !innermost->tally)) return;
    Claim claim = claim_of(m, innermost, how, level, 0);
    claim_merge(&m->offer, &m->best, &claim);
}

/* The run that stands before an unfinished candidate (R6). */
static void run_before(Machine *m, int how) {
    const Frame *root = m->frames;
    run_end(m, root->is_object && root->is_named ? how : CLOSED);
}

/* Go back from m->at to `at` in text (R8). */
static int resume(Machine *m, size_t at) {
    m->reread += m->at - at;
    m->mode = m->reread > FREE_REREAD && m->reread / MAX_REREAD > m->at ? GIVEN_UP : IN_TEXT;
    frames_clear(m);
    m->at = at;
    return STEP;
}

/* A syntax error at m->at. */
static int broken(Machine *m, int how) {
    run_before(m, how);
    if (how != TEMPLATE) {
        unfinished(m, how);
        if (m->has_content) m->after_break = m->broke = 1;
    }
    return resume(m, !m->has_content && m->last_string != NOWHERE ? m->last_string + 1 : m->at);
}

/* The bracket at m->at stands in MAX_LEVELS others: the outermost is given up. */
static int too_deep(Machine *m) {
    run_end(m, CLOSED);
    m->gave_up = 1;
    m->after_break |= m->has_content;
    return resume(m, m->frames[0].start + 1);
}

/* The reply ends at m->n inside a candidate. */
static int cut(Machine *m) {
    int in_string = m->mode == IN_DOUBLE || m->mode == IN_SINGLE || m->mode == IN_CURLY;
    m->ended_inside = 1;
    run_before(m, CUT);
    unfinished(m, CUT);
    m->at = m->n;
    return resume(m, in_string && !m->has_content ? m->last_string + 1 : m->n);
}

#endif
