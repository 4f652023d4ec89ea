"""Compressed replies: read as they come, within bounds, by whatever decoders this installation has."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from cg.gateway.exchange import Headers, first

PIECE_BYTES = 1024 * 1024  # decoded at one time: a few bytes can stand for very many


class Undecodable(Exception):
    """The reply is compressed in a way that is not known here, or its bytes are damaged."""


class Decoder(Protocol):
    """Turns the pieces of one compressed body into what they stand for."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """What can be read so far, in pieces of bounded size. Raises Undecodable."""
        ...


class Plain:
    """A body that is not compressed."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        yield piece


class Zlib:
    """gzip and deflate; what is sent as deflate comes with or without zlib's frame."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._bits: int | None = 16 + zlib.MAX_WBITS if is_gzip else None
        self._reader = zlib.decompressobj(self._bits) if self._bits is not None else None

    def feed(self, piece: bytes) -> Iterator[bytes]:
        if self._reader is None:
            if not piece:
                return
            self._bits = zlib.MAX_WBITS if piece[0] & 0x0F == 8 else -zlib.MAX_WBITS
            self._reader = zlib.decompressobj(self._bits)
        while piece:
            try:
                yield self._reader.decompress(piece, PIECE_BYTES)
            except zlib.error as error:
                raise Undecodable(str(error)) from None
            piece = self._reader.unconsumed_tail
            if self._reader.eof:  # another member may follow
                piece = self._reader.unused_data
                self._reader = zlib.decompressobj(self._bits or zlib.MAX_WBITS)


class Foreign:
    """A decoder of another library: an object with one method that takes bytes and gives bytes."""

    def __init__(self, method: Callable[[bytes], bytes]) -> None:
        self._method = method

    def feed(self, piece: bytes) -> Iterator[bytes]:
        try:
            decoded = self._method(piece)
        except Exception as error:  # each library has its own
            raise Undecodable(type(error).__name__) from None
        yield decoded


def _found(*names: str) -> Any:
    """The first of these modules that is installed; None if none is."""
    for name in names:
        with suppress(ImportError):
            return import_module(name)
    return None


def _brotli() -> Callable[[], Decoder] | None:
    module = _found("brotli", "brotlicffi")
    return None if module is None else lambda: Foreign(module.Decompressor().process)


def _zstd() -> Callable[[], Decoder] | None:
    """The standard library's from Python 3.14 on."""
    module = _found("compression.zstd", "zstandard")
    if module is None:
        return None
    if hasattr(module.ZstdDecompressor, "decompressobj"):
        return lambda: Foreign(module.ZstdDecompressor().decompressobj().decompress)
    return lambda: Foreign(module.ZstdDecompressor().decompress)


_MAKERS: dict[bytes, Callable[[], Decoder] | None] = {
    b"identity": Plain,
    b"gzip": lambda: Zlib(is_gzip=True),
    b"x-gzip": lambda: Zlib(is_gzip=True),
    b"deflate": lambda: Zlib(is_gzip=False),
    b"br": _brotli(),
    b"zstd": _zstd(),
}


def decoder_for(headers: Headers) -> Decoder | None:
    """The decoder of a reply; None when its encoding is not known here, or was applied twice."""
    coding = (first(headers, b"content-encoding") or b"identity").strip().lower()
    maker = _MAKERS.get(coding)
    return maker() if maker else None


def is_encoded(headers: Headers) -> bool:
    """Whether a reply's bytes are not those that they stand for."""
    return (first(headers, b"content-encoding") or b"identity").strip().lower() != b"identity"


def acceptable(headers: Headers) -> Headers:
    """The request's headers with only such encodings accepted as can be read here; their order and weights stay.

    A reply that cannot be read cannot be counted, and an expansion in it would reach the client.
    """
    kept: Headers = []
    for name, value in headers:
        if name == b"accept-encoding":
            offers = [offer.strip() for offer in value.split(b",")]
            known = [o for o in offers if _MAKERS.get(o.partition(b";")[0].strip().lower())]
            value = b", ".join(known) or b"identity"
        kept.append((name, value))
    return kept
