"""Replies made to cost time or memory: each ends in a result, and none leaves anything behind."""

import os
import subprocess
import sys
import tracemalloc

import pytest
from verdict_replies import drop, drops, keep

from cg.verdicts import Decoder, Reason, decode

HOSTILE = [
    "[",
    "{",
    '["',
    '{"',
    '[{"a":',
    '[{"a":"x,',
    "</think",
    "<think>",
    "[//",
    '[""//',
    "['\\",
    "[\u201c",
    "\\",
    "\x00",
    "- [ ]",
]


@pytest.mark.parametrize("unit", [*HOSTILE, '{"verdict":[', drop(0) + "[", '["",//', "[[],"], ids=repr)
def test_a_hostile_reply_ends_in_a_result(unit: str) -> None:
    """Any size and shape: an answer or a reason, no exception, nothing dropped that is not said."""
    reply = unit * (200_000 // len(unit)) + f"\n[{keep(1)}]"
    assert 1 not in drops(reply)


def test_rereading_without_end_is_given_up() -> None:
    """A reply made to be read again and again is unparseable, not slow."""
    reply = '[""//' * 40_000 + "\n" + "1," * 400_000 + "x"
    assert decode(reply, [0]).reason is Reason.LIMIT


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.environ.get("HYPOTHESIS_PROFILE") == "sanitize",
    reason="bounds its address space, which sanitizers take whole",
)
def test_a_decoder_that_lost_a_piece_takes_nothing_more() -> None:
    """Without memory for a piece that holds a veto, what comes after it may not be read as if it had never been."""
    code = """if True:
        import resource
        from cg.verdicts import Decoder

        decoder = Decoder([0, 1])
        decoder.feed('[{"i": 0, "verdict": "drop"},')
        vetoes = b'{"i": 0, "verdict": "keep", "quote": "' + bytes(200 << 20) + b'"},'
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (40 << 20),) * 2)
        for call in (lambda: decoder.feed(vetoes), lambda: decoder.feed('{"i": 1, "verdict": "keep"}]'), decoder.finish):
            try:
                print(call())
            except (MemoryError, ValueError) as error:
                print(type(error).__name__)
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stdout.split() == ["MemoryError", "ValueError", "ValueError"], ended.stderr


def test_a_decoder_holds_the_reply_and_little_more() -> None:
    """However large the reply is: the buffer has no room in proportion to it."""
    piece, pieces = b"plain words " * 5_000, 300
    tracemalloc.start()
    try:
        decoder = Decoder([0])
        for _ in range(pieces):
            decoder.feed(piece)
        size_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size_bytes < len(piece) * pieces + 32_768


def test_decoding_keeps_no_references() -> None:
    """Counts of the reply and of the allocated blocks return to where they were."""
    reply = "".join(["<think>x</think>", f"[{drop(0)},{keep(1)}]", "[[[" * 40, '["a"b', f"{drop(0)}{drop(1)}{{"])
    for _ in range(3):
        decode(reply, [0, 1])
    before, blocks = sys.getrefcount(reply), sys.getallocatedblocks()
    for _ in range(500):
        decode(reply, [0, 1])
        Decoder([0, 1]).feed(reply)
    assert sys.getrefcount(reply) == before
    assert sys.getallocatedblocks() - blocks < 100
