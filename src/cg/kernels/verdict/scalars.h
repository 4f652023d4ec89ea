/* What a key, a word or a string means: which name, which number or label, keep or drop, none or an obligation (R4, R5, R10,
   R11). Offsets, never pointers, leave here, because the reply's buffer may move between two pieces. */
#ifndef CG_VERDICT_SCALARS_H
#define CG_VERDICT_SCALARS_H

#include "verdict/characters.h"

enum ValueKind { ABSENT, IS_NULL, BOOLEAN, NUMBER, TEXT, CONTAINER };

typedef struct {
    size_t at, end;     /* a string's inside or a word, as written */
    uint8_t kind;
} Value;

enum Name { OTHER_NAME, NAME_I, NAME_VERDICT, NAME_NEEDED_BY, NAME_QUOTE };
enum Need { UNASKED, NEED_NULL, NEED_EMPTY, NEED_NONE, NEED_OTHER };       /* what needed_by says */
enum Said { UNSAID, SAID_KEEP, SAID_DROP, SAID_OTHER };                    /* what verdict says */

/* What the trimmed text spells, ASCII letters lowered, in at most `room` bytes; -1 if it is longer or not ASCII. */
static int trimmed(const uint8_t *s, size_t at, size_t end, char *out, int room) {
    int k = 0, gap = 0;
    while (at < end) {
        uint32_t c = char_next(s, &at, end);
        if (is_blank_char(c)) { gap = k > 0; continue; }
        if (gap || c >= 0x80 || k == room) return -1;
        out[k++] = (char)lowered((uint8_t)c);
    }
    return k;
}

static inline int spells(const char *text, int length, const char *word) {
    return length == (int)strlen(word) && memcmp(text, word, (size_t)length) == 0;
}

/* The four bytes at s as one word, ASCII letters lowered: equal for equal spellings of a four-letter name. */
static inline uint32_t four(const uint8_t *s) {
    uint32_t word;
    memcpy(&word, s, 4);
    return word | 0x20202020u;
}

/* Length of the JSON number at the start of s, 0 if there is none; *plain: digits with a sign at most. */
static size_t number_length(const uint8_t *s, size_t n, int *plain) {
    size_t i = n && s[0] == '-', start = i;
    *plain = 1;
    while (i < n && is_digit(s[i])) i++;
    if (i == start || (s[start] == '0' && i - start > 1)) return 0;
    if (i + 1 < n && s[i] == '.' && is_digit(s[i + 1])) {
        *plain = 0;
        for (i++; i < n && is_digit(s[i]); i++) {}
    }
    if (i + 1 < n && lowered(s[i]) == 'e') {
        size_t k = i + 1 + (s[i + 1] == '+' || s[i + 1] == '-');
        if (k < n && is_digit(s[k])) {
            *plain = 0;
            for (i = k; i < n && is_digit(s[i]); i++) {}
        }
    }
    return i;
}

/* Null, truth value, number or text: what a bare word means. */
static uint8_t word_kind(const uint8_t *s, size_t n) {
    int plain;
    if (is_digit(s[0]) || s[0] == '-') return number_length(s, n, &plain) == n ? NUMBER : TEXT;
    if ((n == 4 && (!memcmp(s, "null", 4) || !memcmp(s, "None", 4))) || (n == 9 && !memcmp(s, "undefined", 9))) return IS_NULL;
    if (n == 4 || n == 5) {
        char low[5];
        for (size_t k = 0; k < n; k++) low[k] = (char)lowered(s[k]);
        if (!memcmp(low, n == 4 ? "true" : "false", n)) return BOOLEAN;
    }
    return TEXT;
}

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

#endif
