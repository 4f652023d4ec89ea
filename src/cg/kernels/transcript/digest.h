/* Digests, taken in batches while the body is read: of each tool text, and of each message with all before it.
 *
 * A batch is some messages, so that what was just decoded is hashed before it leaves the processor's cache, and neither
 * decoded nor canonical text of more than a batch is ever held. A message's canonical text begins with 32 bytes for the
 * digest of what stands before it, and holds 32 bytes for each of its tool texts.
 */
#ifndef CG_TRANSCRIPT_DIGEST_H
#define CG_TRANSCRIPT_DIGEST_H

#include "sha256_x86.h"
#include "transcript/rows.h"

#define BATCH_BYTES (192 * 1024) /* decoded and as it is spelled it fits into half a megabyte of cache */

/* A text's decoded bytes, of which there are token.size, until its batch ends. */
static inline const uint8_t *text_bytes(const Scan *scan, const Text *text) {
    if (text->token.escaped) return scan->decoded.bytes + text->decoded_at;
    return scan->r.s + text->token.start + 1;
}

static inline int is_batch_full(const Scan *scan) {
    return scan->waiting >= BATCH_BYTES || scan->r.canon.len - scan->messages_start >= BATCH_BYTES;
}

/* Puts the batch's text digests into their places in the canonical text. */
static void place_text_digests(Scan *scan) {
    for (uint32_t i = scan->first_text; i < scan->texts.count; i++) {
        const Text *text = (const Text *)scan->texts.rows + i;
        memcpy(scan->r.canon.bytes + text->digest_at, text->digest, DIGEST);
    }
}

/* Takes the digests of all that was read since the last batch, and lets go of its text. */
static int end_batch(Scan *scan) {
    Reader *r = &scan->r;
    int stop;
    if (r->failed) return STOP_MEMORY; /* places in a canonical text that was cut off lie outside of it */
    for (uint32_t i = scan->first_text; i < scan->texts.count; i++) {
        Text *text = (Text *)scan->texts.rows + i;
        text->has_marker = (uint32_t)holds_marker(text_bytes(scan, text), text->token.size);
    }
    if ((stop = scan->digest(scan)) < 0) return stop;
    r->canon.len = scan->messages_start;
    scan->decoded.len = scan->waiting = 0;
    scan->first_text = scan->texts.count;
    scan->first_message = scan->messages.count;
    return 0;
}

#if defined(CG_SHA_X86)
static int digest_x86(Scan *scan) {
    ShaLane lanes[2];
    uint8_t *canon = scan->r.canon.bytes;
    lanes[0].blocks = lanes[1].blocks = 0;
    for (uint32_t i = scan->first_text; i < scan->texts.count; i++) {
        Text *text = (Text *)scan->texts.rows + i;
        if (lanes[0].blocks && lanes[1].blocks) sha_run_both(&lanes[0], &lanes[1]);
        sha_start(&lanes[lanes[0].blocks ? 1 : 0], text_bytes(scan, text), text->token.size, text->digest);
    }
    sha_run_both(&lanes[0], &lanes[1]);
    sha_finish(&lanes[0]);
    sha_finish(&lanes[1]);
    place_text_digests(scan);
    for (uint32_t i = scan->first_message; i < scan->messages.count; i++) {
        Message *message = (Message *)scan->messages.rows + i;
        memcpy(canon + message->canon_start, scan->chain, DIGEST);
        sha_start(&lanes[0], canon + message->canon_start, message->canon_end - message->canon_start, scan->chain);
        sha_finish(&lanes[0]);
        memcpy(message->link, scan->chain, DIGEST);
    }
    return 0;
}
#endif

/* Makes the batches' digests this file's own where the processor can; 0 where the caller has to bring them. */
static int digest_with_x86(Scan *scan) {
#if defined(CG_SHA_X86)
    scan->digest = digest_x86;
    return 1;
#else
    (void)scan;
    return 0;
#endif
}

static int can_digest(void) {
#if defined(CG_SHA_X86)
    return has_sha_x86();
#else
    return 0;
#endif
}

#endif
