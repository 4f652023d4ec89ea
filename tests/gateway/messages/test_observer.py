"""`--observe`: nothing is changed, and everything is reckoned behind it."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import Talk, expands, live

from cg.gateway.messages.observer import ObserveHandler
from cg.sweep.ledger import Reason
from cg.sweep.values import Usage


class Projection:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.looks: list[tuple[bytes, str, float]] = []
        self.learnt: list[tuple[str, Usage, int]] = []

    def look(self, body: bytes, thread: str, now: float) -> None:
        self.looks.append((body, thread, now))

    def learn(self, thread: str, usage: Usage, sent_bytes: int) -> None:
        self.learnt.append((thread, usage, sent_bytes))


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_nothing_is_changed_and_all_is_reckoned(stream: bool) -> None:
    """Bodies and replies are the other side's own, expansions included; each request is looked at once, in order."""
    shown = Projection()

    def make(settings: Any, upstream: Any, sweep: Any, events: Any, **more: Any) -> ObserveHandler:
        return ObserveHandler(settings, upstream, shown, events, **more)

    async def session() -> None:
        turns = [{"text": "One."}, {"text": "Two.", **expands()}, {"text": "Three."}]
        async with live([{"name": "work", "turns": turns}], make=make) as gateway:
            talk = Talk(top={"stream": stream})
            bodies = [talk.body(), talk.calls(14).body(), talk.say("And now?").body()]
            for body in bodies:
                answer = await gateway.post(body)
                assert answer.content == gateway.sent[-1]["reply"]["content"]
                gateway.clock.advance(1000)
            assert gateway.bodies() == bodies == [look[0] for look in shown.looks]
            assert len({look[1] for look in shown.looks}) == 1
            assert [size for _, _, size in shown.learnt] == [len(body) for body in bodies]
            assert {turn.reason for turn in gateway.recorder.turns} == {Reason.OBSERVED}
            (await gateway.count(bodies[0])).message["input_tokens"]

    asyncio.run(session())
