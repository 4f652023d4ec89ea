"""Several threads can wait on one call: each hears of its own answer, and what one reads has no gap."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

pytest.importorskip("httpcore2")

from carried import PATIENCE_S, until

from cg.gateway.embedded.thread_call import CallThreads


def begun(do: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    return thread


def have_ended(*threads: threading.Thread) -> bool:
    for thread in threads:
        thread.join(PATIENCE_S)
    return not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_whoever_waits_hears_of_its_own_answer(order: tuple[int, ...]) -> None:
    """In whatever order the answers come, and although each wakes all the others."""
    caller = CallThreads()
    answers: list[Future[int]] = [Future() for _ in range(3)]
    found: list[int] = []
    threads = [begun(lambda answer=answer: found.append(caller.wait(answer))) for answer in answers]
    until(lambda: len(caller._bells) == 3)
    for n in order:
        answers[n].set_result(n)
        until(lambda n=n: n in found)
    assert have_ended(*threads) and sorted(found) == [0, 1, 2] and not caller._bells


def test_an_answer_that_comes_while_its_thread_works_is_heard_by_it() -> None:
    """Although another thread waits at that time, and leaves before."""
    caller, busy, go_on = CallThreads(), threading.Event(), threading.Event()
    first: Future[str] = Future()
    second: Future[str] = Future()
    found: list[str] = []

    def work() -> None:
        busy.set()
        assert go_on.wait(PATIENCE_S)

    reader = begun(lambda: found.append(caller.wait(first)))
    caller.give(work)
    assert busy.wait(PATIENCE_S)
    closer = begun(lambda: (found.append(caller.wait(second)), caller.leave()))
    until(lambda: len(caller._bells) == 2)
    first.set_result("read")
    done = caller.give(lambda: found.append("closed"))  # by the thread that is free
    done.outcome.result(PATIENCE_S)
    second.set_result("gone")
    assert have_ended(closer)
    go_on.set()
    assert have_ended(reader) and found == ["closed", "gone", "read"]


def test_what_is_read_of_an_answer_that_is_closed_has_no_gap() -> None:
    """After the first piece that is dropped no other is given out."""
    caller = CallThreads()
    pumped: Future[None] = Future()
    ended: Future[None] = Future()
    pieces = caller.pieces(pumped)
    for piece in (b"a", b"b", b"c"):
        caller.hand(piece)
    assert next(pieces) == b"a"
    caller.is_closed = True
    ended.set_result(None)
    caller.wait(ended)
    caller.hand(b"d")
    pumped.set_result(None)
    assert list(pieces) == []


def test_once_closed_only_what_closes_is_done() -> None:
    """Also behind pieces that nobody read; what would read on is given up, and what comes later is done elsewhere."""
    caller, here, begun_late = CallThreads(), threading.get_ident(), []
    caller.hand(b"unread")
    reads = caller.give(lambda: begun_late.append("read"))
    closes = caller.give(threading.get_ident, is_closing=True)
    answer: Future[int] = Future()
    closes.outcome.add_done_callback(lambda done: answer.set_result(done.result()))
    caller.is_closed = True
    assert caller.wait(answer) == here
    assert reads.outcome.cancelled() and not begun_late
    caller.leave()
    assert caller.give(threading.get_ident, is_closing=True).outcome.result(PATIENCE_S) != here
