/* Bytes and characters: blanks, UTF-8, escapes (R1, R5). */
#ifndef CG_VERDICT_CHARACTERS_H
#define CG_VERDICT_CHARACTERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT 0xFFFDu

enum ByteClass { OTHER_BYTE, BLANK_BYTE, WORD_BYTE };

static const uint8_t byte_class[256] = {     /* a row for sixteen bytes; none past ASCII is a blank or part of a word alone */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 2, 0, 2, 2, 0,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0,
    0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 2,
    0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0
};

static inline int is_ascii_blank(uint8_t c) { return byte_class[c] == BLANK_BYTE; }

static inline int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static inline uint8_t lowered(uint8_t c) { return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c; }

static inline int is_word_byte(uint8_t c) { return byte_class[c] == WORD_BYTE; }

static inline int is_three(const uint8_t *s, uint8_t a, uint8_t b, uint8_t c) { return s[0] == a && s[1] == b && s[2] == c; }

/* Bytes of the blank character at s[i], 0 if it is none (U+00A0, U+FEFF, U+200B, U+3000 and six of ASCII). */
static inline int blank_at(const uint8_t *s, size_t i, size_t n) {
    if (i >= n) return 0;
    if (s[i] < 0x80) return is_ascii_blank(s[i]);
    if (n - i >= 2 && s[i] == 0xC2 && s[i + 1] == 0xA0) return 2;
    if (n - i < 3) return 0;
    return is_three(s + i, 0xEF, 0xBB, 0xBF) || is_three(s + i, 0xE2, 0x80, 0x8B) || is_three(s + i, 0xE3, 0x80, 0x80) ? 3 : 0;
}

/* Bytes of the blank character that ends just before s[i], 0 if there is none. */
static inline int blank_before(const uint8_t *s, size_t i) {
    if (i == 0) return 0;
    if (s[i - 1] < 0x80) return is_ascii_blank(s[i - 1]);
    if (i >= 2 && blank_at(s, i - 2, i) == 2) return 2;
    return i >= 3 && blank_at(s, i - 3, i) == 3 ? 3 : 0;
}

static inline int hex_digit(uint8_t c) {
    if (is_digit(c)) return c - '0';
    c = lowered(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four hexadecimal digits at s[i], or -1. */
static int32_t hex4(const uint8_t *s, size_t i, size_t end) {
    int32_t unit = 0;
    if (end - i < 4 || i > end) return -1;
    for (int k = 0; k < 4; k++) {
        int digit = hex_digit(s[i + k]);
        if (digit < 0) return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* One character of UTF-8; an ill-formed maximal subpart is one U+FFFD (Unicode, table 3-7). */
static uint32_t utf8_next(const uint8_t *s, size_t *at, size_t end) {
    size_t i = *at;
    uint8_t c = s[i++];
    uint32_t point;
    int more;
    uint8_t low = 0x80, high = 0xBF;
    *at = i;
    if (c < 0x80) return c;
    if (c >= 0xC2 && c <= 0xDF) { more = 1; point = c & 0x1F; }
    else if (c >= 0xE0 && c <= 0xEF) { more = 2; point = c & 0x0F; }
    else if (c >= 0xF0 && c <= 0xF4) { more = 3; point = c & 0x07; }
    else return REPLACEMENT;
    if (c == 0xE0) low = 0xA0;
    if (c == 0xED) high = 0x9F;
    if (c == 0xF0) low = 0x90;
    if (c == 0xF4) high = 0x8F;
    for (; more; more--) {
        if (i >= end || s[i] < low || s[i] > high) { *at = i; return REPLACEMENT; }
        point = point << 6 | (s[i++] & 0x3F);
        low = 0x80; high = 0xBF;
    }
    *at = i;
    return point;
}

/* `\uXXXX` whose digits are at *at: the character, pairs joined; *at moves behind it. The digits were checked. */
static uint32_t unicode_escape(const uint8_t *s, size_t *at, size_t end, uint32_t unit) {
    *at += 4;
    if (unit >= 0xD800 && unit < 0xDC00 && end - *at >= 6 && s[*at] == '\\' && s[*at + 1] == 'u') {
        int32_t low = hex4(s, *at + 2, end);
        if (low >= 0xDC00 && low < 0xE000) {
            *at += 6;
            return 0x10000 + ((unit - 0xD800) << 10) + (uint32_t)(low - 0xDC00);
        }
    }
    return unit >= 0xD800 && unit < 0xE000 ? REPLACEMENT : unit;
}

/* The next character of a string's inside, unescaped. An unknown escape reads as its backslash, then its character. */
static uint32_t char_next(const uint8_t *s, size_t *at, size_t end) {
    static const char names[] = "\"'\\/bfnrt", meant[] = "\"'\\/\b\f\n\r\t";
    size_t i = *at;
    if (s[i] != '\\') return utf8_next(s, at, end);
    if (i + 1 < end && s[i + 1] == 'u') {
        int32_t unit = hex4(s, i + 2, end);
        if (unit >= 0) { *at = i + 2; return unicode_escape(s, at, end, (uint32_t)unit); }
    } else if (i + 1 < end && s[i + 1]) {
        const char *found = strchr(names, s[i + 1]);
        if (found) { *at = i + 2; return (uint8_t)meant[found - names]; }
    }
    *at = i + 1;
    return '\\';
}

static inline int is_blank_char(uint32_t c) {
    return c == ' ' || (c >= 9 && c <= 13) || c == 0xA0 || c == 0xFEFF || c == 0x200B || c == 0x3000;
}

/* Write the unescaped inside to `out` as UTF-8, ill-formed bytes as they are; never longer than what was written. */
static size_t unescape(const uint8_t *s, size_t at, size_t end, uint8_t *out) {
    size_t k = 0;
    while (at < end) {
        if (s[at] != '\\') { out[k++] = s[at++]; continue; }
        uint32_t c = char_next(s, &at, end);
        if (c < 0x80) out[k++] = (uint8_t)c;
        else if (c < 0x800) { out[k++] = (uint8_t)(0xC0 | c >> 6); out[k++] = (uint8_t)(0x80 | (c & 0x3F)); }
        else {
            if (c < 0x10000) out[k++] = (uint8_t)(0xE0 | c >> 12);
            else { out[k++] = (uint8_t)(0xF0 | c >> 18); out[k++] = (uint8_t)(0x80 | (c >> 12 & 0x3F)); }
            out[k++] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
            out[k++] = (uint8_t)(0x80 | (c & 0x3F));
        }
    }
    return k;
}

#endif
