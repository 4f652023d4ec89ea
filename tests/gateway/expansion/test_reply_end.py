"""How a message of several replies ends, and what becomes of one that another task closes or that cannot be written."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import EXPAND_TOOL, Talk, expands, inbound, live, scripted, swept, until

from cg.gateway.events import Fault
from cg.gateway.upstream.contract import Cut
from cg.gateway.upstream.contract import read_whole as read_all


class Edited:
    """An upstream whose nth reply is changed, or is waited for without end."""

    def __init__(self, inner: Any, nth: int, old: bytes, new: bytes) -> None:
        self._inner, self._nth, self._old, self._new = inner, nth, old, new
        self.n = 0

    async def send(self, method: str, target: bytes, headers: Any, body: Any = b"", call: object = None) -> Any:
        self.n += 1
        if self.n == self._nth and not self._old:
            await asyncio.Event().wait()
        reply = await self._inner.send(method, target, headers, body, call)
        if self.n == self._nth:
            whole = await read_all(reply.stream(), 10**7)
            assert self._old in whole
            changed = whole.replace(self._old, self._new)
            reply.headers = [(n, v) for n, v in reply.headers if n != b"content-length"]

            async def stream() -> Any:
                yield changed

            reply.stream = stream
        return reply

    async def aclose(self) -> None:
        await self._inner.aclose()


def edit(gateway: Any, nth: int, old: bytes = b"", new: bytes = b"") -> Edited:
    edited = Edited(gateway.messages._upstream, nth, old, new)
    gateway.messages._upstream = gateway.messages._recovery._upstream = edited
    return edited


def test_a_merged_reply_ends_as_the_last_one() -> None:
    """Its stop sequence, its container and all else that the last reply says beside its content and usage."""

    async def session() -> None:
        async with live(scripted(expands(text="Look. "), {"text": "Found."})) as gateway:
            talk = Talk(top={"stream": False})
            await swept(gateway, talk)
            edit(gateway, 2, b'"usage"', b'"container": {"id": "c"}, "usage"')
            answer = await gateway.post(talk.say("Show me.").body())
            assert answer.message["container"] == {"id": "c"} and answer.message["stop_reason"] == "end_turn"
            assert answer.message["id"] == gateway.sent[-2]["reply"].get("id", answer.message["id"])
            assert [block["text"] for block in answer.content] == ["Look. ", "Found."]

    asyncio.run(session())


@pytest.mark.parametrize("nth", [1, 2], ids=["first", "last"])
@pytest.mark.parametrize("number", [b"1e400", b"NaN"])
def test_a_reply_that_cannot_be_merged_lets_the_call_pass(nth: int, number: bytes) -> None:
    """The client gets the first reply, byte for byte, and no word that is not JSON's is written here."""

    async def session() -> None:
        async with live(scripted(expands(text="Look. "), {"text": "Found."})) as gateway:
            talk = Talk(top={"stream": False})
            await swept(gateway, talk)
            edited = edit(gateway, nth, b'"usage"', b'"extra": %b, "usage"' % number)
            answer = await gateway.post(talk.say("Show me.").body())
            assert EXPAND_TOOL.encode() in answer.body and b"Infinity" not in answer.body
            assert (number in answer.body) == (nth == 1) and edited.n == nth
            assert gateway.recorder.faults[Fault.RECOVERY] == nth - 1
            assert json.loads(answer.body)["stop_reason"] == "tool_use"

    asyncio.run(session())


def test_a_stream_that_is_closed_while_it_waits_for_a_round_is_cut_for_its_reader() -> None:
    """The reader's own task was not cancelled, and is not told so."""

    async def session() -> None:
        async with live(scripted(expands(text="Look. "), {"text": "Found."})) as gateway:
            talk = Talk(top={"stream": True})
            await swept(gateway, talk)
            edited = edit(gateway, 2)
            outbound = await gateway.messages.handle(inbound(talk.say("Show me.").body()))
            reader = asyncio.create_task(read_all(outbound.body, 10**7))
            await until(lambda: edited.n == 2)
            await outbound.close()
            with pytest.raises(Cut):
                await reader

    asyncio.run(session())
