"""Several listeners told as one: figures, log, spans and a program's own hear the same events."""

import logging

from cg.gateway.events import Events, Fault, GatewayEvent

log = logging.getLogger("cg.gateway.telemetry.metrics")


class Listeners:
    """Tells each listener, in order; one that fails is counted and logged, and the request goes on."""

    def __init__(self, *listeners: Events) -> None:
        self._listeners = listeners

    def tell(self, event: GatewayEvent) -> None:
        for listener in self._listeners:
            try:
                listener.tell(event)
            except Exception as error:
                log.error("a figure was not counted: %s", type(error).__name__)
                if event is not Fault.METRICS:
                    self.tell(Fault.METRICS)
