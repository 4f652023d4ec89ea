# cython: language_level=3, cdivision=True, auto_pickle=False
"""A Messages request read in place: spans of its tool results, calls, texts and cache marks, and digests of its parts.

The walk itself is C without a Python object (transcript_scan.h over transcript_json.h); here its rows become values.
SHA-256 is hashlib's. Linear in the body; beside the body it holds the rows, and while it reads a canonical copy of
everything but the tool results' texts.
"""
from hashlib import sha256

from cython cimport final
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy

cdef extern from "transcript_scan.h" nogil:
    enum:
        STOP_TRUNCATED, STOP_SYNTAX, STOP_CONTROL, STOP_UTF8, STOP_ESCAPE, STOP_NUMBER, STOP_DEPTH, STOP_TRAILING
        STOP_DUPLICATE, STOP_TYPE, STOP_MISSING, STOP_TOO_MANY, STOP_MEMORY
        DIGEST, IN_TOOLS, IN_SYSTEM, IN_MESSAGES, AT_TOP, PIECE_TEXT, PIECE_ARGUMENTS, PIECE_RESULT
        BLOCK_OTHER
    ctypedef struct Span:
        uint32_t start, end
    ctypedef struct Token:
        uint32_t start, end, size, escaped
    ctypedef struct Text:
        Token token, id
        uint32_t message, block, is_error
        size_t digest_at, decoded_at
    ctypedef struct Use:
        Token id, name
        Span input
        uint32_t message
    ctypedef struct Mark:
        int32_t section, message, block
        uint32_t ttl_s
    ctypedef struct Piece:
        Token token
        int32_t message
        uint32_t kind
    ctypedef struct Member:
        Token key
        Span value
    ctypedef struct Tool:
        Token name
        Span span
        uint32_t has_name
    ctypedef struct Message:
        Span span, content, last
        size_t canon_start, canon_end
        uint32_t role, n_blocks, is_list, last_kind, last_is_marked, last_is_empty
    ctypedef struct Rows:
        void *rows
        uint32_t count
    ctypedef struct Reader:
        const uint8_t *s
        uint32_t n, at
        uint8_t *out
        size_t out_len, out_size
        int overflow, plain
    ctypedef struct CScan "Scan":
        Reader r
        Rows texts, uses, marks, pieces, members, tools, messages
        size_t tools_start, tools_end, system_start, system_end
        uint8_t *decoded
        size_t decoded_len
        const char *where
    int read_body(CScan *scan, uint8_t *canon)
    int scan_string(Reader *r, Token *token)
    int copy_value(Reader *r)
    int skip_value(Reader *r)
    int holds_marker(const uint8_t *text, uint32_t n)
    void decode_string(const uint8_t *s, const Token *token, uint8_t *to)
    size_t canon_size(size_t n)
    void free_rows(CScan *scan)

ROLES = ("user", "assistant", "system")
SECTIONS = ("tools", "system", "messages", "top")
KINDS = ("text", "arguments", "result")
LARGEST_BODY = 2**31 - 1  # positions are 32 bits wide

cdef dict REASONS = {
    STOP_TRUNCATED: "ends too early",
    STOP_SYNTAX: "is not JSON",
    STOP_CONTROL: "has a control character in a string",
    STOP_UTF8: "is not UTF-8",
    STOP_ESCAPE: "has a bad escape in a string",
    STOP_NUMBER: "has a bad or overlong number",
    STOP_DEPTH: "is nested deeper than 192 levels",
    STOP_TRAILING: "goes on behind its end",
    STOP_DUPLICATE: "has a key twice",
    STOP_TYPE: "has a value of another type than is read here",
    STOP_MISSING: "lacks a key that is needed",
    STOP_TOO_MANY: "has more parts than any request the API takes",
    STOP_MEMORY: "did not fit into memory",
}


class Stopped(ValueError):
    """The body cannot be read; the message says why and where, and holds nothing of the body."""


cdef str token_text(const uint8_t *s, const Token *token):
    """The decoded text of a checked string token; lone surrogates stay."""
    cdef bytes raw
    if not token.escaped:
        return PyUnicode_DecodeUTF8(<const char *>s + token.start + 1, token.end - token.start - 2, "surrogatepass")
    raw = token_bytes(s, token)
    return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(raw), token.size, "surrogatepass")


cdef bytes token_bytes(const uint8_t *s, const Token *token):
    """The decoded text as UTF-8, lone surrogates as three bytes each."""
    cdef bytes raw
    if not token.escaped:
        return PyBytes_FromStringAndSize(<const char *>s + token.start + 1, token.size)
    raw = PyBytes_FromStringAndSize(NULL, token.size)
    decode_string(s, token, <uint8_t *>PyBytes_AS_STRING(raw))
    return raw


cdef bytes digest_of(const uint8_t *start, Py_ssize_t size):
    return sha256(PyMemoryView_FromMemory(<char *>start, size, PyBUF_READ)).digest()


cdef class TextToken:
    """One text of a tool result: where its JSON string stands in the body, and what it says once decoded."""

    cdef readonly bytes body
    cdef readonly str tool_use_id
    cdef readonly str sha256
    cdef readonly Py_ssize_t message, block
    cdef readonly bint is_error, has_marker
    cdef Token token

    @property
    def start(self):
        return self.token.start

    @property
    def end(self):
        return self.token.end

    @property
    def size_bytes(self):
        return self.token.size

    @property
    def text(self):
        return token_text(<const uint8_t *>PyBytes_AS_STRING(self.body), &self.token)

    @property
    def content(self):
        return token_bytes(<const uint8_t *>PyBytes_AS_STRING(self.body), &self.token)

    def __repr__(self):
        return (f"{type(self).__name__}(message={self.message}, tool_use_id={self.tool_use_id!r}, block={self.block}, "
                f"start={self.start}, end={self.end}, size_bytes={self.size_bytes})")


@final
cdef class ToolUse:
    """A call that the model made."""

    cdef bytes body
    cdef readonly str id, name
    cdef readonly Py_ssize_t message
    cdef Span span

    @property
    def arguments(self):
        return self.body[self.span.start:self.span.end]

    def __repr__(self):
        return f"ToolUse(id={self.id!r}, name={self.name!r}, message={self.message})"


@final
cdef class Scan:
    """What one reading of a body found. Immutable."""

    cdef CScan scan
    cdef const uint8_t *s
    cdef readonly bytes body, chain, head
    cdef readonly tuple texts, roles

    def __cinit__(self, bytes body not None, type text_type not None, bint plain=False):
        cdef Py_ssize_t n = PyBytes_GET_SIZE(body)
        cdef uint8_t *canon = NULL
        cdef int stop
        if not issubclass(text_type, TextToken):
            raise TypeError(f"{text_type.__name__} is no TextToken")
        if n > LARGEST_BODY:
            raise Stopped(f"body of {n} bytes is larger than {LARGEST_BODY}")
        self.body = body
        self.s = <const uint8_t *>PyBytes_AS_STRING(body)
        self.scan.r.s = self.s
        self.scan.r.n = <uint32_t>n
        self.scan.r.plain = plain
        self.scan.r.out_size = canon_size(n)
        try:
            canon = <uint8_t *>PyMem_RawMalloc(self.scan.r.out_size)
            self.scan.decoded = <uint8_t *>PyMem_RawMalloc(n + 1)
            if canon is NULL or self.scan.decoded is NULL:
                raise MemoryError(f"{self.scan.r.out_size} and {n} bytes")
            with nogil:
                stop = read_body(&self.scan, canon)
            if stop == STOP_MEMORY:
                raise MemoryError(f"rows of a body of {n} bytes")
            if stop < 0:
                where = self.scan.where.decode("ascii")
                raise Stopped(f"{where} {REASONS[stop]}, at byte {self.scan.r.at} of {n}")
            self.texts = self._texts(text_type, canon)
            self._messages(canon)
            self._head(canon)
        finally:
            PyMem_RawFree(canon)
            PyMem_RawFree(self.scan.decoded)
            self.scan.r.out = self.scan.decoded = NULL

    def __dealloc__(self):
        free_rows(&self.scan)

    cdef tuple _texts(self, type text_type, uint8_t *canon):
        """The tool texts in body order, each digest also put into its place in the canonical text."""
        cdef Text *row = <Text *>self.scan.texts.rows
        cdef uint32_t i
        cdef const uint8_t *decoded
        cdef TextToken text
        cdef bytes digest
        cdef list found = []
        for i in range(self.scan.texts.count):
            decoded = self.scan.decoded + row[i].decoded_at
            digest = digest_of(decoded, row[i].token.size)
            memcpy(canon + row[i].digest_at, PyBytes_AS_STRING(digest), DIGEST)
            text = text_type.__new__(text_type)
            text.body = self.body
            text.tool_use_id = token_text(self.s, &row[i].id)
            text.sha256 = digest.hex()
            text.message = row[i].message
            text.block = row[i].block
            text.is_error = row[i].is_error
            text.has_marker = holds_marker(decoded, row[i].token.size)
            text.token = row[i].token
            found.append(text)
        return tuple(found)

    cdef _messages(self, uint8_t *canon):
        """Roles and the chain: each digest covers the one before it and one message."""
        cdef Message *row = <Message *>self.scan.messages.rows
        cdef uint32_t i, count = self.scan.messages.count
        cdef bytes digest = bytes(DIGEST)
        cdef bytes chain = PyBytes_FromStringAndSize(NULL, 8 * <Py_ssize_t>count)
        cdef list roles = []
        for i in range(count):
            memcpy(canon + row[i].canon_start, PyBytes_AS_STRING(digest), DIGEST)
            digest = digest_of(canon + row[i].canon_start, row[i].canon_end - row[i].canon_start)
            memcpy(PyBytes_AS_STRING(chain) + 8 * i, PyBytes_AS_STRING(digest), 8)
            roles.append(ROLES[row[i].role])
        self.chain = chain
        self.roles = tuple(roles)

    cdef _head(self, uint8_t *canon):
        hashed = sha256(b"tools:")
        hashed.update(PyMemoryView_FromMemory(<char *>canon + self.scan.tools_start,
                                              self.scan.tools_end - self.scan.tools_start, PyBUF_READ))
        hashed.update(b"\nsystem:")  # no JSON text begins in the middle of a line that is not white space
        hashed.update(PyMemoryView_FromMemory(<char *>canon + self.scan.system_start,
                                              self.scan.system_end - self.scan.system_start, PyBUF_READ))
        self.head = hashed.digest()[:16]

    def tool_uses(self):
        """The calls by id; Stopped if an id stands twice."""
        cdef Use *row = <Use *>self.scan.uses.rows
        cdef uint32_t i
        cdef ToolUse use
        cdef dict found = {}
        for i in range(self.scan.uses.count):
            use = ToolUse.__new__(ToolUse)
            use.body = self.body
            use.id = token_text(self.s, &row[i].id)
            use.name = token_text(self.s, &row[i].name)
            use.message = row[i].message
            use.span = row[i].input
            found[use.id] = use
        if len(found) != self.scan.uses.count:
            raise Stopped("messages hold two calls with one id")
        return found

    def marks(self):
        """(section, message, block, ttl_s) of each cache mark, in prompt order; ttl_s 0: a lifetime not known here."""
        cdef Mark *row = <Mark *>self.scan.marks.rows
        cdef uint32_t i
        found = [(row[i].section, row[i].message, row[i].block, row[i].ttl_s) for i in range(self.scan.marks.count)]
        found.sort(key=lambda mark: mark[0])
        return tuple([(SECTIONS[section], message, block, ttl_s) for section, message, block, ttl_s in found])

    def members(self):
        """(key, start of the key, start and end of the value) of each member of the body, in its order."""
        cdef Member *row = <Member *>self.scan.members.rows
        cdef uint32_t i
        return tuple([(token_text(self.s, &row[i].key), row[i].key.start, row[i].value.start, row[i].value.end)
                      for i in range(self.scan.members.count)])

    def tools(self):
        """(name or None, start, end) of each tool that the body declares."""
        cdef Tool *row = <Tool *>self.scan.tools.rows
        cdef uint32_t i
        return tuple([(token_text(self.s, &row[i].name) if row[i].has_name else None, row[i].span.start,
                       row[i].span.end) for i in range(self.scan.tools.count)])

    def span(self, Py_ssize_t message):
        """(start, end) of a message in the body."""
        cdef Message *row = self._row(message)
        return row.span.start, row.span.end

    def content(self, Py_ssize_t message):
        """(start, end, n_blocks) of a message's content; n_blocks is None if it is a string."""
        cdef Message *row = self._row(message)
        return row.content.start, row.content.end, row.n_blocks if row.is_list else None

    def last_block(self, Py_ssize_t message):
        """(start, end, takes a mark) of the last block of a message's list, or None if it has none."""
        cdef Message *row = self._row(message)
        if not row.n_blocks:
            return None
        return row.last.start, row.last.end, row.last_kind != BLOCK_OTHER and not row.last_is_empty

    def is_marked(self, Py_ssize_t message):
        """True if the message ends in a cache mark."""
        return self._row(message).last_is_marked != 0

    def is_empty(self, Py_ssize_t message):
        """True if the message ends in an empty text, which takes no cache mark."""
        return self._row(message).last_is_empty != 0

    cdef Message *_row(self, Py_ssize_t message) except NULL:
        if not 0 <= message < self.scan.messages.count:
            raise IndexError(f"message {message} of {self.scan.messages.count}")
        return <Message *>self.scan.messages.rows + message

    def pieces(self):
        """(kind, message, text) of each text in body order, made one by one; message -1 is the system prompt.

        Arguments are the raw JSON of a call's input.
        """
        cdef Piece *row
        cdef uint32_t i
        for i in range(self.scan.pieces.count):
            row = <Piece *>self.scan.pieces.rows + i
            if row.kind == PIECE_ARGUMENTS:
                text = PyUnicode_DecodeUTF8(<const char *>self.s + row.token.start, row.token.end - row.token.start,
                                            NULL)
            else:
                text = token_text(self.s, &row.token)
            yield KINDS[row.kind], row.message, text


def is_string_token(bytes token not None):
    """True if the bytes are exactly one JSON string, quotes included."""
    cdef Reader r
    cdef Token found
    if not 2 <= PyBytes_GET_SIZE(token) <= LARGEST_BODY or token[0] != b'"'[0]:
        return False
    return whole(token, &r, &found)


cdef bint whole(bytes text, Reader *r, Token *token):
    """True if one value (a string, if `token` is given) is all of the text."""
    r.s = <const uint8_t *>PyBytes_AS_STRING(text)
    r.n = <uint32_t>PyBytes_GET_SIZE(text)
    r.at = 0
    r.out = NULL
    r.plain = 0
    if token is not NULL:
        return scan_string(r, token) == 0 and r.at == r.n
    return copy_value(r) == 0 and r.at == r.n


def is_value(bytes text not None):
    """True if the bytes are exactly one JSON value with no white space around it."""
    cdef Reader r
    if not 1 <= PyBytes_GET_SIZE(text) <= LARGEST_BODY or text[:1].isspace():
        return False
    return whole(text, &r, NULL)
