"""JSON whose value would take too much memory is not read."""

import json
import sys
import tracemalloc

import pytest

from cg.gateway.http import bounded_json
from cg.gateway.http.bounded_json import ALWAYS_READ_BYTES, MAX_READ_BYTES, TooMuchJson, loads, size_in_memory

N = 40_000
DENSE = {
    "lists": b"[" + b"[]," * N + b"[]]",
    "lists of one": b"[" + b"[0]," * N + b"[]]",
    "objects": b"[" + b"{}," * N + b"{}]",
    "members": b"[" + b'{"":0},' * N + b"{}]",
    "keys": b"{" + b",".join(b'"%x":0' % n for n in range(N)) + b"}",
    "fractions": b"[" + b"1.5," * N + b"0]",
    "integers": b"[" + b"99999," * N + b"0]",
    "text": b'["' + b"a" * 9 * N + b'"]',
    "wide text": '["😀'.encode() + b"a" * 9 * N + b'"]',
    "wide escapes": b'["\\ud83d\\ude00' + b"a" * 9 * N + b'"]',
    "escapes": b'["\\u4e00' + b"a" * 9 * N + b'"]',
    "letters": ('["' + "\u4e00" * 9 * N + '"]').encode(),
    "words": b"[" + b'"\\u4e00",' * N + b"0]",
}


@pytest.mark.parametrize("name", DENSE)
def test_no_value_takes_more_memory_than_is_reckoned(name: str) -> None:
    """By what its reader really takes, the decoded text included."""
    raw = DENSE[name]
    tracemalloc.start()
    value = json.loads(raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sys.getsizeof(value) and peak <= size_in_memory(raw)


def test_what_would_take_too_much_is_refused() -> None:
    """And what is short, or plain text of some megabytes, is read."""
    dense = b"[" + b"[]," * (MAX_READ_BYTES // bounded_json.MEMBER_BYTES) + b"[]]"
    with pytest.raises(TooMuchJson):
        loads(dense)
    plain = json.dumps({"text": "a" * 8 * 1024 * 1024}).encode()
    assert len(loads(plain)["text"]) == 8 * 1024 * 1024
    short = b"[" + b"0," * (ALWAYS_READ_BYTES // 3) + b"0]"
    assert len(loads(short)) == ALWAYS_READ_BYTES // 3 + 1
