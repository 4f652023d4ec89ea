"""The memory that request bodies may take together."""

import asyncio

import pytest

from cg.gateway.http.body_budget import BodyBudget, BodyBudgetTimeout


def test_room_is_given_in_the_order_of_asking():
    """A small body does not overtake a large one for ever."""

    async def main():
        budget = BodyBudget(10)
        order = []

        async def user(size, name):
            await budget.reserve(size)
            order.append(name)

        await budget.reserve(8)
        users = [asyncio.create_task(user(9, "large")), asyncio.create_task(user(1, "small"))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == []
        budget.release(8)
        await asyncio.gather(*users)
        return order, budget.free_bytes

    assert asyncio.run(main()) == (["large", "small"], 0)


def test_waiting_for_room_ends():
    """Bodies that are half read and wait for each other are told so."""

    async def main():
        budget = BodyBudget(10, timeout_s=0.01)
        await budget.reserve(6)
        with pytest.raises(BodyBudgetTimeout):
            await budget.reserve(5)
        await budget.reserve(4)
        return budget.free_bytes

    assert asyncio.run(main()) == 0


def test_who_stops_waiting_is_passed_over_and_takes_nothing():
    """Room that is granted to somebody who has just gone is given to the next."""

    async def main():
        budget = BodyBudget(10)
        await budget.reserve(10)
        first, second = asyncio.create_task(budget.reserve(10)), asyncio.create_task(budget.reserve(4))
        await asyncio.sleep(0)
        first.cancel()
        budget.release(10)
        await second
        with pytest.raises(asyncio.CancelledError):
            await first
        budget.release(4)
        return budget.free_bytes

    assert asyncio.run(main()) == 10


def test_room_granted_at_the_moment_of_giving_up_is_not_lost():
    """Cancelled and granted in one step: the bytes come back."""

    async def main():
        budget = BodyBudget(10)
        await budget.reserve(10)
        waiter = asyncio.create_task(budget.reserve(10))
        await asyncio.sleep(0)
        budget.release(10)  # granted
        waiter.cancel()  # before it could run
        with pytest.raises(asyncio.CancelledError):
            await waiter
        return budget.free_bytes

    assert asyncio.run(main()) == 10
