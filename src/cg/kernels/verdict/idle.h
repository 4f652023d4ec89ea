/* Candidates that say nothing: whatever closes or breaks before a key of a verdict. Prose and hostile replies are full of
   them, so they are read without a frame a bracket; what is not sure to be one is left to the full reading.

   The same grammar as verdict/tokens.h has, for the outcome alone: where text goes on. Nothing else can come of it, but for
   an empty array, which may be an answer. */
#ifndef CG_VERDICT_IDLE_H
#define CG_VERDICT_IDLE_H

#include "verdict/search_memo.h"
#include "verdict/empty_candidate_levels.h"
#include "verdict/known_breaks.h"

enum Move { BREAKS, SKIP, WORD_MOVE, STRING_MOVE, OPEN_MOVE, CLOSE_MOVE, COMMA_MOVE, COLON_MOVE, SLASH_MOVE, HASH_MOVE,
            WIDE_MOVE };

/* What a token does, by what is expected (enum Expect) and by its first byte (enum ByteClass). */
static const uint8_t moves[9][16] = {
    /*                 word       dot        blank quote        opener     closer      comma       colon       slash       hash       wide */
    [FIRST_ITEM] =    {WORD_MOVE, WORD_MOVE, SKIP, STRING_MOVE, OPEN_MOVE, CLOSE_MOVE, BREAKS,     BREAKS,     SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
    [ITEM] =          {WORD_MOVE, WORD_MOVE, SKIP, STRING_MOVE, OPEN_MOVE, CLOSE_MOVE, COMMA_MOVE, BREAKS,     SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
    [AFTER_ITEM] =    {BREAKS,    BREAKS,    SKIP, BREAKS,      BREAKS,    CLOSE_MOVE, COMMA_MOVE, BREAKS,     SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
    [AFTER_BRACKET] = {BREAKS,    BREAKS,    SKIP, BREAKS,      OPEN_MOVE, CLOSE_MOVE, COMMA_MOVE, BREAKS,     SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
    [FIRST_KEY] =     {WORD_MOVE, WORD_MOVE, SKIP, STRING_MOVE, BREAKS,    CLOSE_MOVE, BREAKS,     BREAKS,     SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
    [KEY] =           {WORD_MOVE, WORD_MOVE, SKIP, STRING_MOVE, BREAKS,    CLOSE_MOVE, COMMA_MOVE, BREAKS,     SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
    [COLON] =         {BREAKS,    BREAKS,    SKIP, BREAKS,      BREAKS,    BREAKS,     BREAKS,     COLON_MOVE, SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
    [MEMBER] =        {WORD_MOVE, WORD_MOVE, SKIP, STRING_MOVE, OPEN_MOVE, BREAKS,     BREAKS,     BREAKS,     SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
    [AFTER_MEMBER] =  {BREAKS,    BREAKS,    SKIP, BREAKS,      BREAKS,    CLOSE_MOVE, COMMA_MOVE, BREAKS,     SLASH_MOVE, HASH_MOVE, WIDE_MOVE},
};

static const uint8_t after_scalar[9] = {
    [FIRST_ITEM] = AFTER_ITEM, [ITEM] = AFTER_ITEM, [FIRST_KEY] = COLON, [KEY] = COLON, [MEMBER] = AFTER_MEMBER,
};

/* The class of a token past ASCII, and its width; 0 if more bytes would tell. */
static size_t wide_token(const uint8_t *s, size_t i, size_t n, unsigned *class) {
    if (n - i < 3) return 0;
    *class = BYTE_BLANK;
    int length = blank_at(s, i, n);
    if (length) return (size_t)length;
    s += i;
    *class = is_three(s, 0xE2, 0x80, 0x9C) || is_three(s, 0xE2, 0x80, 0x9D) ? BYTE_QUOTE
           : is_three(s, 0xEF, 0xBC, 0x8C) ? BYTE_COMMA : is_three(s, 0xEF, 0xBC, 0x9A) ? BYTE_COLON : BYTE_ALIEN;
    return 3;
}

/* Whether what breaks a candidate at s[i] shows that it is a template (R6). */
static int is_template(const uint8_t *s, size_t i, size_t n, int expect) {
    if (!wants_value(expect) && !wants_key(expect)) return 0;
    return s[i] == '<' || (n - i >= 3 && (is_three(s + i, '.', '.', '.') || is_three(s + i, 0xE2, 0x80, 0xA6)));
}

/* The end of the word at s[at]: `at` itself for a template's dots, m->n if more bytes would tell. */
static inline size_t idle_word(const Machine *m, size_t at) {
    const uint8_t *s = m->s;
    size_t i = at;
    if (s[i] == '.') {
        if (m->n - i < 3) return m->n;
        if (s[i + 1] == '.' && s[i + 2] == '.') return at;
    }
    do i++; while (i < m->n && is_word_byte(s[i]));
    return i;
}

/* The place behind the comment at s[at]: `at` itself if there is none, m->n if more bytes would tell. */
static size_t idle_comment(Machine *m, size_t at) {
    const uint8_t *s = m->s;
    if (s[at] == '#') return blank_before(s, at) ? line_stop(m, at + 1) : at;
    if (at + 1 == m->n) return m->n;
    if (s[at + 1] == '/') return line_stop(m, at + 1);
    if (s[at + 1] != '*') return at;
    size_t end = block_stop(m, at + 2);
    return end == m->n ? end : end + 2;
}

/* A bracket, then a string, then what cannot follow it: where text goes on, or NOWHERE if that is not what stands at s[at].
   A stray quote makes one of every bracket behind it. */
static inline size_t past_stray_quote(Machine *m, size_t at) {
    const uint8_t *s = m->s;
    if (at + 1 >= m->n || byte_class[s[at + 1]] != BYTE_QUOTE) return NOWHERE;
    size_t end = string_stop(s, at + 2, m->n, s[at + 1], m->scan_level);
    if (end + 1 >= m->n || s[end] != s[at + 1]) return NOWHERE;
    if (moves[s[at] == '{' ? COLON : AFTER_ITEM][byte_class[s[end + 1]]] != BREAKS) return NOWHERE;
    return read_again(m, end - at - 1, end + 1) ? at + 2 : NOWHERE;
}

/* Where text goes on behind the bracket at s[at], if what it opens says nothing; NOWHERE if it has to be read in full, or if
   the reply was given up. */
static size_t past_idle(Machine *m, const size_t at) {
    const uint8_t *s = m->s;
    const size_t n = m->n;
    size_t i = at + 1, string = NOWHERE, content = NOWHERE, from, end, width;
    uint64_t objects = s[at] == '{';        /* a bit a level, the innermost lowest */
    unsigned depth = 1, expect = objects ? FIRST_KEY : FIRST_ITEM, class, move;
    int name = OTHER_NAME;                  /* of the last key */
    Nest nest;
    if (at == m->in_full) return NOWHERE;
    if ((end = past_stray_quote(m, at)) != NOWHERE || m->mode == GIVEN_UP) return end;
    nest.opened = 0;
    m->joins.n = 0;
    nest_add(&nest, at);
    while (i < n) {
        width = 1;
        move = moves[expect][byte_class[s[i]]];
        if (move == WIDE_MOVE) {
            if (!(width = wide_token(s, i, n, &class))) break;
            move = moves[expect][class];
        }
        switch (move) {
        case SKIP: i += width; continue;
        case COMMA_MOVE: i += width; expect = expect <= AFTER_BRACKET ? ITEM : KEY; continue;
        case COLON_MOVE:
            if (name > NAME_I || (name == NAME_I && m->run.tally)) break;
            if (name == NAME_I) content = i;
            i += width;
            expect = MEMBER;
            continue;
        case STRING_MOVE:
            from = i + width;
            end = width == 1 ? straight_stop(m, from, s[i], m->is_final) : curly_stop(m, from, m->is_final);
            if (end == n && content == NOWHERE && cut_in_string(m, &nest, depth, expect)) {
                return read_again(m, n - i - 1, n) ? i + 1 : NOWHERE;
            }
            if (end == n || s[end] == '\\') break;
            if (wants_key(expect)) name = name_of(s, from, end);
            string = i;
            i = end + width;
            expect = after_scalar[expect];
            m->joins.n = 0;
            if (width == 1) continue;
            goto joins;
        case WORD_MOVE:
            end = idle_word(m, i);
            if (end == n) break;
            if (end == i) goto breaks;
            if (wants_key(expect)) name = name_of(s, i, end);
            i = end;
            expect = after_scalar[expect];
            continue;
        case OPEN_MOVE:
            objects = objects << 1 | (s[i] == '{');
            expect = objects & 1 ? FIRST_KEY : FIRST_ITEM;
            if (depth < MAX_LEVELS) {
                join_deepen(&m->joins, ++depth);
                nest_add(&nest, i++);
                continue;
            }
            run_end(m, CLOSED);         /* both before what stands between the brackets, which may be an answer */
            if (content != NOWHERE) m->after_break = 1;
            if (!(end = nest_give_up(m, &nest))) break;
            m->gave_up = 1;
            m->joins.n = 0;
            if (content != NOWHERE && content < end) content = NOWHERE;
            if (string != NOWHERE && string < end) string = NOWHERE;
            if (i - end == MAX_LEVELS - 1 && s[i] == '[') i = nest_row(m, &nest, i); else nest_add(&nest, i++);
            continue;
        case CLOSE_MOVE:
            if ((s[i] == '}') != (objects & 1)) goto breaks;
            objects >>= 1;
            nest.opened--;
            if (--depth == 0) return expect == FIRST_ITEM ? empty_array(m, nest_root(&nest, 0), i) : i + 1;
            if (expect == FIRST_ITEM && objects & 1) break;
            join_rise(&m->joins, depth);
            expect = objects & 1 ? AFTER_MEMBER : AFTER_BRACKET;
            i++;
            continue;
        case SLASH_MOVE: case HASH_MOVE:
            end = idle_comment(m, i);
            if (end == n) break;
            if (end == i) goto breaks;
            i = end;
        joins:
            if (string == NOWHERE || content != NOWHERE) continue;
            if (expect == COLON && name != OTHER_NAME) continue;        /* what its colon says, others do not */
            if ((end = tail_break(m, i, objects, depth, expect)) == NOWHERE) {
                join_add(&m->joins, i, objects, depth, expect);
                continue;
            }
            i = end;
            m->joins.n = 0;
            goto breaks;
        default:
        breaks:
            if (content != NOWHERE && !is_template(s, i, n, (int)expect)) m->after_break = m->broke = 1;
            if (string == NOWHERE || content != NOWHERE) return i;
            tail_keep(m, i);
            return read_again(m, i - string - 1, i) ? string + 1 : NOWHERE;
        }
        break;
    }
    m->in_full = nest_root(&nest, depth);
    return m->in_full == at ? NOWHERE : m->in_full;
}

#endif
