/* Verdict objects: their members as they are read, the action that they come to, and their place in a sequence (R4, R10, R11). */
#ifndef CG_VERDICT_OBJECTS_H
#define CG_VERDICT_OBJECTS_H

#include "verdict/parser_state.h"

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

/* R11. Without an answered criterion a key that is none of the four may be the criterion, misspelt: doubt keeps. */
static inline int action_of(const Frame *f) {
    if (f->said == SAID_KEEP) return KEEP;
    if (f->said != SAID_DROP) return UNUSABLE;
    if (f->need == NEED_OTHER) return REFUSED;
    return f->need == NEED_NONE || !f->has_other_key ? DROP : UNUSABLE;
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

#endif
