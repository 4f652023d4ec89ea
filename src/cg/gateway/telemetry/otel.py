"""A span for each Messages request, where the program has set an OpenTelemetry tracer provider; nothing otherwise.

Names are those of the GenAI semantic conventions for inference (status: development), with the turn's own figures under
`cg.`. There is no content in a span, no credential, no name of a thread, and no text of an error. OpenTelemetry is
never imported here: a program that has set a provider has done so.
"""

import asyncio
import logging
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from cg import __version__
from cg.gateway.events import GatewayEvent, ModelCalled, Spend, TurnSent
from cg.gateway.exchange import Headers, Inbound, Outbound
from cg.gateway.http.app import MessagesHandler
from cg.sweep.body.transcript import Unreadable, read
from cg.sweep.ledger import TurnReport
from cg.sweep.values import Usage

log = logging.getLogger("cg.gateway")
OPERATION = "gen_ai.operation.name"
PLAIN = re.compile(r"[A-Za-z0-9._:@/-]{1,128}\Z")  # a model's name; whatever else stands there is not repeated
PROPAGATED = (b"traceparent", b"tracestate")

_span: ContextVar[Any] = ContextVar("cg_span", default=None)


def _trace() -> Any:
    """The API, if the program has loaded it and set a provider; else None."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace


def traced(messages: MessagesHandler, upstream: str) -> MessagesHandler:
    """The same answers, each Messages request with a span while a provider is set; `upstream` is the base URL."""
    return TracedMessages(messages, upstream)


class SpanAttributes:
    """Writes what is told of a request into its span; an `Events`."""

    def tell(self, event: GatewayEvent) -> None:
        """Write the event's attributes, if it has any, into the span of the request that this task is about."""
        if (span := _span.get()) is None:
            return
        match event:
            case TurnSent(report):
                _write(span, _of_turn(report))
            case ModelCalled(Spend.REQUEST, model, usage):
                named = {"gen_ai.response.model": model} if PLAIN.match(model) else {}
                _write(span, {**named, **(tokens(usage) if usage is not None else {})})


def _of_turn(report: TurnReport) -> dict[str, str | int]:
    savings = report.savings
    return {
        "cg.turn.reason": report.reason.value,
        "cg.turn.phase": report.phase.value,
        "cg.turn.removed_outputs": len(report.removed),
        "cg.turn.replayed_outputs": report.replayed,
        "cg.turn.saved_bytes": savings.unique_bytes + savings.repeat_bytes if savings else 0,
    }


def _write(span: Any, attributes: dict[str, str | int]) -> None:
    """Never raises, whatever a processor of the program's does."""
    with suppress(Exception):
        span.set_attributes(attributes)


def tokens(usage: Usage) -> dict[str, int]:
    """A usage in the conventions' terms: there the input is all of it, and the cached parts are told again."""
    written = usage.write_5m + usage.write_1h
    return {
        "gen_ai.usage.input_tokens": usage.fresh + usage.read + written,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.read,
        "gen_ai.usage.cache_creation.input_tokens": written,
    }


class TracedMessages:
    """A `MessagesHandler` with spans around it."""

    def __init__(self, messages: MessagesHandler, upstream: str) -> None:
        self._messages = messages
        parts = urlsplit(upstream)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
        self._server = {"server.address": parts.hostname or "", "server.port": port}

    async def count_tokens(self, inbound: Inbound) -> Outbound:
        """As it is: counting is no inference."""
        return await self._messages.count_tokens(inbound)

    async def handle(self, inbound: Inbound) -> Outbound:
        """The answer, its span ended with it."""
        trace = _trace()
        if trace is None:
            return await self._messages.handle(inbound)
        try:
            span, is_ours = await self._begin_span(trace, inbound)
        except Exception as error:  # of a sampler or a processor that the program brought
            log.error("no span could be begun: %s", type(error).__name__)
            return await self._messages.handle(inbound)
        token = _span.set(span)
        try:
            outbound = await self._messages.handle(inbound)
        except BaseException as error:
            if is_ours:
                _mark_failed(trace, span, type(error).__name__)
                span.end()
            raise
        finally:
            _span.reset(token)
        if not is_ours:
            return (
                outbound if isinstance(outbound.body, bytes) else replace(outbound, body=_in_span(span, outbound.body))
            )
        if outbound.status >= 400:
            _mark_failed(trace, span, str(outbound.status))
        return _ending_span(trace, span, outbound)

    async def _begin_span(self, trace: Any, inbound: Inbound) -> tuple[Any, bool]:
        """The request's span, and whether it is ours to end: an SDK that has begun one for this call keeps it."""
        current = trace.get_current_span()
        if OPERATION in (getattr(current, "attributes", None) or {}):
            return current, False
        tracer = trace.get_tracer("cg.gateway", __version__)
        requested = await asyncio.to_thread(request_attributes, inbound.body)  # a long body holds up nobody's stream
        name = requested.get("gen_ai.request.model")
        return (
            tracer.start_span(
                f"chat {name}" if name else "chat",
                context=None if current.get_span_context().is_valid else _remote(inbound.headers),
                kind=trace.SpanKind.CLIENT,
                attributes={OPERATION: "chat", "gen_ai.provider.name": "anthropic", **self._server, **requested},
            ),
            True,
        )


def request_attributes(body: bytes) -> dict[str, str | int]:
    """What a request says of its model, without content; nothing for one that cannot be read."""
    try:
        transcript = read(body)
    except Unreadable:
        return {}
    attributes: dict[str, str | int] = {}
    if transcript.model and PLAIN.match(transcript.model):
        attributes["gen_ai.request.model"] = transcript.model
    if transcript.max_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = transcript.max_tokens
    return attributes


def _remote(headers: Headers) -> Any:
    """The caller's own trace, by the program's propagators; None if the request names none."""
    carrier = {name.decode(): value.decode("latin-1") for name, value in headers if name in PROPAGATED}
    propagate = sys.modules.get("opentelemetry.propagate")
    return propagate.extract(carrier) if carrier and propagate is not None else None


def _mark_failed(trace: Any, span: Any, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(trace.StatusCode.ERROR)


async def _in_span(span: Any, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, with what is told while each is made written into the span."""
    try:
        while True:
            token = _span.set(span)
            try:
                piece = await anext(body, None)
            finally:
                _span.reset(token)
            if piece is None:
                return
            yield piece
    finally:
        aclose = getattr(body, "aclose", None)
        if aclose is not None:
            await aclose()


def _ending_span(trace: Any, span: Any, outbound: Outbound) -> Outbound:
    """The answer, which ends its span when it is closed."""

    async def pieces(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for piece in _in_span(span, body):
                yield piece
        except Exception as error:
            _mark_failed(trace, span, type(error).__name__)
            raise

    async def close() -> None:
        span.end()
        if outbound.close is not None:
            await outbound.close()

    body = outbound.body
    return replace(outbound, body=body if isinstance(body, bytes) else pieces(body), close=close)
