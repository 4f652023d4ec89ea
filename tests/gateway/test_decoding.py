"""Compressed bodies come back whole, however they are cut, and never larger than is bearable at one time."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cg.gateway.decoding import PIECE_BYTES, Undecodable, acceptable, decoder_for, is_encoded


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
