"""A forked child that works until it is killed, and what it had said by then."""

import os
import signal
import time
from collections.abc import Callable

READY = "ready"


def say(pipe: int, word: str) -> None:
    """One line to the parent: what is said is done."""
    os.write(pipe, f"{word}\n".encode())


def kill_once(work: Callable[[int], None], words: int, delay_s: float) -> list[str]:
    """The lines that a child running `work(pipe)` had said when it was killed, `delay_s` after so many of them.

    The first line of each child is READY, which is counted and not returned. SystemExit if a child ends by itself.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            work(writer)
        finally:
            os._exit(1)
    os.close(writer)
    pieces: list[bytes] = []
    while b"".join(pieces).count(b"\n") < words:
        piece = os.read(reader, 65536)
        if not piece:
            raise SystemExit("the child ended by itself")
        pieces.append(piece)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while piece := os.read(reader, 65536):
        pieces.append(piece)
    os.close(reader)
    said = b"".join(pieces)
    lines = said[: said.rfind(b"\n") + 1].decode().splitlines()  # a line that was being said was not
    return [line for line in lines if line != READY]
