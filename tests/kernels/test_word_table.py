"""A word table's vectors are those of the file's description; any other file is an error and never a crash."""

import array
import math
import random
import struct
import zlib

import pytest
import word_table_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st

from cg.word_table import WordTable, WordVectors


def rows_of(rng: random.Random, words: list[str]) -> oracle.Rows:
    return {word: (round(rng.uniform(0.1, 4), 3), [rng.choice((-1, 0, 0, 1)) for _ in range(128)]) for word in words}


WORDS = ["a", "aardvark", "aardvarks", "weather", "weathers", "forecast", "날씨", "z" * 255, "\U0001f600"]
ROWS = rows_of(random.Random(1), WORDS)
IMAGE = oracle.image(ROWS)
TEXTS = st.lists(st.sampled_from([*WORDS, "unknown", "", "weathe", "\ud800"]), max_size=6)


def ranking(scores: list[float]) -> "tuple[memoryview, memoryview]":
    return memoryview(array.array("I", range(len(scores)))), memoryview(array.array("d", scores))


@given(TEXTS, st.lists(TEXTS, max_size=20))
def test_cosines_are_those_of_the_sums_of_the_words_vectors(query, documents):
    """A word counts as often as it occurs, an unknown one not at all; a text without a known word is at 0 to all."""
    found = WordVectors(WordTable(IMAGE), documents).cosines(query)
    assert found == pytest.approx(oracle.cosines(ROWS, query, documents), abs=1e-5)


@given(st.lists(TEXTS, min_size=1, max_size=20), st.data())
def test_the_order_is_by_share_of_the_best_score_plus_cosine(documents, data):
    scores = data.draw(st.lists(st.sampled_from([0.0, 0.5, 3.25]), min_size=len(documents), max_size=len(documents)))
    vectors = WordVectors(WordTable(IMAGE), documents)
    found = vectors.order(["weather", "a"], *ranking(scores))
    assert found == oracle.order(vectors.cosines(["weather", "a"]), scores)


def test_a_ranking_may_name_some_of_the_documents_in_any_order():
    vectors = WordVectors(WordTable(IMAGE), [["a"], ["weather"], ["forecast"]])
    docs, scores = memoryview(array.array("I", [2, 0])), memoryview(array.array("d", [1.0, 1.0]))
    assert vectors.order(["a"], docs, scores) == [0, 2]


def test_equal_documents_stand_by_position():
    assert WordVectors(WordTable(IMAGE), [["a"]] * 300).order(["a"], *ranking([1.0] * 300)) == list(range(300))


def test_every_word_is_found_and_no_other():
    table = WordTable(IMAGE)
    assert len(table) == len(WORDS) and all(word in table for word in WORDS)
    assert not any(word in table for word in ("", "aa", "aardvar", "b", "z" * 254, "z" * 256, "\ud800", "날"))


def test_a_table_of_ten_thousand_words_is_searched_by_halves():
    words = [f"{i:x}" for i in range(10_000)] + [f"sameprefix{i}" for i in range(500)]
    table = WordTable(oracle.image({word: (1.0, [0] * 128) for word in words}))
    assert all(word in table for word in words) and "sameprefix" not in table and "sameprefix500" not in table


@pytest.mark.parametrize("n", [*range(40), len(IMAGE) - 1])
def test_a_cut_file_is_refused(n):
    with pytest.raises(ValueError, match="not a usable word table"):
        WordTable(IMAGE[:n])


def test_a_file_with_more_behind_it_is_refused():
    with pytest.raises(ValueError, match="length"):
        WordTable(IMAGE + b"\0")


@pytest.mark.parametrize("at", range(0, len(IMAGE), 7))
def test_a_changed_byte_is_noticed(at):
    """The header is checked field by field, all behind it by a checksum."""
    with pytest.raises(ValueError, match="not a usable word table"):
        WordTable(IMAGE[:at] + bytes([IMAGE[at] ^ 1]) + IMAGE[at + 1 :])


def body_of(words: list[bytes], scale: float = 1.0, row: bytes = bytes(26)) -> bytes:
    return struct.pack("<f", scale) * len(words) + row * len(words) + bytes(map(len, words)) + b"".join(words)


def forged(words: list[bytes], **body: object) -> bytes:
    return oracle.sealed(body_of(words, **body), len(words), sum(map(len, words)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (oracle.sealed(b"", 0, 0), "number of words"),
        (oracle.sealed(b"", 0xFFFFFFFF, 0xFFFFFFFF), "number of words"),
        (oracle.sealed(body_of([b"a"]), 1, 0xFFFFFFFF), "length"),
        (oracle.sealed(body_of([b"a"]), 1, 1, version=2), "version"),
        (oracle.sealed(body_of([b"a"]), 1, 1, dims=127), "vectors"),
        (oracle.sealed(body_of([b"a"]), 1, 1, byte_order=0x04030201), "byte order"),
        (oracle.sealed(body_of([b"a"]), 1, 1, crc=0), "checksum"),
        (forged([b"b", b"a"]), "order"),
        (forged([b"a", b"a"]), "order"),
        (forged([b"sameprefixb", b"sameprefixa"]), "order"),
        (forged([b"a", b""]), "lengths"),
        (oracle.sealed(body_of([b"a"])[:-2] + b"\xffa", 1, 1), "lengths"),
        (oracle.sealed(body_of([b"aa"])[:-3] + b"\x01aa", 1, 2), "lengths"),
        (forged([b"a"], scale=math.nan), "scale"),
        (forged([b"a"], scale=math.inf), "scale"),
        (forged([b"a"], scale=-1.0), "scale"),
        (forged([b"a"], scale=2e6), "scale"),
        (forged([b"a"], row=bytes([243] + [0] * 25)), "five digits"),
        (forged([b"a"], row=bytes([0] * 25 + [27])), "three digits"),
    ],
)  # fmt: skip
def test_a_forged_file_is_refused_by_name(data, wrong):
    """Its checksum fits; what it says does not."""
    with pytest.raises(ValueError, match=wrong):
        WordTable(data)


def test_a_forged_file_is_refused_or_answers():
    """Bytes replaced anywhere, with a checksum that fits."""
    rng = random.Random(1)
    accepted = 0
    for _ in range(3000):
        data = bytearray(IMAGE)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(8, len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        data[28:32] = struct.pack("<I", zlib.crc32(data[32:]))
        try:
            table = WordTable(bytes(data))
        except ValueError:
            continue
        accepted += 1
        found = WordVectors(table, [[word] for word in WORDS]).cosines(WORDS)
        assert all(abs(cosine) < 1.001 for cosine in found)
    assert 0 < accepted < 3000


def test_the_largest_scale_overflows_nothing():
    table = WordTable(oracle.image({"a": (1e6, [1] * 128), "b": (1e6, [-1] * 128)}))
    vectors = WordVectors(table, [["a"] * 100_000, ["b"] * 100_000, ["a", "b"]])
    assert vectors.cosines(["a"]) == pytest.approx([1, -1, 0], abs=1e-3)


@pytest.mark.parametrize(
    ("docs", "scores", "wrong"),
    [
        ([0], [], "scores"), ([2], [1.0], "document 2 of 2"), ([0xFFFFFFFF], [1.0], "of 2"),
        ([0], [math.nan], "nan"), ([0], [math.inf], "inf"), ([0], [-1.0], "-1"),
    ],
)  # fmt: skip
def test_a_ranking_of_something_else_is_refused(docs, scores, wrong):
    vectors = WordVectors(WordTable(IMAGE), [["a"], ["weather"]])
    with pytest.raises(ValueError, match=wrong):
        vectors.order([], memoryview(array.array("I", docs)), memoryview(array.array("d", scores)))


def test_a_wrong_type_is_refused():
    table = WordTable(IMAGE)
    for make in (lambda: WordTable("x"), lambda: WordTable(None), lambda: WordVectors(None, []), lambda: WordVectors(table, 1),
                 lambda: WordVectors(table, [[1]]), lambda: WordVectors(table, [["a"]]).cosines([b"a"])):  # fmt: skip
        with pytest.raises(TypeError):
            make()


def test_an_exception_in_the_texts_comes_through():
    def documents():
        yield ["a"]
        raise KeyError("third")

    with pytest.raises(KeyError):
        WordVectors(WordTable(IMAGE), documents())


def test_no_documents_give_an_empty_order():
    vectors = WordVectors(WordTable(IMAGE), [])
    assert len(vectors) == 0 and vectors.cosines(["a"]) == [] and vectors.order(["a"], *ranking([])) == []
