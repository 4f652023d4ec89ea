# cython: language_level=3, cdivision=True, auto_pickle=False
"""What a model's reply says about the offered labels, by rules R1 to R12 of docs/verdicts.md.

One state machine (verdict/state_machine.h) reads the bytes as they come, without recursion, in work and memory linear
in the reply; Python objects are made at the end and for offered labels only.
"""
from itertools import islice

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef extern from "verdict/try_lock.h" nogil:
    ctypedef int TryLock
    bint lock_take(TryLock *lock)
    void lock_give(TryLock *lock)

cdef extern from "verdict/state_machine.h" nogil:
    enum: NO_ROW, SCAN_PLAIN, SCAN_VECTOR
    enum Action: KEEP, DROP, REFUSED, UNUSABLE, CONFLICT
    enum How: CLOSED, CUT, BROKEN
    enum ValueKind: TEXT
    enum Mode: GIVEN_UP
    ctypedef struct Value:
        size_t at
        size_t end
        uint8_t kind
    ctypedef struct Entry:
        Value needed_by
        Value quote
        Value verdict
        uint32_t row
        uint8_t action
        uint8_t unanswered
    ctypedef struct Tally:
        Entry *entries
        uint32_t n
        size_t no_label
        size_t unknown_label
        size_t duplicates
        uint8_t names_past_end
    ctypedef struct Claim:
        Tally *tally
        size_t stray
        uint8_t tier
        uint8_t how
    ctypedef struct Offer:
        int64_t *label
        uint8_t *listed
        uint32_t n
    ctypedef struct Machine:
        const uint8_t *s
        size_t n
        size_t at
        Offer offer
        Claim best
        uint8_t mode
        uint8_t broke
        uint8_t gave_up
        uint8_t saw_bracket
        uint8_t saw_verdict
        uint8_t ended_inside
    int machine_open(Machine *m, int64_t *labels, uint32_t n, int scan_level)
    int machine_run(Machine *m, bint is_final)
    void machine_close(Machine *m)
    Entry *tally_find(const Tally *t, uint32_t row)
    int blank_at(const uint8_t *s, size_t i, size_t n)
    size_t unescape(const uint8_t *s, size_t at, size_t end, uint8_t *out)

MAX_LABELS = 65_536         # a table of 4 bytes a label may exist once for each of 64 levels: 16 MiB
MAX_LABEL = 2**63 - 2       # the label after the last must still be a 64-bit integer

# What finish() hands out: positions in these tuples.
STATUSES = ("ok", "truncated", "unparseable")
REASONS = (None, "cut", "malformed", "empty", "no_json", "no_verdict", "lone_object", "limit")
ACTIONS = ("", "keep", "drop", "refused", "unusable", "conflict")
COUNTERS = ("keep", "drop", "refused", "unusable", "conflict", "no_label", "unknown_label", "stray", "duplicate_label",
            "criterion_missing", "label_shift", "missing")

cdef enum:
    OK = 0
    TRUNCATED = 1
    UNPARSEABLE = 2
    WITHOUT_GIL = 4096      # bytes; below, letting the lock go costs more than the scan
    SLACK = 12288           # bytes a growing buffer may stand above its content; the C library moves pages, not bytes

cdef enum Reason:
    NO_REASON, WAS_CUT, MALFORMED, EMPTY, NO_JSON, NO_VERDICT, LONE_OBJECT, LIMIT

cdef int scan_level = SCAN_VECTOR


def force_scan(level: int) -> None:
    """Use scan path 0 (a byte at a time) or 1 (16 bytes, if the processor has them) in decoders made from now on."""
    global scan_level
    if not isinstance(level, int) or not 0 <= level <= 1:
        raise ValueError(f"level {level!r}: 0 or 1")
    scan_level = level


def checked_labels(labels) -> list:
    """The labels ascending; TypeError or ValueError says which one cannot be offered."""
    found = list(islice(labels, MAX_LABELS + 1))
    if len(found) > MAX_LABELS:
        raise ValueError(f"more than {MAX_LABELS} labels")
    for label in found:
        if type(label) is bool or not isinstance(label, int):
            raise TypeError(f"label {label!r}: an int, not {type(label).__name__}")
        if not 0 <= label <= MAX_LABEL:
            raise ValueError(f"label {label}: 0 to {MAX_LABEL}")
    found.sort()
    for k in range(1, len(found)):
        if found[k] == found[k - 1]:
            raise ValueError(f"label {found[k]} is offered twice")
    return found


cdef object text_of(const Machine *m, const Value *v):
    """The value as written, unescaped, or None if it is no text."""
    cdef size_t size
    cdef const char *start
    cdef char *room
    if v.kind != TEXT:
        return None
    start, size = <const char *>m.s + v.at, v.end - v.at
    if size == 0:
        return ""
    if size == 4:       # most values are one of these; the same object for each costs a third of a new one
        if memcmp(start, b"drop", 4) == 0:
            return "drop"
        if memcmp(start, b"keep", 4) == 0:
            return "keep"
        if memcmp(start, b"none", 4) == 0:
            return "none"
    if memchr(start, b"\\", size) is NULL:
        return PyUnicode_DecodeUTF8(start, size, "replace")
    room = <char *>PyMem_RawMalloc(size)
    if room is NULL:
        raise MemoryError(f"a text of {size} bytes")
    try:
        return PyUnicode_DecodeUTF8(room, unescape(m.s, v.at, v.end, <uint8_t *>room), "replace")
    finally:
        PyMem_RawFree(room)


cdef int why_unparseable(const Machine *m) noexcept nogil:
    """R12 in the order in which the causes explain each other."""
    cdef size_t i = 0
    cdef int length = 1
    while i < m.n and length:
        length = blank_at(m.s, i, m.n)
        i += length
    if length:
        return EMPTY
    if m.mode == GIVEN_UP:
        return LIMIT
    if not m.saw_bracket:
        return NO_JSON
    if m.broke:
        return MALFORMED
    if m.gave_up:
        return LIMIT
    return LONE_OBJECT if m.saw_verdict else NO_VERDICT


cdef tuple judged(Machine *m):
    """(status, reason, verdicts, drops, counters) of a finished reply: codes, tuples and numbers."""
    cdef Tally *t = m.best.tally
    cdef Entry *e
    cdef uint32_t k, n = t.n if t != NULL else 0
    cdef size_t by_action[6]
    cdef size_t unanswered = 0
    cdef bint shifted
    cdef int action
    if m.mode == GIVEN_UP or (m.best.tier == 0 and not m.ended_inside):
        return UNPARSEABLE, why_unparseable(m), [], [], (0,) * 12
    if m.best.tier == 0:
        return TRUNCATED, WAS_CUT, [], [], (0,) * 11 + (m.offer.n,)
    for k in range(6):
        by_action[k] = 0
    shifted = t != NULL and t.names_past_end and tally_find(t, 0) == NULL
    verdicts, drops = [], []
    for k in range(n):
        e = t.entries + k
        action = e.action
        if action == DROP and (shifted or m.offer.listed[e.row]):
            action = CONFLICT
        by_action[action] += 1
        unanswered += e.unanswered
        label = m.offer.label[e.row]
        if action == DROP:
            drops.append(label)
        verdicts.append((label, text_of(m, &e.needed_by), text_of(m, &e.quote), text_of(m, &e.verdict), action))
    drops.sort()
    counters = (by_action[1], by_action[2], by_action[3], by_action[4], by_action[5], t.no_label if t != NULL else 0,
                t.unknown_label if t != NULL else 0, m.best.stray, t.duplicates if t != NULL else 0, unanswered,
                int(shifted), m.offer.n - n)
    if m.best.how == CLOSED:
        return OK, NO_REASON, verdicts, drops, counters
    return TRUNCATED, WAS_CUT if m.best.how == CUT else MALFORMED, verdicts, drops, counters


cdef bytes surrogates_passed(object text):
    """UTF-8 in which a lone surrogate is three ill-formed bytes, so that R1 reads it as damage."""
    return str.encode(text, "utf-8", "surrogatepass")


cdef object view(object reply, const char **start, Py_ssize_t *size):
    """Point at the reply's UTF-8; the returned object must outlive the pointer."""
    if isinstance(reply, bytes):
        start[0], size[0] = PyBytes_AS_STRING(reply), PyBytes_GET_SIZE(reply)
        return reply
    if not isinstance(reply, str):
        raise TypeError(f"a reply is str or bytes, not {type(reply).__name__}")
    try:
        start[0] = PyUnicode_AsUTF8AndSize(reply, size)
        return reply
    except UnicodeEncodeError:
        reply = surrogates_passed(reply)
        start[0], size[0] = PyBytes_AS_STRING(reply), PyBytes_GET_SIZE(reply)
        return reply


cdef class Parser:
    """Bytes in, codes out: `feed` any pieces of one reply, then `finish` once. One thread at a time."""
    cdef Machine machine
    cdef TryLock lock
    cdef int64_t *labels
    cdef uint8_t *buffer
    cdef size_t room
    cdef bint is_open

    def __cinit__(self, labels):
        cdef list found = checked_labels(labels)
        cdef Py_ssize_t k, n = len(found)
        self.labels = <int64_t *>PyMem_RawMalloc((n + 1) * sizeof(int64_t))
        if self.labels is NULL:
            raise MemoryError(f"{n} labels")
        for k in range(n):
            self.labels[k] = found[k]
        if machine_open(&self.machine, self.labels, <uint32_t>n, scan_level) < 0:
            raise MemoryError(f"a decoder of {n} labels")
        self.is_open = True

    def __dealloc__(self):
        machine_close(&self.machine)
        PyMem_RawFree(self.labels)
        PyMem_RawFree(self.buffer)

    cdef int take(self) except -1:
        if not lock_take(&self.lock):
            raise RuntimeError("this decoder is at work in another thread")
        if not self.is_open:
            lock_give(&self.lock)
            raise ValueError("this decoder has finished")
        return 0

    cdef bint append(self, const char *start, size_t size) noexcept nogil:
        """Put a piece behind the bytes so far; 0 without memory."""
        cdef size_t need = self.machine.n + size, room
        cdef void *grown
        if need < size:
            return 0
        if need > self.room:
            room = need + SLACK if self.room else need + 256
            grown = PyMem_RawRealloc(self.buffer, room)
            if grown is NULL:
                return 0
            self.buffer, self.room = <uint8_t *>grown, room
        memcpy(self.buffer + self.machine.n, start, size)
        self.machine.s = self.buffer
        self.machine.n = need
        return 1

    cdef bint read(self, const char *start, size_t size, bint is_final) noexcept nogil:
        """Take one more piece and read on; 0 without memory."""
        return (size == 0 or self.append(start, size)) and machine_run(&self.machine, is_final) == 0

    cdef int run(self, const char *start, size_t size, bint is_final) except -1:
        """The same without the GIL, copying included, where there is enough to do."""
        cdef bint ok
        if size + self.machine.n - self.machine.at < WITHOUT_GIL:
            ok = self.read(start, size, is_final)
        else:
            with nogil:
                ok = self.read(start, size, is_final)
        if not ok:
            raise MemoryError(f"a reply of {self.machine.n + size} bytes")
        return 0

    def feed(self, chunk):
        """Read one more piece of the reply, str or bytes, cut anywhere; TypeError for anything else."""
        cdef const char *start = NULL
        cdef Py_ssize_t size = 0
        self.take()
        try:
            _held = view(chunk, &start, &size)
            self.run(start, size, False)
        except MemoryError:
            self.is_open = False        # a piece is lost, and with it perhaps a veto
            raise
        finally:
            lock_give(&self.lock)

    def finish_codes(self):
        """(status, reason, verdicts, drops, counters) in codes; afterwards the decoder takes nothing more."""
        self.take()
        try:
            self.is_open = False
            self.run(NULL, 0, True)
            return judged(&self.machine)
        finally:
            lock_give(&self.lock)

    cdef tuple whole(self, object reply):
        """The codes of one complete reply, read where it stands."""
        cdef const char *start = NULL
        cdef Py_ssize_t size = 0
        _held = view(reply, &start, &size)
        self.machine.s, self.machine.n = <const uint8_t *>start, size
        self.run(NULL, 0, True)
        return judged(&self.machine)


def decode_codes(reply, labels):
    """The codes of one whole reply, without a copy of it."""
    return Parser(labels).whole(reply)
