/* Reads a reply one byte after the other and keeps what it says about the labels: a state machine without recursion, which
   can stop at every byte and go on when more come.

   In text it looks for brackets and reasoning tags. A bracket starts a candidate: tokens.h reads its strings, words and signs,
   and a frame for each open bracket keeps what stands in it (parser_state.h). When a bracket closes, brackets.h hands what it
   held to the one around it: a verdict object is counted in its array (verdict_objects.h), an array becomes a sequence that
   may answer (sequences.h). A candidate ends when its outermost bracket closes, when a token does not fit (it broke), when
   the reply ends (it was cut) or when it nests too deep. Text goes on behind it; if it said nothing, behind its last string's
   opening quote, or inside of the bracket given up (R8).

   So some bytes are read again. They are counted, and a reply that makes this many times its length of them is given up
   (parser_state.h): that keeps all work linear. */
#ifndef CG_VERDICT_STATE_MACHINE_H
#define CG_VERDICT_STATE_MACHINE_H

#include "verdict/reasoning_tags.h"
#include "verdict/tokens.h"

static inline int open_candidate(Machine *m) {
    int is_object = m->s[m->at] == '{';
    m->saw_bracket = 1;
    if (!is_object) run_end(m, CLOSED);
    m->last_string = NOWHERE;
    m->has_content = 0;
    frame_push(m, is_object);
    return STEP;
}

/* Between two bare objects only blanks and commas may stand (R3). */
static int step_run_gap(Machine *m, int is_final) {
    const uint8_t *s = m->s;
    while (m->at < m->n) {
        int length = s[m->at] == ',' ? 1 : blank_at(s, m->at, m->n);
        if (length) { m->at += (size_t)length; continue; }
        if (s[m->at] == '{') return open_candidate(m);
        if (s[m->at] >= 0x80) {
            if (m->n - m->at < 3 && !is_final) return MORE;
            if (m->n - m->at >= 3 && is_three(s + m->at, 0xEF, 0xBC, 0x8C)) { m->at += 3; continue; }
        }
        run_end(m, CLOSED);
        return STEP;
    }
    return MORE;
}

/* What may be a tag, at m->at in text. */
static int step_tag(Machine *m, int is_final) {
    Tag tag;
    int found = tag_at(m, is_final, &tag);
    if (found == TAG_UNSURE) return MORE;
    m->tag_searched = 0;
    if (found == NO_TAG) {
        if (m->s[m->at] == '[') return open_candidate(m);
        m->at++;
        return STEP;
    }
    if (tag.is_closing) forget(m);
    m->at = tag.end;
    m->reasoning = tag;
    m->mode = tag.is_closing ? IN_TEXT : IN_REASONING;
    return STEP;
}

static inline int step_text(Machine *m, int is_final) {
    if (m->run.tally) return step_run_gap(m, is_final);
    const size_t at = m->at = opener_stop(m->s, m->at, m->n, m->scan_level);
    if (at == m->n) return MORE;
    if (m->s[at] == '{' || (m->s[at] == '[' && !may_be_square_tag(m->s, at, m->n))) return open_candidate(m);
    return step_tag(m, is_final);
}

static inline int step(Machine *m, int is_final) {
    if (m->mode == BETWEEN_TOKENS) return step_token(m, is_final);
    if (m->mode == IN_TEXT) return step_text(m, is_final);
    switch (m->mode) {
    case IN_DOUBLE: case IN_SINGLE: case IN_CURLY: return step_string(m, is_final);
    case IN_WORD: return step_word(m);
    case IN_REASONING: return step_reasoning(m, is_final);
    case IN_LINE_COMMENT: return step_line_comment(m);
    case IN_BLOCK_COMMENT: return step_block_comment(m);
    default: m->at = m->n; return MORE;
    }
}

/* Read on to the end of the bytes; -1 without memory. */
static int machine_run(Machine *m, int is_final) {
    for (;;) {
        int result;
        do result = step(m, is_final); while (result == STEP);
        if (result == DEAD) { m->is_out_of_memory = 1; return -1; }
        if (!is_final) return 0;
        if (m->mode < BETWEEN_TOKENS || m->mode == GIVEN_UP) break;
        cut(m);
    }
    run_end(m, CLOSED);
    return 0;
}

static int machine_open(Machine *m, int64_t *labels, uint32_t n, int scan_level) {
    memset(m, 0, sizeof *m);
    m->offer.label = labels;
    m->offer.n = n;
    m->offer.is_dense = n == 0 || labels[n - 1] - labels[0] == (int64_t)n - 1;
    m->objections = m->run.objections = NO_ROWS;
    m->scan_level = scan_level;
    m->frames = (Frame *)malloc(MAX_LEVELS * sizeof(Frame));
    m->offer.next = (uint32_t *)malloc(((size_t)n + 1) * sizeof(uint32_t));
    m->offer.listed = (uint8_t *)calloc((size_t)n + 1, 1);
    return m->frames && m->offer.next && m->offer.listed ? 0 : -1;
}

/* Everything but the labels, which the caller owns. */
static void machine_close(Machine *m) {
    frames_clear(m);
    tally_free(&m->offer, m->run.tally);
    claim_drop(&m->offer, &m->best);
    pool_clear(&m->offer);
    free(m->frames);
    free(m->offer.next);
    free(m->offer.listed);
    memset(m, 0, sizeof *m);
}

#endif
