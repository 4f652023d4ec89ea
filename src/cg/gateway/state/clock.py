"""The gateway's time: one that is given to it, so that a test can let five minutes pass at once."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

LONGEST_SLEEP_S = 30.0  # the wall clock may be set, or the machine suspended: it is looked at again this often


class Clock(Protocol):
    """Seconds since the epoch, and waiting for a moment of them."""

    def now(self) -> float: ...

    async def sleep_until(self, moment: float) -> None: ...


class SystemClock:
    """The wall clock: caches live by it too. Gateways that share a server go by that server's, which is `ahead_s` of
    this machine's: what one has written of a moment the others read."""

    def __init__(self, ahead_s: Callable[[], float] = lambda: 0.0) -> None:
        self._ahead_s = ahead_s

    def now(self) -> float:
        return time.time() + self._ahead_s()

    async def sleep_until(self, moment: float) -> None:
        while (left := moment - self.now()) > 0:
            await asyncio.sleep(min(left, LONGEST_SLEEP_S))
