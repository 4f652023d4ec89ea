"""Recorded agent sessions as streams of requests that carry only what is new: the door to the readers of each format."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cg.sweep.values import Usage


@dataclass(frozen=True, slots=True)
class Step:
    """One API request of a recording and its answer.

    The request's history is that of the step before, then `messages`; where it `opens` anew (first request, compaction,
    rewind) it is `messages` alone. A message is the JSON text that a client would send, compact UTF-8 without
    `cache_control`, `{"role":...,"content":[...]}` with a list of blocks; the history starts and ends with a user message
    and alternates. `messages` is empty where the same history was sent again (a retry).
    """

    index: int  # number of the request in its session, from 0
    at: float  # when the request was sent, seconds since the epoch; never before the step that precedes it
    answered_at: float | None  # when the last logged part of the answer came
    model: str
    opens: bool
    messages: tuple[bytes, ...]
    reply: bytes  # the assistant message that answered; leads the next step's messages when the history goes on from it
    usage: Usage | None  # the provider's figures, where logged

    @property
    def reply_bytes(self) -> int:
        """Size of the answer's JSON text."""
        return len(self.reply)


@dataclass(frozen=True, slots=True)
class Session:
    """A recording that can be read as often as needed; pickles, so that it can be sent to another process."""

    name: str
    path: Path
    client: str  # program and version that wrote the log
    ttl_s: int | None  # lifetime that most of the recorded cache writes show; None: no write is recorded
    timed: bool  # False: the log has no times, and requests are taken to be a fixed few seconds apart
    requests: int  # steps that will come
    read: Callable[[], Iterator[Step]]

    def steps(self) -> Iterator[Step]:
        """The requests in the order in which they were sent, read anew from the file; memory is one session's history."""
        return self.read()


@dataclass(frozen=True, slots=True)
class Damaged:
    """A path that gives no session, and why: named and skipped."""

    name: str
    path: Path
    reason: str


def find(paths: Iterable[Path]) -> Iterator[Path]:
    """The session files under the paths: files as given, folders searched for `.json`, `.jsonl` and `.gz`.

    Raises CgError for a path that is not there and for a folder that holds no such file.
    """
    raise NotImplementedError


def open_sessions(path: Path) -> Iterator[Session | Damaged]:
    """The sessions of one file (a log holds its sub-agents' as sessions of their own), or the reason why it has none."""
    raise NotImplementedError


def open_all(paths: Iterable[Path]) -> Iterator[Session | Damaged]:
    """`find` and `open_sessions` in one; what `find` would raise is a Damaged here."""
    raise NotImplementedError
