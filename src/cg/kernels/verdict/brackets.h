/* What closing, cutting and breaking do to the open brackets: values recorded, verdicts tallied, candidates ended. */
#ifndef CG_VERDICT_BRACKETS_H
#define CG_VERDICT_BRACKETS_H

#include "verdict/verdict_objects.h"

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
    Frame *f = m->top, *under;
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
    under = m->top;
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
