"""Describing keeps nothing: neither on the text nor in the process."""

import gc
import sys

import pytest

from cg.shape import content_key, describe


@pytest.mark.parametrize("text", ["plain text", "caf\u00e9 " * 20])
def test_describing_leaves_nothing_on_the_text(text: str) -> None:
    """No UTF-8 copy is cached on the caller's object, so a described history costs no memory."""
    fresh = "".join(list(text))
    before = sys.getsizeof(fresh)
    describe(fresh)
    content_key(fresh)
    assert sys.getsizeof(fresh) == before


def test_describing_keeps_no_memory() -> None:
    """Blocks in use do not grow with calls, deep brackets included."""
    contents = ["[" * 5000, "caf\u00e9 " * 500, b"\xff" * 100, '[{"a":1}]' * 50]
    for c in contents:
        describe(c)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(200):
        for c in contents:
            describe(c)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100
