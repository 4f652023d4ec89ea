"""Reader of Claude Code's own logs: JSON lines, a tree by uuid and parentUuid, one API message over several lines.

The history of a request is the way from its first line back to the nearest answer, whose own history is known: user
messages, attachments and local commands on that way, and the results of the answer's calls wherever they were logged,
as parallel calls put theirs beside the way. A compaction begins a new root; a rewind goes on from an older answer, so
both branches are requests of the session. Requests come in the order of the log, but none before the one that it goes
on from. A way that leads to a line which is not in the log goes on from what was logged before: clients resume behind
lines that they never wrote, and records get lost.
"""

from bisect import bisect_left
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cg.replay.recordings.blocks import NO_MESSAGE, ResultBlock, results_of, text_block
from cg.replay.recordings.claude_answers import Answer, Piece, digest_of, joined
from cg.replay.recordings.claude_entries import (
    Kept,
    blocks_of,
    entries,
    is_answer,
    kept,
    message_of,
    text_or_none,
    time_in,
)
from cg.replay.recordings.claude_threads import MAIN, Threads
from cg.replay.recordings.clock import steady
from cg.replay.recordings.conversation import Conversation, LoggedTurn
from cg.replay.recordings.recording import Step, Tally

__all__ = ["MAIN", "steps", "threads"]


def threads(path: Path) -> list[str]:
    """The threads of a log that hold an answer of the model, the person's own first. Raises Unusable."""
    assigned, found = Threads(), dict[object, str | None]()
    for entry in entries(path, Tally()):
        thread = assigned.place(entry)
        if is_answer(entry):
            found.setdefault(entry.get("uuid") if thread is None else ("named", thread), thread)
    names = dict.fromkeys(assigned.root(uuid) if thread is None else thread for uuid, thread in found.items())
    return sorted(names, key=lambda thread: thread != MAIN)


def steps(path: Path, tally: Tally, thread: str = MAIN) -> Iterator[Step]:
    """The requests of one thread; what they show of it as a whole goes into `tally`. Raises Unusable."""
    assigned, log = Threads(), _Log(tally)
    later: list[dict[str, Any]] = []  # of agents without a name
    for entry in entries(path, tally):
        place = assigned.place(entry)
        if place == thread:
            log.read(entry)
        elif place is None:
            later.append(entry)
    for entry in later:
        if assigned.root(entry.get("uuid")) == thread:
            log.read(entry)
    yield from steady(_Tree(log).steps())


@dataclass(frozen=True, slots=True, eq=False)
class LogEntry:
    """What stands between two answers: blocks for the model (none for lines that only link), and when they were there."""

    number: int  # of the line, in the order of the log
    parent: str | None
    kind: str
    blocks: tuple[bytes, ...] = ()
    results: dict[str, ResultBlock] = field(default_factory=dict)
    at: float | None = None
    is_summary: bool = False  # what a compaction leaves: a root
    is_boundary: bool = False  # where a compaction was

    @property
    def words(self) -> str:
        """What a line means for one that follows it: a user's words, results alone, or nothing that was said."""
        if self.kind != "user":
            return ""
        return "said" if self.blocks or not self.results else "results"


class _Log:
    """The lines of one thread."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.lines: dict[str, LogEntry] = {}
        self.pieces: dict[str, Piece] = {}
        self.kept: dict[str, list[Kept]] = {}  # by the last line that a compaction kept
        self._results = 0

    def read(self, entry: dict[str, Any]) -> None:
        """Take in a line. One that cannot be written again, for a number or a depth, is damaged."""
        uuid = text_or_none(entry.get("uuid"))
        if uuid is None or uuid in self.lines or uuid in self.pieces:
            return  # a copy, as resumed sessions hold them
        if not self.tally.client and isinstance(entry.get("version"), str):
            self.tally.client = f"claude-code {entry['version'][:40]}"
        number = len(self.lines) + len(self.pieces)
        try:
            if is_answer(entry):
                self.pieces[uuid] = Piece.of(number, uuid, entry)
            else:
                self.lines[uuid] = self._line(number, entry)
                if (segment := kept(entry, number)) is not None:
                    self.kept.setdefault(segment.last, []).append(segment)
        except (ValueError, RecursionError):
            self.tally.damaged += 1

    def _line(self, number: int, entry: dict[str, Any]) -> LogEntry:
        content, at = message_of(entry).get("content"), time_in(entry)
        is_user = entry.get("type") == "user"
        results = results_of(content, at, self._results) if is_user else {}
        self._results += len(results)
        return LogEntry(
            number,
            text_or_none(entry.get("parentUuid")),
            str(entry.get("type")),
            tuple(blocks_of(entry, content)),
            results,
            at,
            entry.get("isCompactSummary") is True,
            entry.get("subtype") == "compact_boundary",
        )


@dataclass(frozen=True, slots=True)
class _Way:
    """What stands between a request and what it goes on from."""

    entries: list[LogEntry]  # newest first
    after: Answer | None = None
    kept: Kept | None = None  # what a compaction kept, where the way leads there
    is_broken: bool = False  # it led to a line that the log does not have


class _Tree:
    """One thread whose lines have all been read."""

    def __init__(self, log: _Log) -> None:
        self._log, self._lines, self._pieces = log, log.lines, log.pieces
        self._conversation = Conversation(log.tally)
        anchors: list[tuple[int, str]] = [(piece.number, uuid) for uuid, piece in log.pieces.items()]
        anchors += [(line.number, u) for u, line in log.lines.items() if line.is_summary or line.is_boundary]
        self._anchors = sorted(anchors)  # what a broken way may go on from
        summaries = {line.parent: uuid for uuid, line in reversed(log.lines.items()) if line.is_summary}
        self._anchored: dict[str, Kept] = {}  # what was kept, by the line that it stands behind
        for segment in (segment for found in log.kept.values() for segment in found):
            is_there = segment.summary in self._lines
            self._anchored[segment.summary if is_there else summaries.get(segment.boundary, "")] = segment
        self._anchor_of = {segment: uuid for uuid, segment in self._anchored.items()}
        above = {piece: self._piece_above(piece) for piece in log.pieces.values()}
        self._answers = joined(list(log.pieces.values()), above)
        self._answer_of = {piece.uuid: answer for answer in self._answers for piece in answer.pieces}
        self._results, self._stray = self._owned()
        self._turns: dict[Answer, LoggedTurn] = {}
        self._last_way: tuple[Answer, _Way] | None = None
        self._restored: dict[Kept, tuple[Answer | None, LoggedTurn | None, list[bytes]]] = {}

    def steps(self) -> Iterator[Step]:
        """The requests, each behind the one that it goes on from."""
        shared = Counter(answer.pieces[0].message for answer in self._answers)
        for answer in self._answers:
            waiting = [answer]
            while waiting:
                needed = [a for a in self._needs(waiting[-1]) if a not in self._turns and a not in waiting]
                if needed:
                    waiting.append(needed[-1])
                    continue
                made = waiting.pop()
                if made not in self._turns:
                    yield self._step(made)
                    is_shared = shared[made.pieces[0].message] > 1
                    self._log.tally.answers.append(_marks(made.pieces[0], self._turns[made], is_shared=is_shared))

    def _step(self, answer: Answer) -> Step:
        turn = self._turns[answer] = self._asked(answer)
        for piece in answer.pieces:
            turn.model = piece.model or turn.model
            self._conversation.hear(turn, piece.content)
            turn.heard(piece.at)
            turn.usage = _fuller(turn.usage, piece.usage)
        return self._conversation.step(turn)

    # -- the way back --------------------------------------------------------------------------------------------------

    def _way(self, answer: Answer) -> _Way:
        """From an answer back to what its request goes on from; the last one found is kept."""
        if self._last_way is None or self._last_way[0] is not answer:
            self._last_way = answer, self._way_of(answer)
        return self._last_way[1]

    def _way_of(self, answer: Answer) -> _Way:
        way: list[LogEntry] = []
        passed = set[str]()
        at, number, is_broken = answer.parent, answer.pieces[0].number, False
        while at is not None and at not in passed:
            passed.add(at)
            if (segment := self._kept_at(at, answer) or self._anchored.get(at)) is not None:
                return _Way(way, kept=segment, is_broken=is_broken)
            before, line = self._answer_of.get(at), self._lines.get(at)
            if before is not None:
                return _Way(way, None if before is answer else before, is_broken=is_broken)
            if line is None:
                is_broken = True
                at = self._anchor(number)
                continue
            way.append(line)
            number = line.number
            is_root = (line.is_summary or line.is_boundary) and line.parent not in self._anchored
            at = None if is_root else line.parent
        return _Way(way, is_broken=is_broken)

    def _anchor(self, number: int) -> str | None:
        """The newest answer or compaction logged before this line."""
        place = bisect_left(self._anchors, (number, ""))
        return self._anchors[place - 1][1] if place else None

    def _piece_above(self, piece: Piece) -> tuple[Piece | None, str]:
        """The nearest line of an answer on the way back, and what is said in between."""
        at, passed, between = piece.parent, set[str](), ""
        while at is not None and at not in passed:
            passed.add(at)
            if at in self._pieces:
                return self._pieces[at], between
            line = self._lines.get(at)
            if line is None:
                anchor = self._pieces.get(self._anchor(piece.number) or "")
                return anchor, between or "lost"
            between = max(between, line.words, key=("", "results", "said").index)
            at = line.parent
        return None, between

    def _needs(self, answer: Answer) -> list[Answer]:
        """The answers that stand in the history of this one's request, as far as it does not share it with them."""
        way = self._way(answer)
        if way.kept is not None:
            return [] if way.kept in self._restored else [a for a, _ in self._kept_answers(way.kept)[0]]
        return [] if way.after is None else [way.after]

    def _asked(self, answer: Answer) -> LoggedTurn:
        """The request that got this answer."""
        way = self._way(answer)
        told = _told(way.entries)
        ready = max((line.at for line in way.entries if line.at is not None), default=None)
        results = {call: result for line in way.entries for call, result in line.results.items()}
        before = way.after
        if way.kept is not None:
            before, after, said = self._behind_summary(way.kept)
            told = [*said, *told]
        else:
            after = None if before is None else self._turns.get(before)
        if after is not None and way.is_broken and not told and not after.calls:
            told = [text_block(NO_MESSAGE)]
        return self._conversation.ask(after, told, self._heard(before, results), ready)

    # -- results -------------------------------------------------------------------------------------------------------

    def _owned(self) -> tuple[dict[Answer, dict[str, ResultBlock]], dict[str, ResultBlock]]:
        """The results by the answer whose calls they are of, and those that hang at no such answer.

        Ids of calls need not be unique: a result belongs to the nearest answer on its way back that has the call.
        """
        calls = {answer: {call for piece in answer.pieces for call in piece.calls} for answer in self._answers}
        owned: dict[Answer, dict[str, ResultBlock]] = {}
        stray: dict[str, ResultBlock] = {}
        for line in self._lines.values():
            owner = self._owner(line) if line.results else None
            for call, result in line.results.items():
                if owner is not None and call in calls[owner]:
                    owned.setdefault(owner, {}).setdefault(call, result)
                else:
                    stray[call] = result
        return owned, stray

    def _owner(self, line: LogEntry) -> Answer | None:
        at, passed = line.parent, set[str]()
        while at is not None and at not in passed:
            passed.add(at)
            if at in self._answer_of:
                return self._answer_of[at]
            parent = self._lines.get(at)
            at = None if parent is None else parent.parent
        return None

    def _heard(self, answer: Answer | None, on_the_way: dict[str, ResultBlock]) -> Mapping[str, ResultBlock]:
        """What the calls of an answer brought back: on this way if it says so, beside it otherwise."""
        beside = {} if answer is None else self._results.get(answer, {})
        return ChainMap(on_the_way, beside, self._stray)

    # -- compaction ----------------------------------------------------------------------------------------------------

    def _kept_at(self, at: str, answer: Answer) -> Kept | None:
        """What the newest compaction before this answer kept, if it ends with this line."""
        before = (kept for kept in self._log.kept.get(at, ()) if kept.number < answer.pieces[0].number)
        return max(before, key=lambda kept: kept.number, default=None)

    def _behind_summary(self, kept: Kept) -> tuple[Answer | None, LoggedTurn | None, list[bytes]]:
        """The newest answer among the messages that a compaction kept, as it stands in a history that begins with the
        summary, and what was said after it. Made once, so that requests which go on from it share it."""
        if kept not in self._restored:
            summary = self._lines.get(self._anchor_of.get(kept, ""))
            answers, said = self._kept_answers(kept)
            told = [*(summary.blocks if summary is not None else ()), *said]
            before: Answer | None = None
            turn: LoggedTurn | None = None
            for answer, after in answers:
                if answer in self._turns:
                    original = self._turns[answer]
                    turn = self._conversation.ask(turn, told, self._heard(before, {}), None)
                    turn.said, turn.calls, told, before = [*original.said], [*original.calls], after, answer
            self._restored[kept] = before, turn, told
        return self._restored[kept]

    def _kept_answers(self, kept: Kept) -> tuple[list[tuple[Answer, list[bytes]]], list[bytes]]:
        """The answers between two lines with what was said after each, oldest first, and what was said before them.

        Nothing, where the way back from the last line does not lead to the first.
        """
        answers: list[tuple[Answer, list[bytes]]] = []
        said: list[LogEntry] = []
        passed = set[str]()
        at: str | None = kept.last
        while at is not None and at not in passed:
            passed.add(at)
            answer, line = self._answer_of.get(at), self._lines.get(at)
            if answer is not None:
                answers.append((answer, _told(said)))
                said = []
                if self._answer_of.get(kept.first) is answer:
                    return answers[::-1], []
                at = answer.parent
            elif line is not None and not line.is_summary:
                said.append(line)
                if at == kept.first:
                    return answers[::-1], _told(said)
                at = line.parent
            else:
                break
        return [], []


def _marks(first: Piece, turn: LoggedTurn, *, is_shared: bool) -> tuple[int, ...]:
    """Numbers of which a copy of this answer in another file has one at least.

    Its id is not enough, nor is it with the words "Done.": a copy has the uuid, or the words and those of the question,
    and the time too where other answers bear this id.
    """
    reply = turn.reply()
    found = [digest_of("uuid", first.message, first.uuid)]
    if first.message is not None and (first.at is not None or not is_shared):
        found.append(digest_of(first.message, turn.head.message, reply, first.at if is_shared else ""))
    return tuple(found)


def _told(way: list[LogEntry]) -> list[bytes]:
    """What the lines of a way back say, in the order of the log; a line that was written again says nothing."""
    told: list[bytes] = []
    before: LogEntry | None = None
    for line in reversed(way):
        is_again = before is not None and line.at is not None and (line.at, line.blocks) == (before.at, before.blocks)
        told += () if is_again else line.blocks
        before = line if line.blocks else before
    return told


def _fuller(usage: object, other: object) -> object:
    """Of the usages on the lines of one answer the one that counts most output: earlier lines were logged while it came."""
    if not isinstance(other, dict):
        return usage
    return other if _output(other) >= _output(usage) else usage


def _output(usage: object) -> int:
    counted = usage.get("output_tokens") if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) else -1
