"""A word table's file, written from its description, and what it says about texts, in plain Python."""

import math
import struct
import zlib
from collections.abc import Iterable

DIMS, ROW_BYTES, HEADER_BYTES = 128, 26, 32
Digits = list[int]  # DIMS times -1, 0 or 1
Rows = dict[str, tuple[float, Digits]]  # a scale and the digits of each word


def sealed(body: bytes, n_words: int, word_bytes: int, **header: int) -> bytes:
    """A file whose checksum fits its body; `header` overrides numbers of the header."""
    fields = {"version": 1, "byte_order": 0x01020304, "n_words": n_words, "dims": DIMS, "word_bytes": word_bytes}
    fields |= {"crc": zlib.crc32(body)} | header
    return struct.pack("<8s6I", b"cgwords\n", *fields.values()) + body


def image(rows: Rows) -> bytes:
    """The file of a table."""
    words = sorted(rows, key=lambda word: word.encode("utf-8", "surrogatepass"))
    scales, packed = b"", b""
    for word in words:
        scale, digits = rows[word]
        scales += struct.pack("<f", scale)
        groups = [digits[i : i + 5] for i in range(0, DIMS, 5)]
        packed += bytes(sum((digit + 1) * 3**j for j, digit in enumerate(group)) for group in groups)
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    text = b"".join(encoded)
    return sealed(scales + packed + bytes(map(len, encoded)) + text, len(words), len(text))


def vector(rows: Rows, words: Iterable[str]) -> list[float]:
    """The sum of the words' vectors, divided by its length unless that is 0."""
    known = [rows[word] for word in words if word in rows]
    total = [sum(scale * digits[i] for scale, digits in known) for i in range(DIMS)]
    length = math.sqrt(sum(x * x for x in total))
    return [x / length for x in total] if length else total


def cosines(rows: Rows, query: Iterable[str], documents: Iterable[Iterable[str]]) -> list[float]:
    asked = vector(rows, query)
    return [sum(x * y for x, y in zip(asked, vector(rows, document), strict=True)) for document in documents]


def order(cosine: list[float], score: list[float]) -> list[int]:
    """Positions by score divided by the highest, plus cosine; ties by position."""
    highest = max(score, default=0) or 1
    return sorted(range(len(score)), key=lambda i: (-(score[i] / highest + cosine[i]), i))
