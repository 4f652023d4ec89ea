"""A reply that passes through untouched, while what it says of its usage is read behind each piece."""

from collections.abc import AsyncIterator, Callable

from cg.gateway.expansion.stream import is_stream
from cg.gateway.http.content_encoding import ContentDecoder, IdentityDecoder, Undecodable
from cg.gateway.replies.message import Message, UsageWatch, of_json
from cg.gateway.upstream.contract import Reply, UpstreamError

MAX_JSON_BYTES = 32 * 1024 * 1024  # of a message that is kept to be read at its end


Told = Callable[[Message | None], object]


async def watched(reply: Reply, decoder: ContentDecoder | None, done: Told, cut: Told) -> AsyncIterator[bytes]:
    """The reply's own bytes as they come. `done` is told what they say once all have come and gone, or `cut` what they
    said until their stream failed."""
    watch = _Stream(decoder) if is_stream(reply.headers) else _Json(decoder)
    try:
        async for piece in reply.stream():
            yield piece
            watch.look(piece)
    except UpstreamError:
        cut(watch.message())
        raise
    done(watch.message())


class _Watch:
    def __init__(self, decoder: ContentDecoder | None) -> None:
        self._decoder = decoder
        self._is_plain = isinstance(decoder, IdentityDecoder)  # most are, and a piece then costs no iterator

    def look(self, piece: bytes) -> None:
        """Read what can be read; after a piece that cannot, nothing more."""
        if self._is_plain:
            self.take(piece)
            return
        if self._decoder is None:
            return
        try:
            for part in self._decoder.feed(piece):
                self.take(part)
        except Undecodable:
            self._decoder = None

    def take(self, part: bytes) -> None:
        raise NotImplementedError


class _Stream(_Watch):
    def __init__(self, decoder: ContentDecoder | None) -> None:
        super().__init__(decoder)
        self._usage = UsageWatch()

    def take(self, part: bytes) -> None:
        self._usage.feed(part)

    def message(self) -> Message | None:
        return self._usage.seen


class _Json(_Watch):
    def __init__(self, decoder: ContentDecoder | None) -> None:
        super().__init__(decoder)
        self._whole = bytearray()

    def take(self, part: bytes) -> None:
        if len(self._whole) <= MAX_JSON_BYTES:
            self._whole += part

    def message(self) -> Message | None:
        return of_json(bytes(self._whole)) if self._decoder is not None else None
