"""Compressed bodies come back whole, however they are cut, and never larger than is bearable at one time."""

import gzip
import importlib
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cg.gateway.http.content_encoding import (
    MAX_DECODED_BYTES,
    PIECE_BYTES,
    Undecodable,
    acceptable,
    decoder_for,
    is_encoded,
)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS = {b"gzip": gzip.compress, b"deflate": zlib.compress, b"x-gzip": gzip.compress, b"identity": bytes}


@given(st.sampled_from([*PACKERS, b"raw"]), st.binary(max_size=2000), st.integers(1, 300))
def test_any_cutting_gives_the_same_bytes(coding: bytes, data: bytes, size: int) -> None:
    """Also of several members behind one another, as gzip allows."""
    packed = raw_deflate(data) if coding == b"raw" else PACKERS[coding](data)
    if coding == b"gzip":
        packed, data = packed + gzip.compress(b"more"), data + b"more"
    decoder = decoder_for([(b"content-encoding", b"deflate" if coding == b"raw" else coding)])
    assert decoder is not None
    found = [part for at in range(0, len(packed), size) for part in decoder.feed(packed[at : at + size])]
    assert b"".join(found) == data


def test_a_few_bytes_that_stand_for_many_come_in_bearable_pieces() -> None:
    """A reply made to fill the memory is read a megabyte at a time."""
    decoder = decoder_for([(b"content-encoding", b"gzip")])
    assert decoder is not None
    sizes = [len(part) for part in decoder.feed(gzip.compress(b"\0" * (8 * PIECE_BYTES)))]
    assert max(sizes) <= PIECE_BYTES and sum(sizes) == 8 * PIECE_BYTES


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
def test_damaged_bytes_are_named_as_such(coding: bytes) -> None:
    """Not an exception that a caller does not know."""
    decoder = decoder_for([(b"content-encoding", coding)])
    assert decoder is not None
    with pytest.raises(Undecodable):
        list(decoder.feed(b"\x1f\x8bnonsense that is no stream at all"))


def test_an_unknown_encoding_has_no_decoder() -> None:
    """Nor has one that was applied twice; none at all is a plain body."""
    assert decoder_for([(b"content-encoding", b"snappy")]) is None
    assert decoder_for([(b"content-encoding", b"gzip, gzip")]) is None
    assert decoder_for([]) is not None and not is_encoded([]) and is_encoded([(b"content-encoding", b"GZIP ")])


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        (b"gzip, deflate", b"gzip, deflate"),
        (b"snappy, gzip;q=0.5 ,x", b"gzip;q=0.5"),
        (b"snappy", b"identity"),
        (b"*", b"identity"),
    ],
)
def test_only_what_can_be_read_is_accepted(offered: bytes, kept: bytes) -> None:
    """Everything else among the headers stays as it is; where nothing was offered nothing is added."""
    assert acceptable([(b"accept-encoding", offered), (b"a", b"b")]) == [(b"accept-encoding", kept), (b"a", b"b")]
    assert acceptable([(b"a", b"b")]) == [(b"a", b"b")]


CODINGS = [b"gzip", b"deflate", b"raw", b"br", b"zstd"]
BEHIND = [b"", b"\0", b"\0" * 9, b"\x1f", b"\x1f\x8b", b"more", b"\x50\x2a\x4d\x18\x04\0\0\0abcd"]


def packer(coding: bytes) -> Any:
    """What compresses in a coding; skips where its library is not installed."""
    if coding in (b"br", b"zstd"):
        return pytest.importorskip({b"br": "brotli", b"zstd": "zstandard"}[coding]).compress
    return raw_deflate if coding == b"raw" else PACKERS[coding]


def theirs(library: Any, coding: bytes, pieces: list[bytes]) -> tuple[bytes, bool]:
    """What a client's own library reads of a body, and whether it reads it to an end."""
    reply = library.Response(200, headers={"content-encoding": coding.decode()}, stream=body_of(library, pieces))
    read = bytearray()
    try:
        for part in reply.iter_bytes():
            read += part
    except library.DecodingError:
        return bytes(read), False
    return bytes(read), True


def body_of(library: Any, pieces: list[bytes]) -> Any:
    """A body of the library's own kind."""
    return type("Pieces", (library.SyncByteStream,), {"__iter__": lambda self: iter(pieces)})()


def ours(coding: bytes, pieces: list[bytes]) -> tuple[bytes, bool]:
    """The same of the decoder here."""
    decoder = decoder_for([(b"content-encoding", coding)])
    assert decoder is not None
    read = bytearray()
    try:
        for piece in pieces:
            for part in decoder.feed(piece):
                read += part
        decoder.end()
    except Undecodable:
        return bytes(read), False
    return bytes(read), True


@pytest.mark.parametrize("name", ["httpx2", "httpx"])
@pytest.mark.parametrize("coding", CODINGS)
@given(st.data())
def test_whatever_a_client_would_read_is_read_here(name: str, coding: bytes, data: st.DataObject) -> None:
    """Several bodies behind one another, something else behind them, cut short, damaged, and in any pieces: every byte
    that the client's own decoder gives out comes out, and an error only where it has one."""
    library, pack = pytest.importorskip(name), packer(coding)
    coding = b"deflate" if coding == b"raw" else coding
    if coding.decode() not in importlib.import_module(f"{name}._decoders").SUPPORTED_DECODERS:
        pytest.skip(f"this {name} does not read it")
    bodies = data.draw(st.lists(st.binary(max_size=400), min_size=1, max_size=3))
    packed = bytearray(b"".join(map(pack, bodies)) + data.draw(st.sampled_from(BEHIND)))
    match data.draw(st.sampled_from(["whole", "cut", "damaged"])):
        case "cut":
            del packed[data.draw(st.integers(0, len(packed))) :]
        case "damaged":
            packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    size = data.draw(st.sampled_from([2, 3, 17, 1000, 10_000]))
    pieces = [bytes(packed[at : at + size]) for at in range(0, len(packed), size)]
    (expected, is_fine), (read, is_ours) = theirs(library, coding, pieces), ours(coding, pieces)
    assert read.startswith(expected)
    assert is_ours or not is_fine
    if is_fine and coding != b"gzip":  # of which they read the first member only
        assert read == expected


@pytest.mark.parametrize(("coding", "pack"), [(b"gzip", gzip.compress), (b"zstd", None)])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_bodies_behind_one_another_are_one(coding: bytes, pack: Any, size: int) -> None:
    """Members and frames come together or apart, with nothing said between them."""
    pack = pack or packer(coding)
    packed = b"".join(pack(text) for text in (b"one ", b"", b"two ", b"three"))
    pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
    assert ours(coding, pieces) == (b"one two three", True)


@pytest.mark.parametrize("behind", [b"\0" * 8, b"\x1f\x8b\0damaged", b"anything"])
@pytest.mark.parametrize("size", [1, 10_000])
def test_what_is_behind_a_gzip_member_and_is_none_is_ignored(behind: bytes, size: int) -> None:
    """Padding, mostly; what comes behind it is not looked at either."""
    packed = gzip.compress(b"whole") + behind + gzip.compress(b"!")
    assert ours(b"gzip", [packed[at : at + size] for at in range(0, len(packed), size)]) == (b"whole", True)


def test_a_frame_that_was_cut_is_not_whole() -> None:
    """A client would say so."""
    packed = packer(b"zstd")(b"some text " * 40)
    assert ours(b"zstd", [packed, packed[:-3]])[1] is False and ours(b"zstd", [packed])[1] is True


@pytest.mark.parametrize("extra", [0, 1, 200, 258])
def test_nothing_stays_in_a_decoder_whose_last_piece_is_full(extra: int) -> None:
    """A frame without an end of its own may be read to its last byte while some of what it stands for is not out."""
    data = b"\0" * (PIECE_BYTES + extra)
    assert ours(b"deflate", [raw_deflate(data)]) == (data, True)


def zeros(coding: bytes, mebibytes: int) -> bytes:
    """What stands for that many bytes of zero, made piece by piece."""
    pack: Any
    if coding == b"br":
        pack = pytest.importorskip("brotli").Compressor(quality=5, lgwin=24)
        feed, finish = pack.process, pack.finish
    elif coding == b"zstd":
        pack = pytest.importorskip("zstandard").ZstdCompressor().compressobj()
        feed, finish = pack.compress, pack.flush
    else:
        pack = zlib.compressobj(9, zlib.DEFLATED, {b"gzip": 31, b"deflate": 15, b"raw": -15}[coding])
        feed, finish = pack.compress, pack.flush
    return b"".join([*(feed(bytes(2**20)) for _ in range(mebibytes)), finish()])


@pytest.mark.parametrize("coding", CODINGS)
def test_what_a_few_bytes_stand_for_comes_in_bounded_pieces(coding: bytes) -> None:
    """And ends at a bound over all of them: no reply is that long, and the event loop is held up by it."""
    packed = zeros(coding, 64)
    sizes: list[int] = []
    tracemalloc.start()
    decoder = decoder_for([(b"content-encoding", b"deflate" if coding == b"raw" else coding)])
    assert decoder is not None
    with pytest.raises(Undecodable):
        for part in decoder.feed(packed):
            sizes.append(len(part))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(sizes) <= 4 * PIECE_BYTES and peak < 16 * PIECE_BYTES
    assert sum(sizes) <= MAX_DECODED_BYTES
    with pytest.raises(Undecodable):  # nor is more of it looked at
        list(decoder.feed(packed))


@pytest.mark.parametrize("coding", CODINGS)
def test_a_long_reply_below_the_bound_is_read_whole(coding: bytes) -> None:
    """In pieces of any size."""
    packed = zeros(coding, 5)
    name = b"deflate" if coding == b"raw" else coding
    for size in (7, 100, len(packed)):
        pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
        assert ours(name, pieces) == (bytes(5 * 2**20), True)
