"""Hints from a word table that comes with the package: no model, no download, nothing called at run time.

The table was trained by bench/hints/train.py; NOTICE.txt says from what, and under which licences.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cg.bm25 import tokenize
from cg.word_table import WordTable, WordVectors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cg.bm25 import Hits

TABLE = Path(__file__).with_name("word_table.bin")


def words(text: str) -> list[str]:
    """What the table knows a text by: its words and the parts of its identifiers."""
    return tokenize(text, analyzer="code")


@cache
def word_table() -> WordTable:
    """The table of the package, read and checked once. Raises ValueError if the file is damaged."""
    return WordTable(TABLE.read_bytes())


class TableHints:
    """Makes hints for the documents of one catalog; immutable, so threads may share it."""

    def __init__(self, texts: Iterable[str], table: WordTable | None = None) -> None:
        """`texts` as they were indexed; `table` is the package's own unless given."""
        self._vectors = WordVectors(word_table() if table is None else table, map(words, texts))

    def order(self, query: str, ranked: Hits) -> list[int]:
        """The documents of `ranked`, an index's rank() of the query, by score/max + cosine; ties by position."""
        return self._vectors.order(words(query), ranked.docs, ranked.scores)
