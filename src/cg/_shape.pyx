# cython: language_level=3, cdivision=True, auto_pickle=False
"""Kind, records and lines of a text, by the rules of docs/shape.md; size is the length in UTF-8 bytes."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef extern from "shape/describe.h":
    ctypedef struct ShapeFacts:
        int kind
        int64_t records     # -1: not defined
        int64_t lines
        int failed          # 1: no memory for the bracket stack
    void shape_describe(const uint8_t *s, size_t n, int vectors, ShapeFacts *out) noexcept nogil
    int shape_has_avx2() noexcept nogil

# Letting the GIL go costs up to a switch interval when others wait for it; under this size the work is over sooner.
cdef enum:
    RELEASE_BYTES = 32768

cdef bint _has_vectors = shape_has_avx2()

def has_vectors() -> bool:
    """Whether this processor runs the vector path."""
    return bool(_has_vectors)

def utf8_of(content):
    """The exact bytes that are described and hashed: UTF-8, lone surrogates by `surrogatepass`.

    Raises TypeError for anything but str or bytes. No annotations here: Cython would refuse subclasses.
    """
    if isinstance(content, bytes):
        return content
    if not isinstance(content, str):
        raise TypeError(f"content must be str or bytes, not {type(content).__name__}")
    return str.encode(content, "utf-8", "surrogatepass")

def facts(content, bint vectors=True):
    """(kind's number, records or -1, lines, size in bytes); `vectors` false forces the plain path.

    Raises TypeError for anything but str or bytes, MemoryError when brackets nest deeper than memory allows.
    """
    cdef const uint8_t *s
    cdef Py_ssize_t n
    cdef ShapeFacts out
    cdef int use_vectors = _has_vectors and vectors
    cdef object held = content
    if isinstance(content, str) and str.isascii(content):
        # ASCII text is its own UTF-8: nothing is copied, and nothing is cached on the caller's object.
        s = <const uint8_t *>PyUnicode_AsUTF8AndSize(content, &n)
    else:
        held = utf8_of(content)
        s = <const uint8_t *>PyBytes_AS_STRING(held)
        n = PyBytes_GET_SIZE(held)
    if n < RELEASE_BYTES:
        shape_describe(s, n, use_vectors, &out)
    else:
        with nogil:
            shape_describe(s, n, use_vectors, &out)
    if out.failed:
        raise MemoryError(f"nested brackets in {n} bytes")
    return out.kind, out.records, out.lines, n
