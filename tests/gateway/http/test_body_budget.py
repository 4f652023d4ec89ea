"""The memory that request bodies may take together."""

import asyncio

import pytest

from cg.gateway.http.body_budget import NoRoom, Room


def test_room_is_given_in_the_order_of_asking():
    """A small body does not overtake a large one for ever."""

    async def main():
        room = Room(10)
        order = []

        async def user(size, name):
            await room.take(size)
            order.append(name)

        await room.take(8)
        users = [asyncio.create_task(user(9, "large")), asyncio.create_task(user(1, "small"))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == []
        room.give(8)
        await asyncio.gather(*users)
        return order, room.free_bytes

    assert asyncio.run(main()) == (["large", "small"], 0)


def test_waiting_for_room_ends():
    """Bodies that are half read and wait for each other are told so."""

    async def main():
        room = Room(10, patience_s=0.01)
        await room.take(6)
        with pytest.raises(NoRoom):
            await room.take(5)
        await room.take(4)
        return room.free_bytes

    assert asyncio.run(main()) == 0


def test_who_stops_waiting_is_passed_over_and_takes_nothing():
    """Room that is granted to somebody who has just gone is given to the next."""

    async def main():
        room = Room(10)
        await room.take(10)
        first, second = asyncio.create_task(room.take(10)), asyncio.create_task(room.take(4))
        await asyncio.sleep(0)
        first.cancel()
        room.give(10)
        await second
        with pytest.raises(asyncio.CancelledError):
            await first
        room.give(4)
        return room.free_bytes

    assert asyncio.run(main()) == 10


def test_room_granted_at_the_moment_of_giving_up_is_not_lost():
    """Cancelled and granted in one step: the bytes come back."""

    async def main():
        room = Room(10)
        await room.take(10)
        waiter = asyncio.create_task(room.take(10))
        await asyncio.sleep(0)
        room.give(10)  # granted
        waiter.cancel()  # before it could run
        with pytest.raises(asyncio.CancelledError):
            await waiter
        return room.free_bytes

    assert asyncio.run(main()) == 10
