"""The frozen values of a recorded session: requests that carry only what is new."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cg.sweep.planning.gaps import Gaps
from cg.sweep.prices import LIST_TERMS, Terms
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
    terms: Terms = LIST_TERMS  # what the price hangs on besides model and tokens, as logged

    @property
    def reply_bytes(self) -> int:
        """Size of the answer's JSON text."""
        return len(self.reply)


@dataclass(frozen=True, slots=True)
class Before:
    """What sessions have shown that a store would know by then: their waits, and what they cost."""

    gaps: Gaps = field(default_factory=Gaps)
    billed: float = 0.0


@dataclass(frozen=True, slots=True)
class Session:
    """A recording that can be read as often as needed; it pickles, so that it can be sent to another process."""

    name: str
    path: Path
    client: str  # program and version that wrote the log
    ttl_s: int | None  # lifetime that most of the recorded cache writes ask for; None: no write states one
    timed: bool  # False: the log has no times, and requests are taken to be a fixed few seconds apart
    requests: int  # steps that will come
    read: Callable[[], Iterator[Step]]
    elsewhere: int = 0  # requests of this log that an earlier one holds too, where they are counted
    damaged: int = 0  # lines of its file of which something is lost; a file's first session has them
    user: str = ""  # whose habits it shows: one user's for all logs that name nobody
    gaps: Gaps = field(default_factory=Gaps)  # its waits
    billed: float = 0.0  # what it cost as recorded, in units of one fresh input token
    before: Before = field(default_factory=Before)  # what the same user's sessions before it have shown

    def steps(self) -> Iterator[Step]:
        """The requests in the order in which they were sent, read anew from the file.

        Memory is that of one session's messages. Raises CgError when the file changed since it was opened and can no
        longer be read.
        """
        return self.read()


@dataclass(frozen=True, slots=True)
class Damaged:
    """A path that gives no session, and why: named and skipped."""

    name: str
    path: Path
    reason: str


class Unusable(Exception):
    """A file that gives no session; the message is the reason, without the path and without any of the content."""


@dataclass(slots=True)
class Tally:
    """What a reader learns on the way that belongs to the session as a whole."""

    requests: int = 0
    client: str = ""
    user: str = ""
    timed: bool = False
    written_5m: int = 0  # tokens that recorded writes state a lifetime for
    written_1h: int = 0
    damaged: int = 0  # lines of which something is lost
    answers: list[tuple[int, ...]] = field(default_factory=list)  # what each answer shares with a copy of it

    @property
    def ttl_s(self) -> int | None:
        """The lifetime that most written tokens ask for."""
        if not self.written_5m and not self.written_1h:
            return None
        return 3600 if self.written_1h > self.written_5m else 300

    def wrote(self, usage: object) -> None:
        """Count a provider's usage object; writes whose lifetime is not stated say nothing."""
        split = usage.get("cache_creation") if isinstance(usage, dict) else None
        if isinstance(split, dict):
            self.written_5m += _count(split.get("ephemeral_5m_input_tokens"))
            self.written_1h += _count(split.get("ephemeral_1h_input_tokens"))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
