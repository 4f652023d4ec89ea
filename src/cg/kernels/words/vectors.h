/* Sums of word vectors, their cosines, and the order that these and a lexical score give together.

   Sums and dot products run in lanes of a fixed order and without contraction: the same number on every machine. */
#ifndef WORDS_VECTORS_H
#define WORDS_VECTORS_H

#include "words/table.h"

#define WORDS_LANES 8

/* Add the vector of word `at` to sum[WORDS_DIMS]. */
static void words_add(const WordsTable *t, uint32_t at, float *sum) {
    const uint8_t *row = t->row + (size_t)at * WORDS_ROW;
    float scale;
    memcpy(&scale, t->scale + (size_t)at * 4, 4);
    for (int i = 0; i < WORDS_ROW - 1; i++) {
        const float *digit = t->digit[row[i]];
        for (int j = 0; j < 5; j++) sum[5 * i + j] += scale * digit[j];
    }
    for (int j = 0; j < 3; j++) sum[125 + j] += scale * t->digit[row[WORDS_ROW - 1]][j];
}

static float words_dot(const float *a, const float *b) {
    float lane[WORDS_LANES] = {0};
    for (int i = 0; i < WORDS_DIMS; i += WORDS_LANES)
        for (int j = 0; j < WORDS_LANES; j++) lane[j] += a[i + j] * b[i + j];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Divide a vector by its length; one of length 0 stays, and is at a right angle to all. */
static void words_normalize(float *v) {
    float length = sqrtf(words_dot(v, v));
    if (length > 0)
        for (int i = 0; i < WORDS_DIMS; i++) v[i] /= length;
}

/* cosine[i] of a query with each of n documents, all of length 1 or 0. */
static void words_cosines(const float *query, const float *docs, size_t n, double *cosine) {
    for (size_t i = 0; i < n; i++) cosine[i] = words_dot(query, docs + i * WORDS_DIMS);
}

typedef struct { double score; uint32_t doc; } WordsPlace;

static int words_better(const void *x, const void *y) {
    const WordsPlace *a = (const WordsPlace *)x, *b = (const WordsPlace *)y;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return (a->doc > b->doc) - (a->doc < b->doc);
}

/* Documents by score/max + cosine, best first, ties by position. `score` belongs to the documents of `doc`, all < n. */
static void words_order(const double *cosine, const uint32_t *doc, const double *score, size_t n, WordsPlace *place) {
    double max = 0;
    for (size_t i = 0; i < n; i++) if (score[i] > max) max = score[i];
    for (size_t i = 0; i < n; i++) {
        place[i].doc = doc[i];
        place[i].score = cosine[doc[i]] + (max > 0 ? score[i] / max : 0);
    }
    qsort(place, n, sizeof *place, words_better);
}

#endif
