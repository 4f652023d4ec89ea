"""A session's histories as a tree of messages, and the steps that walk it: each costs what is new in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from cg.replay.recordings.blocks import (
    NO_MESSAGE,
    NO_TEXT,
    TEXT_ENDS,
    TEXT_OPENS,
    ResultBlock,
    call_block,
    call_id,
    call_opening,
    is_said,
    message,
    result_block,
    text_block,
)
from cg.replay.recordings.recording import Step, Tally
from cg.sweep.prices import Terms
from cg.sweep.values import usage_of

START = 1_700_000_000.0  # when a session began whose log has no dates
LATEST = (
    32_503_680_000.0  # the year 3000; no log was written after it, and the cache's clock goes on behind the last time
)
SPACING_S = 5.0  # between requests without times; no lifetime is that short


def time_of(seconds: float) -> float | None:
    """Seconds since the epoch, if a log can have been written then, from 1970 on; None for any other, as for no time."""
    return seconds if 0 <= seconds <= LATEST else None


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A message and those before it; histories that begin alike share their nodes."""

    before: "Node | None"
    message: bytes


@dataclass(slots=True, eq=False)
class LoggedTurn:
    """One request and what has been heard of its answer."""

    head: Node  # last message of the history that was sent
    earlier: list[bytes]  # blocks of an answer to the same history that stayed in it
    ready: float | None = None  # when the last part of the request was there
    said: list[bytes] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)  # (recorded id, id sent)
    answer: Node | None = None  # fixed once a later request carries it
    model: str = ""
    usage: object = None  # as logged
    first: float | None = None
    last: float | None = None
    follow: dict[bytes, Node] = field(default_factory=dict)  # user messages sent after it, so that equal ones are one

    def heard(self, at: float | None) -> None:
        """A part of the answer was logged at this time."""
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)

    def reply(self) -> bytes:
        """The answer as a message."""
        return message("assistant", self.said or [text_block(NO_TEXT)])


class Conversation:
    """Builds the turns of one session and turns them into steps; `tally` counts as it goes."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._taken: set[str] = set()
        self._openings: dict[bytes, Node] = {}
        self._sent: Node | None = None  # head of the last step
        self._at = -1.0
        self._steps = 0

    def ask(
        self, after: LoggedTurn | None, blocks: Sequence[bytes], results: Mapping[str, ResultBlock], ready: float | None
    ) -> LoggedTurn:
        """The request that goes on from `after` (None: a new history) with what the user and the tools said since.

        `ready` is the time of the blocks; results bring their own. Calls without a result get an error that says so.
        """
        if after is None:
            opening = message("user", blocks or [text_block(NO_MESSAGE)])
            return LoggedTurn(self._openings.setdefault(opening, Node(None, opening)), [], ready=ready)
        answers = [(sent, results.get(recorded)) for recorded, sent in after.calls]
        answers.sort(key=lambda answer: inf if answer[1] is None else answer[1].place)
        said = [result_block(sent, result) for sent, result in answers] + [*blocks]
        times = [result.at for _, result in answers if result is not None and result.at is not None]
        ready = max(times + ([] if ready is None else [ready]), default=None)
        if not said:  # asked again: the API joins neighbouring answers
            return LoggedTurn(after.head, after.earlier + after.said, ready=ready)
        return LoggedTurn(self._follow(after, message("user", said)), [], ready=ready)

    def hear(self, turn: LoggedTurn, content: object) -> None:
        """Add a part of the answer; hidden reasoning and blocks of unknown kinds are left out.

        What an earlier part said is not said again: answers are logged twice, and as snapshots that grow. Nothing is
        added once a later request has carried the answer as it stood.
        """
        if turn.answer is not None:
            return
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        heard = len(turn.said)
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict):
                self._hear_block(turn, block, heard)

    def step(self, turn: LoggedTurn) -> Step:
        """The turn as a step behind the one made before."""
        opens, new = self._new(turn.head)
        at = self._sent_at(turn, again=not new)
        tally = self._tally
        tally.requests += 1
        tally.timed = tally.timed or turn.first is not None or turn.ready is not None
        tally.wrote(turn.usage)
        answered = None if turn.last is None else max(turn.last, at)
        usage, terms = usage_of(turn.usage), Terms.of(turn.usage)
        step = Step(self._steps, at, answered, turn.model, opens, new, turn.reply(), usage, terms)
        self._steps, self._sent, self._at = self._steps + 1, turn.head, at
        return step

    def _hear_block(self, turn: LoggedTurn, block: dict[str, Any], heard: int) -> None:
        """A block of a part before which `heard` blocks were said."""
        kind = block.get("type")
        if kind == "text" and is_said(block.get("text")):
            said = text_block(block["text"])
            place = _grown(turn.said[:heard], said)
        elif kind == "tool_use":
            recorded = block["id"] if isinstance(block.get("id"), str) else ""
            known = [sent for call, sent in turn.calls if call == recorded] if recorded else []
            sent = known[0] if known else call_id(recorded, self._taken)
            if not known:
                turn.calls.append((recorded, sent))
            said = call_block(sent, block)
            opening = call_opening(sent)
            place = next((i for i, b in enumerate(turn.said) if b.startswith(opening)), None) if known else None
        else:
            return
        if place is None:
            turn.said.append(said)
        elif len(said) > len(turn.said[place]):
            turn.said[place] = said

    def _follow(self, after: LoggedTurn, said: bytes) -> Node:
        if after.answer is None:
            heard = after.earlier + after.said
            after.answer = Node(after.head, message("assistant", heard or [text_block(NO_TEXT)]))
        return after.follow.setdefault(said, Node(after.answer, said))

    def _new(self, head: Node) -> tuple[bool, tuple[bytes, ...]]:
        """Whether a history starts anew at this step, and the messages that it brings."""
        answer = head.before
        if head is self._sent:
            return False, ()
        if answer is not None and answer.before is self._sent:
            return False, (answer.message, head.message)
        whole: list[bytes] = []
        node: Node | None = head
        while node is not None:
            whole.append(node.message)
            node = node.before
        return True, tuple(reversed(whole))

    def _sent_at(self, turn: LoggedTurn, again: bool) -> float:
        """When the request was sent, by the log: once all its parts were there, and before any part of the answer.

        A request that is sent again goes out right before its own answer at the latest; its parts were there before.
        """
        at = turn.first if again or turn.ready is None else turn.ready
        if at is None:
            at = turn.ready if turn.ready is not None else (self._at + SPACING_S if self._steps else START)
        if turn.first is not None:
            at = min(at, turn.first)
        return at


def _grown(earlier: Sequence[bytes], text: bytes) -> int | None:
    """The place of a text block that this one repeats, goes on from, or is the beginning of."""
    words = text[: -len(TEXT_ENDS)]
    for place, block in enumerate(earlier):
        if block.startswith(words) or (block.startswith(TEXT_OPENS) and words.startswith(block[: -len(TEXT_ENDS)])):
            return place
    return None
