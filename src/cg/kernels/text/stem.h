/* The English stemmer of the Snowball project (Porter2) for words of the letters a to z.

   Source: snowballstem.org/algorithms/english/stemmer.html, as it stands since Snowball 3.1. Its words are used here:
   R1 is what follows the first non-vowel after a vowel, R2 the same within R1, and a y that is a consonant (the first
   letter, or one that follows a vowel) is written Y meanwhile. Steps for apostrophes are left out: no word has one. */
#ifndef TEXT_STEM_H
#define TEXT_STEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint8_t *w;                  /* the word, changed in place; it never grows */
    size_t n, r1, r2;
} TextStem;

#define STEM_LETTER(c) (1u << ((c) - 'a'))
#define STEM_VOWELS (STEM_LETTER('a') | STEM_LETTER('e') | STEM_LETTER('i') | STEM_LETTER('o') | STEM_LETTER('u') | STEM_LETTER('y'))
#define STEM_DOUBLES                                                                                              \
    (STEM_LETTER('b') | STEM_LETTER('d') | STEM_LETTER('f') | STEM_LETTER('g') | STEM_LETTER('m') |               \
     STEM_LETTER('n') | STEM_LETTER('p') | STEM_LETTER('r') | STEM_LETTER('t'))
#define STEM_BEFORE_LI                                                                                            \
    (STEM_LETTER('c') | STEM_LETTER('d') | STEM_LETTER('e') | STEM_LETTER('g') | STEM_LETTER('h') |               \
     STEM_LETTER('k') | STEM_LETTER('m') | STEM_LETTER('n') | STEM_LETTER('r') | STEM_LETTER('t'))

/* Is the letter among those of the set? Y is in none. */
static inline int stem_in(uint32_t set, uint8_t c) { return c >= 'a' && (set >> (c - 'a') & 1); }
static inline int stem_vowel(uint8_t c) { return stem_in(STEM_VOWELS, c); }

static inline int stem_is(const uint8_t *w, size_t n, const char *other) {
    return strlen(other) == n && memcmp(w, other, n) == 0;
}

/* Does w[0..n) end in the suffix? */
static inline int stem_ends(const uint8_t *w, size_t n, const char *suffix) {
    size_t m = strlen(suffix);
    return n >= m && memcmp(w + n - m, suffix, m) == 0;
}

static int stem_has_vowel(const uint8_t *w, size_t n) {
    for (size_t i = 0; i < n; i++) if (stem_vowel(w[i])) return 1;
    return 0;
}

/* Does w[0..n) end in a short syllable? */
static int stem_short(const uint8_t *w, size_t n) {
    if (n >= 3 && !stem_vowel(w[n - 3]) && stem_vowel(w[n - 2]) && !stem_vowel(w[n - 1]))
        if (w[n - 1] != 'w' && w[n - 1] != 'x' && w[n - 1] != 'Y') return 1;
    if (n == 2 && stem_vowel(w[0]) && !stem_vowel(w[1])) return 1;
    return stem_ends(w, n, "past");
}

/* Words whose stem the rules would get wrong: the stem's length, or 0 for every other word. */
static size_t stem_exception(uint8_t *w, size_t n) {
    static const char *const words[][2] = {
        {"skies", "sky"}, {"skis", "ski"}, {"idly", "idl"}, {"gently", "gentl"}, {"ugly", "ugli"},
        {"early", "earli"}, {"only", "onli"}, {"singly", "singl"}, {"sky", "sky"}, {"news", "news"},
        {"howe", "howe"}, {"atlas", "atlas"}, {"cosmos", "cosmos"}, {"bias", "bias"}, {"andes", "andes"},
    };
    if (n > 6 || (w[n - 1] != 's' && w[n - 1] != 'y' && w[n - 1] != 'e')) return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (w[0] == (uint8_t)words[i][0][0] && stem_is(w, n, words[i][0])) {
            n = strlen(words[i][1]);
            memcpy(w, words[i][1], n);
            return n;
        }
    return 0;
}

/* Where the region after the first non-vowel after a vowel begins, from `at` on. */
static size_t stem_region(const uint8_t *w, size_t n, size_t at) {
    while (at < n && !stem_vowel(w[at])) at++;
    while (at < n && stem_vowel(w[at])) at++;
    return at < n ? at + 1 : n;
}

static inline size_t stem_begins(const TextStem *s, const char *prefix) {
    size_t m = strlen(prefix);
    return s->n >= m && memcmp(s->w, prefix, m) == 0 ? m : 0;
}

/* Beginnings after which R1 starts, whatever the rule says; the length of the word's, or 0. */
static size_t stem_beginning(const TextStem *s) {
    switch (s->w[0]) {
    case 'a': return stem_begins(s, "arsen");
    case 'c': return stem_begins(s, "commun");
    case 'e': return stem_begins(s, "emerg");
    case 'g': return stem_begins(s, "gener");
    case 'i': return stem_begins(s, "inter");
    case 'l': return stem_begins(s, "later");
    case 'o': return stem_begins(s, "organ");
    case 'p': return stem_begins(s, "past");
    case 'u': return stem_begins(s, "univers");
    default: return 0;
    }
}

static void stem_regions(TextStem *s) {
    s->r1 = stem_beginning(s);
    if (!s->r1) s->r1 = stem_region(s->w, s->n, 0);
    s->r2 = stem_region(s->w, s->n, s->r1);
}

static void stem_plural(TextStem *s) {           /* step 1a */
    uint8_t *w = s->w;
    size_t n = s->n;
    if (w[n - 1] != 's' && w[n - 1] != 'd') return;
    if (stem_ends(w, n, "ied") || stem_ends(w, n, "ies")) s->n = n >= 5 ? n - 2 : n - 1;
    else if (w[n - 1] != 's') return;
    else if (stem_ends(w, n, "sses")) s->n = n - 2;
    else if (w[n - 2] != 'u' && w[n - 2] != 's' && stem_has_vowel(w, n - 2)) s->n = n - 1;
}

/* What is left after -ed, -edly, -ing or -ingly went. */
static void stem_mend(TextStem *s) {
    uint8_t *w = s->w;
    size_t n = s->n;
    if (stem_ends(w, n, "at") || stem_ends(w, n, "bl") || stem_ends(w, n, "iz")) w[s->n++] = 'e';
    else if (n >= 2 && w[n - 1] == w[n - 2] && stem_in(STEM_DOUBLES, w[n - 1])) {
        if (!(n == 3 && (w[0] == 'a' || w[0] == 'e' || w[0] == 'o'))) s->n--;
    } else if (n == s->r1 && stem_short(w, n)) w[s->n++] = 'e';
}

static void stem_verb(TextStem *s) {             /* step 1b */
    static const char *const nouns[] = {"even", "cann", "inn", "earr", "herr", "out"};
    uint8_t *w = s->w, last = w[s->n - 1];
    size_t n = s->n, adverb, m;
    int is_ing;
    if (last != 'd' && last != 'g' && last != 'y') return;
    adverb = stem_ends(w, n, "ly") ? 2 : 0;
    m = n - adverb;
    is_ing = m >= 3 && stem_ends(w, m, "ing");
    if (m >= 3 && stem_ends(w, m, "eed")) {
        size_t k = m - 3;
        if (k < s->r1 || stem_is(w, k, "succ") || stem_is(w, k, "proc") || stem_is(w, k, "exc")) return;
        s->n = m - 1;
        return;
    }
    if (!is_ing && !stem_ends(w, m, "ed")) return;
    m -= is_ing ? 3 : 2;
    if (is_ing && !adverb) {
        for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++) if (stem_is(w, m, nouns[i])) return;
        if (m == 2 && w[1] == 'y' && !stem_vowel(w[0])) {
            w[1] = 'i';
            w[2] = 'e';
            s->n = 3;
            return;
        }
    }
    if (!stem_has_vowel(w, m)) return;
    s->n = m;
    stem_mend(s);
}

enum stem_condition { STEM_ALWAYS, STEM_AFTER_L, STEM_AFTER_LI_LETTER, STEM_IN_R2, STEM_AFTER_S_OR_T };

typedef struct { const char *suffix, *put; uint8_t n, n_put, condition; } StemRule;
#define STEM_RULE(suffix, put, condition) {suffix, put, sizeof suffix - 1, sizeof put - 1, condition}

/* The rules of a step, the longest suffix first. */

static const StemRule stem_step2[] = {
    STEM_RULE("ational", "ate", STEM_ALWAYS), STEM_RULE("ization", "ize", STEM_ALWAYS),
    STEM_RULE("iveness", "ive", STEM_ALWAYS), STEM_RULE("fulness", "ful", STEM_ALWAYS),
    STEM_RULE("ousness", "ous", STEM_ALWAYS), STEM_RULE("tional", "tion", STEM_ALWAYS),
    STEM_RULE("biliti", "ble", STEM_ALWAYS), STEM_RULE("lessli", "less", STEM_ALWAYS),
    STEM_RULE("entli", "ent", STEM_ALWAYS), STEM_RULE("fulli", "ful", STEM_ALWAYS),
    STEM_RULE("ousli", "ous", STEM_ALWAYS), STEM_RULE("aliti", "al", STEM_ALWAYS),
    STEM_RULE("iviti", "ive", STEM_ALWAYS), STEM_RULE("alism", "al", STEM_ALWAYS),
    STEM_RULE("ation", "ate", STEM_ALWAYS), STEM_RULE("ogist", "og", STEM_ALWAYS),
    STEM_RULE("anci", "ance", STEM_ALWAYS), STEM_RULE("enci", "ence", STEM_ALWAYS),
    STEM_RULE("abli", "able", STEM_ALWAYS), STEM_RULE("alli", "al", STEM_ALWAYS),
    STEM_RULE("izer", "ize", STEM_ALWAYS), STEM_RULE("ator", "ate", STEM_ALWAYS),
    STEM_RULE("bli", "ble", STEM_ALWAYS), STEM_RULE("ogi", "og", STEM_AFTER_L),
    STEM_RULE("li", "", STEM_AFTER_LI_LETTER),
    {NULL, NULL, 0, 0, 0},
};
static const StemRule stem_step3[] = {
    STEM_RULE("ational", "ate", STEM_ALWAYS), STEM_RULE("tional", "tion", STEM_ALWAYS),
    STEM_RULE("icate", "ic", STEM_ALWAYS), STEM_RULE("ative", "", STEM_IN_R2),
    STEM_RULE("alize", "al", STEM_ALWAYS), STEM_RULE("iciti", "ic", STEM_ALWAYS),
    STEM_RULE("ical", "ic", STEM_ALWAYS), STEM_RULE("ness", "", STEM_ALWAYS), STEM_RULE("ful", "", STEM_ALWAYS),
    {NULL, NULL, 0, 0, 0},
};
static const StemRule stem_step4[] = {
    STEM_RULE("ement", "", STEM_ALWAYS), STEM_RULE("ance", "", STEM_ALWAYS), STEM_RULE("ence", "", STEM_ALWAYS),
    STEM_RULE("able", "", STEM_ALWAYS), STEM_RULE("ible", "", STEM_ALWAYS), STEM_RULE("ment", "", STEM_ALWAYS),
    STEM_RULE("ate", "", STEM_ALWAYS), STEM_RULE("ive", "", STEM_ALWAYS), STEM_RULE("ize", "", STEM_ALWAYS),
    STEM_RULE("iti", "", STEM_ALWAYS), STEM_RULE("ism", "", STEM_ALWAYS), STEM_RULE("ion", "", STEM_AFTER_S_OR_T),
    STEM_RULE("ous", "", STEM_ALWAYS), STEM_RULE("ant", "", STEM_ALWAYS), STEM_RULE("ent", "", STEM_ALWAYS),
    STEM_RULE("ic", "", STEM_ALWAYS), STEM_RULE("al", "", STEM_ALWAYS), STEM_RULE("er", "", STEM_ALWAYS),
    {NULL, NULL, 0, 0, 0},
};

static int stem_allows(const TextStem *s, size_t at, int condition) {
    uint8_t before = at ? s->w[at - 1] : 0;
    switch (condition) {
    case STEM_AFTER_L: return before == 'l';
    case STEM_AFTER_LI_LETTER: return stem_in(STEM_BEFORE_LI, before);
    case STEM_IN_R2: return at >= s->r2;
    case STEM_AFTER_S_OR_T: return before == 's' || before == 't';
    default: return 1;
    }
}

/* Steps 2 to 4: the longest suffix that fits is replaced, if it stands in the region and its condition holds.
   `last` holds the letters in which the suffixes of the step end. */
static void stem_replace(TextStem *s, const StemRule *rule, size_t region, uint32_t last) {
    uint8_t c = s->w[s->n - 1];
    if (region + 2 > s->n || !stem_in(last, c)) return;
    for (; rule->suffix; rule++) {
        size_t m = rule->n, at = s->n - m;
        if ((uint8_t)rule->suffix[m - 1] != c || m > s->n || memcmp(s->w + at, rule->suffix, m) != 0) continue;
        if (at < region || !stem_allows(s, at, rule->condition)) return;
        memcpy(s->w + at, rule->put, rule->n_put);
        s->n = at + rule->n_put;
        return;
    }
}

static void stem_final(TextStem *s) {            /* step 5 */
    size_t at = s->n - 1;
    if (s->w[at] == 'e') {
        if (at >= s->r2 || (at >= s->r1 && !stem_short(s->w, at))) s->n = at;
    } else if (s->w[at] == 'l' && at >= s->r2 && at > 0 && s->w[at - 1] == 'l') {
        s->n = at;
    }
}

#define STEM_ENDS_2 (STEM_LETTER('i') | STEM_LETTER('l') | STEM_LETTER('m') | STEM_LETTER('n') | STEM_LETTER('r') | STEM_LETTER('s') | STEM_LETTER('t'))
#define STEM_ENDS_3 (STEM_LETTER('e') | STEM_LETTER('i') | STEM_LETTER('l') | STEM_LETTER('s'))
#define STEM_ENDS_4 (STEM_ENDS_2 | STEM_ENDS_3 | STEM_LETTER('c'))

/* Stem a word of the letters a to z in place; returns its new length, at least 1 and at most n. */
static size_t text_stem(uint8_t *w, size_t n) {
    TextStem s = {w, n, 0, 0};
    size_t kept, i;
    int marked = 0;
    if (n <= 2) return n;
    kept = stem_exception(w, n);
    if (kept) return kept;
    for (i = 0; i < n; i++)
        if (w[i] == 'y' && (i == 0 || stem_vowel(w[i - 1]))) { w[i] = 'Y'; marked = 1; }
    stem_regions(&s);
    stem_plural(&s);
    stem_verb(&s);
    if (s.n > 2 && (w[s.n - 1] == 'y' || w[s.n - 1] == 'Y') && !stem_vowel(w[s.n - 2])) w[s.n - 1] = 'i';   /* step 1c */
    stem_replace(&s, stem_step2, s.r1, STEM_ENDS_2);
    stem_replace(&s, stem_step3, s.r1, STEM_ENDS_3);
    stem_replace(&s, stem_step4, s.r2, STEM_ENDS_4);
    stem_final(&s);
    for (i = 0; marked && i < s.n; i++) if (w[i] == 'Y') w[i] = 'y';
    return s.n;
}

#endif
