"""Work that is done after a reply: bounded, so that a slow disk costs figures and not memory."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from cg.gateway.events import Events, Fault

log = logging.getLogger("cg.gateway")


class BackgroundTasks:
    """Pieces of work that nobody waits for, at most `limit` at one time."""

    def __init__(self, events: Events, limit: int) -> None:
        self._events, self._limit = events, limit
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Start it now; past the limit it is left out."""
        if len(self._tasks) >= self._limit:
            work.close()
            self._events.tell(Fault.STORE)
            return
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait until all of it is done."""
        while self._tasks:
            tasks = tuple(self._tasks)
            await asyncio.gather(*tasks, return_exceptions=True)
            # From Python 3.12 on, where all were done already, no callback had its turn meanwhile: without this line the
            # loop would be held here for ever.
            self._tasks.difference_update(tasks)

    async def _guarded(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:
            log.error("work behind a reply failed: %s", type(error).__name__)
            self._events.tell(Fault.STORE)
