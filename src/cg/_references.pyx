# cython: language_level=3, auto_pickle=False
"""Names and lines by which a later text can be recognised as using an earlier one.

A *name* is a run of ASCII letters, digits, `_`, `.` and `-`, without `.` and `-` at its ends, that does not look like a
plain word: 4 to 64 bytes with a letter and a digit, an underscore or a dot between letters or digits, a step from lower
to upper case, or five digits and more. Its pieces between dots and hyphens are looked at too, so that
`CreateTranscript` is found in `session.CreateTranscript`. A *line* is what is left of a text's line without a leading
line number and outer blanks, if that has 24 bytes and two words or more; of a longer one the first 400 bytes count.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t

cdef extern from "wording/names.h" nogil:
    enum: DIGIT, JOINT, STEP, TELLING
    const uint8_t *KIND
    void fill_kinds(bint with_sigils)
    bint is_coined(const uint8_t *s, Py_ssize_t n, Py_ssize_t least_digits)
    bint has_two_words(const uint8_t *s, Py_ssize_t n)

cdef enum:
    MIN_NAME = 4
    MAX_NAME = 64       # longer runs are encoded data; their pieces still count
    MANY_DIGITS = 5     # a number of fewer is too common to be a name
    MIN_LINE = 24
    MAX_LINE = 400
    MAX_ITEMS = 100_000     # real outputs of 1 MB hold 20,000; past this a text is data, and memory is worth more

fill_kinds(False)

cdef bint is_name(const unsigned char *s, Py_ssize_t n) noexcept nogil:
    """Whether s[:n], of word bytes and joints and with none of the latter at its ends, is no plain word."""
    return MIN_NAME <= n <= MAX_NAME and is_coined(s, n, MANY_DIGITS)

cdef int add(set found, const unsigned char *s, Py_ssize_t n) except -1:
    found.add(PyBytes_FromStringAndSize(<const char *> s, n))
    return 0

cdef int add_names(set found, const unsigned char *s, Py_ssize_t n) except -1:
    """Add the run s[:n] of word bytes and joints, and its pieces."""
    cdef Py_ssize_t i, start
    cdef bint joined = False
    while n > 0 and KIND[s[0]] & JOINT:
        s += 1
        n -= 1
    while n > 0 and KIND[s[n - 1]] & JOINT:
        n -= 1
    if is_name(s, n):
        add(found, s, n)
    start = 0
    for i in range(n + 1):
        if i == n or KIND[s[i]] & JOINT:
            if (joined or i < n) and is_name(s + start, i - start):
                add(found, s + start, i - start)
            joined = True
            start = i + 1
    return 0

cdef inline bint is_blank(unsigned char c) noexcept nogil:
    return c == b' ' or c == b'\t' or c == b'\r' or c == 0x0b or c == 0x0c

cdef Py_ssize_t past_line_number(const unsigned char *s, Py_ssize_t n) noexcept nogil:
    """Length of a leading number with its separator (tab, ':', '|' or an arrow), else 0."""
    cdef Py_ssize_t i = 0, first
    while i < n and is_blank(s[i]):
        i += 1
    first = i
    while i < n and KIND[s[i]] & DIGIT:
        i += 1
    if i == first:
        return 0
    while i < n and s[i] == b' ':
        i += 1
    if i < n and (s[i] == b'\t' or s[i] == b':' or s[i] == b'|'):
        return i + 1
    if i + 2 < n and s[i] == 0xe2 and s[i + 1] == 0x86 and s[i + 2] == 0x92:     # U+2192
        return i + 3
    return 0

cdef int add_line(set found, const unsigned char *s, Py_ssize_t n) except -1:
    """Add the line s[:n] if it is long enough to be recognised by itself."""
    cdef Py_ssize_t cut
    cut = past_line_number(s, n)
    s += cut
    n -= cut
    while n > 0 and is_blank(s[0]):
        s += 1
        n -= 1
    while n > 0 and is_blank(s[n - 1]):
        n -= 1
    if n >= MIN_LINE and has_two_words(s, n):
        return add(found, s, min(n, <Py_ssize_t> MAX_LINE))
    return 0

def items(bytes text not None) -> set[bytes]:
    """The names and lines of a text, each once, and of a text with more than 100,000 of them the first.

    Linear in the text. Memory is about twenty times the text where it is nothing but four-byte names.
    """
    cdef const unsigned char *s = text
    cdef Py_ssize_t n = len(text), i = 0, run = -1, line = 0
    cdef unsigned char kind, before = 0, seen = 0
    cdef set found = set()
    for i in range(n):
        kind = KIND[s[i]]
        if kind:
            if before == 0:
                run = i
                seen = 0
            seen |= kind | ((kind << 5) & (before << 6) & STEP)
            before = kind
            continue
        if before and seen & TELLING and i - run >= MIN_NAME:
            add_names(found, s + run, i - run)
            if len(found) >= MAX_ITEMS:
                return found
        before = 0
        if s[i] == b'\n':
            if i - line >= MIN_LINE:
                add_line(found, s + line, i - line)
            line = i + 1
    if before and seen & TELLING:
        add_names(found, s + run, n - run)
    add_line(found, s + line, n - line)
    return found
