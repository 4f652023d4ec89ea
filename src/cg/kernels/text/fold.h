/* NFKC_Casefold, character by character, with a mark where a part of an identifier begins.

   The caller fills the pages from the running interpreter's Unicode tables; then text_fold walks a text in NFC, as UTF-8
   with lone surrogates allowed, and writes what each character folds to. Putting the result into NFC is left to the
   caller: a border never stands before a combining mark, so it keeps nothing from being composed. */
#ifndef TEXT_FOLD_H
#define TEXT_FOLD_H

#include "bm25/tokens.h"

typedef struct { uint32_t first, last; } TextRange;

static int text_is_in(uint32_t c, const TextRange *range, size_t n) {
    for (size_t i = 0; i < n; i++) if (c >= range[i].first && c <= range[i].last) return 1;
    return 0;
}

/* Scripts besides Han and kana that are cut into pairs, except in plain texts: Hangul, Thai, Lao, Burmese, Khmer. */
static int text_is_paired(uint32_t c) {
    static const TextRange range[] = {
        {0x1100, 0x11FF}, {0x3130, 0x318F}, {0xA960, 0xA97F}, {0xAC00, 0xD7FF}, {0x0E00, 0x0EFF},
        {0x1000, 0x109F}, {0xA9E0, 0xA9FF}, {0xAA60, 0xAA7F}, {0x1780, 0x17FF},
    };
    return text_is_in(c, range, sizeof range / sizeof *range);
}

/* Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties (version 14; Python's unicodedata lacks it). */
static int text_is_ignorable(uint32_t c) {
    static const TextRange range[] = {
        {0xAD, 0xAD}, {0x34F, 0x34F}, {0x61C, 0x61C}, {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F},
        {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
        {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
    };
    return text_is_in(c, range, sizeof range / sizeof *range);
}

/* What a character is to its neighbours; TEXT_THROUGH (marks, ignorable characters) leaves what stands before it. */
enum text_case { TEXT_NONE = 0, TEXT_LOWER, TEXT_UPPER, TEXT_LETTER, TEXT_DIGIT, TEXT_THROUGH };

#define TEXT_BORDER 0x1F         /* begins a part; in a text itself it is a blank like any other control character */
#define TEXT_FOLD_MAX 64u        /* bytes of one character's folding (33 in Unicode 16), border included */

/* Foldings of 256 characters: where each begins in `bytes`, and its case. */
typedef struct { uint16_t at[257]; uint8_t kind[256]; uint8_t bytes[]; } TextPage;

static const uint8_t *text_pages[0x1100];      /* each leads to a TextPage, or is NULL until it is needed */

static int text_publish(uint32_t i, const TextPage *page) { return bm25_publish(text_pages, i, (const uint8_t *)page); }

/* Does a part begin between two characters of these kinds? (Before the last of several capitals: see text_fold.) */
BM25_INLINE int text_is_border(int before, int kind) {
    if (before == TEXT_NONE || kind == TEXT_NONE) return 0;
    return (before == TEXT_LOWER && kind == TEXT_UPPER) || (before == TEXT_DIGIT) != (kind == TEXT_DIGIT);
}

typedef struct {
    uint8_t *out;                /* owned */
    size_t n, room;
    int missing;                 /* page that has to be filled first, or -1 */
} TextFolded;

/* Room for one character more; 0 if memory is short. */
static int text_fold_grow(TextFolded *f) {
    size_t want = f->room + f->room / 2 + 256;
    uint8_t *out;
    if (f->n + TEXT_FOLD_MAX <= f->room) return 1;
    out = (uint8_t *)realloc(f->out, want);
    if (!out) return 0;
    f->out = out;
    f->room = want;
    return 1;
}

static void text_insert_border(TextFolded *f, size_t at) {
    memmove(f->out + at + 1, f->out + at, f->n - at);
    f->out[at] = TEXT_BORDER;
    f->n++;
}

/* Fold p[0..n) into a zeroed f; 0 if memory is short. Stops early with f->missing set. The dot that is left on an i when
   a Turkish capital is folded (U+0307) is left out. Free f->out in every case. */
static int text_fold(const uint8_t *p, size_t n, TextFolded *f) {
    int before = TEXT_NONE, after_capital = 0, size;
    size_t last = 0;                             /* where the folding of the last capital stands */
    f->missing = -1;
    f->n = 0;
    for (size_t i = 0; i < n; i += (size_t)size) {
        uint32_t c = bm25_char(p + i, &size);
        const TextPage *page = (const TextPage *)BM25_PAGE(text_pages, c >> 8);
        int kind;
        size_t bytes;
        if (!page) { f->missing = (int)(c >> 8); return 1; }
        if (!text_fold_grow(f)) return 0;
        kind = page->kind[c & 255];
        bytes = (size_t)page->at[(c & 255) + 1] - page->at[c & 255];
        if (kind != TEXT_THROUGH) {
            if (text_is_border(before, kind)) f->out[f->n++] = TEXT_BORDER;
            else if (kind == TEXT_LOWER && before == TEXT_UPPER && after_capital) text_insert_border(f, last);
            after_capital = kind == TEXT_UPPER && before == TEXT_UPPER;
            if (kind == TEXT_UPPER) last = f->n;
            before = kind;
        } else if (c == 0x307 && f->n && f->out[f->n - 1] == 'i') {
            continue;
        }
        memcpy(f->out + f->n, page->bytes + page->at[c & 255], bytes);
        f->n += bytes;
    }
    return 1;
}

#endif
