/* What all parts of the reader of bodies share: where it stands, why it stops, and the canonical text that it writes.
 *
 * Functions take a Reader whose `at` is the position in the text and return 0 or a negative Stop, which the caller
 * passes on. The canonical text is the values that were read in one spelling: no white space, strings with the
 * shortest escapes, numbers and key order as they stand. Equal canonical text means equal JSON. It is never longer
 * than what it was made from, and its buffer grows as it is written: most of a body is tool texts, not in it.
 */
#ifndef CG_TRANSCRIPT_READER_H
#define CG_TRANSCRIPT_READER_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h> /* the one-wheel build has the C library's own memory under the name of Python's */
#include <string.h>

typedef enum {
    STOP_TRUNCATED = -1,
    STOP_SYNTAX = -2,
    STOP_CONTROL = -3,
    STOP_UTF8 = -4,
    STOP_ESCAPE = -5,
    STOP_NUMBER = -6,
    STOP_DEPTH = -7,
    STOP_TRAILING = -8,
    STOP_DUPLICATE = -9,
    STOP_TYPE = -10,
    STOP_MISSING = -11,
    STOP_TOO_MANY = -12,
    STOP_MEMORY = -13
} Stop;

typedef struct {      /* a string token, quotes included */
    uint32_t start, end;
    uint32_t size;    /* bytes of the decoded text as UTF-8, lone surrogates as three bytes */
    uint32_t escaped; /* 1 if a backslash stands in it */
} Token;

typedef struct { uint8_t *bytes; size_t len, room; } Buffer; /* its memory is Python's, so that tracemalloc counts it */

enum { BEST_WAYS, PLAIN_WAYS, BASELINE_WAYS }; /* all instructions there are, none, those of every such processor */
enum { UTF8_UNCHECKED, UTF8_VALID, UTF8_DOUBTFUL };

typedef struct {
    const uint8_t *s;
    uint32_t n, at;
    Buffer canon;
    int quiet;  /* 1: the canonical text is not written, for looking ahead and for values that have no part in it */
    int failed; /* 1: the canonical text did not fit into memory */
    int ways;   /* of BEST_WAYS and so on */
    int utf8;   /* UTF8_VALID: all of the text from the first byte that is not ASCII on; see check_utf8 */
} Reader;

#define FIRST_ROOM 16384 /* bytes of a buffer when it is first written to */

/* 1 if `more` bytes fit into the buffer, which grows by half at the least: few moves, and little that is not used. */
static inline int reserve(Buffer *buffer, size_t more) {
    if (buffer->room - buffer->len >= more) return 1;
    size_t room = buffer->room + buffer->room / 2;
    if (room < FIRST_ROOM) room = FIRST_ROOM;
    if (room - buffer->len < more) room = buffer->len + more; /* below 2**33: `more` is part of a body */
    void *grown = PyMem_RawRealloc(buffer->bytes, room);
    if (!grown) return 0;
    buffer->bytes = (uint8_t *)grown;
    buffer->room = room;
    return 1;
}

/* True if `count` more bytes are wanted and fit. */
static inline int has_room(Reader *r, size_t count) {
    if (r->quiet) return 0;
    if (reserve(&r->canon, count)) return 1;
    r->failed = 1;
    return 0;
}

static inline void put(Reader *r, const void *bytes, size_t count) {
    if (has_room(r, count)) {
        memcpy(r->canon.bytes + r->canon.len, bytes, count);
        r->canon.len += count;
    }
}

static inline void put_byte(Reader *r, uint8_t byte) {
    if (has_room(r, 1)) r->canon.bytes[r->canon.len++] = byte;
}

static inline void skip_space(Reader *r) {
    const uint8_t *s = r->s;
    uint32_t i = r->at;
    while (i < r->n && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t')) i++;
    r->at = i;
}

/* The next byte that is not white space, left unread, or STOP_TRUNCATED. */
static inline int peek(Reader *r) {
    skip_space(r);
    return r->at < r->n ? r->s[r->at] : STOP_TRUNCATED;
}

#endif
