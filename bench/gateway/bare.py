"""What the gateway is measured against: the same server, protocol and HTTP client, passing everything and deciding nothing."""

import sys

from cg.gateway.exchange import Headers
from cg.gateway.http.forwarding import incoming, outgoing
from cg.gateway.upstream.pool import PooledUpstream

HOPS = (b"host", b"content-length")


class Bare:
    """An ASGI application of twenty lines; bodies stream both ways."""

    def __init__(self, upstream: PooledUpstream) -> None:
        self.upstream = upstream
        self.is_stopping = False

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self.upstream.aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return

        async def pieces():
            more = True
            while more:
                message = await receive()
                more = message.get("more_body", False)
                yield message.get("body", b"")

        headers: Headers = outgoing(scope["headers"])
        headers += [pair for pair in scope["headers"] if pair[0] == b"content-length"]
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        reply = await self.upstream.send(scope["method"], target, headers, pieces())
        await send({"type": "http.response.start", "status": reply.status, "headers": incoming(reply.headers)})
        async for piece in reply.stream():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        await reply.close()


def main() -> None:
    """Serve on a free port before the upstream named by the first argument; the port is printed."""
    import asyncio

    from cg.gateway.serve.launch import event_loop
    from cg.gateway.serve.server import Server, listen, serve
    from cg.gateway.settings import Settings

    settings = Settings(listen=("127.0.0.1", 0), upstream=sys.argv[1], stop_timeout_s=1)

    async def served() -> None:
        listener = listen(settings.listen)
        server = Server(Bare(PooledUpstream(sys.argv[1], environment={})), settings, lambda why: None)
        await serve(server, listener, lambda: print(listener.getsockname()[1], flush=True))

    with asyncio.Runner(loop_factory=event_loop()) as runner:
        runner.run(served())


if __name__ == "__main__":
    main()
