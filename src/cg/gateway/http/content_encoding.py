"""Compressed replies: read as they come, within bounds, by whatever decoders this installation has."""

import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from cg.gateway.exchange import Headers, first
from cg.gateway.loop_turns import LoopTurns
from cg.gateway.upstream.contract import Reply

PIECE_BYTES = 1024 * 1024  # decoded at one time: a few bytes can stand for very many
PART_BYTES = 64 * 1024  # looked at between two turns of the loop
GZIP_SLICE_BYTES = 8 * 1024  # what stands behind a member is copied at its end, and a member may have twenty bytes
ZSTD_SLICE_BYTES = 32  # eight blocks
MAX_ZSTD_WINDOW_LOG = 26  # 64 MiB, which the decoder keeps; RFC 9659 allows 8
MAX_DECODED_BYTES = 32 * 1024 * 1024  # of one reply; the longest message is some megabytes


class Undecodable(Exception):
    """The reply is compressed in a way that is not known here, or its bytes are damaged."""


class ContentDecoder(Protocol):
    """Turns the pieces of one compressed body into what they stand for."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """What can be read so far, in pieces of bounded size. Raises Undecodable."""
        ...

    def end(self) -> None:
        """All has been fed. Raises Undecodable where a client would not take that for the end."""
        ...


class IdentityDecoder:
    """A body that is not compressed."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        yield piece

    def end(self) -> None:
        """It may end anywhere."""


class _ZlibMember:
    """One member of zlib's, in whichever frame. Clients take one that was cut for whole, so nothing is said at its
    end."""

    def __init__(self, bits: int) -> None:
        self._reader = zlib.decompressobj(bits)

    @property
    def is_over(self) -> bool:
        return self._reader.eof

    @property
    def unused(self) -> bytes:
        """What was fed with the member's last bytes and is none of them."""
        return self._reader.unused_data

    def feed(self, piece: bytes) -> Iterator[bytes]:
        while True:
            try:
                decoded = self._reader.decompress(piece, PIECE_BYTES)
            except zlib.error as error:
                raise Undecodable(str(error)) from None
            yield decoded
            piece = self._reader.unconsumed_tail
            if not piece and len(decoded) < PIECE_BYTES:  # a full piece may have left something in the reader
                return


class GzipDecoder:
    """Members behind one another. As clients do, it ignores what comes after a member and is none: padding, as a rule."""

    def __init__(self) -> None:
        self._member = _ZlibMember(16 + zlib.MAX_WBITS)
        self._is_first = True
        self._is_over = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        for at in range(0, len(piece), GZIP_SLICE_BYTES):
            yield from self._feed_slice(piece[at : at + GZIP_SLICE_BYTES])

    def _feed_slice(self, piece: bytes) -> Iterator[bytes]:
        while piece and not self._is_over:
            if self._member.is_over:
                self._member, self._is_first = _ZlibMember(16 + zlib.MAX_WBITS), False
            try:
                yield from self._member.feed(piece)
            except Undecodable:
                if self._is_first:
                    raise
                self._is_over = True
            piece = self._member.unused

    def end(self) -> None:
        """See `_ZlibMember`."""


class DeflateDecoder:
    """With zlib's frame or without: senders do either. What comes behind its end is ignored, as clients do."""

    def __init__(self) -> None:
        self._member: _ZlibMember | None = None
        self._head = b""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        if self._member is None:
            piece, self._head = self._head + piece, b""
            if len(piece) < 2:
                self._head = piece
                return
            self._member = _ZlibMember(zlib.MAX_WBITS if _is_framed(piece) else -zlib.MAX_WBITS)
        if not self._member.is_over:
            yield from self._member.feed(piece)

    def end(self) -> None:
        """See `_ZlibMember`."""


def _is_framed(head: bytes) -> bool:
    """Whether two bytes begin zlib's frame, by its check; a frame that names a dictionary nobody could read."""
    method, flags = head[0], head[1]
    return method & 0x0F == 8 and method >> 4 <= 7 and (method << 8 | flags) % 31 == 0 and not flags & 0x20


class ZstdDecoder:
    """Frames behind one another; unlike gzip's members nothing else may follow, and none may be cut.

    The library has no bound on what it gives out at once. A block stands for 128 KiB at most and takes four bytes at
    least, so it is fed in slices.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._reader: Any = None

    def feed(self, piece: bytes) -> Iterator[bytes]:
        for at in range(0, len(piece), ZSTD_SLICE_BYTES):
            yield from self._feed_slice(piece[at : at + ZSTD_SLICE_BYTES])

    def _feed_slice(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            if self._reader is None or self._reader.eof:
                self._reader = self._make()
            try:
                decoded = self._reader.decompress(piece)
            except Exception as error:  # each library has its own
                raise Undecodable(type(error).__name__) from None
            yield decoded
            piece = self._reader.unused_data if self._reader.eof else b""

    def end(self) -> None:
        if self._reader is not None and not self._reader.eof:
            raise Undecodable("the last frame is not complete")


class BrotliDecoder:
    """One stream."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def feed(self, piece: bytes) -> Iterator[bytes]:
        while True:
            try:
                decoded = self._reader.process(piece, output_buffer_limit=PIECE_BYTES)
            except Exception as error:  # each library has its own
                raise Undecodable(type(error).__name__) from None
            yield decoded
            # A full piece may have left something in the reader although it would take more.
            if self._reader.is_finished() or (len(decoded) < PIECE_BYTES and self._reader.can_accept_more_data()):
                return
            piece = b""

    def end(self) -> None:
        """Clients take what was cut for whole."""


class BoundedDecoder:
    """Another decoder, up to a bound on all that it takes and on all that it gives out: a kilobyte can stand for gigabytes,
    and gigabytes behind the end of a body for nothing."""

    def __init__(self, decoder: ContentDecoder) -> None:
        self._decoder = decoder
        self._taken = self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        self._taken += len(piece)
        if max(self._taken, self._size) > MAX_DECODED_BYTES:
            raise Undecodable(f"more than {MAX_DECODED_BYTES} bytes")
        for part in self._decoder.feed(piece):
            self._size += len(part)
            if self._size > MAX_DECODED_BYTES:
                raise Undecodable(f"more than {MAX_DECODED_BYTES} bytes")
            yield part

    def end(self) -> None:
        self._decoder.end()


def _first_installed(*names: str) -> Any:
    """The first of these modules that is installed; None if none is."""
    for name in names:
        with suppress(ImportError):
            return import_module(name)
    return None


def _brotli() -> Callable[[], ContentDecoder] | None:
    module = _first_installed("brotli", "brotlicffi")
    if module is None or not hasattr(module.Decompressor, "can_accept_more_data"):
        return None  # before 1.2 there was no bound on what is given out at once: then it is not accepted
    return lambda: BrotliDecoder(module.Decompressor())


def _zstd() -> Callable[[], ContentDecoder] | None:
    """The standard library's from Python 3.14 on."""
    module = _first_installed("compression.zstd", "zstandard")
    if module is None:
        return None
    if hasattr(module.ZstdDecompressor, "decompressobj"):
        # One context for all frames of a reply: a frame may have nine bytes, and a context has a hundred thousand.
        return lambda: ZstdDecoder(module.ZstdDecompressor(max_window_size=1 << MAX_ZSTD_WINDOW_LOG).decompressobj)
    options = {module.DecompressionParameter.window_log_max: MAX_ZSTD_WINDOW_LOG}
    return lambda: ZstdDecoder(partial(module.ZstdDecompressor, options=options))


_MAKERS: dict[bytes, Callable[[], ContentDecoder] | None] = {
    b"identity": IdentityDecoder,
    b"gzip": GzipDecoder,
    b"x-gzip": GzipDecoder,
    b"deflate": DeflateDecoder,
    b"br": _brotli(),
    b"zstd": _zstd(),
}


def decoder_for(headers: Headers, *, is_bounded: bool = True) -> ContentDecoder | None:
    """The decoder of a reply; None when its encoding is not known here, or was applied twice. One that is not bounded is
    for whoever keeps nothing of what it gives out."""
    coding = (first(headers, b"content-encoding") or b"identity").strip().lower()
    maker = _MAKERS.get(coding)
    if maker is None or coding == b"identity" or not is_bounded:
        return maker and maker()
    return BoundedDecoder(maker())


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


async def decoded(decoder: ContentDecoder, piece: bytes) -> AsyncIterator[bytes]:
    """What a piece of a body stands for, in parts of at most PART_BYTES; others on the loop have their turns in between:
    a few bytes can stand for gigabytes, and many for nothing at all. Raises Undecodable."""
    turns = LoopTurns()
    for long in decoder.feed(piece):
        for at in range(0, len(long), PART_BYTES):
            yield long[at : at + PART_BYTES] if len(long) > PART_BYTES else long
            if turns.is_due:
                await turns.give()
        if turns.is_due:
            await turns.give()


async def read_decoded(reply: Reply, limit: int) -> bytes:
    """A reply's body, decoded. Raises an UpstreamError, or Undecodable also past `limit` bytes."""
    decoder = decoder_for(reply.headers)
    if decoder is None:
        raise Undecodable("content-encoding")
    body = bytearray()
    async for piece in reply.stream():
        async for part in decoded(decoder, piece):
            body += part
            if len(body) > limit:
                raise Undecodable(f"more than {limit} bytes")
    decoder.end()
    return bytes(body)
