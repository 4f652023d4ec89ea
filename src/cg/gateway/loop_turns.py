"""Turns for others on the event loop in the middle of work that need not wait for anything."""

import asyncio
import time

TURN_S = 0.005  # seconds of work in one go


class LoopTurns:
    """Says when the work of one task has held the loop for long enough. Waiting counts as work, since nobody sees it: then
    a turn too many is given, which costs microseconds."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = time.monotonic()

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._since > TURN_S

    async def give(self) -> None:
        """Let others go first."""
        await asyncio.sleep(0)
        self._since = time.monotonic()
