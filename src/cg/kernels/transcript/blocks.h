/* The blocks of messages, of the system prompt and of tool results: each is as deep as the format, and reading one
 * calls itself nowhere.
 *
 * Beside the rows goes the canonical text, made for digests: cache_control set aside, a list of one bare text block
 * written as its string, a tool text as '#' and 32 bytes for its SHA-256.
 */
#ifndef CG_TRANSCRIPT_BLOCKS_H
#define CG_TRANSCRIPT_BLOCKS_H

#include "transcript/members.h"
#include "transcript/rows.h"

/* Reads a cache_control value, which has no part in the canonical text; null marks nothing. */
static int read_mark(Scan *scan, int32_t section, int32_t message, int32_t block, uint32_t *is_marked) {
    Reader *r = &scan->r;
    const int quiet = r->quiet;
    Members members = {0, 0, 0};
    Token name, value;
    Key key;
    Span ttl = {0, 0};
    int step, is_ephemeral = 0;
    uint32_t ttl_s = LIFETIME_5M;
    if (peek(r) == 'n') {
        step = skip_value(r);
        return step;
    }
    r->quiet = 1;
    step = open_container(r, '{');
    if (step == 0) {
        while ((step = next_member(r, &members, &name, &key)) == 1) {
            if (key == KEY_TYPE) {
                if ((step = read_string(r, &value)) == 0) is_ephemeral = token_is(r, &value, "ephemeral");
            } else if (key == KEY_TTL) {
                ttl.start = r->at;
                if (peek(r) == 'n') step = skip_value(r);
                else if ((step = read_string(r, &value)) == 0)
                    ttl_s = token_is(r, &value, "1h")   ? LIFETIME_1H
                            : token_is(r, &value, "5m") ? LIFETIME_5M
                                                        : LIFETIME_UNKNOWN;
                ttl.end = r->at;
            } else {
                step = copy_value(r);
            }
            if (step < 0) break;
        }
    }
    r->quiet = quiet;
    if (step < 0) return step;
    Mark *mark = (Mark *)add_row(&scan->marks, sizeof(Mark), MAX_ROWS);
    if (!mark) return no_row(&scan->marks, MAX_ROWS);
    mark->section = section;
    mark->message = message;
    mark->block = block;
    mark->ttl_s = is_ephemeral ? ttl_s : LIFETIME_UNKNOWN;
    mark->ttl = ttl;
    mark->end = r->at;
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
    const size_t at = r->canon.len;
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
    if ((stop = decode_text(r, token, &scan->decoded)) < 0) return stop;
    Text *text = (Text *)add_row(&scan->texts, sizeof(Text), MAX_ROWS);
    if (!text) return no_row(&scan->texts, MAX_ROWS);
    text->token = *token;
    text->message = (uint32_t)result->message;
    text->block = block;
    text->decoded_at = scan->decoded.len;
    if (token->escaped) scan->decoded.len += token->size;
    scan->waiting += token->size;
    put_byte(r, '#');
    text->digest_at = put_hole(r);
    return add_piece(scan, token, result->message, PIECE_RESULT);
}

/* Reads an opened block in which nothing but text matters; one of a tool result's list (`result`) is a tool text. */
static int read_plain_block(Scan *scan, Block *b, const Block *result, uint32_t place) {
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
    r->canon.len = list_at;
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
    const size_t list_at = r->canon.len;
    uint32_t count = 0;
    Token token;
    Block inner = *result;
    int step;
    if (peek(r) == '"') return read_tool_text(scan, result, 0, &token);
    if ((step = open_container(r, '[')) < 0) return step;
    while ((step = next_element(r, &count)) == 1) {
        if ((step = open_block(scan, &inner, 0, 0)) < 0) return step;
        if ((step = read_plain_block(scan, &inner, result, count - 1)) < 0) return step;
    }
    if (step < 0) return step;
    if (count && inner.is_marked) result->is_marked = 1;
    if (count == 1 && inner.kind == BLOCK_TEXT && inner.is_bare) put_shorthand(scan, list_at, &inner, 1);
    return 0;
}

static int read_is_error(Reader *r, uint32_t *error_at) {
    const int c = peek(r);
    *error_at = c == 't' ? r->at : 0;
    return c == 't' || c == 'f' || c == 'n' ? copy_value(r) : c < 0 ? c : STOP_TYPE;
}

static int read_tool_result(Scan *scan, Block *b) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    Token name, id = {0, 0, 0, 0};
    Key key;
    uint32_t error_at = 0;
    const uint32_t first = scan->texts.count;
    int step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        if (key == KEY_CACHE_CONTROL) {
            step = read_mark(scan, b->section, b->message, b->block, &b->is_marked);
        } else {
            put_key(r, &members, &name);
            if (key == KEY_CONTENT) step = read_result_content(scan, b);
            else if (key == KEY_TOOL_USE_ID) step = copy_string(r, &id);
            else if (key == KEY_IS_ERROR) step = read_is_error(r, &error_at);
            else step = copy_value(r);
        }
        if (step < 0) return step;
    }
    if (step < 0) return step;
    if (!id.end) return STOP_MISSING;
    for (uint32_t i = first; i < scan->texts.count; i++) {
        Text *text = (Text *)scan->texts.rows + i;
        text->id = id;
        text->error_at = error_at;
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

static int read_block(Scan *scan, Block *b, uint32_t role) {
    int stop = open_block(scan, b, role == ROLE_ASSISTANT, role == ROLE_USER);
    if (stop < 0) return stop;
    switch (b->kind) {
    case BLOCK_TOOL_RESULT: return read_tool_result(scan, b);
    case BLOCK_TOOL_USE: return read_tool_use(scan, b);
    default: return read_plain_block(scan, b, NULL, 0);
    }
}

#endif
