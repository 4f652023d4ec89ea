# cython: language_level=3, auto_pickle=False
"""Which tool output brought a line or an identifier last, and who uses it afterwards.

A *line* is a text's line without a leading line number and outer white space, from 24 characters and two words on; its
first 400 characters count. An *identifier* is a run of ASCII letters, digits, `_`, `$`, `@`, `.` and `-` that begins
with none of the last two, less those of the last two at its end, six characters or more, that does not look like a word
of prose: a step from lower to upper case, an underscore between letters or digits, a dot before a letter, a letter and
a digit, or digits alone. Lines of 20,000 characters and more have no identifiers: they are data. Texts are read as
UTF-8.

Items are kept as 64-bit hashes: in a session with a million of them the chance that any two are taken for one is one
in 37 million.
"""
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.unicode cimport PyUnicode_DecodeASCII
from cython cimport final, pymutex
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "text/names.h" nogil:
    enum: DIGIT, START, JOINT
    const uint8_t *KIND
    void fill_kinds(bint with_sigils)
    bint is_coined(const uint8_t *s, Py_ssize_t n, Py_ssize_t least_digits)
    bint has_two_words(const uint8_t *s, Py_ssize_t n)

cdef enum:
    MIN_IDENTIFIER = 6
    MIN_LINE = 24           # characters; shorter lines come back by chance
    MAX_LINE = 400          # characters
    LONGEST_READ = 20_000   # characters
    FIRST_SLOTS = 1024      # a power of two
    MOST_SLOTS = 1 << 30    # of 24 bytes each

cdef enum Mode:
    COLLECT     # into sets, for people and tests
    BRING       # an output brought the items
    WRITE       # somebody wrote them
    USE         # a reply wrote them, and whose they were is wanted

cdef struct Slot:
    uint64_t hash           # of the item; 0: the slot is free
    int32_t owner           # the output that brought it last; -1: nobody's
    uint32_t generation     # of the history that the owner belongs to
    uint32_t stamp          # of the last texts that held it, so that an item counts once
    uint32_t carriers       # outputs that brought it

fill_kinds(True)

cdef bint is_identifier(const uint8_t *s, Py_ssize_t n) noexcept nogil:
    """Whether s[:n], of identifier bytes with no joint at its ends, does not look like a word of prose."""
    return n >= MIN_IDENTIFIER and is_coined(s, n, n)

cdef inline Py_ssize_t n_characters(const uint8_t *s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, found = 0
    for i in range(n):
        found += (s[i] & 0xc0) != 0x80
    return found

cdef inline Py_ssize_t n_dark(const uint8_t *s, Py_ssize_t n) noexcept nogil:
    """Bytes that are no ASCII white space."""
    cdef Py_ssize_t i, found = 0
    for i in range(n):
        found += s[i] > 32
    return found

cdef Py_ssize_t first_characters(const uint8_t *s, Py_ssize_t n, Py_ssize_t most) noexcept nogil:
    """Bytes of the first `most` characters of s[:n]."""
    cdef Py_ssize_t i
    if n <= most:
        return n
    for i in range(n):
        if (s[i] & 0xc0) != 0x80:
            if most == 0:
                return i
            most -= 1
    return n

cdef Py_ssize_t character(const uint8_t *s, Py_ssize_t n, uint32_t *code) noexcept nogil:
    """Bytes of the character at s, n > 0, and its code point; the encoder has made sure that it is whole."""
    if s[0] < 0x80:
        code[0] = s[0]
        return 1
    if s[0] < 0xe0 and n >= 2:
        code[0] = (s[0] & 0x1f) << 6 | (s[1] & 0x3f)
        return 2
    if s[0] < 0xf0 and n >= 3:
        code[0] = (s[0] & 0x0f) << 12 | (s[1] & 0x3f) << 6 | (s[2] & 0x3f)
        return 3
    code[0] = 0
    if n < 4:
        return n
    code[0] = (<uint32_t> (s[0] & 0x07)) << 18 | (s[1] & 0x3f) << 12 | (s[2] & 0x3f) << 6 | (s[3] & 0x3f)
    return 4

cdef bint is_space(uint32_t c) noexcept nogil:
    """White space as str.isspace has it."""
    if c < 0x80:
        return c == 32 or 9 <= c <= 13 or 28 <= c <= 31
    return (c == 0x85 or c == 0xa0 or c == 0x1680 or 0x2000 <= c <= 0x200a or c == 0x2028 or c == 0x2029
            or c == 0x202f or c == 0x205f or c == 0x3000)

cdef Py_ssize_t leading_space(const uint8_t *s, Py_ssize_t n, bint *has_tab) noexcept nogil:
    """Bytes of white space at the front of s[:n]."""
    cdef Py_ssize_t i = 0, step
    cdef uint32_t c
    has_tab[0] = False
    while i < n:
        step = character(s + i, n - i, &c)
        if not is_space(c):
            break
        if c == b'\t':
            has_tab[0] = True
        i += step
    return i

cdef Py_ssize_t without_trailing_space(const uint8_t *s, Py_ssize_t n) noexcept nogil:
    """Bytes of s[:n] up to the white space at its end."""
    cdef Py_ssize_t i
    cdef uint32_t c
    while n > 0:
        i = n - 1
        while i > 0 and (s[i] & 0xc0) == 0x80:
            i -= 1
        character(s + i, n - i, &c)
        if not is_space(c):
            break
        n = i
    return n

cdef Py_ssize_t digits_end(const uint8_t *s, Py_ssize_t i, Py_ssize_t n) except -1:
    """Position past the decimal digits, of any script, that begin at s[i]."""
    cdef Py_ssize_t step
    cdef uint32_t c
    while i < n:
        step = character(s + i, n - i, &c)
        if c < 0x80:
            if not KIND[c] & DIGIT:
                break
        elif not chr(c).isdecimal():    # rare: only where a line begins with such a character
            break
        i += step
    return i

cdef Py_ssize_t past_line_number(const uint8_t *s, Py_ssize_t n) except -1:
    """Bytes of a leading number with its separator (tab, ':', '|' or an arrow), else 0."""
    cdef bint has_tab
    cdef Py_ssize_t first = leading_space(s, n, &has_tab)
    cdef Py_ssize_t i = digits_end(s, first, n)
    cdef uint32_t c = 0
    cdef Py_ssize_t step = 0
    if i == first:
        return 0
    i += leading_space(s + i, n - i, &has_tab)
    if i < n:
        step = character(s + i, n - i, &c)
    if c == b':' or c == b'|' or c == 0x2192:
        return i + step
    return i if has_tab else 0

cdef inline uint64_t mixed(uint64_t h) noexcept nogil:
    h ^= h >> 32
    h *= <uint64_t> 0x9e3779b97f4a7c15
    return h ^ (h >> 29)

cdef uint64_t hash_of(const uint8_t *s, Py_ssize_t n, bint is_line) noexcept nogil:
    """A hash of s[:n] that is never 0; a line and an identifier of the same bytes are two items."""
    cdef uint64_t h = mixed(<uint64_t> n * 2 + is_line + 1), word
    while n >= 8:
        memcpy(&word, s, 8)
        h = mixed(h ^ word) + word
        s += 8
        n -= 8
    word = 0
    memcpy(&word, s, n)
    h = mixed(mixed(h ^ word) + word)
    return h if h else 1

cdef Slot *slot_of(Slot *slots, size_t n_slots, uint64_t key) noexcept nogil:
    """The slot of the item, or the free one where it would go; one slot at least is free."""
    cdef size_t i = key & (n_slots - 1)
    while slots[i].hash != 0 and slots[i].hash != key:
        i = (i + 1) & (n_slots - 1)
    return &slots[i]


@final
cdef class Ownership:
    """Who brought each item last, and how many outputs have brought it.

    Memory is 24 to 48 bytes a distinct item that an output brought; time is linear in the texts.
    """
    cdef Slot *slots
    cdef size_t n_slots, n_items
    cdef uint32_t generation, stamp, most_carriers
    cdef int32_t owner
    cdef Mode mode
    cdef object lines, identifiers, rest
    cdef Py_ssize_t n_bytes, n_held     # of what is collected, white space apart: all, and those that an item holds
    cdef Py_ssize_t n_named             # of one line: those of its identifiers
    cdef pymutex lock       # not the GIL, which a collector's callback may hand on in the middle of a text

    def __cinit__(self, uint32_t most_carriers):
        self.slots = <Slot *> PyMem_RawCalloc(FIRST_SLOTS, sizeof(Slot))
        if self.slots is NULL:
            raise MemoryError(f"{FIRST_SLOTS} x {sizeof(Slot)} bytes")
        self.n_slots = FIRST_SLOTS
        self.most_carriers = most_carriers

    def __dealloc__(self):
        PyMem_RawFree(self.slots)

    def __len__(self):
        """Distinct items that an output brought."""
        return self.n_items

    def forget(self):
        """The history is no longer sent: nobody owns anything. How many outputs brought an item is kept."""
        with self.lock:
            self.generation += 1

    def bring(self, int32_t owner, texts):
        """An output, a number from 0, brought the items of these texts."""
        if owner < 0:
            raise ValueError(f"owner {owner} is below 0")
        texts = list(texts)     # whatever makes them has run before the lock is taken
        with self.lock:
            self.owner = owner
            self.read(texts, BRING)

    def write(self, texts):
        """A user wrote the items of these texts: nobody owns them now."""
        texts = list(texts)     # whatever makes them has run before the lock is taken
        with self.lock:
            self.read(texts, WRITE)

    def use(self, texts):
        """([owner of each used line], [(owner, identifier) of each used identifier]); then nobody owns them.

        An item counts once in all texts together, and not at all if more than `most_carriers` outputs have brought it.
        """
        texts = list(texts)     # whatever makes them has run before the lock is taken
        with self.lock:
            self.lines, self.identifiers = [], []
            try:
                self.read(texts, USE)
                return self.lines, self.identifiers
            finally:
                self.lines = self.identifiers = None

    cdef int read(self, texts, Mode mode) except -1:
        cdef bytes text
        cdef const uint8_t *s
        cdef Py_ssize_t i, start, n
        self.mode = mode
        self.stamp += 1
        for each in texts:
            text = (<str?> each).encode("utf-8", "surrogatepass")
            s = text
            n = len(text)
            start = 0
            for i in range(n + 1):
                if i == n or s[i] == b'\n':
                    self.read_line(s + start, i - start)
                    start = i + 1
        return 0

    cdef int read_line(self, const uint8_t *s, Py_ssize_t n) except -1:
        cdef bint has_tab
        cdef Py_ssize_t cut, held = 0
        self.n_named = 0
        if n < LONGEST_READ or n_characters(s, n) < LONGEST_READ:
            self.read_words(s, n)
        if n < MIN_LINE and self.mode != COLLECT:
            return 0
        cut = past_line_number(s, n)
        cut += leading_space(s + cut, n - cut, &has_tab)
        s += cut
        n = without_trailing_space(s, n - cut)
        if n >= MIN_LINE and n_characters(s, n) >= MIN_LINE and has_two_words(s, n):
            held = first_characters(s, n, MAX_LINE)
            self.item(s, held, True)
        if self.mode == COLLECT:
            self.account(s, n, held)
        return 0

    cdef int account(self, const uint8_t *s, Py_ssize_t n, Py_ssize_t held) except -1:
        """How much of a line its items hold: the first `held` bytes as a line, or its identifiers."""
        cdef Py_ssize_t all_of_it = n_dark(s, n)
        cdef Py_ssize_t known = min(all_of_it, max(n_dark(s, held), self.n_named))
        self.n_bytes += all_of_it
        self.n_held += known
        if known < all_of_it:
            self.rest.add(hash_of(s, n, True))
        return 0

    cdef int read_words(self, const uint8_t *s, Py_ssize_t n) except -1:
        cdef Py_ssize_t i = 0, start, end
        while i < n:
            if not KIND[s[i]] & START:
                i += 1
                continue
            start = i
            while i < n and KIND[s[i]]:
                i += 1
            end = i
            while KIND[s[end - 1]] & JOINT:     # stops at `start`, which is none
                end -= 1
            if is_identifier(s + start, end - start):
                self.item(s + start, end - start, False)
        return 0

    cdef int item(self, const uint8_t *s, Py_ssize_t n, bint is_line) except -1:
        """One item of the texts that are read; what it means depends on who wrote them."""
        cdef uint64_t key
        cdef Slot *slot
        if self.mode == COLLECT:
            self.n_named += 0 if is_line else n
            found = (<bytes> s[:n]).decode("utf-8", "surrogatepass")
            (self.lines if is_line else self.identifiers).add(found)
            return 0
        key = hash_of(s, n, is_line)
        slot = slot_of(self.slots, self.n_slots, key)
        if slot.hash == 0:
            if self.mode != BRING:      # nobody's, and stays so
                return 0
            slot = self.new_slot(key)
        if slot.stamp == self.stamp:
            return 0
        slot.stamp = self.stamp
        if self.mode == BRING:
            slot.carriers += 1
            slot.owner, slot.generation = self.owner, self.generation
            return 0
        if self.mode == USE and slot.owner >= 0 and slot.generation == self.generation:
            if slot.carriers <= self.most_carriers:
                if is_line:
                    self.lines.append(slot.owner)
                else:
                    self.identifiers.append((slot.owner, PyUnicode_DecodeASCII(<const char *> s, n, NULL)))
        slot.owner = -1
        return 0

    cdef Slot *new_slot(self, uint64_t key) except NULL:
        cdef Slot *slot
        if 2 * (self.n_items + 1) > self.n_slots:
            self.grow()
        slot = slot_of(self.slots, self.n_slots, key)
        slot.hash = key
        slot.owner = -1
        self.n_items += 1
        return slot

    cdef int grow(self) except -1:
        cdef size_t i, n = self.n_slots * 2
        cdef Slot *slots
        if n > MOST_SLOTS:
            raise MemoryError(f"{n} slots for items, {MOST_SLOTS} at most")
        slots = <Slot *> PyMem_RawCalloc(n, sizeof(Slot))
        if slots is NULL:
            raise MemoryError(f"{n} x {sizeof(Slot)} bytes")
        for i in range(self.n_slots):
            if self.slots[i].hash != 0:
                slot_of(slots, n, self.slots[i].hash)[0] = self.slots[i]
        PyMem_RawFree(self.slots)
        self.slots, self.n_slots = slots, n
        return 0


def contents(str text not None):
    """(lines, identifiers, rest, share) of a text.

    `rest`: hashes of its lines, without number and outer white space, that are not all held by items. `share`: of the
    text's bytes, white space apart, those that an item holds; 1 for a blank text.
    """
    cdef Ownership reader = Ownership(0)
    reader.lines, reader.identifiers, reader.rest = set(), set(), set()
    reader.read([text], COLLECT)
    share = <double> reader.n_held / reader.n_bytes if reader.n_bytes else 1.0
    return reader.lines, reader.identifiers, reader.rest, share


def items(str text not None):
    """(lines, identifiers) of a text, as sets."""
    return contents(text)[:2]
