"""Which HTTP client carries the gateway: the candidates on one event loop, against the same cheap upstream.

    pip install aiohttp httpcore2 && python bench/gateway/clients.py

For each: a POST of 1 MB with a short answer, and the events of a stream of 200, one request at a time; medians of turns that
alternate. Whether a client keeps every byte of target and headers is not measured here: aiohttp writes header values as
UTF-8 and drops an empty query, httpcore2 takes bytes.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

import processes

BODY = b"x" * 1_000_000
ROUNDS = 200
Post = Callable[[str, bytes], Awaitable[int]]


def core(url: str) -> tuple[Post, Callable[[], Awaitable[None]]]:
    from cg.gateway.upstream.pool import PooledUpstream

    upstream = PooledUpstream(url, environment={})

    async def post(target: str, body: bytes) -> int:
        reply = await upstream.send("POST", target.encode(), [], body)
        size = 0
        async for piece in reply.stream():
            size += len(piece)
        await reply.close()
        return size

    return post, upstream.aclose


def aio(url: str) -> tuple[Post, Callable[[], Awaitable[None]]]:
    import aiohttp

    session = aiohttp.ClientSession(auto_decompress=False)

    async def post(target: str, body: bytes) -> int:
        size = 0
        async with session.post(url + target, data=body, headers={"content-type": "application/json"}) as reply:
            async for piece in reply.content.iter_any():
                size += len(piece)
        return size

    return post, session.close


async def main() -> None:
    with processes.upstream() as port:
        made = {name: make(f"http://127.0.0.1:{port}") for name, make in (("httpcore2", core), ("aiohttp", aio))}
        for title, target, body in (
            ("1 MB body, short answer", "/x", BODY),
            ("stream of 200 events", "/x?events=200", b"{}"),
            ("stream of 20 events, 1 ms apart", "/x?events=20&gap_ms=1", b"{}"),
        ):
            times: dict[str, list[float]] = {name: [] for name in made}
            cpu: dict[str, float] = dict.fromkeys(made, 0.0)
            for n in range(ROUNDS):
                for name in sorted(made, reverse=bool(n % 2)):
                    start, used = time.perf_counter(), time.process_time()
                    await made[name][0](target, body)
                    times[name].append(time.perf_counter() - start)
                    cpu[name] += time.process_time() - used
            for name, values in times.items():
                p50, p99 = statistics.median(values) * 1000, sorted(values)[int(0.99 * ROUNDS)] * 1000
                print(
                    f"{title:32} {name:10} p50 {p50:7.3f} ms  p99 {p99:7.3f} ms  cpu {cpu[name] / ROUNDS * 1000:6.3f} ms"
                )
        for _, close in made.values():
            await close()


if __name__ == "__main__":
    from cg.gateway.serve.launch import event_loop

    with asyncio.Runner(loop_factory=event_loop()) as runner:
        runner.run(main())
