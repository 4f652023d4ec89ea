"""`--observe`: every request and reply passes untouched, and what the sweep would have done is reckoned behind it."""

import asyncio
from typing import Protocol

from cg.gateway.events import Events, Spend
from cg.gateway.exchange import Inbound, Outbound
from cg.gateway.http.content_encoding import acceptable, decoder_for
from cg.gateway.http.forwarding import incoming, outgoing
from cg.gateway.messages.background_tasks import Behind
from cg.gateway.messages.usage_reader import watched
from cg.gateway.replies.message import Message
from cg.gateway.settings import Settings
from cg.gateway.state.clock import Clock, SystemClock
from cg.gateway.turns.thread_naming import Naming
from cg.gateway.upstream.contract import Upstream
from cg.sweep.body.transcript import Unreadable, read
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.values import Usage

MAX_BEHIND = 64  # requests that wait to be reckoned; past it one is left out, so that memory stays bounded


class Projects(Protocol):
    """Reckons what the sweep would have done; see `cg.gateway.messages.projection`. Blocks, so it is called in a worker thread."""

    def look(self, body: bytes, thread: str, now: float) -> None: ...

    def learn(self, thread: str, usage: Usage, sent_bytes: int) -> None: ...


class Observing:
    """One gateway's traffic with the Messages API, watched and not touched. In the place of `messages.Messages`."""

    def __init__(
        self,
        settings: Settings,
        upstream: Upstream,
        projection: Projects,
        events: Events,
        *,
        secret: bytes,
        clock: Clock | None = None,
    ) -> None:
        self._upstream, self._projection, self._events = upstream, projection, events
        self._naming = Naming(secret, settings.upstream)
        self._clock = clock if clock is not None else SystemClock()
        self._behind = Behind(events, MAX_BEHIND)
        self._order = asyncio.Lock()  # requests are reckoned in the order in which they came

    async def handle(self, inbound: Inbound) -> Outbound:
        """The upstream's answer to a Messages request. Raises an UpstreamError if there is none."""
        now = self._clock.now()
        self._events.turn(TurnReport.of(Reason.OBSERVED), now)
        reply = await self._upstream.send(
            inbound.method, inbound.target, acceptable(outgoing(inbound.headers)), inbound.body, inbound.call
        )
        self._events.upstream(reply.status)
        back = incoming(reply.headers)
        if reply.status != 200:
            return Outbound(reply.status, back, reply.stream(), reply.close)

        def spent(message: Message | None) -> Usage | None:
            usage = message.tiers if message is not None else None
            self._events.spent(Spend.REQUEST, message.model if message is not None else "", usage, self._clock.now())
            return usage

        def done(message: Message | None) -> None:
            self._behind.do(self._reckon(inbound, spent(message), now))

        return Outbound(200, back, watched(reply, decoder_for(reply.headers), done, spent), reply.close)

    async def count_tokens(self, inbound: Inbound) -> Outbound:
        """The upstream's answer."""
        headers = outgoing(inbound.headers)
        reply = await self._upstream.send(inbound.method, inbound.target, headers, inbound.body, inbound.call)
        self._events.upstream(reply.status)
        return Outbound(reply.status, incoming(reply.headers), reply.stream(), reply.close)

    async def settle(self) -> None:
        """Wait for what is still being reckoned."""
        await self._behind.settle()

    async def close(self) -> None:
        """Finish what is being reckoned."""
        await self.settle()

    async def _reckon(self, inbound: Inbound, usage: Usage | None, now: float) -> None:
        async with self._order:
            await asyncio.to_thread(self._look, inbound, usage, now)

    def _look(self, inbound: Inbound, usage: Usage | None, now: float) -> None:
        try:
            transcript = read(inbound.body)
        except Unreadable:
            transcript = None
        thread = self._naming.thread(inbound.headers, transcript)
        self._projection.look(inbound.body, thread, now)
        if usage is not None:
            self._projection.learn(thread, usage, len(inbound.body))
