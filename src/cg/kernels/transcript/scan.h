/* A Messages request, read once: where its tool results, calls, texts and cache marks stand in its own bytes. */
#ifndef CG_TRANSCRIPT_SCAN_H
#define CG_TRANSCRIPT_SCAN_H

#include "transcript/reuse_prefix.h"
#include "transcript/blocks.h"
#include "transcript/digest.h"

/* Reads a message's content; `message` is its row's number, as rows move when they grow. */
static int read_content(Scan *scan, uint32_t message, uint32_t role, Message *row) {
    Reader *r = &scan->r;
    const size_t list_at = r->canon.len;
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
    row.canon_end = r->canon.len;
    kept = (Message *)add_row(&scan->messages, sizeof(Message), MAX_ROWS);
    if (!kept) return no_row(&scan->messages, MAX_ROWS);
    row.texts_end = scan->texts.count;
    row.uses_end = scan->uses.count;
    row.marks_end = scan->marks.count;
    row.pieces_end = scan->pieces.count;
    *kept = row;
    return 0;
}

static int read_messages(Scan *scan) {
    Reader *r = &scan->r;
    uint32_t count = 0;
    int step;
    scan->where = "messages";
    if ((step = open_container(r, '[')) < 0) return step;
    scan->messages_start = r->canon.len;
    scan->messages_at = r->at;
    if ((step = adopt_messages(scan, &count)) < 0) return step;
    while ((step = next_element(r, &count)) == 1) {
        if ((step = read_message(scan)) < 0) return step;
        if (is_batch_full(scan) && (step = end_batch(scan)) < 0) return step;
    }
    return step < 0 ? step : end_batch(scan);
}

static int read_system(Scan *scan) {
    Reader *r = &scan->r;
    const size_t list_at = r->canon.len;
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
        if ((step = open_block(scan, &b, 0, 0)) < 0) return step;
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
static int read_part(Scan *scan, Key key) {
    Reader *r = &scan->r;
    uint32_t is_marked = 0;
    int step;
    scan->where = "body";
    r->quiet = 0;
    if (key == KEY_MESSAGES) return read_messages(scan);
    if (key == KEY_TOOLS) {
        scan->tools_start = r->canon.len;
        step = read_tools(scan);
        scan->tools_end = r->canon.len;
        return step;
    }
    if (key == KEY_SYSTEM) {
        scan->system_start = r->canon.len;
        step = read_system(scan);
        scan->system_end = r->canon.len;
        return step;
    }
    r->quiet = 1;
    if (key == KEY_CACHE_CONTROL) return read_mark(scan, AT_TOP, -1, -1, &is_marked);
    return copy_value(r);
}

/* Reads a whole body; 0 or a Stop, with scan->where and scan->r.at saying where. */
static int read_body(Scan *scan) {
    Reader *r = &scan->r;
    Members members = {0, 0, 0};
    Token name;
    Key key;
    int step;
    scan->where = "body";
    r->quiet = 1;
    if ((step = open_container(r, '{')) < 0) return step;
    while ((step = next_member(r, &members, &name, &key)) == 1) {
        Member *member = (Member *)add_row(&scan->members, sizeof(Member), MAX_MEMBERS);
        if (!member) return no_row(&scan->members, MAX_MEMBERS);
        member->key = name;
        member->value.start = r->at;
        if ((step = read_part(scan, key)) < 0) return step;
        r->quiet = 1;
        ((Member *)scan->members.rows)[scan->members.count - 1].value.end = r->at;
        scan->where = "body";
    }
    if (step < 0) return step;
    skip_space(r);
    if (r->at != r->n) return STOP_TRAILING;
    if (!(members.seen & 1u << KEY_MESSAGES)) return STOP_MISSING;
    return r->failed ? STOP_MEMORY : 0;
}

#endif
