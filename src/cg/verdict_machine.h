/* The state machine: one byte level, no recursion, resumable at every byte. Each step either moves on, or asks for MORE
   bytes and stands where it must look again. */
#ifndef CG_VERDICT_MACHINE_H
#define CG_VERDICT_MACHINE_H

#include "verdict_tree.h"

enum Tag { NO_TAG, OPENING_TAG, CLOSING_TAG, TAG_UNSURE };

/* The reasoning tag at s[i] == '<' (R2) and its length. */
static int tag_at(const uint8_t *s, size_t i, size_t n, int is_final, size_t *length) {
    static const char *const tags[] = {"<think>", "<thinking>", "</think>", "</thinking>"};
    int unsure = 0;
    for (int k = 0; k < 4; k++) {
        size_t j = 0, size = strlen(tags[k]);
        while (j < size && i + j < n && lowered(s[i + j]) == (uint8_t)tags[k][j]) j++;
        if (j == size) { *length = size; return k < 2 ? OPENING_TAG : CLOSING_TAG; }
        if (i + j == n) unsure = 1;
    }
    return unsure && !is_final ? TAG_UNSURE : NO_TAG;
}

/* Brackets that prose is full of, told apart without a frame: `[word]`, `{word}`, and a quote that no comma or colon
   follows. The same outcome as reading them in full; 0 if that has to be done. */
static int is_small_candidate(Machine *m, int is_object) {
    const uint8_t *s = m->s;
    size_t i = m->at + 1, end = m->n - i < 24 ? m->n : i + 24;
    if (i >= m->n) return 0;
    if (s[i] == '"') {
        size_t close = string_stop(s, i + 1, m->n, '"', m->scan_level), next = close + 1;
        if (next >= m->n || s[close] == '\\') return 0;
        uint8_t c = s[next];
        if (c >= 0x80 || is_ascii_blank(c) || c == '/' || c == '#' || c == (is_object ? ':' : ',') || c == ']') return 0;
        run_end(m, CLOSED);
        m->at = next;
        go_back(m, i + 1);
        return 1;
    }
    if (s[i] == '.') return 0;
    while (i < end && is_word_byte(s[i])) i++;
    if (i == end || i == m->at + 1 || s[i] != (is_object ? '}' : ']')) return 0;
    run_end(m, CLOSED);
    m->at = i + !is_object;
    return 1;
}

static int open_candidate(Machine *m) {
    int is_object = m->s[m->at] == '{';
    m->saw_bracket = 1;
    if (m->shelf_at != NOWHERE) {
        if (taken_from_shelf(m)) return STEP;
        if (m->mode == GIVEN_UP) return STEP;
    }
    if (is_small_candidate(m, is_object)) return STEP;
    if (!is_object) run_end(m, CLOSED);
    m->base = m->depth = 0;
    m->last_string = m->last_content = NOWHERE;
    frame_push(m, is_object);
    m->at++;
    m->mode = BETWEEN_TOKENS;
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

/* The next opener is often near, where setting up the wide scan costs more than it saves. */
static inline size_t next_opener(Machine *m) {
    const uint8_t *s = m->s;
    size_t i = m->at, near = m->n - i < 8 ? m->n : i + 8;
    while (i < near) {
        if ((s[i] | 0x20) == '{' || s[i] == '<') return i;
        i++;
    }
    return i < m->n ? m->scan(s, i, m->n) : i;
}

static int step_text(Machine *m, int is_final) {
    size_t length = 0;
    if (m->run.tally) return step_run_gap(m, is_final);
    m->at = next_opener(m);
    if (m->at == m->n) return MORE;
    if (m->s[m->at] != '<') return open_candidate(m);
    int tag = tag_at(m->s, m->at, m->n, is_final, &length);
    if (tag == TAG_UNSURE) return MORE;
    if (tag == NO_TAG) { m->at++; return STEP; }
    if (m->shelf_at != NOWHERE) {
        size_t was = m->at;
        m->at = m->shelf_at;
        resume(m, was);
        if (m->mode == GIVEN_UP) return STEP;
    }
    if (tag == CLOSING_TAG) forget(m);
    m->at += length;
    m->mode = tag == CLOSING_TAG ? IN_TEXT : IN_REASONING;
    return STEP;
}

static int step_reasoning(Machine *m, int is_final) {
    size_t length = 0;
    while (m->at < m->n) {
        const uint8_t *found = (const uint8_t *)memchr(m->s + m->at, '<', m->n - m->at);
        if (!found) { m->at = m->n; break; }
        m->at = (size_t)(found - m->s);
        int tag = tag_at(m->s, m->at, m->n, is_final, &length);
        if (tag == TAG_UNSURE) return MORE;
        if (tag == CLOSING_TAG) { m->at += length; m->mode = IN_TEXT; return STEP; }
        m->at++;
    }
    if (is_final) m->ended_inside = 1;
    return MORE;
}

static inline int wants_value(int expect) { return expect <= ITEM || expect == MEMBER; }
static inline int wants_key(int expect) { return expect == FIRST_KEY || expect == KEY; }

/* Which of the four names the key spells, unescaped and without ASCII case. */
static int name_of(const uint8_t *s, size_t at, size_t end) {
    char text[9];
    int k = 0;
    size_t n = end - at;
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

/* A whole string or word: a key, an element, or a member's value. */
static inline void scalar(Machine *m, Frame *f, size_t at, size_t end, uint8_t kind) {
    if (wants_key(f->expect)) {
        f->name = (uint8_t)name_of(m->s, at, end);
        f->expect = COLON;
    } else if (f->is_object) {
        Value v = {at, end, kind};
        record_value(m, f, &v);
        f->expect = AFTER_MEMBER;
    } else {
        f->items++;
        f->expect = AFTER_ITEM;
    }
    m->mode = BETWEEN_TOKENS;
}

static int step_string(Machine *m, int is_final) {
    const uint8_t *s = m->s;
    uint8_t quote = m->mode == IN_DOUBLE ? '"' : m->mode == IN_SINGLE ? '\'' : 0xE2;
    for (;;) {
        size_t i = m->at = string_stop(s, m->at, m->n, quote, m->scan_level);
        if (i == m->n) return MORE;
        if (s[i] == '\\') {
            if (i + 1 == m->n || (s[i + 1] == 0xE2 && m->n - i < 4 && !is_final)) return MORE;
            if (m->n - i >= 4 && is_three(s + i + 1, 0xE2, 0x80, 0x9D)) m->at += 4;
            else m->at += s[i + 1] < 0x80 ? 2 : 1;
        } else if (quote == 0xE2) {
            if (m->n - i < 3) { if (!is_final) return MORE; m->at = m->n; return MORE; }
            m->at += 1;
            if (!is_three(s + i, 0xE2, 0x80, 0x9D)) continue;
            m->at += 2;
            scalar(m, top_of(m), m->token + 3, i, TEXT);
            return STEP;
        } else {
            m->at = i + 1;
            scalar(m, top_of(m), m->token + 1, i, TEXT);
            return STEP;
        }
    }
}

static int step_word(Machine *m) {
    const uint8_t *s = m->s;
    while (m->at < m->n && is_word_byte(s[m->at])) m->at++;
    if (m->at == m->n) return MORE;
    scalar(m, top_of(m), m->token, m->at, word_kind(s + m->token, m->at - m->token));
    return STEP;
}

static int step_line_comment(Machine *m) {
    while (m->at < m->n && m->s[m->at] != '\n' && m->s[m->at] != '\r') m->at++;
    if (m->at == m->n) return MORE;
    m->mode = BETWEEN_TOKENS;
    return STEP;
}

static int step_block_comment(Machine *m) {
    while (m->at < m->n) {
        const uint8_t *found = (const uint8_t *)memchr(m->s + m->at, '*', m->n - m->at);
        m->at = found ? (size_t)(found - m->s) : m->n;
        if (m->n - m->at < 2) return MORE;
        m->at++;
        if (m->s[m->at] == '/') { m->at++; m->mode = BETWEEN_TOKENS; return STEP; }
    }
    return MORE;
}

static int open_string(Machine *m, Frame *f, int mode, int width) {
    if (!wants_value(f->expect) && !wants_key(f->expect)) return broken(m, BROKEN);
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

static inline void colon_seen(Machine *m, Frame *f, size_t at) {
    if (f->name != OTHER_NAME) {
        f->is_named = 1;
        m->last_content = at;
    }
    f->expect = MEMBER;
}

static int colon(Machine *m, Frame *f, int width) {
    if (f->expect != COLON) return broken(m, BROKEN);
    colon_seen(m, f, m->at);
    m->at += (size_t)width;
    return STEP;
}

static int open_bracket(Machine *m, Frame *f, int is_object) {
    if (!wants_value(f->expect) && f->expect != AFTER_BRACKET) return broken(m, BROKEN);
    if (f->is_object) f->is_verdict |= f->name > NAME_I;      /* R4: a value that is neither null nor empty */
    else f->had_object |= (uint8_t)is_object;
    if (m->depth == MAX_LEVELS) return too_deep(m);
    frame_push(m, is_object);
    m->at++;
    return STEP;
}

static int close_bracket(Machine *m, Frame *f, int is_object) {
    int fits = is_object ? f->expect == FIRST_KEY || f->expect == KEY || f->expect == AFTER_MEMBER
                         : f->expect <= AFTER_BRACKET;
    if (!fits) return broken(m, BROKEN);
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
    if (is_three(s, 0xE2, 0x80, 0xA6) && (wants_value(f->expect) || wants_key(f->expect))) return broken(m, TEMPLATE);
    return broken(m, BROKEN);
}

/* A word, or the dots of a template. */
static int open_word(Machine *m, Frame *f, int is_final) {
    const uint8_t *s = m->s;
    size_t left = m->n - m->at;
    if (!wants_value(f->expect) && !wants_key(f->expect)) return broken(m, BROKEN);
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
        colon_seen(m, f, end + 1);
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
    Frame *f = top_of(m);
    if (wants_key(f->expect)) {
        plain_members(m, f);
        if (m->mode != BETWEEN_TOKENS) return STEP;
    }
    while (m->at < m->n && is_ascii_blank(s[m->at])) m->at++;
    if (m->at == m->n) return MORE;
    uint8_t c = s[m->at];
    switch (c) {
    case '"': return open_string(m, f, IN_DOUBLE, 1);
    case '\'': return open_string(m, f, IN_SINGLE, 1);
    case ',': return comma(m, f, 1);
    case ':': return colon(m, f, 1);
    case '[': case '{': return open_bracket(m, f, c == '{');
    case ']': case '}': return close_bracket(m, f, c == '}');
    case '<': return broken(m, wants_value(f->expect) || wants_key(f->expect) ? TEMPLATE : BROKEN);
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

static inline int step(Machine *m, int is_final) {
    switch (m->mode) {
    case BETWEEN_TOKENS: return step_token(m, is_final);
    case IN_DOUBLE: case IN_SINGLE: case IN_CURLY: return step_string(m, is_final);
    case IN_WORD: return step_word(m);
    case IN_TEXT: return step_text(m, is_final);
    case IN_REASONING: return step_reasoning(m, is_final);
    case IN_LINE_COMMENT: return step_line_comment(m);
    case IN_BLOCK_COMMENT: return step_block_comment(m);
    default: m->at = m->n; return MORE;
    }
}

/* Read on to the end of the bytes; -1 without memory. */
static int machine_run(Machine *m, int is_final) {
    for (;;) {
        int result = step(m, is_final);
        if (result == DEAD) { m->is_out_of_memory = 1; return -1; }
        if (result == STEP) continue;
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
    m->last_string = m->last_content = m->shelf_at = NOWHERE;
    m->objections = m->run.objections = NO_ROWS;
    m->scan_level = scan_level;
    m->scan = opener_scan(scan_level);
    m->frame = (Frame *)malloc(FRAMES * sizeof(Frame));
    m->offer.next = (uint32_t *)malloc(((size_t)n + 1) * sizeof(uint32_t));
    m->offer.listed = (uint8_t *)calloc((size_t)n + 1, 1);
    return m->frame && m->offer.next && m->offer.listed ? 0 : -1;
}

/* Everything but the labels, which the caller owns. */
static void machine_close(Machine *m) {
    if (m->frame) frames_release(m);
    tally_free(&m->offer, m->run.tally);
    claim_drop(&m->offer, &m->best);
    pool_clear(&m->offer);
    free(m->frame);
    free(m->offer.next);
    free(m->offer.listed);
    memset(m, 0, sizeof *m);
}

#endif
