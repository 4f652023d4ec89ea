"""The upstream over a transport of the client's library, on the client's own event loop."""

from collections.abc import AsyncIterator
from typing import Any

from cg.gateway.embedded.client_call import Calling, as_ours, calling_of, headers_of
from cg.gateway.exchange import Headers
from cg.gateway.upstream.contract import Body, Reply, read_whole


class AsyncReply:
    """A reply of an asynchronous transport."""

    def __init__(self, response: Any, calling: Calling) -> None:
        self.status: int = response.status_code
        self.headers: Headers = headers_of(response)
        self._stream, self._library = response.stream, calling.library

    async def stream(self) -> AsyncIterator[bytes]:
        with as_ours(self._library):
            async for piece in self._stream:
                yield piece

    async def read(self, limit: int) -> bytes:
        return await read_whole(self.stream(), limit)

    async def close(self) -> None:
        await self._stream.aclose()


class AsyncUpstream:
    """Sends through `inner`. `is_ours`: what it sends no client waits for."""

    def __init__(self, inner: Any, *, is_ours: bool = False) -> None:
        self._inner, self._is_ours = inner, is_ours

    async def send(self, method: str, target: bytes, headers: Headers, body: Body = b"") -> Reply:
        """See `cg.gateway.upstream.contract.Upstream.send`."""
        calling = calling_of(target)
        request = calling.request(method, headers, body, is_ours=self._is_ours)
        with as_ours(calling.library):
            if not self._is_ours:
                calling.is_sent = True
            response = await self._inner.handle_async_request(request)
        if not self._is_ours:
            calling.came(response)
        return AsyncReply(response, calling)

    async def aclose(self) -> None:
        """Nothing: the connections are the transport's."""
