"""Index files: what save() writes, load() gives back; anything else is an error and never a crash."""

import os
import random
import struct

import pytest
from bm25_format import HEADER_SIZE, WIDTHS, checksum, resealed, sealed, sections

from cg.bm25 import BM25Index

LONG = os.environ.get("CG_LONG") == "1"


def texts():
    """Short terms, lists, a wide list, columns and exceptions, all in one small collection."""
    rng = random.Random(1)
    out = []
    for i in range(700):
        words = [f"w{min(200, int(rng.paretovariate(0.7)))}" for _ in range(12)] + [f"only{i}"]
        out.append(" ".join(words + ["often"] * (i % 5) * 90 + ["many"] * (300 if i % 11 == 0 else 0)))
    return [*out, "", "한국어 東京"]


@pytest.fixture(scope="module")
def index():
    return BM25Index(texts(), k1=1.5, b=0.6)


@pytest.fixture(scope="module")
def image(index, tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "whole.cg"
    index.save(path)
    return path.read_bytes()


QUERIES = ["w1 w2 w3", "often many only7", "w1", "東京 한국어 w9", "", "w200 w100 w50 w20 w10 w5 w2"]


def ask(index):
    return [(index.rank(query), index.search(query, 10), index.search(query, 300)) for query in QUERIES]


@pytest.mark.parametrize("mmap", [True, False])
def test_a_loaded_index_answers_as_the_saved_one(index, tmp_path, mmap):
    path = tmp_path / "index.cg"
    index.save(path)
    again = BM25Index.load(path, mmap=mmap)
    assert (again.n_docs, again.n_terms, again.k1, again.b) == (index.n_docs, index.n_terms, 1.5, 0.6)
    assert ask(again) == ask(index)
    path.unlink()
    assert ask(again) == ask(index)


def test_the_same_texts_give_the_same_bytes(image, tmp_path):
    BM25Index(texts(), k1=1.5, b=0.6).save(tmp_path / "again.cg")
    assert (tmp_path / "again.cg").read_bytes() == image


@pytest.mark.parametrize("harm", ["cut", "overwritten"])
def test_a_file_that_is_changed_after_loading_changes_no_answer(index, tmp_path, harm):
    """The file is copied unless a map is asked for: a map of a changed file would end the process."""
    path = tmp_path / "index.cg"
    index.save(path)
    again = BM25Index.load(path)
    if harm == "cut":
        os.truncate(path, 100)
    else:
        path.write_bytes(b"\xff" * path.stat().st_size)
    assert (
        again.rank("w1 w2 often") == index.rank("w1 w2 often") and again.scores("w1").sum() == index.scores("w1").sum()
    )


def test_a_loaded_index_can_be_saved_over_its_own_file(index, tmp_path):
    path = tmp_path / "index.cg"
    index.save(path)
    first = path.read_bytes()
    BM25Index.load(path).save(path)
    assert path.read_bytes() == first and os.listdir(tmp_path) == ["index.cg"]


def test_a_failed_save_leaves_nothing_behind(index, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        index.save(tmp_path / "taken")
    assert os.listdir(tmp_path) == ["taken"]


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        BM25Index.load(tmp_path / "none")


def test_what_is_no_regular_file_is_refused_before_it_is_read(tmp_path):
    others = [path for path in ("/dev/null", "/dev/zero") if os.path.exists(path)]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        others.append(tmp_path / "pipe")
    for path in others:
        for mmap in (True, False):
            with pytest.raises(ValueError, match="no regular file"):
                BM25Index.load(path, mmap=mmap)
    with pytest.raises(OSError):
        BM25Index.load(tmp_path)


def test_a_descriptor_is_no_path_and_stays_open(index, tmp_path):
    index.save(tmp_path / "index.cg")
    with open(tmp_path / "index.cg", "rb") as file:
        with pytest.raises(TypeError):
            BM25Index.load(file.fileno())
        assert file.read(7) == b"cg-bm25"


def refused(path, data):
    path.write_bytes(data)
    for mmap in (True, False):
        with pytest.raises(ValueError, match="not a usable index"):
            BM25Index.load(path, mmap=mmap)


def test_a_truncated_file_is_refused(image, tmp_path):
    for size in [0, 1, 7, 8, 63, HEADER_SIZE - 1, HEADER_SIZE, HEADER_SIZE + 1, len(image) // 2, len(image) - 1]:
        refused(tmp_path / "cut", image[:size])
    refused(tmp_path / "long", image + b"\0" * 64)


def test_a_flipped_bit_is_refused_wherever_it_is(image, tmp_path):
    rng = random.Random(2)
    spots = {*range(HEADER_SIZE), *rng.sample(range(HEADER_SIZE, len(image)), 200)}
    spots -= set(range(HEADER_SIZE, (HEADER_SIZE + 63) & ~63))  # padding between header and sections says nothing
    path = tmp_path / "flipped"
    for spot in spots:
        broken = bytearray(image)
        broken[spot] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="not a usable index"):
            BM25Index.load(path)


def test_the_checksums_of_the_tests_are_those_of_the_format(image):
    assert sealed(image) == image


@pytest.mark.parametrize("field", range(8, HEADER_SIZE - 8, 4))
def test_a_forged_header_field_is_refused_or_harmless(image, tmp_path, field):
    """Every header word set to hostile values, checksums made to fit: an error, or an index that still answers."""
    for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000):
        forged = bytearray(image)
        struct.pack_into("<I", forged, field, value)
        struct.pack_into("<Q", forged, HEADER_SIZE - 8, checksum(bytes(forged[: HEADER_SIZE - 8])))
        survive(tmp_path / "forged", bytes(forged))


def survive(path, data):
    path.write_bytes(data)
    try:
        index = BM25Index.load(path, mmap=False)
    except ValueError:
        return False
    ask(index)
    return True


@pytest.mark.parametrize("code", [1, 173, 254])
def test_codes_that_are_not_those_of_their_postings_are_harmless(image, tmp_path, code):
    """Bounds that a writer's codes keep are broken by these, which a debug build must not take for a fault of its own."""
    forged = bytearray(image)
    for section in (9, 11):  # codes of lists, columns
        start, end = sections(image)[section]
        forged[start:end] = bytes(code if byte else 0 for byte in image[start:end])
        forged = bytearray(resealed(forged, section))
    assert survive(tmp_path / "forged", bytes(forged))


@pytest.mark.parametrize("section", range(16))
def test_forged_content_is_refused_or_harmless(image, tmp_path, section):
    """Numbers of every section replaced, checksums made to fit: an error, or an index that still answers."""
    rng = random.Random(section)
    start, end = sections(image)[section]
    if start == end:
        pytest.fail("the test collection does not reach this section")
    refusals = 0
    for round_ in range(400 if LONG else 25):
        forged = bytearray(image)
        for _ in range(rng.choice([1, 1, 4])):
            spot = rng.randrange(start, max(start + 1, end - 8)) // WIDTHS[section] * WIDTHS[section]
            value = rng.choice([b"\0" * 4, b"\xff" * 4, rng.randbytes(4), b"\x01\0\0\0", b"\0\x01\0\0"])
            forged[spot : spot + WIDTHS[section]] = (value * 8)[: WIDTHS[section]]
        refusals += not survive(tmp_path / f"forged{round_ % 2}", resealed(forged, section))
    assert refusals or section in (9, 10, 13)  # a code or tf may be any number: it changes scores and nothing else
