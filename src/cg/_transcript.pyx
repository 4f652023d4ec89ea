# cython: language_level=3, cdivision=True, auto_pickle=False
"""A Messages request read in place: spans of its tool results, calls, texts and cache marks, and digests of its parts.

The walk itself is C without a Python object (transcript/scan.h and what it includes); here its rows become values.
SHA-256 is hashlib's where the processor has no instructions for it. Linear in the body; beside the body it holds the
rows, and while it reads the decoded and canonical text of a few messages.
"""
from hashlib import sha256

from cython cimport final
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

cdef extern from "transcript/scan.h" nogil:
    enum:
        STOP_TRUNCATED, STOP_SYNTAX, STOP_CONTROL, STOP_UTF8, STOP_ESCAPE, STOP_NUMBER, STOP_DEPTH, STOP_TRAILING
        STOP_DUPLICATE, STOP_TYPE, STOP_MISSING, STOP_TOO_MANY, STOP_MEMORY
        DIGEST, CHAIN_LINK, IN_TOOLS, IN_SYSTEM, IN_MESSAGES, AT_TOP, PIECE_TEXT, PIECE_ARGUMENTS, PIECE_RESULT
        BLOCK_OTHER, BEST_WAYS
    ctypedef struct Span:
        uint32_t start, end
    ctypedef struct Token:
        uint32_t start, end, size, escaped
    ctypedef struct Text:
        Token token, id
        uint32_t message, block, error_at, has_marker
        uint8_t *digest
    ctypedef struct Use:
        Token id, name
        Span input
        uint32_t message
    ctypedef struct Mark:
        int32_t section, message, block
        uint32_t ttl_s
        Span ttl
        uint32_t end
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
        uint8_t *link
    ctypedef struct Rows:
        void *rows
        uint32_t count
    ctypedef struct Buffer:
        uint8_t *bytes
    ctypedef struct Reader:
        const uint8_t *s
        uint32_t n, at
        Buffer canon
        int quiet, ways
    ctypedef struct CScan "Scan":
        Reader r
        Rows texts, uses, marks, pieces, members, tools, messages
        size_t tools_start, tools_end, system_start, system_end
        uint32_t first_text, first_message
        uint8_t *chain
        int (*digest)(CScan *scan) noexcept nogil
        const char *where
        const CScan *before
        uint32_t common, adopted_texts
    uint32_t common_prefix(const uint8_t *a, const uint8_t *b, uint32_t n)
    int read_body(CScan *scan)
    int scan_string(Reader *r, Token *token)
    int copy_value(Reader *r)
    int skip_value(Reader *r)
    const uint8_t *text_bytes(const CScan *scan, const Text *text)
    void place_text_digests(CScan *scan)
    void decode_string(const uint8_t *s, const Token *token, uint8_t *to)
    int can_digest()
    void fill_tables()
    int digest_with_x86(CScan *scan)
    void free_buffers(CScan *scan)
    void free_scan(CScan *scan)

ROLES = ("user", "assistant", "system")
SECTIONS = ("tools", "system", "messages", "top")
KINDS = ("text", "arguments", "result")
LARGEST_BODY = 2**31 - 1  # positions are 32 bits wide

cdef bint HAS_DIGEST = can_digest()  # asked once: the question is slow in a virtual machine
fill_tables()

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


cdef int digest_with_hashlib(CScan *scan) noexcept with gil:
    """The digests of a batch of texts and messages; 0, or STOP_MEMORY."""
    cdef Text *text
    cdef Message *message
    cdef uint8_t *canon
    cdef uint32_t i
    cdef bytes digest
    try:
        for i in range(scan.first_text, scan.texts.count):
            text = <Text *>scan.texts.rows + i
            digest = digest_of(text_bytes(scan, text), text.token.size)
            memcpy(text.digest, PyBytes_AS_STRING(digest), DIGEST)
        place_text_digests(scan)
        canon = scan.r.canon.bytes
        for i in range(scan.first_message, scan.messages.count):
            message = <Message *>scan.messages.rows + i
            memcpy(canon + message.canon_start, scan.chain, DIGEST)
            digest = digest_of(canon + message.canon_start, message.canon_end - message.canon_start)
            memcpy(scan.chain, PyBytes_AS_STRING(digest), DIGEST)
            memcpy(message.link, scan.chain, DIGEST)
    except MemoryError:
        return STOP_MEMORY
    return 0


cdef class TextToken:
    """One text of a tool result: where its JSON string stands in the body, and what it says once decoded."""

    cdef readonly bytes body
    cdef readonly str tool_use_id
    cdef readonly str sha256
    cdef readonly Py_ssize_t message, block
    cdef readonly Py_ssize_t error_at  # start of the `true` that calls its result an error; 0 where nothing does
    cdef readonly bint has_marker
    cdef Token token

    @property
    def start(self):
        return self.token.start

    @property
    def end(self):
        return self.token.end

    @property
    def is_error(self):
        return self.error_at != 0

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
    """What one reading of a body found. Immutable.

    `ways`: 0 takes the best instructions that the processor has, 1 none, 2 the vectors of every processor of its kind.
    `before` is the scan of an earlier body: the messages that both begin with are taken over from it, not read again.
    """

    cdef CScan scan
    cdef const uint8_t *s
    cdef readonly bytes body, chain, head, fingerprint
    cdef readonly tuple texts, roles

    def __cinit__(self, bytes body not None, type text_type not None, int ways=0, Scan before=None):
        cdef Py_ssize_t n = PyBytes_GET_SIZE(body)
        cdef int stop
        if not issubclass(text_type, TextToken):
            raise TypeError(f"{text_type.__name__} is no TextToken")
        if n > LARGEST_BODY:
            raise Stopped(f"body of {n} bytes is larger than {LARGEST_BODY}")
        self.body = body
        self.s = <const uint8_t *>PyBytes_AS_STRING(body)
        self.scan.r.s = self.s
        self.scan.r.n = <uint32_t>n
        self.scan.r.ways = ways
        if ways != BEST_WAYS or not HAS_DIGEST or not digest_with_x86(&self.scan):
            self.scan.digest = digest_with_hashlib
        try:
            with nogil:
                if before is not None:
                    self.scan.before = &before.scan
                    self.scan.common = common_prefix(self.s, before.s, min(self.scan.r.n, before.scan.r.n))
                stop = read_body(&self.scan)
                self.scan.before = NULL
            if stop == STOP_MEMORY:
                raise MemoryError(f"rows of a body of {n} bytes")
            if stop < 0:
                where = self.scan.where.decode("ascii")
                raise Stopped(f"{where} {REASONS[stop]}, at byte {self.scan.r.at} of {n}")
            head = self._head()
        finally:
            free_buffers(&self.scan)
        self.head = head[:16]
        self.texts = self._texts(text_type, before)
        self._messages()
        self.fingerprint = self._fingerprint(head)

    def __dealloc__(self):
        free_scan(&self.scan)

    cdef tuple _texts(self, type text_type, Scan before):
        """The tool texts in body order."""
        cdef Text *row = <Text *>self.scan.texts.rows
        cdef uint32_t i
        cdef TextToken text, same
        cdef list found = []
        for i in range(self.scan.texts.count):
            text = text_type.__new__(text_type)
            text.body = self.body
            if i < self.scan.adopted_texts:
                same = before.texts[i]
                text.tool_use_id = same.tool_use_id
                text.sha256 = same.sha256
            else:
                text.tool_use_id = token_text(self.s, &row[i].id)
                text.sha256 = PyBytes_FromStringAndSize(<const char *>row[i].digest, DIGEST).hex()
            text.message = row[i].message
            text.block = row[i].block
            text.error_at = row[i].error_at
            text.has_marker = row[i].has_marker
            text.token = row[i].token
            found.append(text)
        return tuple(found)

    cdef _messages(self):
        """Roles and the chain: each digest covers the one before it and one message."""
        cdef Message *row = <Message *>self.scan.messages.rows
        cdef uint32_t i, count = self.scan.messages.count
        cdef bytes chain = PyBytes_FromStringAndSize(NULL, CHAIN_LINK * <Py_ssize_t>count)
        cdef list roles = []
        for i in range(count):
            memcpy(PyBytes_AS_STRING(chain) + CHAIN_LINK * <Py_ssize_t>i, row[i].link, CHAIN_LINK)
            roles.append(ROLES[row[i].role])
        self.chain = chain
        self.roles = tuple(roles)

    cdef bytes _fingerprint(self, bytes head):
        """32 bytes that two bodies share if they ask the same: messages, tools, system, marks, all other members."""
        cdef Member *row = <Member *>self.scan.members.rows
        cdef Mark *mark = <Mark *>self.scan.marks.rows
        cdef uint32_t i
        cdef list parts = [PyBytes_FromStringAndSize(<const char *>self.scan.chain, DIGEST), head]
        for i in range(self.scan.marks.count):  # its first four columns: where its bytes stand is not asked
            parts.append(PyBytes_FromStringAndSize(<const char *>&mark[i], 4 * <Py_ssize_t>sizeof(uint32_t)))
        for i in range(self.scan.members.count):
            if token_text(self.s, &row[i].key) not in ("messages", "tools", "system"):
                parts += [self.body[row[i].key.start:row[i].key.end], self.body[row[i].value.start:row[i].value.end]]
        return sha256(b"".join(parts)).digest()

    cdef bytes _head(self):
        """Digest of tools and system."""
        cdef uint8_t *canon = self.scan.r.canon.bytes
        hashed = sha256(b"tools:")
        hashed.update(PyMemoryView_FromMemory(<char *>canon + self.scan.tools_start,
                                              self.scan.tools_end - self.scan.tools_start, PyBUF_READ))
        hashed.update(b"\nsystem:")  # no JSON text begins in the middle of a line that is not white space
        hashed.update(PyMemoryView_FromMemory(<char *>canon + self.scan.system_start,
                                              self.scan.system_end - self.scan.system_start, PyBUF_READ))
        return hashed.digest()

    @property
    def adopted(self):
        """How many tool texts were taken over from the scan before."""
        return self.scan.adopted_texts

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

    def lifetimes(self):
        """(start, end) of each mark's `ttl` (0, 0 without one), and the end of its object, in body order."""
        cdef Mark *row = <Mark *>self.scan.marks.rows
        cdef uint32_t i
        return tuple([(row[i].ttl.start, row[i].ttl.end, row[i].end) for i in range(self.scan.marks.count)])

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
    memset(r, 0, sizeof(Reader))
    r.s = <const uint8_t *>PyBytes_AS_STRING(text)
    r.n = <uint32_t>PyBytes_GET_SIZE(text)
    r.quiet = 1
    if token is not NULL:
        return scan_string(r, token) == 0 and r.at == r.n
    return copy_value(r) == 0 and r.at == r.n


def is_value(bytes text not None):
    """True if the bytes are exactly one JSON value with no white space around it."""
    cdef Reader r
    if not 1 <= PyBytes_GET_SIZE(text) <= LARGEST_BODY or text[:1].isspace():
        return False
    return whole(text, &r, NULL)
