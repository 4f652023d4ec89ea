/* The end of building: terms are sorted, every term gets its form, postings are placed, the image is complete. */
#ifndef BM25_LAYOUT_H
#define BM25_LAYOUT_H

#include "bm25/build.h"

typedef struct { uint64_t prefix; const uint8_t *p; uint32_t length, term; } Bm25Key;

static int bm25_compare_keys(const void *left, const void *right) {
    const Bm25Key *x = (const Bm25Key *)left, *y = (const Bm25Key *)right;
    uint32_t n = x->length < y->length ? x->length : y->length;
    int c;
    if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
    c = memcmp(x->p, y->p, n);
    return c ? c : (x->length > y->length) - (x->length < y->length);
}

/* Sort by the first eight bytes with a radix sort, then each group of equals by comparison. 0 if memory is short. */
static int bm25_sort_terms(Bm25Key *key, uint64_t n) {
    Bm25Key *other = (Bm25Key *)malloc((size_t)(n ? n : 1) * sizeof(Bm25Key)), *from = key, *to = other, *swap;
    uint64_t i, j;
    if (!other) return 0;
    for (int shift = 0; shift < 64; shift += 8) {
        uint64_t start[256] = {0}, sum = 0;
        for (i = 0; i < n; i++) start[from[i].prefix >> shift & 255]++;
        for (i = 0; i < 256; i++) { uint64_t c = start[i]; start[i] = sum; sum += c; }
        for (i = 0; i < n; i++) to[start[from[i].prefix >> shift & 255]++] = from[i];
        swap = from; from = to; to = swap;
    }
    free(other);                                 /* eight passes: the result is back in `key` */
    for (i = 0; i < n; i = j) {
        for (j = i + 1; j < n && key[j].prefix == key[i].prefix; j++) {}
        if (j - i > 1) qsort(key + i, (size_t)(j - i), sizeof(Bm25Key), bm25_compare_keys);
    }
    return 1;
}

static Bm25Key *bm25_sorted_keys(const Bm25Builder *b) {
    Bm25Key *key = (Bm25Key *)malloc((size_t)(b->n_terms ? b->n_terms : 1) * sizeof(Bm25Key));
    if (!key) return NULL;
    for (uint64_t t = 0; t < b->n_terms; t++) {
        const Bm25Term *term = &b->term[t];
        uint64_t prefix = 0;
        for (uint32_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < term->length ? b->bytes[term->offset + i] : 0);
        key[t].prefix = prefix;
        key[t].p = b->bytes + term->offset;
        key[t].length = term->length;
        key[t].term = (uint32_t)t;
    }
    if (!bm25_sort_terms(key, b->n_terms)) { free(key); return NULL; }
    return key;
}

/* Codes of small tf by length class, and what computes the others. */
typedef struct { const double *norm; uint8_t *table; } Bm25Coder;
#define BM25_TABLE_TF 16u

static uint32_t bm25_encode(double tf, double norm) {
    uint32_t code = (uint32_t)ceil(255.0 * (tf / (tf + norm)));
    if (code < 1) code = 1;
    return code < BM25_ESCAPE && bm25_decode(code, norm) == tf ? code : BM25_ESCAPE;
}

BM25_INLINE uint32_t bm25_code(const Bm25Coder *c, uint32_t tf, uint32_t cls) {
    return tf < BM25_TABLE_TF ? c->table[cls * BM25_TABLE_TF + tf] : bm25_encode(tf, c->norm[cls]);
}

typedef struct {                 /* everything that laying out needs and gives back at its end */
    Bm25Builder *b;
    Bm25Key *key;
    uint32_t *cls, *length, n_classes;
    double *norm;
    Bm25Coder coder;
    Bm25List *list;
    uint64_t n_lists, list_room, n_rows, n_list_rows, n_wide, n_columns;
    Bm25Big *except;             /* keys and tf, in the order found */
    uint64_t n_except, except_room;
    uint64_t count[N_SECTIONS], at[N_SECTIONS + 1];
    uint8_t *image;
} Bm25Layout;

static int bm25_compare_u32(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}
static int bm25_compare_big(const void *x, const void *y) {
    uint64_t a = ((const Bm25Big *)x)->at, b = ((const Bm25Big *)y)->at;
    return (a > b) - (a < b);
}

/* Distinct lengths, the class of each document, norms and the table of codes. */
static int bm25_make_classes(Bm25Layout *l, double k1, double b) {
    uint64_t n = l->b->n_docs, i;
    double average = bm25_average(l->b->n_tokens, n);
    uint32_t *distinct = (uint32_t *)malloc((size_t)(n + 1) * 4);
    l->length = distinct;
    l->cls = (uint32_t *)malloc((size_t)(n + 1) * 4);
    if (!distinct || !l->cls) return BM25_NO_MEMORY;
    if (n) memcpy(distinct, l->b->length, (size_t)n * 4);
    qsort(distinct, (size_t)n, 4, bm25_compare_u32);
    for (i = 0; i < n; i++)
        if (i == 0 || distinct[i] != distinct[l->n_classes - 1]) distinct[l->n_classes++] = distinct[i];
    for (i = 0; i < n; i++) {
        uint32_t lo = 0, hi = l->n_classes, want = l->b->length[i];
        while (lo < hi) { uint32_t mid = lo + (hi - lo) / 2; if (distinct[mid] < want) lo = mid + 1; else hi = mid; }
        l->cls[i] = lo;
    }
    l->norm = (double *)malloc((l->n_classes + 1) * sizeof(double));
    l->coder.table = (uint8_t *)malloc((size_t)(l->n_classes + 1) * BM25_TABLE_TF);
    if (!l->norm || !l->coder.table) return BM25_NO_MEMORY;
    for (uint32_t c = 0; c < l->n_classes; c++) {
        l->norm[c] = bm25_norm_of(distinct[c], average, k1, b);
        l->coder.table[c * BM25_TABLE_TF] = 0;
        for (uint32_t tf = 1; tf < BM25_TABLE_TF; tf++)
            l->coder.table[c * BM25_TABLE_TF + tf] = (uint8_t)bm25_encode(tf, l->norm[c]);
    }
    l->coder.norm = l->norm;
    return BM25_OK;
}

#define BM25_AHEAD 16u           /* postings by which the walk asks for a term in advance */

/* Walks all postings in document order. */
typedef struct { const Bm25Builder *b; uint64_t at, big; } Bm25Walk;

BM25_INLINE uint32_t bm25_walk(Bm25Walk *w, uint32_t *tf) {
    const Bm25Chunk *c = &w->b->chunk[w->at / BM25_CHUNK];
    uint32_t i = (uint32_t)(w->at % BM25_CHUNK);
    if (i + BM25_AHEAD < BM25_CHUNK && w->at + BM25_AHEAD < w->b->n_postings)
        BM25_PREFETCH(&w->b->term[c->term[i + BM25_AHEAD]]);
    *tf = c->tf[i];
    if (*tf == 255) {            /* `big` has been sorted by position */
        while (w->big < w->b->n_big && w->b->big[w->big].at < w->at) w->big++;
        if (w->big < w->b->n_big && w->b->big[w->big].at == w->at) *tf = w->b->big[w->big].tf;
    }
    w->at++;
    return c->term[i];
}

/* Give every term of more than BM25_SHORT_MAX documents its list; count what each form will need. */
static int bm25_choose_forms(Bm25Layout *l) {
    Bm25Builder *b = l->b;
    Bm25Walk walk = {b, 0, 0};
    uint64_t directory = 0, windows = bm25_windows(b->n_docs), padded = bm25_padded(b->n_docs);
    for (uint64_t t = 0; t < b->n_terms; t++) b->term[t].at = 0;
    for (uint64_t d = 0; d < b->n_docs; d++)     /* `at` counts the postings whose code is not enough */
        for (uint32_t i = 0; i < b->distinct[d]; i++) {
            uint32_t tf, t = bm25_walk(&walk, &tf);
            if (b->term[t].df > BM25_SHORT_MAX) b->term[t].at += bm25_code(&l->coder, tf, l->cls[d]) == BM25_ESCAPE;
        }
    for (uint64_t i = 0; i < b->n_terms; i++) {
        Bm25Term *term = &b->term[l->key[i].term];
        uint64_t escapes = term->at;
        Bm25List list;
        term->list = BM25_EMPTY;
        if (term->df <= BM25_SHORT_MAX) {
            term->at = l->n_rows;
            l->n_rows += term->df;
            continue;
        }
        memset(&list, 0, sizeof list);
        list.df = term->df;
        list.kind = escapes * 16 > term->df ? BM25_WIDE : (uint64_t)term->df * BM25_COLUMN_PART >= b->n_docs ? BM25_COLUMN : BM25_LIST;
        if (list.kind == BM25_COLUMN) {
            list.base = l->n_columns++ * padded;
        } else {
            list.base = l->n_list_rows;
            list.directory = (uint32_t)directory;
            directory += windows + 1;
            l->n_list_rows += term->df;
            if (list.kind == BM25_WIDE) {
                list.wide = l->n_wide;
                l->n_wide += term->df;
            }
        }
        term->at = list.base;
        term->list = (uint32_t)l->n_lists;
        l->n_rows++;
        if (!bm25_grow((void **)&l->list, &l->list_room, l->n_lists + 1, sizeof list)) return BM25_NO_MEMORY;
        l->list[l->n_lists++] = list;
    }
    if (l->n_rows >= BM25_EMPTY || directory >= BM25_EMPTY) return BM25_TOO_MANY_ROWS;
    l->count[S_DIRECTORY] = directory;
    return BM25_OK;
}

/* Slots for the terms: 3/4 full, and never none. */
static uint64_t bm25_slots_for(uint64_t n_terms) { return n_terms + n_terms / 3 + 8; }

static int bm25_make_image(Bm25Layout *l, double k1, double b) {
    Bm25Header *h;
    uint64_t *count = l->count, n = l->b->n_docs, n_terms = l->b->n_terms;
    count[S_TERM_OFFSET] = n_terms + 1;
    count[S_TERM_BYTES] = l->b->n_bytes + 8;
    count[S_SLOT] = bm25_slots_for(n_terms);
    count[S_TERM_ROW] = n_terms + 1;
    count[S_SHORT_DOC] = count[S_SHORT_TF] = l->n_rows;
    count[S_LIST] = l->n_lists;
    count[S_LIST_DOC] = count[S_LIST_CODE] = l->n_list_rows;
    count[S_WIDE_TF] = l->n_wide;
    count[S_COLUMN] = l->n_columns * bm25_padded(n);
    count[S_LENGTH] = l->n_classes;
    count[S_LENGTH_CLASS] = n;
    /* The exceptions stand behind everything else until they are counted; the image is cut to size then. */
    if (!bm25_layout(count, l->at)) return BM25_TOO_MANY_ROWS;
    l->image = (uint8_t *)calloc(1, (size_t)l->at[N_SECTIONS]);
    if (!l->image) return BM25_NO_MEMORY;
    h = (Bm25Header *)l->image;
    memcpy(h->magic, BM25_MAGIC, 8);
    h->version = BM25_VERSION;
    h->byte_order = BM25_BYTE_ORDER;
    h->analyzer = l->b->analyzer;
    h->analyzer_version = text_analyzer_version[l->b->analyzer];
    h->n_docs = n;
    h->n_terms = n_terms;
    h->n_tokens = l->b->n_tokens;
    h->k1 = k1;
    h->b = b;
    memcpy(l->image + l->at[S_LENGTH], l->length, l->n_classes * 4);
    memcpy(l->image + l->at[S_LENGTH_CLASS], l->cls, n * 4);
    return BM25_OK;
}

/* Vocabulary: offsets, bytes, rows, hash table. */
static void bm25_place_terms(Bm25Layout *l) {
    uint32_t *offset = (uint32_t *)(l->image + l->at[S_TERM_OFFSET]), *row = (uint32_t *)(l->image + l->at[S_TERM_ROW]);
    uint32_t *slot = (uint32_t *)(l->image + l->at[S_SLOT]), *doc = (uint32_t *)(l->image + l->at[S_SHORT_DOC]);
    uint8_t *bytes = l->image + l->at[S_TERM_BYTES];
    uint32_t n_slots = (uint32_t)l->count[S_SLOT], at = 0, rows = 0;
    memset(slot, 0xFF, (size_t)n_slots * 4);
    for (uint64_t i = 0; i < l->b->n_terms; i++) {
        const Bm25Term *term = &l->b->term[l->key[i].term];
        memcpy(bytes + at, l->key[i].p, term->length);
        offset[i] = at;
        row[i] = rows;
        at += term->length;
        if (term->list != BM25_EMPTY) doc[rows] = term->list;       /* its tf byte stays 0 */
        rows += term->list == BM25_EMPTY ? term->df : 1;
    }
    offset[l->b->n_terms] = at;
    row[l->b->n_terms] = rows;
    for (uint64_t i = 0; i < l->b->n_terms; i++) {
        uint32_t s = bm25_slot(bm25_hash(bytes + offset[i], offset[i + 1] - offset[i], 0), n_slots), tries = 0;
        while (slot[s] != BM25_EMPTY && ++tries < BM25_PROBES) if (++s == n_slots) s = 0;
        if (slot[s] == BM25_EMPTY) slot[s] = (uint32_t)i;           /* else: found by binary search */
    }
}

static int bm25_except(Bm25Layout *l, uint64_t key, uint32_t tf) {
    if (!bm25_grow((void **)&l->except, &l->except_room, l->n_except + 1, sizeof(Bm25Big))) return BM25_NO_MEMORY;
    l->except[l->n_except].at = key;
    l->except[l->n_except++].tf = tf;
    return BM25_OK;
}

static int bm25_place_one(Bm25Layout *l, Bm25Term *term, uint32_t d, uint32_t tf) {
    uint8_t *image = l->image;
    const Bm25List *list;
    uint32_t code;
    uint64_t at;
    if (term->list == BM25_EMPTY) {
        at = term->at++;
        ((uint32_t *)(image + l->at[S_SHORT_DOC]))[at] = d;
        image[l->at[S_SHORT_TF] + at] = (uint8_t)(tf < 255 ? tf : 255);
        return tf < 255 ? BM25_OK : bm25_except(l, BM25_KEY_SHORT(at), tf);
    }
    list = &l->list[term->list];
    code = bm25_code(&l->coder, tf, l->cls[d]);
    if (list->kind == BM25_COLUMN) {
        at = list->base + d;
        image[l->at[S_COLUMN] + at] = (uint8_t)code;
        return code < BM25_ESCAPE ? BM25_OK : bm25_except(l, BM25_KEY_COLUMN(at), tf);
    }
    at = term->at++;
    ((uint16_t *)(image + l->at[S_LIST_DOC]))[at] = (uint16_t)(d % BM25_WINDOW);
    image[l->at[S_LIST_CODE] + at] = (uint8_t)code;
    if (list->kind == BM25_WIDE) {
        ((uint32_t *)(image + l->at[S_WIDE_TF]))[list->wide + (at - list->base)] = tf;
        return BM25_OK;
    }
    return code < BM25_ESCAPE ? BM25_OK : bm25_except(l, BM25_KEY_LIST(at), tf);
}

/* Note where every list stands as window `w` begins. */
static void bm25_mark_window(Bm25Layout *l, uint64_t w) {
    uint32_t *directory = (uint32_t *)(l->image + l->at[S_DIRECTORY]);
    for (uint64_t i = 0; i < l->b->n_terms; i++) {
        const Bm25Term *term = &l->b->term[i];
        const Bm25List *list;
        if (term->list == BM25_EMPTY) continue;
        list = &l->list[term->list];
        if (list->kind != BM25_COLUMN) directory[list->directory + w] = (uint32_t)(term->at - list->base);
    }
}

static int bm25_place_postings(Bm25Layout *l) {
    Bm25Builder *b = l->b;
    Bm25Walk walk = {b, 0, 0};
    for (uint64_t d = 0; d < b->n_docs; d++) {
        if (d % BM25_WINDOW == 0) bm25_mark_window(l, d / BM25_WINDOW);
        for (uint32_t i = 0; i < b->distinct[d]; i++) {
            uint32_t tf, t = bm25_walk(&walk, &tf);
            int stop = bm25_place_one(l, &b->term[t], (uint32_t)d, tf);
            if (stop) return stop;
        }
    }
    bm25_mark_window(l, bm25_windows(b->n_docs));
    return BM25_OK;
}

/* Highest, 10th and 100th highest code. An escape bounds from above only, so the lower two leave it out. */
static void bm25_find_tops(Bm25Layout *l) {
    Bm25List *out = (Bm25List *)(l->image + l->at[S_LIST]);
    for (uint64_t i = 0; i < l->n_lists; i++) {
        Bm25List *list = &l->list[i];
        const uint8_t *code = l->image + (list->kind == BM25_COLUMN ? l->at[S_COLUMN] : l->at[S_LIST_CODE]) + list->base;
        uint64_t n = list->kind == BM25_COLUMN ? l->b->n_docs : list->df, seen[256] = {0}, sum = 0;
        for (uint64_t j = 0; j < n; j++) seen[code[j]]++;
        for (uint32_t c = 255; c > 0; c--) {
            if (seen[c] && !list->top) list->top = (uint8_t)c;
            if (c == BM25_ESCAPE) continue;
            sum += seen[c];
            if (sum >= 10 && !list->best10) list->best10 = (uint8_t)c;
            if (sum >= 100 && !list->best100) list->best100 = (uint8_t)c;
        }
        out[i] = *list;
    }
}

/* Move the two last sections behind the exceptions, now that these are counted. */
static int bm25_place_exceptions(Bm25Layout *l) {
    Bm25Header *h;
    uint64_t old[N_SECTIONS + 1];
    uint8_t *image;
    memcpy(old, l->at, sizeof old);
    l->count[S_EXCEPTION_KEY] = l->count[S_EXCEPTION_TF] = l->n_except;
    bm25_layout(l->count, l->at);
    image = (uint8_t *)realloc(l->image, (size_t)l->at[N_SECTIONS]);
    if (!image) return BM25_NO_MEMORY;
    l->image = image;
    memset(image + old[N_SECTIONS], 0, (size_t)(l->at[N_SECTIONS] - old[N_SECTIONS]));
    memset(image + old[S_EXCEPTION_KEY], 0, (size_t)(l->at[N_SECTIONS] - old[S_EXCEPTION_KEY]));
    if (l->n_except) qsort(l->except, (size_t)l->n_except, sizeof(Bm25Big), bm25_compare_big);
    for (uint64_t i = 0; i < l->n_except; i++) {
        ((uint64_t *)(image + l->at[S_EXCEPTION_KEY]))[i] = l->except[i].at;
        ((uint32_t *)(image + l->at[S_EXCEPTION_TF]))[i] = l->except[i].tf;
    }
    memcpy(image + l->at[S_LENGTH], l->length, l->n_classes * 4);
    memcpy(image + l->at[S_LENGTH_CLASS], l->cls, (size_t)l->b->n_docs * 4);
    h = (Bm25Header *)image;
    memcpy(h->count, l->count, sizeof h->count);
    h->file_bytes = l->at[N_SECTIONS];
    return BM25_OK;
}

static void bm25_layout_free(Bm25Layout *l) {
    free(l->key); free(l->cls); free(l->length); free(l->norm); free(l->coder.table); free(l->list); free(l->except);
}

/* The finished image (free() it) in *image, or a Stop. The builder is emptied as far as it is no longer needed. */
static int bm25_finish(Bm25Builder *b, double k1, double norm_b, uint8_t **image) {
    Bm25Layout l;
    int stop;
    memset(&l, 0, sizeof l);
    l.b = b;
    free(b->slot);
    b->slot = NULL;
    if (b->n_big) qsort(b->big, (size_t)b->n_big, sizeof(Bm25Big), bm25_compare_big);
    l.key = bm25_sorted_keys(b);
    stop = l.key ? bm25_make_classes(&l, k1, norm_b) : BM25_NO_MEMORY;
    if (!stop) stop = bm25_choose_forms(&l);
    if (!stop) stop = bm25_make_image(&l, k1, norm_b);
    if (!stop) {
        bm25_place_terms(&l);
        stop = bm25_place_postings(&l);
    }
    if (!stop) {
        bm25_find_tops(&l);
        stop = bm25_place_exceptions(&l);
    }
    if (stop) free(l.image); else *image = l.image;
    bm25_layout_free(&l);
    return stop;
}

#endif
