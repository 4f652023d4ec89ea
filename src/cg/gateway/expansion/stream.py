"""Recovery in a stream: events pass as they come, until a call of our tool starts; then they are held until it is clear
whether the reply calls anything else.

If it does not, the client never sees the call: the next round's blocks follow in the same message, numbered on, and the
last word on usage is the sum. If it does, or anything fails, what was held leaves as it came.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from cg.gateway.exchange import Headers, first
from cg.gateway.expansion.expansion import Recovery, Rounds
from cg.gateway.http import sse
from cg.gateway.http.content_encoding import ContentDecoder, Undecodable, decoder_for
from cg.gateway.replies.message import Block, Message, add_usage, of_events
from cg.gateway.upstream.contract import Cut, Reply, UpstreamError
from cg.sweep.body.marker import EXPAND_TOOL

PING = b'event: ping\ndata: {"type": "ping"}\n\n'
PING_EVERY_S = 10.0  # while an inner call has not begun to answer: clients may count seconds without a byte
_NUMBERED = (b"content_block_start", b"content_block_delta", b"content_block_stop")
_USAGE = (b"message_start", b"message_delta")
_TELLS = re.compile(rb"message_|content_block_start|error")  # names after which a stream may go on differently


def is_stream(headers: Headers) -> bool:
    """Whether a reply comes as server-sent events."""
    return (first(headers, b"content-type") or b"").strip().lower().startswith(b"text/event-stream")


class Stream:
    """One client's stream, made of one reply or several."""

    def __init__(self, recovery: Recovery, rounds: Rounds, reply: Reply, decoder: ContentDecoder) -> None:
        self._recovery, self._rounds = recovery, rounds
        self.first: Message | None = None  # the first reply's message, once that has ended
        self._inner: asyncio.Task[Reply | None] | None = None
        self._spent: dict[str, Any] = {}  # usage of the replies whose calls the client does not see
        self._delivered = 0  # blocks that the client has
        self._is_plain = True  # the client counts blocks as the upstream does
        self._is_blind = False  # nothing is looked at any more
        self._is_closed = False
        self._begin(reply, decoder)

    def _begin(self, reply: Reply, decoder: ContentDecoder) -> None:
        self._reply, self._decoder = reply, decoder
        self._parser = sse.Parser()
        self._events: list[sse.SseEvent] = []  # of this reply, for the case that it has to be sent back
        self._held: list[sse.SseEvent] = []
        self._numbers: dict[int, int] = {}  # of this reply's blocks, as the client counts them
        self._is_holding = False
        self._is_passing = False  # it calls a tool of the client's, or failed: nothing more is held

    async def close(self) -> None:
        """Let go of whichever reply is being read or waited for; `pieces`, if they are still read, end with Cut."""
        self._is_closed = True
        if self._inner is not None:
            self._inner.cancel()
            (found,) = await asyncio.gather(self._inner, return_exceptions=True)
            if found is not None and not isinstance(found, BaseException):
                await found.close()
        await self._reply.close()

    async def pieces(self) -> AsyncIterator[bytes]:
        """What the client reads. Raises what the upstream's stream raised, after all that came before it."""
        while True:
            try:
                async for piece in self._reply.stream():
                    for part in self._decoder.feed(piece):
                        for out in self._take(part):
                            yield out
                self._decoder.end()
            except (UpstreamError, Undecodable) as error:
                for out in self._rest():
                    yield out
                self._ended()
                if isinstance(error, UpstreamError):
                    raise
                raise Cut("undecodable", is_reset=False) from error
            message = of_events(_one_by_one(self._events)) if self._held else Message()
            calls = [] if self._is_closed else self._recovery.to_answer(message, self._rounds)
            if calls:
                async for out in self._wait_for(message, calls):
                    yield out
            following = self._taken()
            if following is None:
                for out in self._rest():
                    yield out
                self._ended()
                return
            for out in self._visible():
                yield out
            self._ended()
            await self._reply.close()
            self._spent = add_usage(self._spent, message.usage)
            self._begin(*following)

    async def _wait_for(self, message: Message, calls: Sequence[Block]) -> AsyncIterator[bytes]:
        """Pings for the client until the next reply's head has come."""
        self._inner = asyncio.ensure_future(self._recovery.next_reply(message, calls, self._rounds, is_stream))
        while not (await asyncio.wait({self._inner}, timeout=PING_EVERY_S))[0]:
            yield PING

    def _taken(self) -> tuple[Reply, ContentDecoder] | None:
        """The next reply, if there is one."""
        if self._inner is not None and self._inner.cancelled():
            raise Cut("closed", is_reset=True)
        reply = self._inner.result() if self._inner is not None else None
        self._inner = None
        decoder = decoder_for(reply.headers) if reply is not None else None
        return (reply, decoder) if reply is not None and decoder is not None else None

    def _seen(self) -> Message:
        """What this reply has said of its usage, without its content: most replies are never read whole."""
        return of_events(event for event in self._events if sse.type_of(event.raw) in _USAGE)

    def _ended(self) -> None:
        """One reply is over."""
        message = self._seen()
        if self.first is None:
            self.first = message
        else:
            self._recovery.spent(message)
        self._recovery.told(self._rounds)

    # -- events ------------------------------------------------------------------------------------------------------

    def _take(self, part: bytes) -> Iterator[bytes]:
        """What leaves now that these bytes have come."""
        if self._is_blind:
            yield part
            return
        if self._is_plain and not self._is_holding and self._parser.is_whole(part) and not _TELLS.search(part):
            if not self._is_passing:
                self._events.append(sse.SseEvent(part))  # several, read one by one if the reply has to be
            yield part
            return
        try:
            for event in self._parser.feed(part):
                yield from self._pass(event)
        except sse.EventTooLong:
            yield from self._rest()
            self._is_blind = True

    def _pass(self, event: sse.SseEvent) -> Iterator[bytes]:
        kind = sse.type_of(event.raw)
        if not self._is_passing or kind in _USAGE:
            self._events.append(event)
        if kind == b"content_block_start" and not self._is_passing:
            block = event.data().get("content_block")
            if isinstance(block, dict) and block.get("type") == "tool_use":
                self._is_holding = block.get("name") == EXPAND_TOOL
                self._is_passing = not self._is_holding
        elif kind == b"error":
            self._is_passing = True
        if self._is_passing and self._held:
            yield from self._flush()
        if self._is_holding and not self._is_passing and kind != b"ping":
            self._held.append(event)
        else:
            yield from self._out(event, kind)

    def _flush(self) -> Iterator[bytes]:
        """What was held, as it came."""
        held, self._held = self._held, []
        for event in held:
            yield from self._out(event, sse.type_of(event.raw))

    def _rest(self) -> Iterator[bytes]:
        """All that has come and not left."""
        yield from self._flush()
        if rest := self._parser.rest():
            yield rest

    def _visible(self) -> Iterator[bytes]:
        """Of what was held the blocks that are no calls; the answered calls stay here."""
        self._is_plain = False
        hidden: set[object] = set()
        for event in self._held:
            kind = sse.type_of(event.raw)
            if kind not in _NUMBERED:
                continue
            data = event.data()
            if kind == b"content_block_start" and data["content_block"].get("type") == "tool_use":
                hidden.add(data.get("index"))
            if data.get("index") not in hidden:
                yield from self._out(event, kind)

    def _out(self, event: sse.SseEvent, kind: bytes) -> Iterator[bytes]:
        """One event as the client gets it: the first reply's untouched, the next ones' numbered on and summed up."""
        if kind in _NUMBERED:
            yield self._numbered(event, kind)
        elif self._is_plain or kind not in _USAGE:
            yield event.raw
        elif kind == b"message_delta":
            usage = add_usage(self._spent, self._seen().usage)
            yield sse.write("message_delta", {**event.data(), "usage": usage})

    def _numbered(self, event: sse.SseEvent, kind: bytes) -> bytes:
        if self._is_plain:
            self._delivered += kind == b"content_block_start"
            return event.raw
        data = event.data()
        index = data.get("index")
        if not isinstance(index, int):
            return event.raw
        if kind == b"content_block_start":
            self._numbers[index] = self._delivered
            self._delivered += 1
        return sse.write(kind.decode(), {**data, "index": self._numbers.get(index, index)})


def _one_by_one(lumps: Iterable[sse.SseEvent]) -> Iterator[sse.SseEvent]:
    """The events in what may be several at a time."""
    for lump in lumps:
        yield from sse.Parser().feed(lump.raw)
