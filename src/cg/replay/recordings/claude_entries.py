"""The entries of Claude Code's own logs, one by one: which lines are entries, and what each makes the client say."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cg.replay.recordings.blocks import is_said, text_block, user_blocks
from cg.replay.recordings.conversation import time_of
from cg.replay.recordings.json_lines import Joiner, Salvage, loads
from cg.replay.recordings.log_files import lines
from cg.replay.recordings.recording import Tally, Unusable

KINDS = frozenset({"user", "assistant", "system", "attachment", "progress", "summary"})
FOREIGN_AFTER = 1000  # lines without an entry: this is no log
SYNTHETIC = "<synthetic>"  # model of messages that the client made up
NEVER_SENT = "isVisibleInTranscriptOnly"
UNTOLD = frozenset({"type", "uuid", "hash", "mimeType"})  # members of an attachment that are no text for the model
MAX_DEPTH = 32  # of an attachment


def entries(path: Path, tally: Tally) -> Iterator[dict[str, Any]]:
    """The entries of a log; of a damaged line those that are whole on it, the line counted in `tally`.

    Raises Unusable for a file that is no log.
    """
    known = False
    for number, value in _values(lines(path), tally):
        if isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] in KINDS:
            known = True
            yield value
        elif not known and number + 1 >= FOREIGN_AFTER:
            break
    if not known:
        raise Unusable("not a session log: no line of it is an entry of one")


def _values(found: Iterable[bytes], tally: Tally) -> Iterator[tuple[int, Any]]:
    """The values on the lines with their lines' numbers; None for a line without one."""
    joiner = Joiner()
    for number, line in enumerate(found):
        try:
            value = loads(line)
        except (ValueError, RecursionError):
            pass
        else:
            tally.damaged += bool(joiner)
            joiner.begin("")
            yield number, value
            continue
        if joiner:
            record = joiner.add(line)
            yield number, record
            if record is not None or joiner:
                continue
            tally.damaged += 1
        salvage = Salvage(line)
        for value in salvage:
            yield number, value
        joiner.begin(salvage.unfinished)
        tally.damaged += salvage.is_lossy and not joiner
        yield number, None
    tally.damaged += bool(joiner)


def is_answer(entry: dict[str, Any]) -> bool:
    """An entry that is a part of what the API answered, and no message that the client made up."""
    if entry.get("type") != "assistant" or entry.get("isApiErrorMessage") is True:
        return False
    return isinstance(entry.get("message"), dict) and entry["message"].get("model") != SYNTHETIC


def message_of(entry: dict[str, Any]) -> dict[str, Any]:
    """The message that an entry carries, if any."""
    message = entry.get("message")
    return message if isinstance(message, dict) else {}


def text_or_none(value: object) -> str | None:
    """A member that names something; an empty name names nothing."""
    return value if isinstance(value, str) and value else None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a compaction kept: from one line to another, behind the summary at a third."""

    number: int  # of the compaction's line, in the order of the log
    boundary: str
    first: str
    last: str
    summary: str


def kept(entry: dict[str, Any], number: int) -> Kept | None:
    """The newest messages that a compaction kept behind its summary.

    They are named by their ends (`preservedSegment`), or one by one (`preservedMessages`).
    """
    if entry.get("subtype") != "compact_boundary":
        return None
    compacted = _member(entry, "compactMetadata")
    segment, messages = _member(compacted, "preservedSegment"), _member(compacted, "preservedMessages")
    uuids = _member(messages, "uuids") or _member(messages, "allUuids")
    listed = [uuid for uuid in uuids if isinstance(uuid, str)] if isinstance(uuids, list) else []
    if listed:
        first, last, anchor = listed[0], listed[-1], _member(messages, "anchorUuid")
    else:
        first, last, anchor = (_member(segment, key) for key in ("headUuid", "tailUuid", "anchorUuid"))
    if not (isinstance(first, str) and isinstance(last, str)):
        return None
    return Kept(number, str(entry.get("uuid")), first, last, anchor if isinstance(anchor, str) else "")


def _member(value: object, name: str) -> Any:
    """A member under its name, or under the same name in snake case, as other writers spell it."""
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    return value.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


def blocks_of(entry: dict[str, Any], content: object) -> list[bytes]:
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


def time_in(entry: dict[str, Any]) -> float | None:
    """Seconds since the epoch of the entry's ISO 8601 time; without a zone it is read as UTC. Out of range is no time."""
    stamp = entry.get("timestamp")
    if not isinstance(stamp, str):
        return None
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return time_of((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
