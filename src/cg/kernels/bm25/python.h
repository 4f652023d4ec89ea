/* What goes past Cython's own conversions: the text of a str without a copy, and pairs made in one pass. */
#ifndef BM25_PYTHON_H
#define BM25_PYTHON_H

#include <Python.h>

/* unicodedata.normalize, set once on import and kept: looking it up takes longer than folding a short query. */
static PyObject *bm25_normalize;

/* Bytes of an ASCII str, or NULL for any other; never an error. */
static const char *bm25_ascii(PyObject *text, Py_ssize_t *n) {
#ifdef Py_LIMITED_API
    const char *p = PyUnicode_AsUTF8AndSize(text, n);
    if (p == NULL) { PyErr_Clear(); return NULL; }   /* a lone surrogate */
    return *n == PyUnicode_GetLength(text) ? p : NULL;
#else
    if (!PyUnicode_IS_ASCII(text)) return NULL;
    *n = PyUnicode_GET_LENGTH(text);
    return (const char *)PyUnicode_1BYTE_DATA(text);
#endif
}

#ifdef Py_LIMITED_API
#define BM25_PUT_PAIR(pair, at, x) PyTuple_SetItem(pair, at, x)
#define BM25_PUT_ITEM(list, at, x) PyList_SetItem(list, at, x)
#else
#define BM25_PUT_PAIR(pair, at, x) PyTuple_SET_ITEM(pair, at, x)
#define BM25_PUT_ITEM(list, at, x) PyList_SET_ITEM(list, at, x)
#endif

/* A new list of n (document, score) tuples; NULL with MemoryError set if memory is short. */
static PyObject *bm25_pairs(const uint32_t *doc, const double *score, Py_ssize_t n) {
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *d = PyLong_FromUnsignedLong(doc[i]), *s = PyFloat_FromDouble(score[i]), *pair = PyTuple_New(2);
        if (!d || !s || !pair) {
            Py_XDECREF(d); Py_XDECREF(s); Py_XDECREF(pair);
            Py_CLEAR(list);
            break;
        }
        BM25_PUT_PAIR(pair, 0, d);
        BM25_PUT_PAIR(pair, 1, s);
        BM25_PUT_ITEM(list, i, pair);
    }
    return list;
}

#endif
