"""Work that nobody waits for."""

import asyncio
from typing import Any

import pytest
from event_recorder import EventRecorder

from cg.gateway.events import Fault
from cg.gateway.messages.background_tasks import BackgroundTasks

gather = asyncio.gather


async def gathered_at_once(*tasks: "asyncio.Task[Any]", return_exceptions: bool) -> list[Any]:
    """What `asyncio.gather` does from Python 3.12 on: where all is done it never lets the loop go on."""
    if all(task.done() for task in tasks):
        return [task.exception() or task.result() for task in tasks]
    found: list[Any] = await gather(*tasks, return_exceptions=return_exceptions)
    return found


class Looked(set[Any]):
    """A set that says so when somebody who waits for it to be empty looks for ever."""

    looks = 0

    def __len__(self) -> int:
        self.looks += 1
        assert self.looks < 100, "waits without letting the loop go on"
        return super().__len__()


@pytest.mark.parametrize("fails", [False, True])
def test_settling_ends_when_work_is_done_whose_callbacks_wait_for_their_turn(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """On every Python; work that failed too."""
    monkeypatch.setattr(asyncio, "gather", gathered_at_once)
    done = []

    async def work() -> None:
        done.append(1)
        if fails:
            raise OSError

    async def session() -> None:
        tasks = BackgroundTasks(EventRecorder(), 4)
        tasks._tasks = Looked()
        tasks.start(work())
        # Its first step comes right behind the work's only one, before any callback.
        await asyncio.create_task(tasks.settle())
        assert done == [1] and len(tasks._tasks) == 0

    asyncio.run(session())


def test_settling_waits_for_what_is_begun_meanwhile() -> None:
    """Work may give more work."""
    done = []

    async def session() -> None:
        tasks = BackgroundTasks(EventRecorder(), 3)

        async def first() -> None:
            await asyncio.sleep(0)
            tasks.start(last())
            done.append("first")

        async def last() -> None:
            await asyncio.sleep(0)
            done.append("last")

        tasks.start(first())
        await tasks.settle()
        assert len(tasks._tasks) == 0

    asyncio.run(session())
    assert done == ["first", "last"]


def test_past_the_limit_work_is_left_out_and_told_as_a_fault() -> None:
    """What was begun goes on."""
    recorder, done = EventRecorder(), []

    async def work(n: int) -> None:
        done.append(n)

    async def session() -> None:
        tasks = BackgroundTasks(recorder, 2)
        for n in range(3):
            tasks.start(work(n))
        assert len(tasks._tasks) == 2
        await tasks.settle()

    asyncio.run(session())
    assert done == [0, 1] and recorder.events == [Fault.STORE]
