/* Which known forms a stripped line has: test reports, stack frames, diff, YAML, Markdown, code, sentences. */
#ifndef CG_SHAPE_FORMS_H
#define CG_SHAPE_FORMS_H

#include "shape/line.h"

/* Summaries and events that only a test runner prints. */
static int is_test_summary(const uint8_t *s, size_t n) {
    static const char *const fixed[] = {"test result: ", "Test Suites: ", "--- PASS: ", "--- FAIL: ", "--- SKIP: ",
                                        "=== RUN ",      "=== PAUSE ",    "=== CONT ",  NULL};
    static const char *const counted[] = {"Tests: ", "Test Files ", "# tests ", "# pass ", "# fail ", NULL};
    static const char *const ends_of_count[] = {" passing", " failing", " passed", " failed", " pass", " fail", NULL};
    static const char *const of_tests[] = {" passed", " failed", " skipped", NULL};
    static const char *const banner[] = {" passed", " failed", " error", " skipped", " deselected", NULL};
    const char *const *w;
    size_t i, j;
    if (starts_any(s, n, fixed)) return 1;
    for (w = counted; *w; w++)
        if (prefix_and_number(s, n, *w)) return 1;
    if ((i = prefix_and_number(s, n, "Ran ")) && starts(s + i, n - i, " test")) return 1;
    if ((i = prefix_and_number(s, n, "Tests ")) && starts_any(s + i, n - i, of_tests)) return 1;
    j = starts(s, n, "ok") ? 2 : starts(s, n, "FAIL") ? 4 : s[0] == '?' ? 1 : 0; /* go test */
    if (j && (i = skip_spaces(s, j, n)) < n && s[i] == '\t') return 1;
    if ((i = skip_digits(s, 0, n)))
        for (w = ends_of_count; *w; w++)
            if (starts(s + i, n - i, *w) && (i + strlen(*w) == n || !is_letter(s[i + strlen(*w)]))) return 1;
    if (s[0] == '=' && s[n - 1] == '=') /* pytest's last line */
        for (i = 1; i < n; i++)
            if (s[i] == ' ' && is_digit(s[i - 1]) && starts_any(s + i, n - i, banner)) return 1;
    return 0;
}

/* Lines of one test each; ordinary text has some of these too. */
static int is_test_line(const uint8_t *s, size_t n) {
    static const char *const fixed[] = {
        "PASS ", "FAIL ", "PASSED ", "FAILED ", "\xE2\x9C\x93 ", "\xE2\x9C\x94 ", "\xE2\x9C\x95 ", "\xE2\x9C\x97 ",
        "\xE2\x9C\x98 ", "\xC3\x97 ", "\xE2\x88\x9A ", NULL};
    size_t i;
    if (starts_any(s, n, fixed) || prefix_and_number(s, n, "ok ") || prefix_and_number(s, n, "not ok ")) return 1;
    if (n == 4 && (starts(s, n, "PASS") || starts(s, n, "FAIL"))) return 1;
    if (starts(s, n, "test ")) {
        for (i = 5; i < n && s[i] != ' '; i++) {}
        if (i > 5 && starts(s + i, n - i, " ... ")) return 1;
    }
    for (i = 0; i + 7 <= n; i++)
        if (s[i] == ' ' && s[i + 6] == 'D' && (memcmp(s + i, " PASSED", 7) == 0 || memcmp(s + i, " FAILED", 7) == 0)) return 1;
    return 0;
}

static int is_stack_header(const uint8_t *s, size_t n) {
    static const char *const fixed[] = {"Traceback (most recent call last)", "panic: ", "Exception in thread ",
                                        "Caused by: ", "stack backtrace:", NULL};
    size_t i;
    if (starts_any(s, n, fixed)) return 1;
    if ((i = prefix_and_number(s, n, "goroutine ")) && starts(s + i, n - i, " [")) return 1;
    if (!starts(s, n, "thread '")) return 0;
    for (i = 8; i + 13 <= n; i++)
        if (memcmp(s + i, "' panicked at", 13) == 0) return 1;
    return 0;
}

static int is_stack_frame(const Line *l) {
    const uint8_t *s = l->s;
    size_t n = l->len, i;
    if (starts(s, n, "at ") && n > 3 && s[3] != ' ') { /* at f (file:12:3) */
        size_t end = n - (s[n - 1] == ')');
        for (i = end; i > 0 && is_digit(s[i - 1]); i--) {}
        if (i < end && i > 4 && s[i - 1] == ':') return 1;
    }
    if (starts(s, n, "File \"")) { /* File "x.py", line 12 */
        for (i = 6; i + 9 <= n; i++)
            if (memcmp(s + i, "\", line ", 8) == 0 && is_digit(s[i + 8])) return 1;
    }
    if (l->indent && s[0] == '/') /* /x.go:12 +0x1d */
        for (i = 1; i + 5 <= n; i++)
            if (memcmp(s + i, ".go:", 4) == 0 && is_digit(s[i + 4])) return 1;
    return 0;
}

/* On the line as it stands, white space in front included. */
static int is_diff_line(const uint8_t *raw, size_t n) {
    static const char *const fixed[] = {
        "diff ",        "index ",  "commit ",     "Author:",       "Date:",    "Merge:",   "new file",
        "deleted file", "rename ", "similarity ", "Binary files ", "old mode", "new mode", NULL};
    return is_one_of(raw[0], "+-@ \\") || starts_any(raw, n, fixed);
}

/* ^(?:- )?["']?[A-Za-z_$][A-Za-z0-9_.$/-]*["']?:(?: .*)?$ with no opener, comma or semicolon at the end.
   0: no key; 1: key with a value; 2: key alone. *lower: the name starts with a-z. */
static int yaml_key(const uint8_t *s, size_t n, int *lower) {
    size_t i = starts(s, n, "- ") ? 2 : 0;
    *lower = 0;
    if (is_one_of(s[n - 1], ",{;(")) return 0;
    if (i < n && (s[i] == '"' || s[i] == '\'')) i++;
    if (i == n || !(is_letter(s[i]) || s[i] == '_' || s[i] == '$')) return 0;
    *lower = is_lower(s[i]);
    while (i < n && (is_alnum(s[i]) || is_one_of(s[i], "_.$/-"))) i++;
    if (i < n && (s[i] == '"' || s[i] == '\'')) i++;
    if (i == n || s[i] != ':') return 0;
    return i + 1 == n ? 2 : s[i + 1] == ' ' ? 1 : 0;
}

/* ^([-*+]|[0-9]{1,3}[.)]) [^ ] */
static int is_bullet(const uint8_t *s, size_t n) {
    size_t i = 1;
    if (!is_one_of(s[0], "-*+")) {
        i = skip_digits(s, 0, n);
        if (i == 0 || i > 3 || i == n || (s[i] != '.' && s[i] != ')')) return 0;
        i++;
    }
    return i + 1 < n && s[i] == ' ' && s[i + 1] != ' ';
}

/* Level 1 to 6 of a heading at the start of the line, 0 for none. */
static int heading_level(const Line *l) {
    size_t k = 0;
    if (l->indent) return 0;
    while (k < l->len && l->s[k] == '#') k++;
    return k >= 1 && k <= 6 && k + 1 < l->len && l->s[k] == ' ' && l->s[k + 1] != ' ' ? (int)k : 0;
}

static int starts_like_code(const Line *l) {
    static const char *const words[] = {
        "import ", "export ",  "const ",  "let ",      "var ",    "function ", "func ",  "fn ",     "pub ",
        "def ",    "class ",   "struct ", "enum ",     "impl ",   "interface ", "package ", "async ", "return ",
        "public ", "private ", "static ", "elif ",     "namespace ", "if (",   "for (",  "while (", "switch (",
        "//",      "/*",       "*/",      "#include",  "#define", "#!/",       NULL};
    const uint8_t *s = l->s;
    if (is_one_of(s[0], "})]")) return 1;
    if (s[0] == '*' && l->indent % 2 == 1 && (l->len == 1 || s[1] == ' ')) return 1; /* inside a block comment */
    return starts_any(s, l->len, words);
}

static int is_markup(const uint8_t *s, size_t n) {
    return n > 1 && s[0] == '<' && (is_letter(s[1]) || s[1] == '/' || s[1] == '!');
}

/* ^[A-Za-z_][A-Za-z0-9_.]*\( ... \)$ */
static int is_call(const uint8_t *s, size_t n) {
    size_t i = 0;
    if (s[n - 1] != ')' || !(is_letter(s[0]) || s[0] == '_')) return 0;
    while (i < n && (is_alnum(s[i]) || s[i] == '_' || s[i] == '.')) i++;
    return i < n && s[i] == '(';
}

static int is_code(const Line *l, const Glyphs *g) {
    static const char *const openers[] = {"if ", "for ", "while ", "try:", "else:", "except", "with ", NULL};
    const uint8_t *s = l->s;
    size_t n = l->len;
    if (is_one_of(s[n - 1], "{};(")) return 1;
    if (ends(s, n, "):") || ends(s, n, "),") || ends(s, n, "=>")) return 1;
    if (g->has_operator || starts_like_code(l) || is_call(s, n)) return 1;
    return s[n - 1] == ':' && starts_any(s, n, openers);
}

/* Four gaps between words and little else than letters, or a line of another script (no spaces there). */
static int is_wordy(const Line *l, const Glyphs *g) {
    if (2 * g->high >= l->len && g->high >= 12) return 1;
    return g->gaps >= 4 && 10 * (g->letters + g->high + g->spaces) >= 8 * l->len;
}

static int ends_a_sentence(const uint8_t *s, size_t n, const Glyphs *g) {
    if (g->has_stop || is_one_of(s[n - 1], ".!?:")) return 1;
    return s[n - 1] >= 0x80 && (ends(s, n, "\xE3\x80\x82") || ends(s, n, "\xEF\xBC\x81") ||
                                ends(s, n, "\xEF\xBC\x9F") || ends(s, n, "\xE2\x80\xA6"));
}

#endif
