"""Memory in use by the C library's own account, to see what a call does not give back."""

import ctypes
import gc
import sys

import pytest

CALLS = 300
LEAK = 8  # bytes a call: the smallest block of the C library is 32


class Account(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


def bytes_in_use():
    """Bytes that C code holds, mapped blocks included, and those of the interpreter's small objects."""
    gc.collect()
    account = mallinfo()
    return account.uordblks + account.hblkhd + 16 * sys.getallocatedblocks()


def growth(call, calls=CALLS):
    """Bytes a call that stay in use, the least of three rounds: caches and a new thread's own store fill once."""
    for _ in range(20):
        call()
    least = float("inf")
    for _ in range(3):
        before = bytes_in_use()
        for _ in range(calls):
            call()
        least = min(least, (bytes_in_use() - before) / calls)
        if least < LEAK:
            break
    return least


def account_of_the_c_library():
    """mallinfo2, or None where it is absent or does not see an allocation (a sanitizer's allocator)."""
    try:
        c = ctypes.CDLL(None)
        c.mallinfo2.restype = Account
        c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    except (AttributeError, OSError, TypeError):
        return None
    before = c.mallinfo2()
    block = c.malloc(1 << 20)
    after = c.mallinfo2()
    c.free(block)
    grown = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd
    return c.mallinfo2 if grown >= 1 << 20 else None


mallinfo = account_of_the_c_library()
needs_an_account = pytest.mark.skipif(mallinfo is None, reason="needs the allocation figures of glibc")


def raising(error, call):
    """The call, which must raise."""

    def run():
        with pytest.raises(error):
            call()

    return run
