/* Tags around a model's reasoning: <think>, </think>, < seed:thought budget="high" >, ◁think▷, [THINK] (R2). */
#ifndef CG_VERDICT_REASONING_TAGS_H
#define CG_VERDICT_REASONING_TAGS_H

#include "verdict/brackets.h"

enum { TAG_BLANKS = 16, TAG_PREFIX = 32 };      /* in a row; more is prose, and is not looked through at each new piece */
enum TagResult { NO_TAG, A_TAG, TAG_UNSURE };
enum TagBrackets { ANGLES, WIDE_ANGLES, TRIANGLES, SQUARES, NO_BRACKETS };

static const struct { uint8_t size, open[3], close[3]; } tag_brackets[] = {
    {1, "<", ">"}, {3, {0xEF, 0xBC, 0x9C}, {0xEF, 0xBC, 0x9E}}, {3, {0xE2, 0x97, 0x81}, {0xE2, 0x96, 0xB7}}, {1, "[", "]"},
};

/* Two spellings of one name may open and close the same reasoning. */
static const struct { const char *text; uint8_t size, name; } tag_names[] = {
    {"think", 5, 1}, {"thinking", 8, 1}, {"thought", 7, 2}, {"thoughts", 8, 2}, {"reasoning", 9, 3}, {"reflection", 10, 4},
    {"scratchpad", 10, 5}, {"analysis", 8, 6},
};

static inline int stands_at(const uint8_t *s, size_t i, size_t n, const uint8_t *text, size_t size) {
    return n - i >= size && !memcmp(s + i, text, size);
}

static int brackets_at(const uint8_t *s, size_t i, size_t n) {
    for (int k = ANGLES; k < NO_BRACKETS; k++)
        if (stands_at(s, i, n, tag_brackets[k].open, tag_brackets[k].size)) return k;
    return NO_BRACKETS;
}

static uint8_t tag_name(const uint8_t *s, size_t at, size_t end) {
    for (size_t k = 0; k < sizeof tag_names / sizeof *tag_names; k++) {
        size_t i = 0;
        if (tag_names[k].size != end - at) continue;
        while (at + i < end && lowered(s[at + i]) == (uint8_t)tag_names[k].text[i]) i++;
        if (at + i == end) return tag_names[k].name;
    }
    return 0;
}

static size_t tag_blanks(const uint8_t *s, size_t i, size_t n) {
    for (int k = 0, length; k < TAG_BLANKS && (length = blank_at(s, i, n)); k++) i += (size_t)length;
    return i;
}

static size_t tag_word(const uint8_t *s, size_t i, size_t n) {
    size_t most = n - i > TAG_PREFIX ? i + TAG_PREFIX : n;
    while (i < most && is_word_byte(s[i]) && s[i] != '$' && s[i] != '+') i++;
    return i;
}

/* The end of the tag that has attributes from s[i] on: its closing bracket, before another of its opening ones. */
static int tag_attributes(Machine *m, size_t i, int kind, int is_final, Tag *tag) {
    const uint8_t *s = m->s;
    const size_t n = m->n, size = tag_brackets[kind].size;
    if (i < m->tag_searched) i = m->tag_searched;
    for (; i < n; i++) {
        if (stands_at(s, i, n, tag_brackets[kind].open, size)) return NO_TAG;
        if (stands_at(s, i, n, tag_brackets[kind].close, size)) { tag->end = i + size; return A_TAG; }
    }
    if (is_final) return NO_TAG;
    m->tag_searched = n - size + 1;
    return TAG_UNSURE;
}

/* The tag that opens at m->at. */
static int tag_at(Machine *m, int is_final, Tag *tag) {
    const uint8_t *s = m->s;
    const size_t n = m->n;
    size_t i = m->at, word;
    const int kind = brackets_at(s, i, n);
    if (kind == NO_BRACKETS) return s[i] >= 0x80 && n - i < 3 && !is_final ? TAG_UNSURE : NO_TAG;
    i = tag_blanks(s, i + tag_brackets[kind].size, n);
    tag->is_closing = i < n && s[i] == '/';
    if (tag->is_closing) i = tag_blanks(s, i + 1, n);
    i = tag_word(s, word = i, n);
    if (i < n && s[i] == ':' && i > word && kind != SQUARES) {
        word = i + 1;
        i = tag_word(s, word, n);
    }
    if (!is_final && (i == n || (s[i] >= 0x80 && n - i < 3))) return TAG_UNSURE;
    tag->brackets = (uint8_t)kind;
    tag->name = tag_name(s, word, i);
    if (!tag->name || i == n) return NO_TAG;
    if (kind == SQUARES) {
        if (i - word != 5 || tag->name != 1) return NO_TAG;     /* of these [THINK] alone */
        i = tag_blanks(s, i, n);
        if (i == n || (s[i] >= 0x80 && n - i < 3)) return is_final ? NO_TAG : TAG_UNSURE;
    }
    if (stands_at(s, i, n, tag_brackets[kind].close, tag_brackets[kind].size)) {
        tag->end = i + tag_brackets[kind].size;
        return A_TAG;
    }
    if (kind == SQUARES || (s[i] != '/' && !blank_at(s, i, n))) return NO_TAG;
    return tag_attributes(m, i, kind, is_final, tag);
}

/* Whether what stands at s[i] may be the tag [THINK]; most lists show at a glance that they are none. */
static inline int may_be_square_tag(const uint8_t *s, size_t i, size_t n) {
    const uint8_t next = i + 1 < n ? s[i + 1] : ' ';
    return next >= 0x80 || lowered(next) == 't' || next == '/' || is_ascii_blank(next);
}

static int step_reasoning(Machine *m, int is_final) {
    while (m->at < m->n) {
        Tag tag = {0};
        const uint8_t *found = (const uint8_t *)memchr(m->s + m->at, tag_brackets[m->reasoning.brackets].open[0], m->n - m->at);
        if (!found) { m->at = m->n; break; }
        m->at = (size_t)(found - m->s);
        int result = tag_at(m, is_final, &tag);
        if (result == TAG_UNSURE) return MORE;
        m->tag_searched = 0;
        if (result == A_TAG && tag.is_closing && tag.name == m->reasoning.name && tag.brackets == m->reasoning.brackets) {
            m->at = tag.end;
            m->mode = IN_TEXT;
            return STEP;
        }
        m->at++;
    }
    if (is_final) m->ended_inside = 1;
    return MORE;
}

#endif
