"""What both engines of the embedded sweep share: their client's transport, and what becomes of a fault of ours."""

import logging
from typing import Any, Self

from cg.gateway.embedded.client_call import ClientCall
from cg.gateway.embedded.gateway import EmbeddedGateway
from cg.gateway.events import Fault, Route
from cg.gateway.exchange import Outbound

log = logging.getLogger("cg.gateway")
SWEPT = frozenset([Route.MESSAGES, Route.COUNT_TOKENS])


class Engine:
    """Answers the requests of one client, over the transport that the client gave or one made at the first request."""

    def __init__(self, gateway: EmbeddedGateway, inner: Any) -> None:
        self.gateway = gateway
        self._given = inner
        self._inner: Any = inner
        self._is_passing = False

    def passing(self) -> Self:
        """One that only passes requests on, with connections of its own."""
        other = type(self)(self.gateway, self._given)
        other._is_passing = True
        return other

    def is_swept(self, route: Route) -> bool:
        """Whether a request is the sweep's; all others pass."""
        return route in SWEPT and not self._is_passing

    def report_fault(self, error: Exception, call: ClientCall) -> None:
        """A fault of ours before there was an answer. Returns where the request can pass instead."""
        log.error("fault in answering: %s", type(error).__name__)
        self.gateway.events.fault(Fault.SWEEP)
        if call.is_sent:  # it may have been charged for: whether it is sent again is the client's to say
            raise call.library.ReadError("a fault of the transport's own") from error


def response_of(outbound: Outbound, call: ClientCall, stream: Any) -> Any:
    """An answer as a response of the client's library."""
    return call.library.Response(
        outbound.status, headers=outbound.headers, stream=stream, extensions=call.reply_extensions
    )
