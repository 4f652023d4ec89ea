/* The text of a str without a copy, where the interpreter's interface allows it. */
#ifndef BM25_PYTHON_H
#define BM25_PYTHON_H

#include <Python.h>

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

#endif
