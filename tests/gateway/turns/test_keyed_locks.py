"""One lock a name, for as long as anybody wants it."""

import threading

import pytest

from cg.gateway.turns.keyed_locks import KeyedLocks


def test_one_at_a_time_and_names_do_not_wait_for_each_other() -> None:
    """What is done under one name is never interleaved; another name is free."""
    locks, inside, worst = KeyedLocks(), [], []

    def work(name: str) -> None:
        for _ in range(200):
            with locks.holding(name):
                inside.append(name)
                worst.append(inside.count(name))
                inside.remove(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "aabb"]
    for one in threads:
        one.start()
    with locks.holding("c"):
        assert locks.holding("d").__enter__() is not None
    for one in threads:
        one.join()
    assert max(worst) == 1


def test_a_name_that_nobody_wants_takes_no_room() -> None:
    """Also after an exception, and when the lock was let go and taken again in between."""
    locks = KeyedLocks()
    with pytest.raises(ZeroDivisionError), locks.holding("a") as lock:
        lock.release()
        lock.acquire()
        raise ZeroDivisionError
    assert len(locks._held) == 0
