"""How much memory request bodies may take together."""

import asyncio
from collections import deque


class BodyBudgetTimeout(Exception):
    """The memory for request bodies stayed full for too long."""


class BodyBudget:
    """A budget of bytes, given out in the order in which it is asked for. Not for use from several threads."""

    def __init__(self, size_bytes: int, timeout_s: float = 10.0) -> None:
        self.free_bytes = size_bytes
        self._timeout_s = timeout_s
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def reserve(self, size_bytes: int) -> None:
        """Reserve bytes, waiting for others to release theirs. Raises BodyBudgetTimeout after `timeout_s` seconds: bodies
        that are half read and wait for each other would wait for ever."""
        if not self._waiting and size_bytes <= self.free_bytes:
            self.free_bytes -= size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size_bytes, turn)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(self._timeout_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.release(size_bytes)  # it was granted at the very moment of giving up
            elif entry in self._waiting:
                self._waiting.remove(entry)
                self._grant()
            if isinstance(error, TimeoutError):
                raise BodyBudgetTimeout from None
            raise

    def release(self, size_bytes: int) -> None:
        """Give reserved bytes back."""
        self.free_bytes += size_bytes
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.free_bytes:
            size_bytes, turn = self._waiting.popleft()
            if not turn.cancelled():
                self.free_bytes -= size_bytes
                turn.set_result(None)
