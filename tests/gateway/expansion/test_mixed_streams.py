"""A stream that calls our tool and another one passes byte for byte, however it is cut and wherever its pings stand."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import EXPAND_TOOL, Talk, inbound, live, scripted

from cg.gateway.http import sse

PING = b'event: ping\ndata: {"type": "ping"}\n\n'
COMMENT = b": keep-alive\n\n"


def event(kind: str, **data: Any) -> bytes:
    return sse.write(kind, {"type": kind, **data})


def block(index: int, name: str) -> list[bytes]:
    """A call, or a text, as its events."""
    if name == "text":
        opened, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Let me look."}
    else:
        opened = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": '{"id": "0123456789abcdef"}'}
    return [
        event("content_block_start", index=index, content_block=opened),
        event("content_block_delta", index=index, delta=delta),
        event("content_block_stop", index=index),
    ]


def reply(names: tuple[str, ...], between: bytes) -> bytes:
    opens = event("message_start", message={"model": "m", "content": [], "usage": {"input_tokens": 7}})
    ends = event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 4}) + event("message_stop")
    events = [opens, *(e for n, name in enumerate(names) for e in block(n, name)), ends]
    return between.join(events)


class Said:
    """An upstream that says these bytes, cut anywhere."""

    def __init__(self, said: bytes, seed: int) -> None:
        self.status, self.headers = 200, [(b"content-type", b"text/event-stream")]
        self._said, self._cut, self.n = said, random.Random(seed), 0

    async def send(self, *request: Any) -> Any:
        self.n += 1
        return self

    async def stream(self) -> AsyncIterator[bytes]:
        at = 0
        while at < len(self._said):
            size = self._cut.choice([1, 10, 100, 1000])
            yield self._said[at : at + size]
            at += size

    async def close(self) -> None: ...

    async def aclose(self) -> None: ...


MIXES = sorted(set(itertools.permutations(["text", EXPAND_TOOL, "Read", EXPAND_TOOL], 3)))


@pytest.mark.parametrize(
    "between", [b"", PING, COMMENT, PING * 2 + COMMENT], ids=["nothing", "ping", "comment", "both"]
)
def test_a_mixed_stream_is_the_upstreams_own(between: bytes) -> None:
    """Of all orders of a text, our tool and another one those that call both."""

    async def session() -> None:
        async with live(scripted()) as gateway:
            for seed, names in enumerate(m for m in MIXES if "Read" in m and EXPAND_TOOL in m):
                said = reply(names, between)
                up = Said(said, seed)
                gateway.messages._upstream = gateway.messages._expander._upstream = up
                outbound = await gateway.messages.handle(inbound(Talk(top={"stream": True}).body()))
                assert not isinstance(outbound.body, bytes)
                assert b"".join([piece async for piece in outbound.body]) == said
                await outbound.close()
                assert up.n == 1

    asyncio.run(session())
