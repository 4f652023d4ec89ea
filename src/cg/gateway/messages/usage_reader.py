"""A reply that passes through untouched, while what it says of its usage is read after each piece."""

from collections.abc import AsyncIterator, Callable

from cg.gateway.expansion.stream import is_stream
from cg.gateway.http.content_encoding import ContentDecoder, IdentityDecoder, Undecodable, decoded
from cg.gateway.replies.message import ReplyMessage, StreamUsage, of_json
from cg.gateway.upstream.contract import Reply, UpstreamError

MAX_JSON_BYTES = 32 * 1024 * 1024  # of a message that is kept to be read at its end


UsageListener = Callable[[ReplyMessage | None], object]


async def with_usage_read(
    reply: Reply, decoder: ContentDecoder | None, done: UsageListener, failed: UsageListener
) -> AsyncIterator[bytes]:
    """The reply's own bytes as they come. `done` gets what they say once all have come and gone, or `failed` what they
    said until their stream failed."""
    reader = _StreamUsageReader(decoder) if is_stream(reply.headers) else _JsonUsageReader(decoder)
    try:
        async for piece in reply.stream():
            yield piece
            await reader.read(piece)
    except UpstreamError:
        failed(reader.message())
        raise
    done(reader.message())


class _UsageReader:
    def __init__(self, decoder: ContentDecoder | None) -> None:
        self._decoder = decoder
        self._is_plain = isinstance(decoder, IdentityDecoder)  # most are, and a piece then costs no iterator

    async def read(self, piece: bytes) -> None:
        """Read what can be read; after a piece that cannot, nothing more."""
        if self._is_plain:
            self.take(piece)
            return
        if self._decoder is None:
            return
        try:
            async for part in decoded(self._decoder, piece):
                self.take(part)
        except Undecodable:
            self._decoder = None

    def take(self, part: bytes) -> None:
        raise NotImplementedError


class _StreamUsageReader(_UsageReader):
    def __init__(self, decoder: ContentDecoder | None) -> None:
        super().__init__(decoder)
        self._usage = StreamUsage()

    def take(self, part: bytes) -> None:
        self._usage.feed(part)

    def message(self) -> ReplyMessage | None:
        return self._usage.message


class _JsonUsageReader(_UsageReader):
    def __init__(self, decoder: ContentDecoder | None) -> None:
        super().__init__(decoder)
        self._body = bytearray()
        self._is_too_long = False

    def take(self, part: bytes) -> None:
        if self._is_too_long:
            return
        self._body += part
        if len(self._body) > MAX_JSON_BYTES:
            self._is_too_long, self._body = True, bytearray()

    def message(self) -> ReplyMessage | None:
        is_read = self._decoder is not None and not self._is_too_long
        return of_json(self._body) if is_read else None
