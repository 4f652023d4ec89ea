"""What is kept of a reply that our tool may be called in has a bound; past it the reply passes as it is."""

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import EXPAND_TOOL, Answer, Live, Talk, inbound, live, scripted

from cg.gateway.exchange import Headers
from cg.gateway.expansion import stream
from cg.gateway.http import content_encoding, sse
from cg.gateway.messages import handler

BOUND = 256 * 1024
LONG = 40 * BOUND
ID = "0123456789abcdef"


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller one, so that little is much."""
    monkeypatch.setattr(stream, "MAX_REPLY_BYTES", BOUND)
    monkeypatch.setattr(handler, "MAX_REPLY_BYTES", BOUND)
    monkeypatch.setattr(content_encoding, "MAX_DECODED_BYTES", BOUND)


def event(kind: str, **data: Any) -> bytes:
    return sse.write(kind, {"type": kind, **data})


def started(index: int, block: dict[str, Any]) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, **text: str) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **text})


OPENS = event("message_start", message={"model": "m", "content": [], "usage": {"input_tokens": 7, "output_tokens": 1}})
ENDS = event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 40}) + event("message_stop")
TEXT = started(0, {"type": "text", "text": ""})
WORDS = delta(0, "text_delta", text="word " * 200)
CALL = started(1, {"type": "tool_use", "id": "toolu_x", "name": EXPAND_TOOL, "input": {}})
CALLED = delta(1, "input_json_delta", partial_json=json.dumps({"id": ID})) + event("content_block_stop", index=1)
FILLER = delta(1, "input_json_delta", partial_json=" " * 500)


def times(piece: bytes, size: int = LONG) -> Iterator[bytes]:
    return (piece for _ in range(size // len(piece)))


class Said:
    """An upstream that says what a test wants, in pieces that end anywhere."""

    def __init__(self, pieces: Callable[[], Iterable[bytes]], kind: bytes, coding: bytes | None = None) -> None:
        self._pieces, self._coding = pieces, coding
        self.status, self.n = 200, 0
        self.headers: Headers = [(b"content-type", kind), *([(b"content-encoding", coding)] if coding else [])]

    async def send(self, *request: Any) -> Any:
        self.n += 1
        return self

    async def stream(self) -> AsyncIterator[bytes]:
        for piece in self._pieces():
            for at in range(0, len(piece), 7001):
                yield piece[at : at + 7001]

    async def close(self) -> None: ...

    async def aclose(self) -> None: ...


async def answered(said: Said) -> tuple[int, bytes, Headers, Live]:
    """Memory at its highest, the answer, its headers, and the gateway, for a request that has our tool declared."""
    async with live(scripted()) as gateway:
        gateway.messages._upstream = gateway.messages._expander._upstream = said
        body = Talk(top={"stream": True}).body()
        tracemalloc.start()
        try:
            outbound = await gateway.messages.handle(inbound(body))
            whole, n = zlib.crc32(b""), 0
            assert not isinstance(outbound.body, bytes)
            async for piece in outbound.body:
                whole, n = zlib.crc32(piece, whole), n + len(piece)
            await outbound.close()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        await gateway.messages.settle()
        return peak, b"%d %d" % (n, whole), outbound.headers, gateway


def crc(pieces: Iterable[bytes]) -> bytes:
    whole, n = zlib.crc32(b""), 0
    for piece in pieces:
        whole, n = zlib.crc32(piece, whole), n + len(piece)
    return b"%d %d" % (n, whole)


def packed(coding: bytes | None, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces under a content coding."""
    if coding is None:
        yield from pieces
        return
    if coding == b"br":
        brotli = pytest.importorskip("brotli").Compressor(quality=1)
        compress, flush = brotli.process, brotli.finish
    elif coding == b"zstd":
        made = pytest.importorskip("zstandard").ZstdCompressor().compressobj()
        compress, flush = made.compress, made.flush
    else:
        made = zlib.compressobj(1, wbits=31 if coding == b"gzip" else 15)
        compress, flush = made.compress, made.flush
    for piece in pieces:
        yield compress(piece)
    yield flush()


CODINGS = [None, b"gzip", b"deflate", b"br", b"zstd"]
STREAMS = {
    "text": lambda: [OPENS, TEXT, *times(WORDS), ENDS],
    "text, then a call": lambda: [OPENS, TEXT, *times(WORDS), CALL, CALLED, ENDS],
    "a call that is held": lambda: [OPENS, TEXT, CALL, *times(FILLER), CALLED, ENDS],
    "pings behind a call": lambda: [OPENS, TEXT, CALL, CALLED, *times(stream.PING, LONG // 4), ENDS],
    "blocks": lambda: chain([OPENS], (started(n, {"type": "text", "text": ""}) for n in range(20_000)), [ENDS]),
    "blank lines": lambda: [OPENS, *times(b"\n\n" * 5000), ENDS],
    "starts": lambda: [*times(event("message_start", message={"model": "m", "content": [{"type": "x" * 3000}]})), ENDS],
    "usage": lambda: chain([OPENS], (event("message_delta", usage={f"k{n}": "v" * 2000}) for n in range(4000))),
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_past_the_bound_passes_as_it_is(name: str, coding: bytes | None) -> None:
    """Every byte of it, decoded, in order and once; nothing of it is answered here, and its usage is read."""
    pieces = STREAMS[name]

    async def session() -> None:
        said = Said(lambda: packed(coding, pieces()), b"text/event-stream", coding)
        peak, whole, headers, gateway = await answered(said)
        assert whole == crc(pieces()) and said.n == 1
        assert b"content-encoding" not in dict(headers)
        # A megabyte is decoded at one time; the windows of brotli and zstd are not traced.
        assert peak < 28 * BOUND
        (_, usage) = gateway.recorder.usages[-1]
        if name not in ("starts", "usage"):
            assert (usage.fresh, usage.output) == (7, 40)

    asyncio.run(session())


def test_a_call_below_the_bound_is_still_answered() -> None:
    """The bound is on what is kept, not on what a session says."""

    async def session() -> None:
        said = Said(lambda: [OPENS, TEXT, *times(WORDS, BOUND // 2), CALL, CALLED, ENDS], b"text/event-stream")
        async with live(scripted()) as gateway:
            gateway.messages._upstream = gateway.messages._expander._upstream = said
            outbound = await gateway.messages.handle(inbound(Talk(top={"stream": True}).body()))
            assert not isinstance(outbound.body, bytes)
            body = b"".join([piece async for piece in outbound.body])
            await outbound.close()
            assert said.n == 4  # it says the same in every round
            assert len(Answer(200, [], body).content) == 5  # the last call passes

    asyncio.run(session())


@pytest.mark.parametrize("text", [b'{"type":"message","content":[]}', b""])
@pytest.mark.parametrize(
    "behind", [b"\0" * 5000, gzip.compress(b"", mtime=0) * 200], ids=["raw bytes", "empty members"]
)
def test_raw_bytes_behind_a_gzip_member_pass(text: bytes, behind: bytes) -> None:
    """They stand for nothing, however many there are."""
    pieces = lambda: [gzip.compress(text, mtime=0), *times(behind)]  # noqa: E731

    async def session() -> None:
        said = Said(pieces, b"application/json", b"gzip")
        peak, whole, headers, _ = await answered(said)
        assert whole == crc(pieces()) and (b"content-encoding", b"gzip") in headers
        assert peak < 8 * BOUND

    asyncio.run(session())


@pytest.mark.parametrize("coding", CODINGS)
def test_a_json_reply_past_the_bound_passes_as_it_is(coding: bytes | None) -> None:
    """Under its own coding."""
    pieces = lambda: packed(coding, [b'{"type":"message","content":[', *times(b"[ ]," * 999), b"{}]}"])  # noqa: E731

    async def session() -> None:
        peak, whole, headers, _ = await answered(Said(pieces, b"application/json", coding))
        assert whole == crc(pieces()) and dict(headers).get(b"content-encoding") == coding
        assert peak < 16 * BOUND

    asyncio.run(session())


def test_others_have_their_turns_while_a_bomb_is_decoded() -> None:
    """A kilobyte that stands for a gigabyte holds up nobody else on the loop."""
    bomb = b"".join(packed(b"gzip", (bytes(1024 * 1024) for _ in range(200))))

    async def session() -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        decoder = content_encoding.decoder_for([(b"content-encoding", b"gzip")], is_bounded=False)
        assert decoder is not None
        sizes = [len(part) async for part in content_encoding.decoded(decoder, bomb)]
        counting.cancel()
        assert sum(sizes) == 200 * 1024 * 1024 and max(sizes) <= content_encoding.PART_BYTES
        assert turns > 10

    asyncio.run(session())
