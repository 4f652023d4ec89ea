"""What a word table allocates it gives back, on every way out."""

import array

import pytest
import word_table_oracle as oracle
from memory_in_use import LEAK, growth, needs_an_account, raising

from cg.word_table import WordTable, WordVectors

pytestmark = needs_an_account

IMAGE = oracle.image({f"word{i}": (1.0, [1, -1] * 64) for i in range(50)})
DOCUMENTS = [[f"word{i % 50}", "날씨", "\ud800"] for i in range(40)]
TABLE = WordTable(IMAGE)
VECTORS = WordVectors(TABLE, DOCUMENTS)


def ranking(n: int, score: float = 1.0) -> "tuple[memoryview, memoryview]":
    return memoryview(array.array("I", range(n))), memoryview(array.array("d", [score] * n))


CALLS = {
    "a table": lambda: WordTable(IMAGE),
    "vectors": lambda: WordVectors(TABLE, DOCUMENTS),
    "cosines": lambda: VECTORS.cosines(["word1", "날씨", "\ud800"]),
    "an order": lambda: VECTORS.order(["word1"], *ranking(40)),
    "a cut file": raising(ValueError, lambda: WordTable(IMAGE[:-1])),
    "words out of order": raising(ValueError, lambda: WordTable(oracle.sealed(IMAGE[32:-1] + b"\0", 50, 290))),
    "a text that is none": raising(TypeError, lambda: WordVectors(TABLE, [*DOCUMENTS, [1]])),
    "a query that is none": raising(TypeError, lambda: VECTORS.cosines([1])),
    "a query of an order that is none": raising(TypeError, lambda: VECTORS.order([1], *ranking(40))),
    "a score that is none": raising(ValueError, lambda: VECTORS.order([], *ranking(40, float("nan")))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_keeps_no_memory(name: str) -> None:
    assert growth(CALLS[name]) < LEAK
