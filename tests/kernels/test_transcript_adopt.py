"""A body read with an earlier one at hand is read as it is alone: the earlier one saves work and changes nothing."""

import gc
import itertools
import json
import random
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cg.bodies import Scan, Stopped
from cg.sweep.body.transcript import ToolText

WIRE = Path(__file__).parents[1] / "data" / "wire"
SESSIONS = sorted(folder for folder in WIRE.iterdir() if folder.is_dir())


def bodies_of(folder: Path) -> list[bytes]:
    turns = [json.loads(path.read_text("utf-8"))["body"] for path in sorted(folder.glob("turn_*.json"))]
    return [json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() for body in turns]


def found(body: bytes, before: Scan | None = None, ways: int = 0):
    """All that a scan says, or the words with which it stops."""
    try:
        scan = Scan(body, ToolText, ways, before)
        uses = {i: (u.name, u.message, u.arguments) for i, u in scan.tool_uses().items()}
    except Stopped as stopped:
        return str(stopped)
    texts = [
        (t.message, t.block, t.tool_use_id, t.sha256, t.start, t.end, t.size_bytes, t.is_error, t.has_marker, t.content)
        for t in scan.texts
    ]
    assert all(t.body is scan.body for t in scan.texts)
    messages = [
        (scan.span(m), scan.content(m), scan.last_block(m), scan.is_marked(m), scan.is_empty(m))
        for m in range(len(scan.roles))
    ]
    parts = (scan.members(), scan.tools(), scan.marks(), list(scan.pieces()))
    return scan.chain, scan.head, scan.fingerprint, scan.roles, texts, uses, messages, parts


def alike(*readings) -> bool:
    """Whether all are the same; a bare comparison would have a failing test spell out megabytes, for minutes."""
    return all(one == readings[0] for one in readings[1:])


def scan_of(body: bytes) -> Scan | None:
    try:
        return Scan(body, ToolText)
    except Stopped:
        return None


@pytest.mark.parametrize("folder", SESSIONS, ids=lambda folder: folder.name)
def test_every_recorded_body_is_read_alike_behind_any_other_of_its_session(folder: Path) -> None:
    """The one before it, a later one, another line of history, itself."""
    bodies = bodies_of(folder)
    scans = [Scan(body, ToolText) for body in bodies]
    pairs = list(itertools.product(range(len(bodies)), repeat=2))
    for late, early in pairs if len(pairs) <= 150 else random.Random(1).sample(pairs, 150):
        assert alike(found(bodies[late], scans[early]), found(bodies[late]))


def growing(n: int, mark: int | None = None, **more) -> bytes:
    """A session of `n` calls, with its mark on the newest message as clients move it."""
    messages: list[dict] = [{"role": "user", "content": "Read all — every file \ud83d\ude00."}]
    for i in range(n):
        call = {"type": "tool_use", "id": f"toolu_{i}", "name": "Read", "input": {"file_path": f"/{i}\n.py"}}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f'{i}: "é"\n' * 40}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    last = messages[-1 if mark is None else mark]
    if isinstance(last["content"], list):
        last["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return json.dumps({"model": "m", "system": "s", "messages": messages, **more}).encode("utf-8", "surrogatepass")


def test_a_session_that_goes_on_is_read_from_its_newest_messages() -> None:
    """What is taken over ends where the client moved its mark: one message before the end of the earlier body."""
    early = Scan(growing(50), ToolText)
    late = Scan(growing(51), ToolText, 0, early)
    assert (len(early.texts), len(late.texts), late.adopted) == (50, 51, 49)
    assert Scan(growing(51), ToolText, 0, late).adopted == 51


def test_nothing_is_taken_over_from_a_body_that_begins_otherwise() -> None:
    """One byte in front of the messages, or in the first of them, is enough."""
    early = Scan(growing(5), ToolText)
    assert Scan(growing(6).replace(b'"m"', b'"n"'), ToolText, 0, early).adopted == 0
    assert Scan(growing(6).replace(b"Read all", b"Read one"), ToolText, 0, early).adopted == 0
    assert Scan(growing(6).replace(b"Read all", b"Read"), ToolText, 0, early).adopted == 0


def test_a_body_cut_or_changed_anywhere_is_read_as_it_is_alone() -> None:
    """At every byte of a small one: refused with the same words at the same place, or read to the same end."""
    body = growing(4, tools=[{"name": "Read"}])
    early = Scan(growing(3), ToolText)
    whole = Scan(body, ToolText)
    rng = random.Random(3)
    for at in range(len(body)):
        cut = body[:at]
        assert alike(found(cut, early), found(cut, whole), found(cut))
        changed = bytearray(body)
        changed[at] = rng.choice(b'"\\{}[],:x0 \n\xff\xc3')
        late = bytes(changed)
        assert alike(found(late, early), found(late, whole), found(late))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_two_bodies_of_a_kind_are_read_as_each_alone(data: st.DataObject) -> None:
    """Pieces put in, taken out and turned around, in a body that the earlier one shares a beginning with."""
    n = data.draw(st.integers(0, 6))
    early = growing(n, data.draw(st.none() | st.integers(0, 2 * n)))
    late = bytearray(growing(data.draw(st.integers(0, 8)), data.draw(st.none() | st.just(0))))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(late)))
        end = min(len(late), at + data.draw(st.integers(0, 40)))
        late[at:end] = data.draw(
            st.sampled_from([b"", bytes(late[at:end])[::-1], b"}]", b",{}", b'"', b"\\", b"\xc3\xa9"])
        )
    before, ways = scan_of(early), data.draw(st.sampled_from([0, 1, 2]))
    assert alike(found(bytes(late), before, ways), found(bytes(late), None, ways))


def test_a_second_call_or_key_with_a_name_of_the_part_taken_over_is_seen() -> None:
    """What is refused across messages is refused across the seam too."""
    early = Scan(growing(3), ToolText)
    twice = growing(4).replace(b"toolu_3", b"toolu_0")
    with pytest.raises(Stopped, match="two calls with one id"):
        Scan(twice, ToolText, 0, early).tool_uses()
    again = growing(3)[:-1] + b',"messages":[]}'
    assert alike(found(again, early), found(again))
    assert "twice" in found(again)


def test_many_batches_and_many_seams_make_one_chain() -> None:
    """A session of a megabyte that is read turn by turn has the digests of one that is read at once."""
    scan = None
    for n in (1, 2, 3, 50, 51, 400, 401):
        body = growing(n)
        scan = Scan(body, ToolText, 0, scan)
        assert alike(found(body, scan), found(body))
        assert scan.chain == Scan(body, ToolText).chain


def test_a_scan_that_was_taken_from_may_go() -> None:
    """The later one holds nothing of it, and nothing of either is left behind."""
    bodies = [growing(n) for n in (30, 31, 32)]

    def traced(times: int) -> int:
        for _ in range(times):
            scan = None
            for body in bodies:
                scan = Scan(body, ToolText, 0, scan)
                gc.collect(0)
            assert scan is not None and [t.text for t in scan.texts] == [
                t.text for t in Scan(bodies[-1], ToolText).texts
            ]
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = traced(5)
        assert traced(40) - before < 4096
    finally:
        tracemalloc.stop()


def test_threads_may_take_from_one_scan_at_once() -> None:
    """It is only read."""
    early, body = Scan(growing(60), ToolText), growing(70)
    expected, seen = found(body), []
    threads = [threading.Thread(target=lambda: seen.extend(found(body, early) for _ in range(5))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 40 and alike(expected, *seen)
