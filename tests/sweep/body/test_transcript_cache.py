"""What is remembered between two readings: bounded, found again, and never a reason for another result."""

import threading

import pytest
from sessions import history, request

from cg.sweep.body import transcript_cache as readings
from cg.sweep.body.transcript import Transcript, Unreadable, read
from cg.sweep.body.transcript_cache import Readings

SIZE = 4000


def body(n: int, *, opening: str = "Look around.") -> bytes:
    messages = history(n, SIZE)
    messages[0]["content"] = opening
    return request(messages)


def same(one: Transcript, other: Transcript) -> bool:
    texts = [[(t.identity, t.start, t.end, t.text) for t in each.tool_texts] for each in (one, other)]
    return texts[0] == texts[1] and (one.chain, one.fingerprint) == (other.chain, other.fingerprint)


def test_a_session_that_goes_on_is_read_from_where_it_was() -> None:
    """All outputs but the one whose mark the client moved are taken over; the session stands in memory once."""
    memory = Readings()
    for n in range(20, 30):
        transcript = memory.read(body(n))
        assert same(transcript, read(body(n)))
        assert transcript.scan.adopted == (n - 2 if n > 20 else 0)
        assert memory.size_bytes == len(body(n))


def test_sessions_side_by_side_each_find_their_own() -> None:
    """Turn about, with the same model, tools and length."""
    memory = Readings()
    for n in range(20, 25):
        for opening in ("Look around.", "Look about..", "Write notes."):
            transcript = memory.read(body(n, opening=opening))
            assert same(transcript, read(body(n, opening=opening)))
            assert transcript.scan.adopted == (n - 2 if n > 20 else 0)
    assert memory.size_bytes == 3 * len(body(24))


def test_bodies_that_are_kept_stay_below_the_limit() -> None:
    """The longest unused go; one that is larger than all that may be kept is not kept."""
    size = len(body(20))
    memory = Readings(kept_bytes=2 * size)
    for opening in ("Look around.", "Look about..", "Write notes."):
        memory.read(body(20, opening=opening))
    assert memory.size_bytes == 2 * size
    assert memory.read(body(20)).scan.adopted == 0
    assert memory.read(body(20, opening="Write notes.")).scan.adopted == 20
    large = memory.read(body(60))
    assert same(large, read(body(60))) and memory.size_bytes <= 2 * size


def test_a_small_body_is_not_kept() -> None:
    """It is read in less time than it is looked for."""
    memory = Readings()
    memory.read(body(2))
    assert len(body(2)) < readings.SMALLEST and memory.size_bytes == 0


def test_a_body_that_cannot_be_read_is_refused_and_leaves_the_session_its_place() -> None:
    """A cut request in mid-session costs the next one nothing."""
    memory = Readings()
    memory.read(body(20))
    with pytest.raises(Unreadable):
        memory.read(body(21)[:-1])
    assert memory.read(body(21)).scan.adopted == 19


def test_many_threads_share_one_memory() -> None:
    """Whatever one finds there that another has put in, it reads its own body."""
    memory = Readings(kept_bytes=3 * len(body(30)))
    wrong: list[int] = []

    def work(number: int) -> None:
        for n in range(20, 30):
            mine = body(n, opening=f"Look {number % 4}.")
            if not same(memory.read(mine), read(mine)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and memory.size_bytes <= 3 * len(body(30))
