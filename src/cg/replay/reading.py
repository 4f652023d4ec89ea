"""One session as every policy sees it: read once, with what its messages carry and what hindsight says of its outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cg.errors import CgError
from cg.replay.prompt import Part, parts_of
from cg.replay.recordings.hindsight import Hindsight, look_back
from cg.replay.recordings.recording import Before
from cg.replay.sessions import Session, Step
from cg.sweep.body.transcript import ToolText, ToolUse, Transcript, Unreadable, read
from cg.sweep.core.unchanged_notice import Read, is_notice, read_of
from cg.sweep.prices import LIST_TERMS, Terms
from cg.sweep.values import Identity, Usage

BEFORE, BEHIND = b'{"messages":[', b"]}"  # the smallest body around one message


@dataclass(frozen=True, slots=True)
class Output:
    """One text of a tool result."""

    identity: Identity
    size_bytes: int
    is_notice: bool  # a client's "unchanged since last read"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, with what it reads if it is a read."""

    id: str
    tool: str
    read: Read | None


@dataclass(frozen=True, slots=True)
class Message:
    """A message's JSON text and what it carries."""

    json: bytes
    parts: Sequence[Part]  # as a prompt takes them
    outputs: tuple[Output, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One request: the messages that are new in it, and the answer's size."""

    index: int
    at: float
    model: str
    opens: bool
    messages: tuple[Message, ...]
    reply_bytes: int
    usage: Usage | None
    terms: Terms = LIST_TERMS


@dataclass(frozen=True, slots=True)
class Recording:
    """A session in memory; nothing in it changes while policies are run over it."""

    name: str
    client: str
    ttl_s: int | None
    timed: bool
    first: Step
    turns: tuple[Turn, ...]
    hindsight: Hindsight
    before: Before = field(default_factory=Before)


def record(session: Session) -> Recording:
    """Read a session whole. Raises CgError for one that holds no request or a message that cannot be read."""
    steps = list(session.steps())
    if not steps:
        raise CgError(f"{session.name}: holds no request")
    known: dict[bytes, Message] = {}  # a history that opens anew repeats messages
    turns = tuple(_turn(step, known) for step in steps)
    hindsight = look_back(steps)
    return Recording(
        session.name, session.client, session.ttl_s, session.timed, steps[0], turns, hindsight, session.before
    )


def _turn(step: Step, known: dict[bytes, Message]) -> Turn:
    for text in step.messages:
        if text not in known:
            known[text] = message_of(text)
    messages = tuple(known[text] for text in step.messages)
    return Turn(step.index, step.at, step.model, step.opens, messages, step.reply_bytes, step.usage, step.terms)


def message_of(text: bytes) -> Message:
    """A message with its outputs and calls. Raises CgError for one that the sweep cannot read."""
    transcript = alone(text)
    calls = tuple(_call(use) for use in transcript.tool_uses.values())
    return Message(text, parts_of(text), tuple(_output(found) for found in transcript.tool_texts), calls)


def alone(text: bytes) -> Transcript:
    """A message as the only one of a body; positions in it are `len(BEFORE)` ahead of those in the message."""
    try:
        return read(BEFORE + text + BEHIND)
    except Unreadable as error:
        raise CgError(f"message of {len(text)} bytes: {error}") from error


def _output(text: ToolText) -> Output:
    return Output(text.identity, text.size_bytes, is_notice(text))


def _call(use: ToolUse) -> Call:
    return Call(use.id, use.name, read_of(use))
