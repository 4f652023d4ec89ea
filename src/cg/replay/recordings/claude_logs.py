"""Reader of Claude Code's own logs: JSON lines, a tree by uuid and parentUuid, one API message over several lines.

The history of a request is the way from its first line back to the nearest answer, whose own history is known: user
messages, attachments and local commands on that way, and the results of the answer's calls wherever they were logged,
as parallel calls put theirs beside the way. A compaction begins a new root; a rewind goes on from an older answer, so
both branches are requests of the session, in the order in which they were made.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cg.replay.recordings.blocks import ResultBlock, is_said, results_of, text_block, user_blocks
from cg.replay.recordings.conversation import Conversation, LoggedTurn, time_of
from cg.replay.recordings.log_files import lines, loads
from cg.replay.recordings.recording import Step, Tally, Unusable

MAIN = ""  # the thread of the person's own conversation; a sub-agent's is named after the agent or its first line
KINDS = frozenset({"user", "assistant", "system", "attachment", "progress", "summary"})
FOREIGN_AFTER = 1000  # lines without an entry: this is no log
SYNTHETIC = "<synthetic>"  # model of messages that the client made up
NEVER_SENT = "isVisibleInTranscriptOnly"
UNTOLD = frozenset({"type", "uuid", "hash", "mimeType"})  # members of an attachment that are no text for the model
MAX_DEPTH = 32  # of an attachment


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What stands between two answers: blocks for the model (none for lines that only link), and when they were there."""

    parent: str | None
    blocks: tuple[bytes, ...] = ()
    at: float | None = None
    is_root: bool = False  # the summary that a compaction leaves


@dataclass(frozen=True, slots=True)
class Kept:
    """What a compaction kept: from this line on, behind the summary at the other."""

    first: str
    summary: str


@dataclass(slots=True)
class Threads:
    """Which conversation of a log each line belongs to; lines come in the order of the file."""

    of: dict[str, str] = field(default_factory=dict)

    def thread(self, entry: dict[str, Any]) -> str:
        """The thread of an entry, remembered for those that follow it."""
        uuid, parent, agent = entry.get("uuid"), entry.get("parentUuid"), entry.get("agentId")
        if entry.get("isSidechain") is not True:
            thread = MAIN
        elif isinstance(agent, str) and agent:
            thread = agent
        else:
            thread = (self.of.get(parent) if isinstance(parent, str) else None) or str(uuid)
        if isinstance(uuid, str):
            self.of[uuid] = thread
        return thread


def threads(path: Path) -> list[str]:
    """The threads of a log that hold an answer of the model, the person's own first. Raises Unusable."""
    assigned, found = Threads(), dict[str, None]()
    for entry in entries(path):
        thread = assigned.thread(entry)
        if _is_answer(entry):
            found[thread] = None
    return sorted(found, key=lambda thread: thread != MAIN)


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of a log; a line that is cut or damaged is passed over. Raises Unusable for a file that is no log."""
    known = False
    for number, line in enumerate(lines(path)):
        if not known and number >= FOREIGN_AFTER:
            break
        try:
            entry = loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("type"), str) and entry["type"] in KINDS:
            known = True
            yield entry
    if not known:
        raise Unusable("not a session log: no line of it is an entry of one")


def steps(path: Path, tally: Tally, thread: str = MAIN) -> Iterator[Step]:
    """The requests of one thread; what they show of it as a whole goes into `tally`. Raises Unusable."""
    assigned, log = Threads(), _Log(tally)
    for entry in entries(path):
        if assigned.thread(entry) == thread:
            try:
                step = log.read(entry)
            except (ValueError, RecursionError):  # numbers and depths that cannot be written again
                continue
            if step is not None:
                yield step
    step = log.finish()
    if step is not None:
        yield step


class _Log:
    """One thread as far as it has been read."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._conversation = Conversation(tally)
        self._lines: dict[str, LogEntry] = {}
        self._turn_of: dict[str, LoggedTurn] = {}  # by the uuid of each line of the answer
        self._by_id: dict[str, LoggedTurn] = {}  # by the API's id of the message
        self._results: dict[str, ResultBlock] = {}
        self._above: dict[LoggedTurn, str | None] = {}  # the line that an answer's first line hangs at
        self._kept: dict[str, Kept] = {}  # by the last line that a compaction kept
        self._restored: dict[str, tuple[LoggedTurn | None, list[bytes]]] = {}
        self._open: LoggedTurn | None = None  # the answer that is being logged

    def read(self, entry: dict[str, Any]) -> Step | None:
        """Take in a line; the step that it shows to be complete, if any."""
        uuid = entry.get("uuid")
        if not isinstance(uuid, str) or uuid in self._lines or uuid in self._turn_of:
            return None  # a copy, as resumed sessions hold them
        if not self._tally.client and isinstance(entry.get("version"), str):
            self._tally.client = f"claude-code {entry['version'][:40]}"
        if _is_answer(entry):
            return self._answer(uuid, entry)
        parent = entry.get("parentUuid")
        at = _time(entry.get("timestamp"))
        content = _message(entry).get("content")
        self._kept |= _kept(entry)
        if entry.get("type") == "user":
            self._results |= results_of(content, at, len(self._results))
        self._lines[uuid] = LogEntry(
            parent if isinstance(parent, str) else None,
            tuple(_blocks(entry, content)),
            at,
            entry.get("isCompactSummary") is True,
        )
        return None

    def finish(self) -> Step | None:
        """The step of the answer that was being logged."""
        turn, self._open = self._open, None
        return None if turn is None else self._conversation.step(turn)

    def _answer(self, uuid: str, entry: dict[str, Any]) -> Step | None:
        said = _message(entry)
        name = said.get("id")
        turn = self._by_id.get(name) if isinstance(name, str) else None
        done = None
        if turn is None:  # the first line of another answer: the one before is complete, and so is all that led here
            done = self.finish()
            parent = entry.get("parentUuid")
            turn = self._open = self._asked(parent)
            self._above[turn] = parent if isinstance(parent, str) else None
            turn.model = said["model"] if isinstance(said.get("model"), str) else ""
            self._tally.answers.append(name if isinstance(name, str) else uuid)
            if isinstance(name, str):
                self._by_id[name] = turn
        self._turn_of[uuid] = turn
        self._conversation.hear(turn, said.get("content"))
        turn.heard(_time(entry.get("timestamp")))
        turn.usage = _fuller(turn.usage, said.get("usage"))
        return done

    def _asked(self, parent: object) -> LoggedTurn:
        """The request whose answer begins at a child of this line."""
        after: LoggedTurn | None = None
        way: list[LogEntry] = []
        passed: set[str] = set()
        while isinstance(parent, str) and parent not in passed:
            passed.add(parent)
            if parent in self._kept:
                after, told = self._behind_summary(parent)
                way.append(LogEntry(None, tuple(told)))
                break
            after = self._turn_of.get(parent)
            line = self._lines.get(parent)
            if after is not None or line is None:
                break
            way.append(line)
            parent = None if line.is_root else line.parent
        ready = max((line.at for line in way if line.at is not None), default=None)
        return self._conversation.ask(after, _told(way), self._results, ready)

    def _behind_summary(self, last: str) -> tuple[LoggedTurn | None, list[bytes]]:
        """The newest answer among the messages that a compaction kept, in a history that begins with the summary, and
        what was said after it. Made once, so that requests which go on from it share it."""
        if last not in self._restored:
            kept = self._kept[last]
            summary = self._lines.get(kept.summary)
            turns, said = self._kept_turns(last, kept.first)
            told = [*(summary.blocks if summary is not None else ()), *said]
            turn: LoggedTurn | None = None
            for original, after in turns:
                turn = self._conversation.ask(turn, told, self._results, None)
                turn.said, turn.calls, told = [*original.said], [*original.calls], after
            self._restored[last] = turn, told
        return self._restored[last]

    def _kept_turns(self, last: str, first: str) -> tuple[list[tuple[LoggedTurn, list[bytes]]], list[bytes]]:
        """The answers between two lines with what was said after each, oldest first, and what was said before them."""
        turns: list[tuple[LoggedTurn, list[bytes]]] = []
        said: list[LogEntry] = []
        passed: set[str] = set()
        at: str | None = last
        while at is not None and at not in passed:
            passed.add(at)
            turn, line = self._turn_of.get(at), self._lines.get(at)
            if turn is not None:
                turns.append((turn, _told(said)))
                said = []
                at = None if self._turn_of.get(first) is turn else self._above[turn]
            elif line is not None and not line.is_root:
                said.append(line)
                at = None if at == first else line.parent
            else:
                break
        return turns[::-1], _told(said)


def _told(way: list[LogEntry]) -> list[bytes]:
    """What the lines of a way back say, in the order of the log."""
    return [block for line in reversed(way) for block in line.blocks]


def _is_answer(entry: dict[str, Any]) -> bool:
    """An entry that is a part of what the API answered, and no message that the client made up."""
    if entry.get("type") != "assistant" or entry.get("isApiErrorMessage") is True:
        return False
    return isinstance(entry.get("message"), dict) and entry["message"].get("model") != SYNTHETIC


def _message(entry: dict[str, Any]) -> dict[str, Any]:
    message = entry.get("message")
    return message if isinstance(message, dict) else {}


def _kept(entry: dict[str, Any]) -> dict[str, Kept]:
    """The newest messages that a compaction kept behind its summary, by the last of their lines."""
    compacted = entry.get("compactMetadata") if entry.get("subtype") == "compact_boundary" else None
    segment = compacted.get("preservedSegment") if isinstance(compacted, dict) else None
    if not isinstance(segment, dict):
        return {}
    first, last, anchor = (segment.get(key) for key in ("headUuid", "tailUuid", "anchorUuid"))
    if not (isinstance(first, str) and isinstance(last, str) and isinstance(anchor, str)):
        return {}
    return {last: Kept(first, anchor)}


def _blocks(entry: dict[str, Any], content: object) -> list[bytes]:
    """What the entry makes the client say to the model, tool results aside."""
    kind = entry.get("type")
    if kind == "user" and (entry.get(NEVER_SENT) is not True or entry.get("isCompactSummary") is True):
        return user_blocks(content)
    if kind == "system" and entry.get("subtype") == "local_command":
        return user_blocks(entry.get("content"))
    if kind == "attachment":
        told = "\n".join(_strings(entry.get("attachment")))
        return [text_block(f"<system-reminder>\n{told}\n</system-reminder>")] if is_said(told) else []
    return []


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    """The texts of an attachment; how the client words them is not in the log."""
    if isinstance(value, str):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, list):
        for item in value:
            yield from _strings(item, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, dict):
        for key, item in value.items():
            if key not in UNTOLD:
                yield from _strings(item, depth + 1)


def _fuller(usage: object, other: object) -> object:
    """Of the usages on the lines of one answer the one that counts most output: earlier lines were logged while it came."""
    if not isinstance(other, dict):
        return usage
    return other if _output(other) >= _output(usage) else usage


def _output(usage: object) -> int:
    counted = usage.get("output_tokens") if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) else -1


def _time(stamp: object) -> float | None:
    """Seconds since the epoch of an ISO 8601 time; without a zone it is read as UTC. One out of range is no time."""
    if not isinstance(stamp, str):
        return None
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return time_of((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
