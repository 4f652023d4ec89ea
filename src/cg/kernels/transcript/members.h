/* How the members of objects and the elements of lists are stepped through: keys are compared decoded, and a key that
 * is read may stand once. */
#ifndef CG_TRANSCRIPT_MEMBERS_H
#define CG_TRANSCRIPT_MEMBERS_H

#include "transcript/json.h"

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
    ahead.quiet = 1;
    if ((step = open_container(&ahead, '{')) < 0) return step;
    while ((step = next_member(&ahead, &members, &name, &key)) == 1) {
        if (key == wanted) {
            step = read_string(&ahead, token);
            if (step == 0) step = 1;
            break;
        }
        if ((step = skip_value(&ahead)) < 0) break;
    }
    r->utf8 = ahead.utf8;
    if (step < 0) r->at = ahead.at;
    return step;
}

#endif
