"""How much memory request bodies may take together."""

import asyncio
from collections import deque


class NoRoom(Exception):
    """The memory for request bodies stayed full for too long."""


class Room:
    """A budget of bytes, given out in the order in which it is asked for. Not for use from several threads."""

    def __init__(self, size_bytes: int, patience_s: float = 10.0) -> None:
        self._free = size_bytes
        self._patience_s = patience_s
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def free_bytes(self) -> int:
        return self._free

    async def take(self, size_bytes: int) -> None:
        """Reserve bytes, waiting for others to give theirs back. Raises NoRoom after `patience_s` seconds: bodies that
        are half read and wait for each other would wait for ever."""
        if not self._waiting and size_bytes <= self._free:
            self._free -= size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size_bytes, turn)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(self._patience_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.give(size_bytes)  # it was granted at the very moment of giving up
            elif entry in self._waiting:
                self._waiting.remove(entry)
                self._grant()
            if isinstance(error, TimeoutError):
                raise NoRoom from None
            raise

    def give(self, size_bytes: int) -> None:
        """Give reserved bytes back."""
        self._free += size_bytes
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size_bytes, turn = self._waiting.popleft()
            if not turn.cancelled():
                self._free -= size_bytes
                turn.set_result(None)
