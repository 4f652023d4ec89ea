"""Opening a connection to a name with several addresses."""

import asyncio
import socket

import pytest

from cg.gateway.upstream import network
from cg.gateway.upstream.network import dial, interleaved

V4, V6 = socket.AF_INET, socket.AF_INET6


def test_families_take_turns():
    """The resolver's order holds within each, and an address is tried once."""
    found = [(V6, "a"), (V6, "b"), (V6, "b"), (V6, "c"), (V4, "d")]
    assert interleaved(found) == ["a", "d", "b", "c"]


def resolver(monkeypatch, loop, addresses, port):
    async def getaddrinfo(host, asked, **kwargs):
        return [(V4, socket.SOCK_STREAM, 0, "", (address, asked)) for address in addresses]

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)


def test_an_address_that_fails_is_followed_by_the_next(monkeypatch):
    """At once, and the error is told only if all fail."""

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            resolver(monkeypatch, asyncio.get_running_loop(), ["127.0.0.2", "127.0.0.1"], port)
            transport, _ = await dial(asyncio.Protocol, "name", port)
            assert transport.get_extra_info("peername")[0] == "127.0.0.1"
            transport.abort()
        with pytest.raises(OSError):
            await dial(asyncio.Protocol, "name", port)
        await asyncio.sleep(0)

    asyncio.run(main())


def test_an_address_that_does_not_answer_holds_nobody_up(monkeypatch):
    """The next one is tried beside it, and the loser is let go."""
    monkeypatch.setattr(network, "STAGGER_S", 0.01)
    tried = []

    async def main():
        loop = asyncio.get_running_loop()
        resolver(monkeypatch, loop, ["silent", "127.0.0.1"], 0)
        connect = loop.create_connection

        async def create_connection(make, host, port, **kwargs):
            tried.append(host)
            if host == "silent":
                try:
                    await asyncio.sleep(30)
                finally:
                    tried.append("let go")
            return await connect(make, host, port, **kwargs)

        monkeypatch.setattr(loop, "create_connection", create_connection)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            transport, _ = await asyncio.wait_for(dial(asyncio.Protocol, "name", listener.getsockname()[1]), 5)
            transport.abort()
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert tried == ["silent", "127.0.0.1", "let go"]
