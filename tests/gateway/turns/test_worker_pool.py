"""Threads that do what blocks: bounded, in order, the last one first."""

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from cg.gateway.turns.worker_pool import WorkerPool

LONG_S = 60


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    made = WorkerPool(3, "test")
    yield made
    made.close()


def test_work_that_comes_alone_is_always_done_by_the_same_thread(workers: WorkerPool) -> None:
    """What it used last is still near; others sleep until it is busy."""
    barrier = threading.Barrier(4)
    for _ in range(3):
        workers.do(lambda: barrier.wait(LONG_S))
    barrier.wait(LONG_S)
    while len(workers._idle) < 3:
        threading.Event().wait(0.001)
    names = set()
    for _ in range(50):
        done = threading.Event()

        def work(done: threading.Event = done) -> None:
            names.add(threading.get_ident())
            done.set()

        workers.do(work)
        assert done.wait(LONG_S)
        while len(workers._idle) < 3:  # it is the last one again once it has lain down
            threading.Event().wait(0.001)
    assert len(names) == 1


def test_there_are_never_more_threads_than_the_limit_and_what_waits_goes_in_order(workers: WorkerPool) -> None:
    """A queue is served in the order in which it came."""
    go, began, order = threading.Event(), threading.Semaphore(0), []

    def block() -> None:
        began.release()
        assert go.wait(LONG_S)

    for _ in range(3):
        workers.do(block)
    for _ in range(3):
        assert began.acquire(timeout=LONG_S)
    last = [workers.submit(lambda n=n: order.append(n)) for n in range(20)]
    assert workers._started == 3 and len(workers._waiting) == 20
    workers._limit = 1  # nothing more is started; the three that are there go on
    go.set()
    for future in last:
        future.result(LONG_S)
    assert sorted(order) == list(range(20))


def test_a_result_and_an_error_come_back(workers: WorkerPool) -> None:
    """Also an error that work without a result raises ends no thread."""
    assert workers.submit(lambda: 7).result(LONG_S) == 7
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 // 0).result(LONG_S)
    for _ in range(5):
        workers.do(lambda: 1 // 0)
    assert [workers.submit(lambda n=n: n).result(LONG_S) for n in range(5)] == list(range(5))


def test_work_that_was_done_is_held_by_nobody(workers: WorkerPool) -> None:
    """It may hold a request's body, and the next request may be long in coming."""

    class Body:
        pass

    body = Body()
    gone = weakref.ref(body)
    workers.submit(lambda body=body: None).result(LONG_S)
    del body
    while len(workers._idle) < 1:
        threading.Event().wait(0.001)
    gc.collect()
    assert gone() is None


def test_closed_workers_take_nothing_and_end() -> None:
    """What waited is left undone and says so; what was under way is finished."""
    workers, go, began = WorkerPool(1, "test"), threading.Event(), threading.Event()

    def block() -> int:
        began.set()
        assert go.wait(LONG_S)
        return 1

    running, waiting = workers.submit(block), workers.submit(lambda: 2)
    assert began.wait(LONG_S)
    workers.close()
    assert waiting.cancelled()
    with pytest.raises(RuntimeError):
        workers.do(lambda: None)
    go.set()
    assert running.result(LONG_S) == 1
