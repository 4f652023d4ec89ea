"""What a gateway that runs for weeks does now and then: lets go of what is past its time."""

import asyncio
import logging

from cg.gateway.events import Events, Fault
from cg.gateway.state.clock import Clock
from cg.sweep.store import Store

log = logging.getLogger("cg.gateway")
EVERY_S = 3600.0


class Housekeeping:
    """Clears the store once an hour, the first time an hour after the start."""

    def __init__(self, store: Store, events: Events, clock: Clock) -> None:
        self._store, self._events, self._clock = store, events, clock
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; `stop` ends it."""
        self._task = asyncio.create_task(self._clear_hourly())

    async def stop(self) -> None:
        """End, and wait for a clearing that is under way: the store is closed next."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _clear_hourly(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.now() + EVERY_S)
            clearing = asyncio.create_task(asyncio.to_thread(self._store.sweep_ages, self._clock.now()))
            try:
                await asyncio.shield(clearing)
            except asyncio.CancelledError:
                await asyncio.wait([clearing])
                raise
            except Exception as error:
                log.error("the store could not be cleared: %s", type(error).__name__)
                self._events.tell(Fault.STORE)
