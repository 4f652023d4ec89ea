"""Recovery in a stream: events pass as they come, until a call of our tool starts; then they are held until it is clear
whether the reply calls anything else.

If it does not, the client never sees the call: the next round's blocks follow in the same message, numbered on, and the
last word on usage is the sum. If it does, or anything fails, or the reply takes more memory than any message does, what
was held leaves as it came.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Any

from cg.gateway.exchange import Headers, first
from cg.gateway.expansion.expansion import MAX_REPLY_BYTES, Expander, ExpansionRounds
from cg.gateway.http import sse
from cg.gateway.http.content_encoding import ContentDecoder, Undecodable, decoded, decoder_for
from cg.gateway.replies.message import USAGE_EVENTS, Block, ReplyMessage, StreamUsage, add_usage, of_events
from cg.gateway.upstream.contract import Cut, Reply, UpstreamError
from cg.sweep.body.marker import EXPAND_TOOL

PING = b'event: ping\ndata: {"type": "ping"}\n\n'
PING_EVERY_S = 10.0  # while an inner call has not begun to answer: clients may count seconds without a byte
_NUMBERED = (b"content_block_start", b"content_block_delta", b"content_block_stop")
SHORT_BYTES = 256 * 1024  # of events that are read in a few milliseconds
EVENT_COST = 160  # bytes that an event takes beside its own
_TELLS = re.compile(rb"message_|content_block_start|error")  # names after which a stream may go on differently


def is_stream(headers: Headers) -> bool:
    """Whether a reply comes as server-sent events."""
    return (first(headers, b"content-type") or b"").strip().lower().startswith(b"text/event-stream")


class StreamState(Enum):
    """What is done with the events of the reply that is being read."""

    LOOKING = auto()  # they leave as they come, and are kept: a call of our tool may follow
    HOLDING = auto()  # a call of our tool has begun: they wait for its reply's end
    PASSING = auto()  # it calls a tool of the client's, failed, or became too long: nothing more is held
    BLIND = auto()  # an event was too long: nothing is looked at any more
    CLOSED = auto()  # no further reply is asked for


_NEXT = {
    StreamState.LOOKING: {StreamState.HOLDING, StreamState.PASSING, StreamState.BLIND, StreamState.CLOSED},
    StreamState.HOLDING: {StreamState.LOOKING, StreamState.PASSING, StreamState.BLIND, StreamState.CLOSED},
    StreamState.PASSING: {StreamState.BLIND, StreamState.CLOSED},
    StreamState.BLIND: {StreamState.CLOSED},
    StreamState.CLOSED: set[StreamState](),
}


class ExpandingStream:
    """One client's stream, made of one reply or several."""

    def __init__(self, expander: Expander, rounds: ExpansionRounds, reply: Reply, decoder: ContentDecoder) -> None:
        self._expander, self._rounds = expander, rounds
        self.first: ReplyMessage | None = None  # the first reply's message, once that has ended
        self._next_reply: asyncio.Task[Reply | None] | None = None
        # Usage of the replies whose calls the client does not see; None while it sees the first one, untouched.
        self._hidden_usage: dict[str, Any] | None = None
        self._left_at = time.monotonic()  # when the client last got something
        self._delivered = 0  # blocks that the client has
        self._state = StreamState.LOOKING
        self._begin(reply, decoder)

    def _begin(self, reply: Reply, decoder: ContentDecoder) -> None:
        self._reply, self._decoder = reply, decoder
        self._parser = sse.Parser()
        self._events: list[sse.SseEvent] = []  # of this reply, for the case that it has to be sent back
        self._kept_bytes = 0  # of them, in memory
        self._usage = StreamUsage()
        self._held: list[sse.SseEvent] = []
        self._numbers: dict[int, int] = {}  # of this reply's blocks, as the client counts them
        self._enter(StreamState.LOOKING)

    def _enter(self, state: StreamState) -> None:
        """Go on in another state, where this one allows that: a stream that was closed stays closed."""
        if state in _NEXT[self._state]:
            self._state = state

    async def close(self) -> None:
        """Let go of whichever reply is being read or waited for; `pieces`, if they are still read, end with Cut."""
        self._enter(StreamState.CLOSED)
        if self._next_reply is not None:
            self._next_reply.cancel()
            (reply,) = await asyncio.gather(self._next_reply, return_exceptions=True)
            if reply is not None and not isinstance(reply, BaseException):
                await reply.close()
        await self._reply.close()

    async def pieces(self) -> AsyncIterator[bytes]:
        """What the client reads. Raises what the upstream's stream raised, after all that came before it."""
        while True:
            try:
                async for piece in self._reply.stream():
                    async for part in decoded(self._decoder, piece):
                        if out := b"".join(self._take(part)):
                            yield out
                            self._left_at = time.monotonic()
                self._decoder.end()
            except (UpstreamError, Undecodable) as error:
                for out in self._rest():
                    yield out
                self._count()
                if isinstance(error, UpstreamError):
                    raise
                raise Cut("undecodable", is_reset=False) from error
            message = await self._message() if self._state is StreamState.HOLDING else ReplyMessage()
            if calls := self._expander.to_answer(message, self._rounds):
                async for out in self._wait_for(message, calls):
                    yield out
            following = self._following()
            if following is None:
                for out in self._rest():
                    yield out
                self._count()
                return
            self._hidden_usage = add_usage(self._hidden_usage or {}, message.usage)
            for out in self._held_blocks():
                yield out
            self._count()
            await self._reply.close()
            self._begin(*following)

    async def _wait_for(self, message: ReplyMessage, calls: Sequence[Block]) -> AsyncIterator[bytes]:
        """Pings for the client until the next reply's head has come."""
        self._next_reply = asyncio.ensure_future(self._expander.next_reply(message, calls, self._rounds, is_stream))
        while not (await asyncio.wait({self._next_reply}, timeout=PING_EVERY_S))[0]:
            yield PING

    async def _message(self) -> ReplyMessage:
        """This reply, put together from its events; a long one in a thread, since it takes a second."""
        events = _one_by_one(self._events)
        return of_events(events) if self._kept_bytes < SHORT_BYTES else await asyncio.to_thread(of_events, events)

    def _following(self) -> tuple[Reply, ContentDecoder] | None:
        """The next reply, if there is one."""
        if self._next_reply is not None and self._next_reply.cancelled():
            raise Cut("closed", is_reset=True)
        reply = self._next_reply.result() if self._next_reply is not None else None
        self._next_reply = None
        decoder = decoder_for(reply.headers, is_bounded=False) if reply is not None else None
        return (reply, decoder) if reply is not None and decoder is not None else None

    def _count(self) -> None:
        """One reply is over."""
        message = self._usage.message
        if self.first is None:
            self.first = message
        else:
            self._expander.count_call(message)
        self._expander.count_answers(self._rounds)

    # -- events ------------------------------------------------------------------------------------------------------

    def _take(self, part: bytes) -> Iterator[bytes]:
        """What leaves now that these bytes have come."""
        if self._state is StreamState.BLIND:
            yield part
            return
        if self._state is StreamState.PASSING and self._hidden_usage is None:
            if rest := self._parser.rest():
                self._usage.feed(rest)
                self._parser = sse.Parser()
                yield rest
            self._usage.feed(part)
            yield part
            return
        passes = self._hidden_usage is None and self._state is StreamState.LOOKING
        if passes and self._parser.is_whole(part) and not _TELLS.search(part):
            self._keep(sse.SseEvent(part))  # several, read one by one if the reply has to be
            yield part
            return
        try:
            for event in self._parser.feed(part):
                yield from self._pass(event)
        except sse.EventTooLong:
            yield from self._rest()
            self._parser = sse.Parser()
            self._enter(StreamState.BLIND)

    def _pass(self, event: sse.SseEvent) -> Iterator[bytes]:
        kind = sse.type_of(event.raw)
        if kind in USAGE_EVENTS:
            self._usage.take(event)
        if self._state in (StreamState.LOOKING, StreamState.HOLDING):
            self._keep(event)
        is_looked_at = self._state in (StreamState.LOOKING, StreamState.HOLDING)
        if kind == b"content_block_start" and is_looked_at:
            block = event.data().get("content_block")
            if isinstance(block, dict) and block.get("type") == "tool_use":
                is_ours = block.get("name") == EXPAND_TOOL
                self._enter(StreamState.HOLDING if is_ours else StreamState.PASSING)
        elif kind == b"error":
            self._enter(StreamState.PASSING)
        if self._state is StreamState.HOLDING and not (kind == b"ping" and self._is_silent()):
            self._held.append(event)
            return
        if self._state is not StreamState.HOLDING:
            yield from self._flush()
        yield from self._out(event, kind)

    def _keep(self, event: sse.SseEvent) -> None:
        """Keep an event in case that a call of ours follows, up to a bound on all of them."""
        self._kept_bytes += len(event.raw) + EVENT_COST
        if self._kept_bytes > MAX_REPLY_BYTES:
            self._events = []
            self._enter(StreamState.PASSING)
        else:
            self._events.append(event)

    def _is_silent(self) -> bool:
        """Whether the client has had nothing for so long that a ping must not wait for what was held before it."""
        return time.monotonic() - self._left_at > PING_EVERY_S

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

    def _held_blocks(self) -> Iterator[bytes]:
        """Of what was held the blocks that are no calls; the answered calls stay here."""
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
        elif self._hidden_usage is None or kind not in USAGE_EVENTS:
            yield event.raw
        elif kind == b"message_delta":
            usage = add_usage(self._hidden_usage, self._usage.message.usage)
            yield sse.write("message_delta", {**event.data(), "usage": usage})

    def _numbered(self, event: sse.SseEvent, kind: bytes) -> bytes:
        if self._hidden_usage is None:
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
