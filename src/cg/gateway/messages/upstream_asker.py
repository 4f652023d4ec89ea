"""Asking the request's own model through the gateway's own connections, with the caller's credential and betas."""

import asyncio
import time

from cg.gateway.events import Events, Spend, Stage
from cg.gateway.exchange import Headers
from cg.gateway.http.content_encoding import Undecodable, read_decoded
from cg.gateway.http.forwarding import outgoing
from cg.gateway.replies.message import Message, of_json
from cg.gateway.state.clock import Clock
from cg.gateway.upstream.contract import Upstream, UpstreamError
from cg.sweep.effects import Answer, Failure

MAX_REPLY_BYTES = 4 * 1024 * 1024  # a reply of 16,000 tokens is some 60 KB; more than this is not an answer
_REPLACED = (b"accept-encoding", b"content-encoding")


def asking_headers(headers: Headers) -> Headers:
    """Of a request's headers those that a call of ours carries: another credential or beta set is another cache."""
    kept = [(name, value) for name, value in outgoing(headers) if name not in _REPLACED]
    return [*kept, (b"accept-encoding", b"identity")]


class WireAsker:
    """Puts bodies to the provider in one caller's name. `is_refused` once the credential was answered 401."""

    def __init__(
        self,
        upstream: Upstream,
        target: bytes,
        headers: Headers,
        events: Events,
        clock: Clock,
        spend: Spend = Spend.ASK,
        call: object = None,
    ) -> None:
        self._upstream, self._target, self._headers = upstream, target, asking_headers(headers)
        self._events, self._clock, self._spend = events, clock, spend
        self._call, self.is_refused = call, False

    async def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        """The reply's text with its usage, or why there is none; never raises for what the other side does."""
        start = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                found = await self._post(body)
        except TimeoutError:
            found = "timeout"
        except UpstreamError as error:
            found = type(error).__name__
        took = time.monotonic() - start
        self._events.took(Stage.ASK, took)
        if isinstance(found, str):
            return Failure(found, took * 1000)
        self._events.spent(self._spend, found.model, found.tiers, self._clock.now())
        text = "".join(b["text"] for b in found.blocks if b.get("type") == "text" and isinstance(b.get("text"), str))
        return Answer(text, found.tiers, took * 1000)

    async def _post(self, body: bytes) -> Message | str:
        """The message, or the reason why there is none. Nothing is repeated: the provider may have charged for it."""
        reply = await self._upstream.send("POST", self._target, self._headers, body, self._call)
        try:
            self._events.upstream(reply.status)
            if reply.status == 401:
                self.is_refused = True
            if reply.status != 200:
                return f"status {reply.status}"
            message = of_json(await read_decoded(reply, MAX_REPLY_BYTES))
            return "unreadable reply" if message is None else message
        except Undecodable:
            return "unreadable reply"
        finally:
            await reply.close()


class Bridge:
    """A `WireAsker` for a worker thread, which waits for the loop to ask."""

    def __init__(self, asker: WireAsker, loop: asyncio.AbstractEventLoop) -> None:
        self._asker, self._loop = asker, loop

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        waiting = asyncio.run_coroutine_threadsafe(self._asker.ask(body, timeout_s), self._loop)
        try:
            return waiting.result(timeout_s + 5)  # the loop keeps the deadline; this is for one that has stopped
        except Exception as error:
            waiting.cancel()
            return Failure(type(error).__name__)
