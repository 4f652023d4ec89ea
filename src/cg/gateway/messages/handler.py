"""POST /v1/messages and count_tokens through the sweep: what leaves, what comes back, and what is learnt from it.

Whatever fails here, the client gets what it would have got: the last frozen form or its own body goes out, an upstream's
error comes back as it is, and a body of ours that the upstream refuses is followed by the client's own, once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial

from cg.gateway.events import (
    AskEnded,
    Events,
    ExpandAnswered,
    Fault,
    Mode,
    ModelCalled,
    OriginalResent,
    Outcome,
    Spend,
    TurnSent,
    UpstreamReplied,
)
from cg.gateway.exchange import Headers, Inbound, Outbound
from cg.gateway.expansion.expansion import MAX_REPLY_BYTES, Expander, ExpansionRounds
from cg.gateway.expansion.stream import ExpandingStream, is_stream
from cg.gateway.http.content_encoding import (
    ContentDecoder,
    IdentityDecoder,
    Undecodable,
    acceptable,
    decoded,
    decoder_for,
    is_encoded,
)
from cg.gateway.http.forwarding import incoming, outgoing
from cg.gateway.messages.background_tasks import BackgroundTasks
from cg.gateway.messages.idle_timers import NOT_TIMED, IdleTimers
from cg.gateway.messages.upstream_asker import BlockingAsker, UpstreamAsker
from cg.gateway.messages.usage_reader import with_usage_read
from cg.gateway.replies.message import ReplyMessage
from cg.gateway.settings import Settings
from cg.gateway.state.clock import Clock, SystemClock
from cg.gateway.turns.prepared_request import PreparedRequest
from cg.gateway.turns.thread_naming import ThreadNaming
from cg.gateway.turns.turn_runner import TurnRunner
from cg.gateway.upstream.contract import Reply, Upstream, UpstreamError
from cg.sweep.counters import Event
from cg.sweep.drivers import Sweep
from cg.sweep.values import Branch, Identity, Usage

log = logging.getLogger("cg.gateway")
Carried = tuple[Identity, ...]
REFUSALS = (400, 413)  # rule 11: what a body of ours could be to blame for
WRITE_DOWN_S = 10.0  # for what is not written down yet when the gateway stops
PASSED_BYTES = 1024 * 1024  # at one time, of a reply that was begun to be looked at
MAX_BACKGROUND_TASKS = 256  # pieces of work after replies; past it a figure is lost rather than memory


class SweepHandler:
    """One gateway's traffic with the Messages API. For use from one event loop."""

    def __init__(
        self,
        settings: Settings,
        upstream: Upstream,
        sweep: Sweep,
        events: Events,
        *,
        secret: bytes,
        clock: Clock | None = None,
        asks: Upstream | None = None,
    ) -> None:
        self._upstream, self._sweep, self._events = upstream, sweep, events
        self._asks = asks if asks is not None else upstream  # whoever carries what no client waits for
        self._clock = clock if clock is not None else SystemClock()
        self._turns = TurnRunner(
            sweep,
            ThreadNaming(secret, settings.upstream),
            events,
            self._clock,
            config=settings.config,
            budget_s=settings.budget_ms / 1000,
        )
        self.timers = IdleTimers(sweep, self._turns, self._asks, events, self._clock, settings.config)
        self._expander = Expander(sweep, self._turns, upstream, events, self._clock)
        self._background = BackgroundTasks(events, MAX_BACKGROUND_TASKS)

    async def handle(self, inbound: Inbound) -> Outbound:
        """The answer to a Messages request. Raises an UpstreamError if there is none."""
        turn = await self._turns.prepare(inbound, self.timers.gap, self._asker(inbound))
        headers = acceptable(outgoing(turn.headers))
        # Once the request is on its way and this task waits for its reply: nobody waits for figures.
        asyncio.get_running_loop().call_soon(self._count_turn, turn)
        turn, reply = await self._send(turn, headers)
        try:
            return await self._answer(turn, reply, headers)
        except BaseException:
            await reply.close()
            raise

    async def count_tokens(self, inbound: Inbound) -> Outbound:
        """The answer to a question for the size of a body: of the one that would be sent in its place."""
        turn = await self._turns.prepare_count(inbound)
        _, reply = await self._send(turn, outgoing(turn.headers), is_counted=True)
        return Outbound(reply.status, incoming(reply.headers), reply.stream(), reply.close)

    async def settle(self) -> None:
        """Wait for what is still being written after requests and replies."""
        await self._turns.wait_written()
        await self._background.settle()

    async def close(self) -> None:
        """Let go of timers and credentials, finish what follows replies, and end the workers.

        A store that hangs holds up nobody's stop for ever: what it has not taken in time is left undone, as a kill would
        leave it.
        """
        await self.timers.close()
        try:
            async with asyncio.timeout(WRITE_DOWN_S):
                await self.settle()
        except TimeoutError:
            log.warning("stopping with turns that were not written down within %g s", WRITE_DOWN_S)
        self._turns.close()

    # -- to the upstream -----------------------------------------------------------------------------------------------

    def _asker(self, inbound: Inbound) -> BlockingAsker | None:
        if not self._turns.asks:
            return None
        asker = UpstreamAsker(self._asks, inbound.target, inbound.headers, self._events, self._clock, call=inbound.call)
        return BlockingAsker(asker, asyncio.get_running_loop())

    def _count_turn(self, turn: PreparedRequest) -> None:
        """Count a turn, and end what waited for its branch."""
        swept = turn.swept
        self._events.tell(TurnSent(swept.report, turn.now))
        for event, outcome in (
            (Event.EXPANDED, Outcome.ORIGINAL),
            (Event.EXPAND_UNRESOLVED, Outcome.UNKNOWN),
        ):
            for _ in range(swept.report.events.get(event, 0)):
                self._events.tell(ExpandAnswered(Mode.SHOWN, outcome))
        if swept.asked is not None and swept.asked.legs:
            self._events.tell(AskEnded(self._sweep.row(turn.thread, swept.asked, turn.now)))
        if swept.branch is not None:
            self.timers.cancel(turn.thread, swept.branch.branch)

    async def _send(
        self, turn: PreparedRequest, headers: Headers, *, is_counted: bool = False
    ) -> tuple[PreparedRequest, Reply]:
        """The reply to what was sent; if a body of ours is refused, to the client's own. What a body that `is_counted`
        carries is not revoked for that: the model has not refused it."""
        inbound = turn.inbound
        reply = await self._upstream.send(inbound.method, inbound.target, headers, turn.body, inbound.call)
        self._events.tell(UpstreamReplied(reply.status))
        if reply.status not in REFUSALS or not turn.is_changed:
            return turn, reply
        refused = reply.status
        await reply.close()
        headers = outgoing(inbound.headers) if is_counted else acceptable(outgoing(inbound.headers))
        reply = await self._upstream.send(inbound.method, inbound.target, headers, inbound.body, inbound.call)
        self._events.tell(UpstreamReplied(reply.status))
        self._events.tell(OriginalResent(refused))
        if reply.status < 400 and not is_counted:
            await self._revoked(turn)
        return turn.original(), reply

    async def _revoked(self, turn: PreparedRequest) -> None:
        """What the refused body carried ends for good; a thread that is refused for our tool alone is left alone. One
        with other lifetimes than its client's is refused for these first: removals go on, and end if that was not it."""
        carries, branch = turn.swept.carries, turn.swept.branch
        sent = None if branch is None else (branch, turn.inbound.body)
        is_lifetime = sent is not None and turn.swept.written_s is not None
        if not carries and not is_lifetime:
            self._turns.bypass(turn.thread)
        try:
            await self._turns.run(lambda: self._revoke(turn.thread, carries, turn.now, sent, is_lifetime=is_lifetime))
        except Exception as error:
            log.error("removals were not revoked: %s", type(error).__name__)
            self._events.tell(Fault.STORE)
            self._turns.bypass(turn.thread)

    def _revoke(
        self, thread: str, carries: Carried, now: float, sent: tuple[Branch, bytes] | None, *, is_lifetime: bool
    ) -> None:
        with self._turns.thread_lock(thread):  # after the turn itself has been written down
            if is_lifetime and sent is not None:
                self._sweep.refuse_lifetime(thread, *sent)
            else:
                self._sweep.revoke(thread, carries, now, sent=sent)

    # -- to the client -------------------------------------------------------------------------------------------------

    async def _answer(self, turn: PreparedRequest, reply: Reply, headers: Headers) -> Outbound:
        reply_headers = incoming(reply.headers)
        if reply.status != 200:
            return Outbound(reply.status, reply_headers, reply.stream(), reply.close)
        decoder = decoder_for(reply.headers)
        if decoder is None:
            self._events.tell(Fault.UPSTREAM_UNREADABLE)
        if decoder is None or not turn.swept.declares:
            done = partial(
                self._reply_ended, turn.light(), len(turn.body)
            )  # nothing that waits for a stream holds its bodies
            return Outbound(200, reply_headers, with_usage_read(reply, decoder, done, self._count_call), reply.close)
        rounds = ExpansionRounds(turn, headers)
        if not is_stream(reply.headers):
            return await self._json_answer(turn, reply, decoder, rounds)
        unbounded = (
            decoder_for(reply.headers, is_bounded=False) or decoder
        )  # the stream keeps a bounded part of what comes
        stream = ExpandingStream(self._expander, rounds, reply, unbounded)
        return Outbound(200, _decoded_headers(reply_headers), self._expanded_pieces(turn, stream), stream.close)

    async def _expanded_pieces(self, turn: PreparedRequest, stream: ExpandingStream) -> AsyncIterator[bytes]:
        try:
            async for piece in stream.pieces():
                yield piece
        except UpstreamError:
            self._count_call(stream.first)
            raise
        self._reply_ended(turn, len(turn.body), stream.first)

    async def _json_answer(
        self, turn: PreparedRequest, reply: Reply, decoder: ContentDecoder, rounds: ExpansionRounds
    ) -> Outbound:
        """A reply that is no stream: looked at as a whole, and answered here if it only calls our tool."""
        reply_headers = incoming(reply.headers)
        source = reply.stream()
        raw = bytearray()
        whole = raw if isinstance(decoder, IdentityDecoder) else bytearray()
        try:
            async for piece in source:
                raw += piece
                if whole is not raw:
                    async for part in decoded(decoder, piece):
                        whole += part
                if len(whole) > MAX_REPLY_BYTES:
                    raise Undecodable("too long")
            decoder.end()
        except UpstreamError as error:
            return Outbound(200, reply_headers, _until_cut(raw, error), reply.close)
        except Undecodable:
            self._events.tell(Fault.UPSTREAM_UNREADABLE)
            del whole  # what is passed on may be long in going
            return Outbound(200, reply_headers, _unread(raw, source), reply.close)
        decoded_body = bytes(whole)
        body, message = await self._expander.in_json(decoded_body, rounds)
        self._reply_ended(turn, len(turn.body), message)
        if body is decoded_body:
            as_it_came = body if whole is raw else bytes(raw)
            return Outbound(200, _without(reply_headers, b"content-length"), as_it_came, reply.close)
        return Outbound(200, _decoded_headers(reply_headers), body, reply.close)

    # -- after a reply -------------------------------------------------------------------------------------------------

    def _reply_ended(self, turn: PreparedRequest, sent_bytes: int, message: ReplyMessage | None) -> None:
        """The reply has gone out whole: count what it cost, learn from it, and wait for the gap that begins now."""
        usage = self._count_call(message)
        self.timers.arm(turn)
        if usage is None or turn.swept.report.reason in NOT_TIMED:
            return
        self._background.start(self._turns.run(partial(self._observe, turn, usage, sent_bytes)))

    def _observe(self, turn: PreparedRequest, usage: Usage, sent_bytes: int) -> None:
        self._sweep.observe(turn.thread, usage, sent_bytes, self._turns.client(turn.inbound))

    def _count_call(self, message: ReplyMessage | None) -> Usage | None:
        """Count what a reply says that it cost; one that was cut has been charged for too."""
        usage = message.tiers if message is not None else None
        self._events.tell(
            ModelCalled(Spend.REQUEST, message.model if message is not None else "", usage, self._clock.now())
        )
        return usage


def _without(headers: Headers, *names: bytes) -> Headers:
    return [(name, value) for name, value in headers if name not in names]


def _decoded_headers(headers: Headers) -> Headers:
    """The headers of a reply that leaves decoded, and of another length."""
    return _without(headers, b"content-length", *((b"content-encoding",) if is_encoded(headers) else ()))


async def _until_cut(raw: bytearray, error: UpstreamError) -> AsyncIterator[bytes]:
    """A reply that was cut, as far as it came."""
    if raw:
        yield bytes(raw)
    raise error


async def _unread(raw: bytearray, source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A reply that was begun to be looked at, and is not any more; what was kept of it is let go of as it leaves."""
    while raw:
        yield bytes(raw[:PASSED_BYTES])
        del raw[:PASSED_BYTES]
    async for piece in source:
        yield piece
