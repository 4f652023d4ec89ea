/* A body that begins with the bytes of one that was read before: its messages are taken over as far as both are the same.
 *
 * The walk has then seen the same bytes up to the opening of the messages, and stands where the earlier one stood; what
 * that one found in whole messages inside the common bytes is what this one would find. Nothing of a message that the
 * bodies share in part is taken.
 */
#ifndef CG_TRANSCRIPT_ADOPT_H
#define CG_TRANSCRIPT_ADOPT_H

#include "transcript/rows.h"

#define COMPARED_AT_ONCE 65536

/* Bytes with which both texts begin, at most `n`. */
static uint32_t common_prefix(const uint8_t *a, const uint8_t *b, uint32_t n) {
    uint32_t at = 0;
    while (n - at >= COMPARED_AT_ONCE && !memcmp(a + at, b + at, COMPARED_AT_ONCE)) at += COMPARED_AT_ONCE;
    for (uint32_t step = COMPARED_AT_ONCE; step; step /= 2)
        if (n - at >= step && !memcmp(a + at, b + at, step)) at += step;
    return at;
}

/* Takes over the rows up to `end` that are not here yet; 0 or STOP_MEMORY. */
static int adopt_rows(Rows *rows, const Rows *before, size_t width, uint32_t end) {
    if (end <= rows->count) return 0;
    if (rows->room < end) {
        const uint32_t room = end + end / 4 + 32; /* the new messages' rows come behind them */
        void *grown = PyMem_RawRealloc(rows->rows, room * width);
        if (!grown) return STOP_MEMORY;
        rows->rows = grown;
        rows->room = room;
    }
    memcpy((uint8_t *)rows->rows + width * rows->count, (const uint8_t *)before->rows + width * rows->count,
           width * (end - rows->count));
    rows->count = end;
    return 0;
}

/* Puts the walk behind the last message that is the earlier body's too, if there is one; its number goes to `count`. */
static int adopt_messages(Scan *scan, uint32_t *count) {
    const Scan *before = scan->before;
    const Message *messages;
    uint32_t low = 0, high;
    if (!before || before->messages_at != scan->r.at || scan->common < scan->r.at) return 0;
    messages = (const Message *)before->messages.rows;
    high = before->messages.count;
    while (low < high) { /* ends ascend */
        const uint32_t middle = low + (high - low) / 2;
        if (messages[middle].span.end <= scan->common) low = middle + 1;
        else high = middle;
    }
    if (!low) return 0;
    const Message *last = &messages[low - 1];
    if (adopt_rows(&scan->texts, &before->texts, sizeof(Text), last->texts_end) < 0 ||
        adopt_rows(&scan->uses, &before->uses, sizeof(Use), last->uses_end) < 0 ||
        adopt_rows(&scan->marks, &before->marks, sizeof(Mark), last->marks_end) < 0 ||
        adopt_rows(&scan->pieces, &before->pieces, sizeof(Piece), last->pieces_end) < 0 ||
        adopt_rows(&scan->messages, &before->messages, sizeof(Message), low) < 0)
        return STOP_MEMORY;
    memcpy(scan->chain, last->link, DIGEST);
    scan->adopted_texts = scan->first_text = scan->texts.count;
    scan->first_message = scan->messages.count;
    scan->r.at = last->span.end;
    *count = low;
    return 0;
}

#endif
