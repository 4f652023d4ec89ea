/* What one line looks like. Every test is on ASCII forms and stated as a regular expression in docs/shape.md. */
#ifndef CG_SHAPE_LINE_H
#define CG_SHAPE_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shape/json.h" /* is_digit, is_hex */

typedef struct {
    const uint8_t *raw; /* the line without its newline */
    const uint8_t *s;   /* the same without white space at either end */
    size_t raw_len, len, indent; /* len > 0 */
} Line;

/* One loop's worth of facts about the stripped line. */
typedef struct {
    size_t letters, upper, digits, high, spaces, gaps, slashes, marks, tabs, commas, comma_spaces;
    int all_path, all_base64, has_dot_or_slash, has_link, has_bold, has_operator, has_tree, has_stop;
} Glyphs;

static int is_letter(uint8_t c) { return (uint8_t)((c | 0x20) - 'a') < 26; }

static int is_lower(uint8_t c) { return (uint8_t)(c - 'a') < 26; }

static int is_alnum(uint8_t c) { return is_letter(c) || is_digit(c); }

static int is_blank(uint8_t c) { return c == ' ' || c == '\t' || c == '\r' || c == 0x0B || c == 0x0C; }

/* [A-Za-z0-9_./@~+\-\[\]$#%=(),]: what paths are written in, here without spaces and colons. */
static const uint8_t path_byte[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1,
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

static int is_path_byte(uint8_t c) { return path_byte[c]; }

/* The first byte settles it nearly always, before any library call; no prefix here is empty. */
static inline int starts(const uint8_t *s, size_t n, const char *prefix) {
    size_t k;
    if (n == 0 || s[0] != (uint8_t)prefix[0]) return 0;
    k = strlen(prefix);
    return n >= k && memcmp(s, prefix, k) == 0;
}

static inline int is_one_of(uint8_t c, const char *set) {
    for (; *set; set++)
        if (c == (uint8_t)*set) return 1;
    return 0;
}

static inline int ends(const uint8_t *s, size_t n, const char *suffix) {
    size_t k = strlen(suffix);
    return n >= k && memcmp(s + n - k, suffix, k) == 0;
}

static size_t skip_digits(const uint8_t *s, size_t i, size_t n) {
    while (i < n && is_digit(s[i])) i++;
    return i;
}

static size_t skip_spaces(const uint8_t *s, size_t i, size_t n) {
    while (i < n && s[i] == ' ') i++;
    return i;
}

/* Value of at most nine digits s[from:to]. */
static int64_t number_of(const uint8_t *s, size_t from, size_t to) {
    int64_t v = 0;
    for (; from < to; from++) v = v * 10 + (s[from] - '0');
    return v;
}

/* Position behind `prefix`, any number of spaces and at least one digit; 0 if the line does not start so. */
static size_t prefix_and_number(const uint8_t *s, size_t n, const char *prefix) {
    size_t i, j;
    if (!starts(s, n, prefix)) return 0;
    i = skip_spaces(s, strlen(prefix), n);
    j = skip_digits(s, i, n);
    return j > i ? j : 0;
}

static int starts_any(const uint8_t *s, size_t n, const char *const *words) {
    for (; *words; words++)
        if (starts(s, n, *words)) return 1;
    return 0;
}

/* ` = `, ` := `, ` => `, ` == `, ` != `, ` += `, ` && `, ` || ` with s[i] the first space. */
static int is_operator_at(const uint8_t *s, size_t i, size_t n) {
    if (n - i >= 3 && s[i + 1] == '=' && s[i + 2] == ' ') return 1;
    if (n - i < 4 || s[i + 3] != ' ') return 0;
    switch (s[i + 1]) {
    case ':': case '!': case '+': return s[i + 2] == '=';
    case '=': return s[i + 2] == '>' || s[i + 2] == '=';
    case '&': case '|': return s[i + 2] == s[i + 1];
    default: return 0;
    }
}

/* `**`, then neither space, star nor slash, and a later `**`: bold, and no file pattern. */
static int has_bold(const uint8_t *s, size_t n) {
    size_t i, j;
    for (i = 0; i + 2 < n; i++) {
        if (s[i] != '*' || s[i + 1] != '*') continue;
        if (s[i + 2] == ' ' || s[i + 2] == '*' || s[i + 2] == '/') continue;
        for (j = i + 3; j + 1 < n; j++)
            if (s[j] == '*' && s[j + 1] == '*') return 1;
        return 0;
    }
    return 0;
}

/* Box-drawing of `tree`: U+251C or U+2514 and then U+2500. */
static int is_tree_at(const uint8_t *s, size_t i, size_t n) {
    if (n - i < 6) return 0;
    return memcmp(s + i, "\xE2\x94\x9C\xE2\x94\x80", 6) == 0 || memcmp(s + i, "\xE2\x94\x94\xE2\x94\x80", 6) == 0;
}

/* One or two `=` at the end. */
static int is_padding(const uint8_t *s, size_t i, size_t n) {
    return s[i] == '=' && (i + 1 == n || (i + 2 == n && s[n - 1] == '='));
}

static void look_at_space(const uint8_t *s, size_t i, size_t n, Glyphs *g) {
    g->spaces++;
    g->gaps += s[i - 1] != ' '; /* a stripped line does not start with a space */
    g->has_operator |= is_operator_at(s, i, n);
}

static Glyphs look_at_glyphs(const Line *l) {
    Glyphs g;
    const uint8_t *s = l->s;
    size_t i, n = l->len, stars = 0;
    int quoted = 0;
    memset(&g, 0, sizeof g);
    g.all_path = g.all_base64 = 1;
    for (i = 0; i < n; i++) {
        uint8_t c = s[i];
        if (is_letter(c)) {
            g.letters++;
            g.upper += !(c & 0x20);
            continue;
        }
        if (is_digit(c)) {
            g.digits++;
            continue;
        }
        g.all_base64 &= c == '+' || c == '/' || c == '-' || c == '_' || is_padding(s, i, n);
        if (c == ' ') {
            look_at_space(s, i, n, &g);
            g.all_path = 0;
            continue;
        }
        g.all_path &= is_path_byte(c);
        if (c >= 0x80) {
            g.high++;
            g.has_tree |= is_tree_at(s, i, n);
            continue;
        }
        g.tabs += c == '\t';
        g.slashes += c == '/';
        g.marks += c == '/' || c == '-' || c == '_';
        g.has_stop |= c == '.' && n - i >= 3 && s[i + 1] == ' ' && s[i + 2] >= 'A' && s[i + 2] <= 'Z';
        g.has_dot_or_slash |= c == '.' || c == '/';
        stars += c == '*';
        quoted ^= c == '"';
        if (c == ',' && !quoted) {
            g.commas++;
            g.comma_spaces += i + 1 < n && s[i + 1] == ' ';
        }
        g.has_link |= c == ']' && i + 1 < n && s[i + 1] == '(';
    }
    if (stars >= 4) g.has_bold = has_bold(s, n);
    return g;
}

/* ^PATH*[./]PATH*: and what follows the colon. */
enum { HIT_NONE = 0, HIT_NUMBERED, HIT_CONTEXT, HIT_TEXT, HIT_DIAGNOSTIC };

static int path_hit(const uint8_t *s, size_t n) {
    size_t end = 0, i, j, mark = 0;
    while (end < n && is_path_byte(s[end])) {
        if (!mark && (s[end] == '.' || s[end] == '/')) mark = end + 1;
        end++;
    }
    if (!mark) return HIT_NONE;
    if (end + 1 < n && s[end] == ':') {
        j = skip_digits(s, end + 1, n);
        if (j > end + 1 && j < n && (s[j] == ':' || s[j] == '-')) {
            size_t k = skip_digits(s, j + 1, n);
            if (s[j] == ':' && k > j + 1 && k + 1 < n && s[k] == ':' && s[k + 1] == ' ') return HIT_DIAGNOSTIC;
            return HIT_NUMBERED;
        }
    }
    for (i = mark; i < end; i++) { /* path-12-text */
        if (s[i] != '-') continue;
        j = skip_digits(s, i + 1, end);
        if (j > i + 1 && j < end && s[j] == '-') return HIT_CONTEXT;
    }
    if (end + 1 < n && s[end] == ':' && !(s[end + 1] == ' ' && end + 2 < n && s[end + 2] != ' ')) return HIT_TEXT;
    return HIT_NONE;
}

/* ^[0-9]{1,7}SEP(?![0-9]{2}SEP): the number, or -1. A clock or a date is not a line number. */
static int64_t bare_number(const uint8_t *s, size_t n, uint8_t sep) {
    size_t j = skip_digits(s, 0, n);
    if (j == 0 || j > 7 || j == n || s[j] != sep) return -1;
    if (n - j > 3 && is_digit(s[j + 1]) && is_digit(s[j + 2]) && s[j + 3] == sep) return -1;
    return number_of(s, 0, j);
}

/* A stripped line that is one path: has a letter or digit, and a slash, an extension or a leading dot. */
static int is_path_line(const Line *l, const Glyphs *g) {
    const uint8_t *s = l->s;
    size_t n = l->len, i;
    if (!g->all_path || !(g->letters + g->digits) || is_one_of(s[n - 1], "(,=")) return 0;
    if (g->slashes || s[0] == '.') return 1;
    for (i = n; i > 0 && is_alnum(s[i - 1]); i--) {}
    return i > 0 && s[i - 1] == '.' && n - i >= 1 && n - i <= 8 && is_letter(s[i]);
}

/* ^[-dlbcps][-rwxsStTl]{9}[@+. ] */
static int is_long_listing(const uint8_t *s, size_t n) {
    size_t i;
    if (n < 11 || !is_one_of(s[0], "-dlbcps")) return 0;
    for (i = 1; i < 10; i++)
        if (!is_one_of(s[i], "-rwxsStTl")) return 0;
    return is_one_of(s[10], "@+. ");
}

#endif
