/* What cg._references and cg._reuse both take for a name: classes of bytes, and what does not look like a word of prose. */
#ifndef CG_WORDING_NAMES_H
#define CG_WORDING_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Classes of a byte, as bits. */
enum {
    LOWER = 1,
    UPPER = 2,
    LETTER = 3,
    DIGIT = 4,
    ALNUM = 7,
    UNDER = 8,
    WORD = 15,
    SIGIL = 16,                  /* '$' and '@'; of no class where sigils are not asked for */
    START = 31,
    JOINT = 32,                  /* '.' and '-': inside a name, never at its ends */
    STEP = 64,                   /* of a run: an upper-case letter right behind a lower-case one */
    TELLING = DIGIT | UNDER | JOINT | STEP       /* a run of letters without any of these bits is a plain word */
};

static uint8_t KIND[256];        /* filled once on import */

static void fill_kinds(int with_sigils) {
    for (int c = 'a'; c <= 'z'; c++) KIND[c] = LOWER;
    for (int c = 'A'; c <= 'Z'; c++) KIND[c] = UPPER;
    for (int c = '0'; c <= '9'; c++) KIND[c] = DIGIT;
    KIND['_'] = UNDER;
    KIND['.'] = KIND['-'] = JOINT;
    if (with_sigils) KIND['$'] = KIND['@'] = SIGIL;
}

/* Does s[:n], of bytes that have a class and with no joint at its ends, look like no word of prose? It has a step from
   lower to upper case, an underscore between letters or digits, a dot before a letter, a letter and a digit, or
   `least_digits` digits. */
static inline int is_coined(const uint8_t *s, ptrdiff_t n, ptrdiff_t least_digits) {
    ptrdiff_t digits = 0;
    uint8_t before = 0, seen = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        uint8_t kind = KIND[s[i]];
        if (kind & UPPER && before & LOWER) return 1;
        if (before & ALNUM && i + 1 < n) {
            if (kind & UNDER && KIND[s[i + 1]] & ALNUM) return 1;
            if (s[i] == '.' && KIND[s[i + 1]] & LETTER) return 1;
        }
        digits += (kind & DIGIT) != 0;
        seen |= kind;
        before = kind;
    }
    return digits > 0 && (seen & LETTER || digits >= least_digits);
}

/* Do two words stand in s[:n], with something else between them? */
static inline int has_two_words(const uint8_t *s, ptrdiff_t n) {
    int words = 0, inside = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        int in_word = (KIND[s[i]] & WORD) != 0;
        words += in_word && !inside;
        if (words == 2) return 1;
        inside = in_word;
    }
    return 0;
}

#endif
