/* An image from outside is believed only after this: sizes first, then checksums, then every number that is
   used to find another one. After it no content, however forged, can lead a query outside of the image. */
#ifndef BM25_CHECK_H
#define BM25_CHECK_H

#include "bm25/image.h"
#include "text/analyze.h"

static uint64_t bm25_header_sum(const Bm25Header *h) { return bm25_checksum((const uint8_t *)h, offsetof(Bm25Header, header_sum)); }

/* The header of an image with its checksums filled in. */
static void bm25_seal(const uint8_t *image, Bm25Header *h) {
    uint64_t at[N_SECTIONS + 1];
    memcpy(h, image, sizeof *h);
    bm25_layout(h->count, at);
    for (int i = 0; i < N_SECTIONS; i++) h->sum[i] = bm25_checksum(image + at[i], (size_t)(at[i + 1] - at[i]));
    h->header_sum = bm25_header_sum(h);
}

static const char *bm25_check_header(const uint8_t *image, uint64_t n) {
    const Bm25Header *h = (const Bm25Header *)image;
    const uint64_t *c = h->count;
    uint64_t at[N_SECTIONS + 1];
    if (n < sizeof(Bm25Header)) return "shorter than a header";
    if (memcmp(h->magic, BM25_MAGIC, 8) != 0) return "the magic number is another one";
    if (h->byte_order != BM25_BYTE_ORDER) return "written on a machine of another byte order";
    if (h->version != BM25_VERSION) return "a version that this release does not read";
    if (h->header_sum != bm25_header_sum(h)) return "the header's checksum does not fit";
    if (h->analyzer >= N_ANALYZERS) return "an analyser that this release does not have";
    if (h->analyzer_version != text_analyzer_version[h->analyzer]) return "made with another version of its analyser";
    if (h->file_bytes != n) return "its length is not the one in the header";
    if (h->n_docs >= BM25_EMPTY || h->n_terms > 0x7FFFFFFFu) return "more documents or terms than there can be";
    if (!(h->k1 >= 0 && h->k1 <= 1000) || !(h->b >= 0 && h->b <= 1)) return "k1 or b out of range";
    if (!bm25_layout(c, at) || at[N_SECTIONS] != n) return "the sections do not fill the file";
    if (c[S_TERM_OFFSET] != h->n_terms + 1 || c[S_TERM_ROW] != h->n_terms + 1) return "a term table of the wrong size";
    if (c[S_TERM_BYTES] < 8 || c[S_TERM_BYTES] > 0xFFFFFFF8u + 8ull) return "term bytes of an impossible size";
    if (c[S_SLOT] <= h->n_terms || c[S_SLOT] >= BM25_EMPTY) return "a hash table of the wrong size";
    if (c[S_SHORT_DOC] != c[S_SHORT_TF] || c[S_SHORT_DOC] >= BM25_EMPTY) return "rows of unequal number";
    if (c[S_LIST_DOC] != c[S_LIST_CODE] || c[S_EXCEPTION_KEY] != c[S_EXCEPTION_TF]) return "columns of unequal number";
    if (c[S_LIST] >= BM25_EMPTY || c[S_DIRECTORY] >= BM25_EMPTY) return "too many lists";
    if (c[S_LENGTH_CLASS] != h->n_docs || c[S_LENGTH] > h->n_docs) return "document lengths of the wrong number";
    for (int i = 0; i < N_SECTIONS; i++)
        if (h->sum[i] != bm25_checksum(image + at[i], (size_t)(at[i + 1] - at[i]))) return "a section's checksum does not fit";
    return NULL;
}

static const char *bm25_check_terms(const Bm25Index *ix) {
    uint64_t n_bytes = ix->head->count[S_TERM_BYTES] - 8, n_rows = ix->head->count[S_SHORT_DOC];
    if (ix->term_offset[0] != 0 || ix->term_offset[ix->n_terms] != n_bytes) return "term offsets do not cover the bytes";
    if (ix->term_row[0] != 0 || ix->term_row[ix->n_terms] != n_rows) return "term rows do not cover the rows";
    for (uint32_t t = 0; t < ix->n_terms; t++) {
        if (ix->term_offset[t + 1] <= ix->term_offset[t] || ix->term_offset[t + 1] > n_bytes) return "term offsets out of order";
        if (ix->term_row[t + 1] <= ix->term_row[t] || ix->term_row[t + 1] > n_rows) return "term rows out of order";
        if (ix->term_row[t + 1] - ix->term_row[t] > BM25_SHORT_MAX) return "a short term with too many rows";
        if (t && bm25_term_compare(ix, t - 1, ix->term_bytes + ix->term_offset[t], ix->term_offset[t + 1] - ix->term_offset[t]) >= 0)
            return "terms out of order";
    }
    for (uint32_t s = 0; s < ix->n_slots; s++)
        if (ix->slot[s] != BM25_EMPTY && ix->slot[s] >= ix->n_terms) return "a slot names no term";
    return NULL;
}

static const char *bm25_check_rows(const Bm25Index *ix) {
    for (uint32_t t = 0; t < ix->n_terms; t++) {
        uint32_t from = ix->term_row[t], to = ix->term_row[t + 1];
        if (ix->short_tf[from] == 0) {
            if (to - from != 1 || ix->short_doc[from] >= ix->n_lists) return "a row names no list";
            continue;
        }
        for (uint32_t r = from; r < to; r++) {
            if (ix->short_tf[r] == 0 || ix->short_doc[r] >= ix->n_docs) return "a row names no document";
            if (r > from && ix->short_doc[r] <= ix->short_doc[r - 1]) return "documents out of order";
        }
    }
    return NULL;
}

static const char *bm25_check_column(const Bm25Index *ix, const Bm25List *list) {
    uint64_t n = ix->head->count[S_COLUMN], some = 0;
    if (n < ix->n_padded || list->base > n - ix->n_padded || list->base % 64) return "a column outside of its section";
    for (uint64_t d = 0; d < ix->n_docs; d++) some += ix->column[list->base + d] != 0;
    for (uint64_t d = ix->n_docs; d < ix->n_padded; d++) if (ix->column[list->base + d]) return "a column is not padded";
    return some == list->df ? NULL : "a column of another document frequency";
}

static const char *bm25_check_list(const Bm25Index *ix, const Bm25List *list) {
    const uint64_t *count = ix->head->count;
    const uint32_t *dir = ix->directory + list->directory;
    if (list->df == 0 || list->df > ix->n_docs || list->kind > BM25_COLUMN) return "a list of an impossible kind";
    if (list->kind == BM25_COLUMN) return bm25_check_column(ix, list);
    if (count[S_LIST_DOC] < list->df || list->base > count[S_LIST_DOC] - list->df) return "a list outside of its section";
    if (list->kind == BM25_WIDE && (count[S_WIDE_TF] < list->df || list->wide > count[S_WIDE_TF] - list->df))
        return "a wide list outside of its section";
    if ((uint64_t)list->directory + ix->n_windows + 1 > count[S_DIRECTORY]) return "a directory outside of its section";
    if (dir[0] != 0 || dir[ix->n_windows] != list->df) return "a directory does not cover its list";
    for (uint32_t w = 0; w < ix->n_windows; w++) {
        uint32_t room = ix->n_docs - w * BM25_WINDOW;
        if (dir[w] > dir[w + 1] || dir[w + 1] > list->df) return "a directory out of order";
        for (uint32_t i = dir[w]; i < dir[w + 1]; i++) {
            uint64_t at = list->base + i;
            if (ix->list_doc[at] >= room || ix->list_code[at] == 0) return "a posting names no document";
            if (i > dir[w] && ix->list_doc[at] <= ix->list_doc[at - 1]) return "postings out of order";
        }
    }
    return NULL;
}

static const char *bm25_check_lengths(const Bm25Index *ix) {
    uint64_t sum = 0;
    for (uint32_t i = 1; i < ix->n_classes; i++) if (ix->length[i] <= ix->length[i - 1]) return "lengths out of order";
    for (uint32_t d = 0; d < ix->n_docs; d++) {
        if (ix->length_class[d] >= ix->n_classes) return "a document without a length";
        sum += ix->length[ix->length_class[d]];
    }
    return sum == ix->head->n_tokens ? NULL : "lengths do not add up";
}

/* What is wrong with the content of an attached image, or NULL. Work is bounded: every list is its own postings. */
static const char *bm25_check_content(const Bm25Index *ix) {
    const char *wrong = bm25_check_terms(ix);
    uint64_t postings = 0, columns = 0;
    if (!wrong) wrong = bm25_check_rows(ix);
    if (!wrong) wrong = bm25_check_lengths(ix);
    for (uint32_t i = 0; i < ix->n_lists && !wrong; i++) {
        const Bm25List *list = &ix->list[i];
        /* Lists that overlap would let a small file ask for endless checking. */
        if (list->kind == BM25_COLUMN) columns += ix->n_padded; else postings += list->df;
        if (columns > ix->head->count[S_COLUMN] || postings > ix->head->count[S_LIST_DOC]) return "lists overlap";
        wrong = bm25_check_list(ix, list);
    }
    for (uint64_t i = 1; i < ix->n_exceptions && !wrong; i++)
        if (ix->exception_key[i] <= ix->exception_key[i - 1]) wrong = "exceptions out of order";
    return wrong;
}

#endif
