/* What a reading finds, as rows, and what it holds while it goes on. */
#ifndef CG_TRANSCRIPT_ROWS_H
#define CG_TRANSCRIPT_ROWS_H

#include "transcript/json.h"

#define MAX_ROWS 200000  /* messages, tool texts, calls, ...: twice what the API takes in one request */
#define MAX_MEMBERS 256  /* at the top of a body; the API knows some thirty */
#define DIGEST 32
#define CHAIN_LINK 8

enum { ROLE_USER, ROLE_ASSISTANT, ROLE_SYSTEM };
enum { IN_TOOLS, IN_SYSTEM, IN_MESSAGES, AT_TOP };
enum { PIECE_TEXT, PIECE_ARGUMENTS, PIECE_RESULT };
enum { BLOCK_OTHER, BLOCK_TEXT, BLOCK_TOOL_USE, BLOCK_TOOL_RESULT };
enum { LIFETIME_UNKNOWN = 0, LIFETIME_5M = 300, LIFETIME_1H = 3600 };

typedef struct { uint32_t start, end; } Span;

typedef struct {  /* one text of a tool result */
    Token token, id;
    uint32_t message, block, has_marker;
    uint32_t error_at; /* where its result's `is_error` is true; 0 where it is not */
    size_t digest_at;  /* where its SHA-256 goes in the canonical text */
    size_t decoded_at; /* where its decoded text stands, if the token holds an escape */
    uint8_t digest[DIGEST];
} Text;

typedef struct { Token id, name; Span input; uint32_t message; } Use;

typedef struct {
    int32_t section, message, block;
    uint32_t ttl_s;
    Span ttl;      /* the value of its `ttl`; empty where it has none */
    uint32_t end;  /* of its object, the closing brace included */
} Mark;

typedef struct { Token token; int32_t message; uint32_t kind; } Piece;

typedef struct { Token key; Span value; } Member;

typedef struct { Token name; Span span; uint32_t has_name; } Tool;

typedef struct {
    Span span, content, last; /* last: the last block of a list */
    size_t canon_start, canon_end;
    uint32_t role, n_blocks;  /* n_blocks: 0 for string content */
    uint32_t is_list, last_kind, last_is_marked, last_is_empty;
    uint32_t texts_end, uses_end, marks_end, pieces_end; /* rows of their kinds, this message's included */
    uint8_t link[DIGEST];     /* its digest, which covers the digest of the message before it */
} Message;

typedef struct { void *rows; uint32_t count, room; } Rows;

typedef struct Scan {
    Reader r;
    Rows texts, uses, marks, pieces, members, tools, messages;
    size_t tools_start, tools_end, system_start, system_end; /* canonical */
    size_t messages_start; /* canonical; what stands behind it is one batch's, see transcript/digest.h */
    Buffer decoded;        /* the batch's tool texts, decoded, one after the other */
    size_t waiting;        /* bytes of them, and of those that need no decoding */
    uint32_t first_text, first_message; /* of the batch */
    uint8_t chain[DIGEST]; /* digest of the last message so far */
    int (*digest)(struct Scan *scan); /* takes the batch's digests; 0 or STOP_MEMORY */
    const char *where;     /* the part that was being read */
    uint32_t messages_at;  /* behind the bracket that opens the messages */
    const struct Scan *before; /* an earlier body's, whose messages are taken over as far as the bodies are the same */
    uint32_t common;       /* bytes with which both begin */
    uint32_t adopted_texts; /* rows that were taken over */
} Scan;

/* A new zeroed row at the end, or NULL: out of memory, or `limit` rows stand already. */
static void *add_row(Rows *rows, size_t width, uint32_t limit) {
    if (rows->count >= limit) return NULL;
    if (rows->count == rows->room) {
        const uint32_t room = rows->room ? 2 * rows->room : 32;
        void *grown = PyMem_RawRealloc(rows->rows, room * width); /* below 4 * MAX_ROWS * 128 bytes */
        if (!grown) return NULL;
        rows->rows = grown;
        rows->room = room;
    }
    void *row = (uint8_t *)rows->rows + width * rows->count++;
    memset(row, 0, width);
    return row;
}

static int no_row(const Rows *rows, uint32_t limit) {
    return rows->count >= limit ? STOP_TOO_MANY : STOP_MEMORY;
}

static void free_buffers(Scan *scan) {
    PyMem_RawFree(scan->r.canon.bytes);
    PyMem_RawFree(scan->decoded.bytes);
    memset(&scan->r.canon, 0, sizeof scan->r.canon);
    memset(&scan->decoded, 0, sizeof scan->decoded);
}

static void free_scan(Scan *scan) {
    Rows *all[] = {&scan->texts, &scan->uses, &scan->marks, &scan->pieces,
                   &scan->members, &scan->tools, &scan->messages};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) PyMem_RawFree(all[i]->rows);
    free_buffers(scan);
}

#endif
