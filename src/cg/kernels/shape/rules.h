/* From a text to its kind: counts over all bytes, forms of the lines in two windows, then rules in a fixed order. */
#ifndef CG_SHAPE_RULES_H
#define CG_SHAPE_RULES_H

#include "shape/forms.h"
#include "shape/scan.h"

/* The order is that of cg.shape.Kind. */
enum {
    KIND_NUMBERED_FILE_READ = 0, KIND_GREP_HITS, KIND_DIRECTORY_LISTING, KIND_TEST_LOG, KIND_DIFF, KIND_JSON_ARRAY,
    KIND_JSON_OBJECT, KIND_JSON_LINES, KIND_CSV, KIND_TSV, KIND_YAML, KIND_MARKDOWN, KIND_SOURCE_CODE, KIND_STACK_TRACE,
    KIND_COLOURED_TERMINAL, KIND_BASE64, KIND_BINARY, KIND_PROSE, KIND_OTHER
};

/* Twice as much front costs twice the time and gave each of the 1,125 recorded outputs the same kind. */
#define HEAD_BYTES 8192 /* lines are looked at in this much of the front ... */
#define TAIL_BYTES 4096  /* ... and this much of the end, where test runners and tracebacks say what happened */

typedef struct {
    int64_t lines; /* lines that are not blank; the others are counts of such lines */
    int64_t arrow, numbered, consecutive, last_number;
    int64_t hit, hit_context, hit_text, bare_hit, bare_back, bare_context, last_bare, dashes, found;
    int64_t ls_long, tree, path, rooted, ls_neutral;
    int64_t tab_ref, tab_same, tab_led, first_is_digit, comma_ref, comma_same, comma_space, comma_end;
    int64_t hunk, git, diffish;
    int64_t test_strong, test_weak, since_strong;
    int64_t stack_header, frame;
    int64_t base64, base64_len, base64_same, base64_chars, base64_marks, upper, lower, digits, armour;
    int64_t in_fence, fence, fenced, code, markup, h1, h2, table, bold, link, bullet;
    int64_t key, key_lower, item, comment, document, nested, key_alone_indent;
    int64_t wordy, sentence;
} Tally;

/* ^ *([0-9]{1,9})(U+2192|TAB|[|]) on the line as it stands: `cat -n` leaves the tab of an empty line at its end. */
static void tally_number(const Line *l, Tally *t) {
    const uint8_t *s = l->raw;
    size_t n = l->raw_len, i = skip_spaces(s, 0, n), j = skip_digits(s, i, n);
    int arrow = n - j >= 3 && s[j] == 0xE2 && s[j + 1] == 0x86 && s[j + 2] == 0x92;
    int64_t v;
    if (j == i || j - i > 9 || !(arrow || (j < n && (s[j] == '\t' || s[j] == '|')))) return;
    v = number_of(s, i, j);
    t->arrow += arrow;
    t->numbered++;
    t->consecutive += v == t->last_number + 1;
    t->last_number = v;
}

static void tally_hits(const uint8_t *s, size_t n, Tally *t) {
    int hit = path_hit(s, n);
    int64_t number = bare_number(s, n, ':');
    t->hit += hit == HIT_NUMBERED;
    t->hit_context += hit == HIT_CONTEXT;
    t->hit_text += hit == HIT_TEXT;
    if (number >= 0) {
        t->bare_hit++;
        t->bare_back += number <= t->last_bare;
        t->last_bare = number;
    }
    t->bare_context += bare_number(s, n, '-') >= 0;
    t->dashes += n == 2 && s[0] == '-' && s[1] == '-';
    t->found += starts(s, n, "Found ") && n > 7 && is_digit(s[6]) && skip_digits(s, 6, n) < n &&
                s[skip_digits(s, 6, n)] == ' ';
}

static void tally_listing(const Line *l, const Glyphs *g, Tally *t) {
    const uint8_t *s = l->s;
    size_t n = l->len, i = 0;
    int path = is_path_line(l, g);
    t->ls_long += is_long_listing(s, n);
    t->tree += g->has_tree;
    t->path += path;
    t->rooted += path && is_one_of(s[0], "/~.");
    while (i < n && is_path_byte(s[i])) i++;
    t->ls_neutral += (n > 6 && starts(s, n, "total ") && is_digit(s[6])) ||
                     (i > 0 && i + 1 == n && s[i] == ':' && g->has_dot_or_slash);
}

static void tally_columns(const Line *l, const Glyphs *g, Tally *t) {
    int64_t tabs = (int64_t)g->tabs, commas = (int64_t)g->commas;
    if (t->lines == 1) { /* the first line says how many columns there are */
        t->tab_ref = tabs;
        t->comma_ref = commas;
        t->first_is_digit = is_digit(l->s[0]) && !l->indent;
    }
    t->tab_same += tabs == t->tab_ref;
    t->tab_led += l->indent > 0 && l->raw[0] == '\t';
    t->comma_same += commas == t->comma_ref;
    t->comma_space += g->comma_spaces > 0;
    t->comma_end += l->s[l->len - 1] == ',';
}

static void tally_base64(const Line *l, const Glyphs *g, Tally *t) {
    t->armour += starts(l->s, l->len, "-----BEGIN ") || starts(l->s, l->len, "-----END ");
    if (!g->all_base64) return;
    if (!t->base64) t->base64_len = (int64_t)l->len;
    t->base64++;
    t->base64_same += (int64_t)l->len == t->base64_len;
    t->base64_chars += (int64_t)l->len;
    t->base64_marks += (int64_t)g->marks;
    t->upper += (int64_t)g->upper;
    t->lower += (int64_t)(g->letters - g->upper);
    t->digits += (int64_t)g->digits;
}

static void tally_markdown(const Line *l, const Glyphs *g, Tally *t) {
    int level = heading_level(l);
    t->h1 += level == 1;
    t->h2 += level >= 2;
    t->table += l->len >= 3 && l->s[0] == '|' && l->s[l->len - 1] == '|';
    t->bold += g->has_bold;
    t->link += g->has_link;
    t->bullet += is_bullet(l->s, l->len);
}

static void tally_yaml(const Line *l, Tally *t) {
    int lower, key = yaml_key(l->s, l->len, &lower), dash = starts(l->s, l->len, "- ");
    t->nested += t->key_alone_indent >= 0 && ((int64_t)l->indent > t->key_alone_indent || dash);
    t->key_alone_indent = key == 2 ? (int64_t)l->indent : -1;
    t->key += key > 0;
    t->key_lower += key > 0 && lower;
    t->item += !key && dash;
    t->comment += l->s[0] == '#';
    t->document += l->len == 3 && starts(l->s, 3, "---");
}

static void tally_line(const Line *l, Tally *t) {
    const uint8_t *s = l->s;
    size_t n = l->len;
    Glyphs g = look_at_glyphs(l);
    int code, fence = starts(s, n, "```") || starts(s, n, "~~~"), strong = is_test_summary(s, n);
    t->lines++;
    tally_number(l, t);
    if (l->indent == 0) tally_hits(s, n, t);
    tally_listing(l, &g, t);
    tally_columns(l, &g, t);
    t->hunk += starts(l->raw, l->raw_len, "@@ -") && n > 4 && is_digit(s[4]);
    t->git += starts(l->raw, l->raw_len, "diff --git ");
    t->diffish += is_diff_line(l->raw, l->raw_len);
    t->test_strong += strong;
    t->test_weak += !strong && is_test_line(s, n);
    t->since_strong = strong ? 0 : t->since_strong + 1;
    t->stack_header += is_stack_header(s, n);
    t->frame += is_stack_frame(l);
    tally_base64(l, &g, t);
    tally_yaml(l, t);
    t->wordy += is_wordy(l, &g);
    t->sentence += ends_a_sentence(s, n, &g);
    if (fence) t->in_fence = !t->in_fence;
    t->fence += fence;
    t->fenced += fence || t->in_fence;
    if (fence || t->in_fence) return;
    tally_markdown(l, &g, t);
    code = is_code(l, &g);
    t->code += code || is_markup(s, n);
    t->markup += !code && is_markup(s, n);
}

static void tally_lines(const uint8_t *s, size_t n, Tally *t) {
    size_t i = 0;
    while (i < n) {
        const uint8_t *newline = (const uint8_t *)memchr(s + i, '\n', n - i);
        size_t end = newline ? (size_t)(newline - s) : n, a = i, b = end;
        Line l;
        while (a < b && is_blank(s[a])) a++;
        while (b > a && is_blank(s[b - 1])) b--;
        if (a < b) {
            l.raw = s + i;
            l.raw_len = end - i;
            l.s = s + a;
            l.len = b - a;
            l.indent = a - i;
            tally_line(&l, t);
        }
        i = end + 1;
    }
}

/* Where the front window ends: behind its last newline, or in the middle of a line longer than the window. */
static size_t head_end(const uint8_t *s, size_t n) {
    size_t i;
    if (n <= HEAD_BYTES + TAIL_BYTES) return n;
    for (i = HEAD_BYTES; i > 0; i--)
        if (s[i - 1] == '\n') return i;
    return HEAD_BYTES;
}

static void tally_text(const uint8_t *s, size_t n, Tally *t) {
    size_t head = head_end(s, n);
    memset(t, 0, sizeof *t);
    t->last_number = t->last_bare = t->key_alone_indent = -1;
    tally_lines(s, head, t);
    if (head < n) {
        const uint8_t *from = (const uint8_t *)memchr(s + n - TAIL_BYTES, '\n', TAIL_BYTES);
        if (from) tally_lines(from + 1, (size_t)(s + n - from - 1), t);
    }
}

/* `part` is at least `tenths` tenths of `whole`. */
static int share(int64_t part, int64_t whole, int64_t tenths) { return 10 * part >= tenths * whole; }

static int is_base64(const Tally *t) {
    return t->base64_len >= 60 && t->base64 + t->armour == t->lines && t->base64_same + 1 >= t->base64 && t->upper &&
           t->lower && t->digits && 16 * t->base64_marks <= t->base64_chars;
}

static int is_numbered(const Tally *t) {
    if (t->arrow && share(t->arrow, t->lines, 5)) return 1;
    if (t->first_is_digit && t->tab_ref >= 2 && share(t->tab_same, t->lines, 9)) return 0; /* a table with an id */
    return t->numbered >= 2 && share(t->numbered, t->lines, 5) && 4 * t->consecutive >= 3 * (t->numbered - 1);
}

static int is_test_log(const Tally *t) {
    return (t->test_strong && t->since_strong <= 20) ||
           (t->test_weak >= 2 && share(t->test_weak + t->test_strong, t->lines, 2));
}

static int is_stack_trace(const Tally *t) {
    return (t->stack_header && t->frame && share(t->frame + t->stack_header, t->lines, 2)) ||
           (t->frame >= 3 && 3 * t->frame >= t->lines);
}

static int is_grep_hits(const Tally *t) {
    int64_t lines = t->lines - t->dashes - t->found;
    if (t->hit && share(t->hit + t->hit_context, lines, 6)) return 1;
    if (t->bare_hit && 10 * t->bare_back <= t->bare_hit &&
        share(t->bare_hit + t->bare_context, lines, 8))
        return 1;
    return t->hit_text >= 2 && share(t->hit_text + t->hit, lines, 9);
}

static int is_directory_listing(const Tally *t) {
    int64_t lines = t->lines - t->found - t->ls_neutral, drawn = t->ls_long + t->tree;
    if (drawn && share(drawn, lines, 6)) return 1;
    return (t->path >= 2 || (t->path && (t->rooted || t->found))) && share(t->path, lines, 9);
}

static int is_tsv(const Tally *t) {
    return t->tab_ref && t->lines >= (t->tab_ref >= 2 ? 2 : 3) && share(t->tab_same, t->lines, 9) &&
           10 * t->tab_led <= t->lines;
}

static int is_csv(const Tally *t) {
    return t->comma_ref && t->lines >= (t->comma_ref >= 2 ? 3 : 5) && share(t->comma_same, t->lines, 9) &&
           4 * t->comma_space <= t->lines && 4 * t->comma_end <= t->lines && 4 * t->code <= t->lines &&
           2 * t->wordy <= t->lines;
}

static int is_markdown(const Tally *t) {
    int64_t marks = t->h1 + t->h2 + t->fence + t->table + t->bold + t->link;
    if (!(t->h2 || t->fence >= 2 || t->table >= 3 || t->bold >= 2 || t->link >= 2)) return 0;
    return marks + t->bullet >= 2 && 25 * marks >= t->lines - t->fenced && 3 * t->code <= t->lines - t->fenced;
}

static int is_yaml(const Tally *t) {
    int flat = t->key_lower == t->key && t->key + t->comment == t->lines;
    return t->key >= 3 && 4 * t->key >= t->lines && (t->nested || t->document || flat) &&
           share(t->key + t->item + t->comment + t->document, t->lines, 8);
}

static int is_source_code(const Tally *t) {
    int64_t lines = t->lines - t->fenced;
    return t->code && share(t->code, lines, 4) && (lines >= 3 || t->code - t->markup == lines);
}

static int is_prose(const Tally *t) { return t->wordy && t->sentence && share(t->wordy, t->lines, 6); }

static int kind_of_lines(const Tally *t) {
    if (!t->lines) return KIND_OTHER;
    if (is_base64(t)) return KIND_BASE64;
    if (is_numbered(t)) return KIND_NUMBERED_FILE_READ;
    if (t->hunk + t->git && share(t->diffish, t->lines, 8)) return KIND_DIFF;
    if (is_test_log(t)) return KIND_TEST_LOG;
    if (is_stack_trace(t)) return KIND_STACK_TRACE;
    if (is_grep_hits(t)) return KIND_GREP_HITS;
    if (is_directory_listing(t)) return KIND_DIRECTORY_LISTING;
    if (is_tsv(t)) return KIND_TSV;
    if (is_csv(t)) return KIND_CSV;
    if (is_markdown(t)) return KIND_MARKDOWN;
    if (is_yaml(t)) return KIND_YAML;
    if (is_source_code(t)) return KIND_SOURCE_CODE;
    return is_prose(t) ? KIND_PROSE : KIND_OTHER;
}

#endif
