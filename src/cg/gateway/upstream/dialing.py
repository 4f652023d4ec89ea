"""Opening a connection to a name with several addresses: the next one is tried before the last one has failed."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from itertools import chain, zip_longest
from typing import TypeVar

STAGGER_S = 0.25  # RFC 8305, 5: a dead IPv6 route must not hold up the IPv4 one

P = TypeVar("P", bound=asyncio.Protocol)


async def dial(make: Callable[[], P], host: str, port: int, local: str | None = None) -> tuple[asyncio.Transport, P]:
    """The first connection that stands. Raises OSError, the last one's, if none does.

    Written here because only one of the event loops that this runs on knows how.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = in_turn((int(family), str(where[0])) for family, _, _, _, where in found)
    bound = (local, 0) if local else None
    error: BaseException = OSError("no address")
    racing: set[asyncio.Task[tuple[asyncio.Transport, P]]] = set()
    try:
        while addresses or racing:
            if addresses:
                racing.add(asyncio.create_task(loop.create_connection(make, addresses.pop(0), port, local_addr=bound)))
            wait_s = STAGGER_S if addresses else None
            done, racing = await asyncio.wait(racing, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            standing = [task.result() for task in done if task.exception() is None]
            for transport, _ in standing[1:]:
                transport.abort()
            if standing:
                return standing[0]
            error = next((task.exception() or error for task in done), error)
        raise error
    finally:
        for task in racing:
            task.add_done_callback(_hang_up)
            task.cancel()


def _hang_up(task: "asyncio.Task[tuple[asyncio.Transport, P]]") -> None:
    """A connection that came to stand after the race was won is nobody's."""
    if not task.cancelled() and task.exception() is None:
        task.result()[0].abort()


def in_turn(addresses: Iterable[tuple[int, str]]) -> list[str]:
    """Addresses with their families taking turns, in the resolver's order otherwise, each once (RFC 8305, 4)."""
    by_family: dict[int, list[str]] = {}
    for family, address in addresses:
        known = by_family.setdefault(family, [])
        if address not in known:
            known.append(address)
    return [address for address in chain.from_iterable(zip_longest(*by_family.values())) if address is not None]
