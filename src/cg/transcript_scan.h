/* A Messages request, read once: where its tool results, calls, texts and cache marks stand in its own bytes.
 *
 * The walk is as deep as the format (body, message, block, block of a result) and calls itself nowhere; values that
 * are not read are checked by copy_value. Keys are compared decoded, and a key that is read may stand once.
 *
 * Beside the rows it writes the canonical text of tools, system and each message, made for digests: cache_control set
 * aside, a list of one bare text block written as its string, a tool text as '#' and 32 bytes for its SHA-256, and 32
 * bytes before each message for the digest of what stands before it.
 */
#ifndef CG_TRANSCRIPT_SCAN_H
#define CG_TRANSCRIPT_SCAN_H

#include <stdlib.h>

#include "transcript_json.h"

#define MAX_ROWS 200000  /* messages, tool texts, calls, ...: twice what the API takes in one request */
#define MAX_MEMBERS 256  /* at the top of a body; the API knows some thirty */
#define DIGEST 32
#define SMALLEST_ROW 24  /* bytes of the shortest message or text block in a body */

enum { ROLE_USER, ROLE_ASSISTANT, ROLE_SYSTEM };
enum { IN_TOOLS, IN_SYSTEM, IN_MESSAGES, AT_TOP };
enum { PIECE_TEXT, PIECE_ARGUMENTS, PIECE_RESULT };
enum { BLOCK_OTHER, BLOCK_TEXT, BLOCK_TOOL_USE, BLOCK_TOOL_RESULT };
enum { LIFETIME_UNKNOWN = 0, LIFETIME_5M = 300, LIFETIME_1H = 3600 };

typedef struct { uint32_t start, end; } Span;

typedef struct {  /* one text of a tool result */
    Token token, id;
    uint32_t message, block, is_error;
    size_t digest_at; /* where its SHA-256 goes in the canonical text */
    size_t decoded_at; /* where its decoded text stands */
} Text;

typedef struct { Token id, name; Span input; uint32_t message; } Use;

typedef struct { int32_t section, message, block; uint32_t ttl_s; } Mark;

typedef struct { Token token; int32_t message; uint32_t kind; } Piece;

typedef struct { Token key; Span value; } Member;

typedef struct { Token name; Span span; uint32_t has_name; } Tool;

typedef struct {
    Span span, content, last; /* last: the last block of a list */
    size_t canon_start, canon_end;
    uint32_t role, n_blocks;  /* n_blocks: 0 for string content */
    uint32_t is_list, last_kind, last_is_marked, last_is_empty;
} Message;

typedef struct { void *rows; uint32_t count, room; } Rows;

typedef struct {
    Reader r;
    Rows texts, uses, marks, pieces, members, tools, messages;
    size_t tools_start, tools_end, system_start, system_end; /* canonical */
    uint8_t *decoded;   /* the tool texts' decoded text, one after the other: as many bytes as the body has */
    size_t decoded_len;
    const char *where;  /* the part that was being read */
} Scan;

typedef enum {
    KEY_OTHER, KEY_TYPE, KEY_TEXT, KEY_ID, KEY_NAME, KEY_INPUT, KEY_TOOL_USE_ID, KEY_CONTENT, KEY_IS_ERROR,
    KEY_CACHE_CONTROL, KEY_ROLE, KEY_TTL, KEY_MESSAGES, KEY_SYSTEM, KEY_TOOLS, KEY_COUNT
} Key;

/* The keys that are read, with their lengths: most keys are told apart by it, and there are thousands in a body. */
#define NAME(text) {text, sizeof(text) - 1}
static const struct { const char *text; uint32_t size; } KEY_NAMES[KEY_COUNT] = {
    NAME(""), NAME("type"), NAME("text"), NAME("id"), NAME("name"), NAME("input"), NAME("tool_use_id"),
    NAME("content"), NAME("is_error"), NAME("cache_control"), NAME("role"), NAME("ttl"), NAME("messages"),
    NAME("system"), NAME("tools")};
#undef NAME

/* A new zeroed row at the end, or NULL: out of memory, or `limit` rows stand already. */
static void *add_row(Rows *rows, size_t width, uint32_t limit) {
    if (rows->count >= limit) return NULL;
    if (rows->count == rows->room) {
        const uint32_t room = rows->room ? 2 * rows->room : 32;
        void *grown = realloc(rows->rows, room * width); /* below 2 * MAX_ROWS * 100 bytes */
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

/* True if a checked string's decoded text is the `size` bytes of `word` (ASCII, at most 32). */
static inline int token_equals(const Reader *r, const Token *token, const char *word, uint32_t size) {
    uint8_t decoded[32];
    if (token->size != size || size > sizeof decoded) return 0;
    if (!token->escaped) return memcmp(r->s + token->start + 1, word, size) == 0;
    decode_string(r->s, token, decoded);
    return memcmp(decoded, word, size) == 0;
}

#define token_is(r, token, word) token_equals(r, token, word, sizeof(word) - 1)

static Key key_of(const Reader *r, const Token *token) {
    for (int k = 1; k < KEY_COUNT; k++)
        if (token->size == KEY_NAMES[k].size && token_equals(r, token, KEY_NAMES[k].text, KEY_NAMES[k].size))
            return (Key)k;
    return KEY_OTHER;
}

typedef struct { uint32_t seen, read, written; } Members; /* of one open object: key bits, members read and written */

static int open_container(Reader *r, uint8_t bracket) {
    int c = peek(r);
    if (c != bracket) return c < 0 ? c : STOP_TYPE;
    r->at++;
    put_byte(r, bracket);
    return 0;
}

/* Steps to the next member: 1 with r->at before its value, 0 behind the closing brace, or a Stop. */
static int next_member(Reader *r, Members *m, Token *token, Key *key) {
    int c = peek(r), stop;
    if (c == '}') {
        r->at++;
        put_byte(r, '}');
        return 0;
    }
    if (m->read++) {
        if (c != ',') return c < 0 ? c : STOP_SYNTAX;
        r->at++;
        c = peek(r);
    }
    if (c != '"') return c < 0 ? c : STOP_SYNTAX;
    if ((stop = scan_string(r, token)) < 0) return stop;
    c = peek(r);
    if (c != ':') return c < 0 ? c : STOP_SYNTAX;
    r->at++;
    *key = key_of(r, token);
    if (*key != KEY_OTHER) {
        if (m->seen & 1u << *key) return STOP_DUPLICATE;
        m->seen |= 1u << *key;
    }
    c = peek(r); /* r->at is where the value begins */
    return c < 0 ? c : 1;
}

/* Writes the key of a member that takes part in the canonical text. */
static void put_key(Reader *r, Members *m, const Token *token) {
    if (m->written++) put_byte(r, ',');
    put_string(r, token);
    put_byte(r, ':');
}

/* Steps to the next element of a list: 1, 0 behind the closing bracket, or a Stop. */
static int next_element(Reader *r, uint32_t *count) {
    int c = peek(r);
    if (c == ']') {
        r->at++;
        put_byte(r, ']');
        return 0;
    }
    if (*count) {
        if (c != ',') return c < 0 ? c : STOP_SYNTAX;
        r->at++;
        put_byte(r, ',');
        c = peek(r);
    }
    ++*count;
    return c < 0 ? c : 1;
}

static int read_string(Reader *r, Token *token) {
    int c = peek(r);
    if (c != '"') return c < 0 ? c : STOP_TYPE;
    return scan_string(r, token);
}

static int copy_string(Reader *r, Token *token) {
    int stop = read_string(r, token);
    if (stop == 0) put_string(r, token);
    return stop;
}

/* Finds a string member of the object that opens at r->at and leaves r->at there: 1 with the value in *token, 0 if
 * the key is absent, or a Stop. A key may stand behind what depends on it. */
static int look_ahead(Reader *r, Key wanted, Token *token) {
    Reader ahead = *r;
    Members members = {0, 0, 0};
    Token name;
    Key key;
    int step;
    ahead.out = NULL;
    if ((step = open_container(&ahead, '{')) < 0) return step;
    while ((step = next_member(&ahead, &members, &name, &key)) == 1) {
        if (key == wanted) {
            step = read_string(&ahead, token);
            return step < 0 ? step : 1;
        }
        if ((step = skip_value(&ahead)) < 0) break;
    }
    if (step < 0) r->at = ahead.at;
    return step;
}

/* Reads a cache_control value, which has no part in the canonical text; null marks nothing. */
static int read_mark(Scan *scan, int32_t section, int32_t message, int32_t block, uint32_t *is_marked) {
    Reader *r = &scan->r;
    uint8_t *out = r->out;
    Members members = {0, 0, 0};
    Token name, value;
    Key key;
    int step, is_ephemeral = 0;
    uint32_t ttl_s = LIFETIME_5M;
    if (peek(r) == 'n') {
        step = skip_value(r);
        return step;
    }
    r->out = NULL;
    step = open_container(r, '{');
    if (step == 0) {
        while ((step = next_member(r, &members, &name, &key)) == 1) {
            if (key == KEY_TYPE) {
                if ((step = read_string(r, &value)) == 0) is_ephemeral = token_is(r, &value, "ephemeral");
            } else if (key == KEY_TTL && peek(r) != 'n') {
                if ((step = read_string(r, &value)) == 0)
                    ttl_s = token_is(r, &value, "1h")   ? LIFETIME_1H
                            : token_is(r, &value, "5m") ? LIFETIME_5M
                                                        : LIFETIME_UNKNOWN;
            } else {
                step = copy_value(r);
            }
            if (step < 0) break;
        }
    }
    r->out = out;
    if (step < 0) return step;
    Mark *mark = (Mark *)add_row(&scan->marks, sizeof(Mark), MAX_ROWS);
    if (!mark) return no_row(&scan->marks, MAX_ROWS);
    mark->section = section;
    mark->message = message;
    mark->block = block;
    mark->ttl_s = is_ephemeral ? ttl_s : LIFETIME_UNKNOWN;
    *is_marked = 1;
    return 0;
}

static int add_piece(Scan *scan, const Token *token, int32_t message, uint32_t kind) {
    Piece *piece = (Piece *)add_row(&scan->pieces, sizeof(Piece), 2 * MAX_ROWS);
    if (!piece) return no_row(&scan->pieces, 2 * MAX_ROWS);
    piece->token = *token;
    piece->message = message;
    piece->kind = kind;
    return 0;
}

/* Room for a digest in the canonical text, zeroed. */
static size_t put_hole(Reader *r) {
    static const uint8_t zeros[DIGEST];
    const size_t at = r->out_len;
    put(r, zeros, DIGEST);
    return at;
}

typedef struct { /* what is known of a block while it is read */
    Token type, text;
    uint32_t kind, is_marked, has_text;
    uint32_t is_bare; /* 1: nothing but type, text and cache_control */
    int32_t section, message, block;
} Block;

/* Opens a block and says what kind it is; `calls` and `results`: the kinds that may stand in this place. */
static int open_block(Scan *scan, Block *b, int calls, int results) {
    Reader *r = &scan->r;
    int step = look_ahead(r, KEY_TYPE, &b->type);
    if (step < 0) return step;
    if (step == 0) return STOP_MISSING;
    b->kind = BLOCK_OTHER;
    if (token_is(r, &b->type, "text")) b->kind = BLOCK_TEXT;
    else if (calls && token_is(r, &b->type, "tool_use")) b->kind = BLOCK_TOOL_USE;
    else if (results && token_is(r, &b->type, "tool_result")) b->kind = BLOCK_TOOL_RESULT;
    b->is_marked = b->has_text = 0;
    b->is_bare = 1;
    return open_container(r, '{');
}

/* Reads one string as a text of a tool result. */
static int read_tool_text(Scan *scan, const Block *result, uint32_t block, Token *token) {
    Reader *r = &scan->r;
    int stop = peek(r);
    if (stop != '"') return stop < 0 ? stop : STOP_TYPE;
    if ((stop = scan_and_decode(r, token, scan->decoded + scan->decoded_len)) < 0) return stop;
    Text *text = (Text *)add_row(&scan->texts, sizeof(Text), MAX_ROWS);
    if (!text) return no_row(&scan->texts, MAX_ROWS);
    text->token = *token;
    text->message = (uint32_t)result->message;
    text->block = block;
    text->decoded_at = scan->decoded_len;
    scan->decoded_len += token->size;
    put_byte(r, '#');
    text->digest_at = put_hole(r);
    return add_piece(scan, token, result->message, PIECE_RESULT);
}

/* Reads a block in which nothing but text matters: of the system prompt, or of a tool result's list (`result`). */
static int read_plain_block(Scan *scan, Block *b, const Block *result, uint32_t place) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    Token name;
    Key key;
    int step = open_block(scan, b, 0, 0);
    if (step < 0) return step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        if (key == KEY_CACHE_CONTROL) {
            step = read_mark(scan, b->section, b->message, b->block, &b->is_marked);
        } else {
            put_key(r, &members, &name);
            if (key == KEY_TEXT && b->kind == BLOCK_TEXT) {
                b->has_text = 1;
                if (result) {
                    step = read_tool_text(scan, result, place, &b->text);
                } else {
                    step = copy_string(r, &b->text);
                    if (step == 0) step = add_piece(scan, &b->text, b->message, PIECE_TEXT);
                }
            } else {
                if (key != KEY_TYPE) b->is_bare = 0;
                step = copy_value(r);
            }
        }
        if (step < 0) return step;
    }
    if (step == 0 && b->kind == BLOCK_TEXT && !b->has_text) return STOP_MISSING;
    return step;
}

/* Writes a list that was one bare text block as its string instead. */
static void put_shorthand(Scan *scan, size_t list_at, const Block *only, int is_tool_text) {
    Reader *r = &scan->r;
    r->out_len = list_at;
    if (is_tool_text) {
        Text *text = (Text *)scan->texts.rows + scan->texts.count - 1;
        put_byte(r, '#');
        text->digest_at = put_hole(r);
    } else {
        put_string(r, &only->text);
    }
}

/* Reads a tool result's content: a string or a list of blocks. */
static int read_result_content(Scan *scan, Block *result) {
    Reader *r = &scan->r;
    const size_t list_at = r->out_len;
    uint32_t count = 0;
    Token token;
    Block inner = *result;
    int step;
    if (peek(r) == '"') return read_tool_text(scan, result, 0, &token);
    if ((step = open_container(r, '[')) < 0) return step;
    while ((step = next_element(r, &count)) == 1)
        if ((step = read_plain_block(scan, &inner, result, count - 1)) < 0) return step;
    if (step < 0) return step;
    if (count && inner.is_marked) result->is_marked = 1;
    if (count == 1 && inner.kind == BLOCK_TEXT && inner.is_bare) put_shorthand(scan, list_at, &inner, 1);
    return 0;
}

static int read_is_error(Reader *r, uint32_t *is_error) {
    const int c = peek(r);
    *is_error = c == 't';
    return c == 't' || c == 'f' || c == 'n' ? copy_value(r) : c < 0 ? c : STOP_TYPE;
}

static int read_tool_result(Scan *scan, Block *b) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    Token name, id = {0, 0, 0, 0};
    Key key;
    uint32_t is_error = 0;
    const uint32_t first = scan->texts.count;
    int step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        if (key == KEY_CACHE_CONTROL) {
            step = read_mark(scan, b->section, b->message, b->block, &b->is_marked);
        } else {
            put_key(r, &members, &name);
            if (key == KEY_CONTENT) step = read_result_content(scan, b);
            else if (key == KEY_TOOL_USE_ID) step = copy_string(r, &id);
            else if (key == KEY_IS_ERROR) step = read_is_error(r, &is_error);
            else step = copy_value(r);
        }
        if (step < 0) return step;
    }
    if (step < 0) return step;
    if (!id.end) return STOP_MISSING;
    for (uint32_t i = first; i < scan->texts.count; i++) {
        Text *text = (Text *)scan->texts.rows + i;
        text->id = id;
        text->is_error = is_error;
    }
    return 0;
}

static int read_tool_use(Scan *scan, Block *b) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    Token name, id = {0, 0, 0, 0}, tool = {0, 0, 0, 0}, input = {0, 0, 0, 0};
    Key key;
    int step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        if (key == KEY_CACHE_CONTROL) {
            step = read_mark(scan, b->section, b->message, b->block, &b->is_marked);
        } else {
            put_key(r, &members, &name);
            if (key == KEY_ID) {
                step = copy_string(r, &id);
            } else if (key == KEY_NAME) {
                step = copy_string(r, &tool);
            } else if (key == KEY_INPUT) {
                if (peek(r) != '{') return STOP_TYPE;
                input.start = r->at;
                step = copy_value(r);
                input.end = r->at;
            } else {
                step = copy_value(r);
            }
        }
        if (step < 0) return step;
    }
    if (step < 0) return step;
    if (!id.end || !tool.end || !input.end) return STOP_MISSING;
    Use *use = (Use *)add_row(&scan->uses, sizeof(Use), MAX_ROWS);
    if (!use) return no_row(&scan->uses, MAX_ROWS);
    use->id = id;
    use->name = tool;
    use->input.start = input.start;
    use->input.end = input.end;
    use->message = (uint32_t)b->message;
    return add_piece(scan, &input, b->message, PIECE_ARGUMENTS);
}

/* Reads a text block, or one of a kind that is not looked into. */
static int read_other_block(Scan *scan, Block *b) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    Token name;
    Key key;
    int step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        if (key == KEY_CACHE_CONTROL) {
            step = read_mark(scan, b->section, b->message, b->block, &b->is_marked);
        } else {
            put_key(r, &members, &name);
            if (key == KEY_TEXT && b->kind == BLOCK_TEXT) {
                b->has_text = 1;
                step = copy_string(r, &b->text);
                if (step == 0) step = add_piece(scan, &b->text, b->message, PIECE_TEXT);
            } else {
                if (key != KEY_TYPE) b->is_bare = 0;
                step = copy_value(r);
            }
        }
        if (step < 0) return step;
    }
    if (step == 0 && b->kind == BLOCK_TEXT && !b->has_text) return STOP_MISSING;
    return step;
}

static int read_block(Scan *scan, Block *b, uint32_t role) {
    int stop = open_block(scan, b, role == ROLE_ASSISTANT, role == ROLE_USER);
    if (stop < 0) return stop;
    switch (b->kind) {
    case BLOCK_TOOL_RESULT: return read_tool_result(scan, b);
    case BLOCK_TOOL_USE: return read_tool_use(scan, b);
    default: return read_other_block(scan, b);
    }
}

/* Reads a message's content; `message` is its row's number, as rows move when they grow. */
static int read_content(Scan *scan, uint32_t message, uint32_t role, Message *row) {
    Reader *r = &scan->r;
    const size_t list_at = r->out_len;
    uint32_t count = 0;
    Token token;
    Block b;
    int step;
    memset(&b, 0, sizeof b);
    b.section = IN_MESSAGES;
    b.message = (int32_t)message;
    peek(r);
    row->content.start = r->at;
    if (peek(r) == '"') {
        if ((step = copy_string(r, &token)) < 0) return step;
        row->content.end = r->at;
        row->last_is_empty = token.size == 0;
        return add_piece(scan, &token, b.message, PIECE_TEXT);
    }
    if ((step = open_container(r, '[')) < 0) return step;
    row->is_list = 1;
    while ((step = next_element(r, &count)) == 1) {
        b.block = (int32_t)count - 1;
        row->last.start = r->at;
        if ((step = read_block(scan, &b, role)) < 0) return step;
        row->last.end = r->at;
    }
    if (step < 0) return step;
    row->content.end = r->at;
    row->n_blocks = count;
    row->last_kind = b.kind;
    row->last_is_marked = b.is_marked;
    row->last_is_empty = b.kind == BLOCK_TEXT && b.text.size == 0;
    if (count == 1 && b.kind == BLOCK_TEXT && b.is_bare) put_shorthand(scan, list_at, &b, 0);
    return 0;
}

static int read_role(Reader *r, uint32_t *role) {
    Token token;
    int step = look_ahead(r, KEY_ROLE, &token);
    if (step < 0) return step;
    if (step == 0) return STOP_MISSING;
    if (token_is(r, &token, "user")) *role = ROLE_USER;
    else if (token_is(r, &token, "assistant")) *role = ROLE_ASSISTANT;
    else if (token_is(r, &token, "system")) *role = ROLE_SYSTEM;
    else return STOP_TYPE;
    return 0;
}

static int read_message(Scan *scan) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    const uint32_t number = scan->messages.count;
    Token name;
    Key key;
    uint32_t is_marked = 0;
    int step;
    Message row, *kept;
    memset(&row, 0, sizeof row);
    row.span.start = r->at;
    if ((step = read_role(r, &row.role)) < 0) return step;
    row.canon_start = put_hole(r);
    if ((step = open_container(r, '{')) < 0) return step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        if (key == KEY_CACHE_CONTROL) {
            step = read_mark(scan, IN_MESSAGES, (int32_t)number, -1, &is_marked);
        } else {
            put_key(r, &members, &name);
            step = key == KEY_CONTENT ? read_content(scan, number, row.role, &row) : copy_value(r);
        }
        if (step < 0) return step;
    }
    if (step < 0) return step;
    if (!row.content.end) return STOP_MISSING;
    if (is_marked) row.last_is_marked = 1;
    row.span.end = r->at;
    row.canon_end = r->out_len;
    kept = (Message *)add_row(&scan->messages, sizeof(Message), MAX_ROWS);
    if (!kept) return no_row(&scan->messages, MAX_ROWS);
    *kept = row;
    return 0;
}

static int read_messages(Scan *scan) {
    Reader *r = &scan->r;
    uint32_t count = 0;
    int step;
    scan->where = "messages";
    if ((step = open_container(r, '[')) < 0) return step;
    while ((step = next_element(r, &count)) == 1)
        if ((step = read_message(scan)) < 0) return step;
    return step;
}

static int read_system(Scan *scan) {
    Reader *r = &scan->r;
    const size_t list_at = r->out_len;
    uint32_t count = 0;
    Token token;
    Block b;
    int step, c = peek(r);
    scan->where = "system";
    if (c == 'n') return copy_value(r);
    if (c == '"') {
        if ((step = copy_string(r, &token)) < 0) return step;
        return add_piece(scan, &token, -1, PIECE_TEXT);
    }
    memset(&b, 0, sizeof b);
    b.section = IN_SYSTEM;
    b.message = -1;
    if ((step = open_container(r, '[')) < 0) return step;
    while ((step = next_element(r, &count)) == 1) {
        b.block = (int32_t)count - 1;
        if ((step = read_plain_block(scan, &b, NULL, 0)) < 0) return step;
    }
    if (step == 0 && count == 1 && b.kind == BLOCK_TEXT && b.is_bare) put_shorthand(scan, list_at, &b, 0);
    return step;
}

static int read_tool(Scan *scan, int32_t number) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    Token name;
    Key key;
    uint32_t is_marked = 0;
    Tool row, *kept;
    int step;
    memset(&row, 0, sizeof row);
    row.span.start = r->at;
    if ((step = open_container(r, '{')) < 0) return step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        if (key == KEY_CACHE_CONTROL) {
            step = read_mark(scan, IN_TOOLS, -1, number, &is_marked);
        } else {
            put_key(r, &members, &name);
            if (key == KEY_NAME) {
                row.has_name = 1;
                step = copy_string(r, &row.name);
            } else {
                step = copy_value(r);
            }
        }
        if (step < 0) return step;
    }
    if (step < 0) return step;
    row.span.end = r->at;
    kept = (Tool *)add_row(&scan->tools, sizeof(Tool), MAX_ROWS);
    if (!kept) return no_row(&scan->tools, MAX_ROWS);
    *kept = row;
    return 0;
}

static int read_tools(Scan *scan) {
    Reader *r = &scan->r;
    uint32_t count = 0;
    int step;
    scan->where = "tools";
    if (peek(r) == 'n') return copy_value(r);
    if ((step = open_container(r, '[')) < 0) return step;
    while ((step = next_element(r, &count)) == 1)
        if ((step = read_tool(scan, (int32_t)count - 1)) < 0) return step;
    return step;
}

/* Reads the value of one member of the body. */
static int read_part(Scan *scan, Key key, uint8_t *canon) {
    Reader *r = &scan->r;
    uint32_t is_marked = 0;
    int step;
    scan->where = "body";
    r->out = canon;
    if (key == KEY_MESSAGES) return read_messages(scan);
    if (key == KEY_TOOLS) {
        scan->tools_start = r->out_len;
        step = read_tools(scan);
        scan->tools_end = r->out_len;
        return step;
    }
    if (key == KEY_SYSTEM) {
        scan->system_start = r->out_len;
        step = read_system(scan);
        scan->system_end = r->out_len;
        return step;
    }
    r->out = NULL;
    if (key == KEY_CACHE_CONTROL) return read_mark(scan, AT_TOP, -1, -1, &is_marked);
    return copy_value(r);
}

/* Reads a whole body; 0 or a Stop, with scan->where and scan->r.at saying where. `canon` has canon_size(n) bytes,
 * scan->decoded n. */
static int read_body(Scan *scan, uint8_t *canon) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    Token name;
    Key key;
    int step;
    scan->where = "body";
    r->out = NULL;
    if ((step = open_container(r, '{')) < 0) return step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        Member *member = (Member *)add_row(&scan->members, sizeof(Member), MAX_MEMBERS);
        if (!member) return no_row(&scan->members, MAX_MEMBERS);
        member->key = name;
        member->value.start = r->at;
        if ((step = read_part(scan, key, canon)) < 0) return step;
        r->out = NULL;
        ((Member *)scan->members.rows)[scan->members.count - 1].value.end = r->at;
        scan->where = "body";
    }
    if (step < 0) return step;
    skip_space(r);
    if (r->at != r->n) return STOP_TRAILING;
    if (!(members.seen & 1u << KEY_MESSAGES)) return STOP_MISSING;
    return r->overflow ? STOP_MEMORY : 0;
}

/* Bytes that the canonical text of a body of n bytes can need: never more than the body itself, and the holes. */
static size_t canon_size(size_t n) {
    size_t rows = n / SMALLEST_ROW + 2;
    if (rows > 2 * (size_t)MAX_ROWS) rows = 2 * (size_t)MAX_ROWS;
    return n + rows * (DIGEST + 1);
}

static void free_rows(Scan *scan) {
    Rows *all[] = {&scan->texts, &scan->uses, &scan->marks, &scan->pieces,
                   &scan->members, &scan->tools, &scan->messages};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->rows);
}

#endif
