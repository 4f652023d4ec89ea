"""How an original comes back: expansion answers, and reads that the client will not repeat."""

import json
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from enum import StrEnum

from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.body.transcript import ToolText, ToolUse, Transcript
from cg.sweep.core.unchanged_notice import leaned_on
from cg.sweep.effects import Fetch, Steps
from cg.sweep.store import Expired
from cg.sweep.values import Identity, Payload, Thread

KEY = re.compile(r"(?:cg:\s*)?([0-9a-f]{16})")
AROUND = " \t\r\n\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb<>[](){}.,;"  # what a model or a shell puts around an id
NEVER_EXISTED = "[no output has this id; ids stand in the markers of removed outputs]"


def expand_id(arguments: bytes) -> str | None:
    """The key that an expand call names, alone or as the one item of a list; None when it names none, or several."""
    try:
        value = json.loads(arguments)["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    return plain_key(value) if isinstance(value, str) else None


def plain_key(text: str) -> str | None:
    """The 16 hex digits of a key, in either case: bare, behind `cg:`, in its marker, in quotes or brackets; None for
    anything else."""
    match = KEY.fullmatch(text.strip(AROUND).lower())
    return match[1] if match else None


class ExpansionOutcome(StrEnum):
    """What an id brought."""

    ORIGINAL = "original"
    EXPIRED = "expired"  # no longer kept
    UNKNOWN = "unknown"  # never existed in this thread


@dataclass(frozen=True, slots=True)
class Expansion:
    """What an id answers: the original, or why there is none. `sha256` is the original's."""

    outcome: ExpansionOutcome
    answer: bytes
    sha256: str | None = None


UNKNOWN_ID = Expansion(ExpansionOutcome.UNKNOWN, NEVER_EXISTED.encode())


def in_body(key: str | None, transcript: Transcript | None, removed: Container[Identity]) -> Expansion | None:
    """The original from the body, if it is one of what was `removed`; None if it does not stand there.

    The client re-sends every original, so no store is needed for nearly all of them.
    """
    for text in transcript.tool_texts if transcript and key is not None else ():
        if text.sha256[:16] == key and text.identity in removed:
            return Expansion(ExpansionOutcome.ORIGINAL, text.content, text.sha256)
    return None


def expand(key: str | None, transcript: Transcript | None, thread: Thread) -> Steps[Expansion]:
    """The original from the body, else from the store, else why there is none.

    The body is the first source; the store serves histories that were compacted. Only what was removed in this thread is
    found: a forged id reads nothing.
    """
    if key is None:
        return UNKNOWN_ID
    if (here := in_body(key, transcript, thread.removals)) is not None:
        return here
    found = yield Fetch(key)
    match found:
        case Payload():
            return Expansion(ExpansionOutcome.ORIGINAL, found.content, found.identity.sha256)
        case Expired():
            notice = expired_notice(found.tool, found.arguments)
            return Expansion(ExpansionOutcome.EXPIRED, notice.encode("utf-8", "surrogatepass"))
        case _:
            return UNKNOWN_ID


def expired_notice(tool: str, arguments: str) -> str:
    """What an id answers whose original is no longer kept: the call that made it."""
    return f"[this output is no longer kept; it came from {tool} with {arguments}]"


def unanswered_expansions(transcript: Transcript, thread: Thread) -> Iterator[tuple[ToolText, ToolUse]]:
    """Results that the client gave to our expand calls, which it cannot know, and that no frozen answer covers yet."""
    return (found for found in _expansions(transcript, thread) if found[0].identity not in thread.removals)


def unmarked_expansions(transcript: Transcript, thread: Thread) -> Iterator[str]:
    """SHA-256 of originals that stand in frozen answers and are not marked as expanded: an answer is frozen before its
    turn leaves and the mark is written after, if the process still lives and the store takes it."""
    answered = {expand_id(u.arguments) for t, u in _expansions(transcript, thread) if t.identity in thread.removals}
    for identity in thread.removals if answered else ():
        if identity.key in answered and identity.sha256 not in thread.expanded:
            yield identity.sha256


def _expansions(transcript: Transcript, thread: Thread) -> Iterator[tuple[ToolText, ToolUse]]:
    """The client's results of our expand calls."""
    if thread.declaration is None or EXPAND_TOOL in transcript.declares:
        return
    calls = {use.id: use for use in transcript.tool_uses.values() if use.name == EXPAND_TOOL}
    for text in transcript.tool_texts if calls else ():
        use = calls.get(text.tool_use_id)
        if use is not None and text.block == 0:
            yield text, use


def repeated_reads(transcript: Transcript, thread: Thread) -> tuple[Identity, ...]:
    """Removals that a later read of the same leans on: the client answered it with a notice."""
    leaned = leaned_on(transcript) if thread.removals else ()
    return tuple(i for i in leaned if i in thread.removals and i not in thread.ended)
