/* Inside a candidate: strings, words, comments and punctuation, one step each. A step moves on, or asks for MORE bytes and
   stands where it must look again. */
#ifndef CG_VERDICT_TOKENS_H
#define CG_VERDICT_TOKENS_H

#include "verdict/brackets.h"

/* A whole string or word: a key, an element, or a member's value. */
static inline void scalar(Machine *m, Frame *f, size_t at, size_t end, int is_word) {
    if (wants_key(f->expect)) {
        f->name = (uint8_t)name_of(m->s, at, end);
        f->expect = COLON;
    } else if (f->is_object) {
        Value v = {at, end, is_word ? word_kind(m->s + at, end - at) : TEXT};
        record_value(m, f, &v);
        f->expect = AFTER_MEMBER;
    } else {
        f->items++;
        f->expect = AFTER_ITEM;
    }
    m->mode = BETWEEN_TOKENS;
}

/* To the end of the string. Only U+201D is escaped as a whole; behind other backslashes the first byte tells enough. */
static int step_string(Machine *m, int is_final) {
    const uint8_t *s = m->s;
    const int is_curly = m->mode == IN_CURLY;
    const uint8_t quote = is_curly ? 0xE2 : s[m->token];
    const size_t width = is_curly ? 3 : 1;
    for (;;) {
        size_t i = m->at = string_stop(s, m->at, m->n, quote, m->scan_level), left = m->n - i;
        if (left == 0) return MORE;
        if (s[i] == '\\') {
            if (left == 1 || (left < 4 && s[i + 1] == 0xE2 && !is_final)) return MORE;
            if (left >= 4 && is_three(s + i + 1, 0xE2, 0x80, 0x9D)) m->at += 4;
            else m->at += s[i + 1] < 0x80 ? 2 : 1;
        } else {
            if (left < width) return MORE;
            if (!is_curly || is_three(s + i, 0xE2, 0x80, 0x9D)) break;
            m->at++;
        }
    }
    const size_t end = m->at;
    m->at += width;
    scalar(m, m->top, m->token + width, end, 0);
    return STEP;
}

static inline int step_word(Machine *m) {
    const uint8_t *s = m->s;
    while (m->at < m->n && is_word_byte(s[m->at])) m->at++;
    if (m->at == m->n) return MORE;
    scalar(m, m->top, m->token, m->at, 1);
    return STEP;
}

static int step_line_comment(Machine *m) {
    while (m->at < m->n && m->s[m->at] != '\n' && m->s[m->at] != '\r') m->at++;
    if (m->at == m->n) return MORE;
    m->mode = BETWEEN_TOKENS;
    return STEP;
}

static int step_block_comment(Machine *m) {
    for (;; m->at++) {
        const uint8_t *found = (const uint8_t *)memchr(m->s + m->at, '*', m->n - m->at);
        m->at = found ? (size_t)(found - m->s) : m->n;
        if (m->n - m->at < 2) return MORE;
        if (m->s[m->at + 1] == '/') break;
    }
    m->at += 2;
    m->mode = BETWEEN_TOKENS;
    return STEP;
}

static int open_string(Machine *m, Frame *f, int mode, int width) {
    if (!wants_scalar(f->expect)) return broken(m, BROKEN);
    m->token = m->last_string = m->at;
    m->at += (size_t)width;
    m->mode = (uint8_t)mode;
    return STEP;
}

static int comma(Machine *m, Frame *f, int width) {
    if (f->expect == AFTER_ITEM || f->expect == AFTER_BRACKET || f->expect == ITEM) f->expect = ITEM;
    else if (f->expect == AFTER_MEMBER || f->expect == KEY) f->expect = KEY;
    else return broken(m, BROKEN);
    m->at += (size_t)width;
    return STEP;
}

static inline void colon_seen(Machine *m, Frame *f) {
    if (f->name != OTHER_NAME) f->is_named = m->has_content = 1; else f->has_other_key = 1;
    f->expect = MEMBER;
}

static int colon(Machine *m, Frame *f, int width) {
    if (f->expect != COLON) return broken(m, BROKEN);
    colon_seen(m, f);
    m->at += (size_t)width;
    return STEP;
}

static int open_bracket(Machine *m, Frame *f, int is_object) {
    if (!wants_value(f->expect) && f->expect != AFTER_BRACKET) return broken(m, BROKEN);
    if (f->is_object) f->is_verdict |= f->name > NAME_I;      /* R4: a value that is neither null nor empty */
    else f->had_object |= (uint8_t)is_object;
    if (m->depth == MAX_LEVELS) return too_deep(m);
    frame_push(m, is_object);
    return STEP;
}

static int close_bracket(Machine *m, Frame *f, int is_object) {
    if (!closes(is_object, f->expect)) return broken(m, BROKEN);
    m->at++;
    return close_top(m) < 0 ? DEAD : STEP;
}

/* A token that starts with a byte past ASCII. */
static int step_wide_token(Machine *m, Frame *f, int is_final) {
    const uint8_t *s = m->s + m->at;
    int length;
    if (m->n - m->at < 3 && !is_final) return MORE;
    if ((length = blank_at(m->s, m->at, m->n))) { m->at += (size_t)length; return STEP; }
    if (m->n - m->at < 3) return broken(m, BROKEN);
    if (is_three(s, 0xE2, 0x80, 0x9C) || is_three(s, 0xE2, 0x80, 0x9D)) return open_string(m, f, IN_CURLY, 3);
    if (is_three(s, 0xEF, 0xBC, 0x8C)) return comma(m, f, 3);
    if (is_three(s, 0xEF, 0xBC, 0x9A)) return colon(m, f, 3);
    if (is_three(s, 0xE2, 0x80, 0xA6) && wants_scalar(f->expect)) return broken(m, TEMPLATE);
    return broken(m, BROKEN);
}

/* A word, or the dots of a template. */
static int open_word(Machine *m, Frame *f, int is_final) {
    const uint8_t *s = m->s;
    size_t left = m->n - m->at;
    if (!wants_scalar(f->expect)) return broken(m, BROKEN);
    if (s[m->at] == '.') {
        if (left < 3 && !is_final && s[m->n - 1] == '.') return MORE;
        if (left >= 3 && s[m->at + 1] == '.' && s[m->at + 2] == '.') return broken(m, TEMPLATE);
    }
    m->token = m->at++;
    m->mode = IN_WORD;
    return step_word(m);
}

/* Members written the common way, `"key": "text"` or `"key": word`, from a place where a key is due. Stops at a token
   boundary before anything else, so the general steps go on from there. */
static void plain_members(Machine *m, Frame *f) {
    const uint8_t *s = m->s;
    const size_t n = m->n;
    size_t i = m->at, end;
    int level = m->scan_level;
    for (;;) {
        while (i < n && is_ascii_blank(s[i])) i++;
        m->at = i;
        if (i >= n || s[i] != '"') return;
        end = string_stop(s, i + 1, n, '"', level);
        if (end + 1 >= n || s[end] != '"' || s[end + 1] != ':') return;
        f->name = (uint8_t)name_of(s, i + 1, end);
        m->last_string = i;
        colon_seen(m, f);
        for (i = end + 2; i < n && is_ascii_blank(s[i]); i++) {}
        m->at = i;
        if (i >= n) return;
        Value v = {i, i, TEXT};
        if (s[i] == '"') {
            m->token = m->last_string = i;
            m->mode = IN_DOUBLE;
            for (end = i + 1; (end = string_stop(s, end, n, '"', level)) < n && s[end] == '\\'; end += 2) {
                if (end + 1 == n || s[end + 1] >= 0x80) { m->at = end; return; }
            }
            m->at = end;
            if (end >= n) { m->at = n; return; }
            v.at = i + 1;
            v.end = end++;
            m->mode = BETWEEN_TOKENS;
        } else {
            if (s[i] == '.' || !is_word_byte(s[i])) return;
            for (end = i + 1; end < n && is_word_byte(s[end]); end++) {}
            if (end == n) return;
            v.end = end;
            v.kind = word_kind(s + i, end - i);
        }
        record_value(m, f, &v);
        f->expect = AFTER_MEMBER;
        m->at = end;
        if (end == n || s[end] != ',') return;
        f->expect = KEY;
        i = end + 1;
    }
}

static int step_token(Machine *m, int is_final) {
    const uint8_t *s = m->s;
    Frame *f = m->top;
    if (wants_key(f->expect)) {
        plain_members(m, f);
        if (m->mode != BETWEEN_TOKENS) return STEP;
    }
    size_t i = m->at;
    while (i < m->n && is_ascii_blank(s[i])) i++;
    m->at = i;
    if (i == m->n) return MORE;
    const uint8_t c = s[i];
    switch (c) {
    case '"': return open_string(m, f, IN_DOUBLE, 1);
    case '\'': return open_string(m, f, IN_SINGLE, 1);
    case ',': return comma(m, f, 1);
    case ':': return colon(m, f, 1);
    case '[': case '{': return open_bracket(m, f, c == '{');
    case ']': case '}': return close_bracket(m, f, c == '}');
    case '<': return broken(m, wants_scalar(f->expect) ? TEMPLATE : BROKEN);
    case '#':
        if (!blank_before(s, m->at)) return broken(m, BROKEN);
        m->mode = IN_LINE_COMMENT;
        return STEP;
    case '/':
        if (m->at + 1 == m->n) return MORE;
        if (s[m->at + 1] != '/' && s[m->at + 1] != '*') return broken(m, BROKEN);
        m->mode = s[m->at + 1] == '/' ? IN_LINE_COMMENT : IN_BLOCK_COMMENT;
        m->at += 2;
        return STEP;
    default:
        if (c >= 0x80) return step_wide_token(m, f, is_final);
        return is_word_byte(c) ? open_word(m, f, is_final) : broken(m, BROKEN);
    }
}

#endif
