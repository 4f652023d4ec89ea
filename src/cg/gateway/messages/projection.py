"""What the sweep would do to traffic that is only watched: reckoned in a memory of its own, beside real requests."""

from dataclasses import replace
from typing import Any

from cg.gateway.events import Events, Fault, TurnProjected
from cg.sweep.config import Config, preset_values
from cg.sweep.drivers import Sweep
from cg.sweep.prices import PriceTable
from cg.sweep.store import Limits
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Usage

# Originals of projected removals. Past this nothing new is projected (reason `refused`), so projections say too little
# rather than take memory that real requests need.
PROJECTION_BYTES = 64 * 1024 * 1024
AGE_EVERY = 256  # looks between two clearings of what is past its time


def projected_config(config: Config) -> Config:
    """The configuration that is projected: a judge that would ask the model is replaced by the preset `cold`.

    To ask costs money and renews cache entries, which would change what is observed.
    """
    if config.judge != "model":
        return replace(config, pings=0)
    changed: dict[str, Any] = dict(preset_values("cold"))
    return replace(config, **{**changed, "pings": 0})


class Projection:
    """Reckons what would have been done; nothing that it decides reaches a body, a store or a real figure.

    Calls block for a millisecond or so: they belong into a worker thread, after the request.
    """

    def __init__(self, config: Config, events: Events, *, prices: PriceTable | None = None) -> None:
        self.config = projected_config(config)
        self._events = events
        self._store = MemoryStore(
            Limits(payload_ttl_s=config.payload_ttl_h * 3600, max_bytes=PROJECTION_BYTES, bodies_bytes=0)
        )
        self._sweep = Sweep(self.config, self._store, prices=prices)
        self._looks = 0

    def look(self, body: bytes, thread: str, now: float) -> None:
        """Reckon one request that was sent untouched, and tell of it as projected."""
        try:
            self._events.tell(TurnProjected(self._sweep.process(body, thread, now).report, now))
            self._looks += 1
            if self._looks % AGE_EVERY == 0:
                self._store.sweep_ages(now)
        except Exception:
            self._events.tell(Fault.SWEEP)

    def learn(self, thread: str, usage: Usage, sent_bytes: int) -> None:
        """Take in the usage of the reply to a request that was looked at."""
        try:
            self._sweep.observe(thread, usage, sent_bytes)
        except Exception:
            self._events.tell(Fault.SWEEP)
