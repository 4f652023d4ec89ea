"""Which tool outputs the conversation still refers to: a deterministic co-reference index over a transcript.

An output *introduces* the names and lines (`cg.references`) that tool outputs brought into the conversation, that no prose or
call had used before, and that are rare among its outputs. Prose and calls that use one later are references to the output
that carried it last: whoever reads a file again looks at the newer copy. A tool result that repeats a name refers to nothing.

The index sees exact reuse only. A decision taken from a number, or a passed test, leaves no trace here; so it is a
witness against dropping (`open`, rescue) before it is one for it.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import Any, Protocol

from cg.references import items
from cg.sweep.body.transcript import ToolText, Transcript, strings
from cg.sweep.values import Identity

MIN_LATER_TURNS = 8  # turns after an output below which no reference means nothing yet
OPEN_REFERENCES = 3  # so many messages that used an output make it open for good
OPEN_AGE = 12  # messages since the last use within which an output is open
COMMON_CARRIERS = 5  # a name in more outputs than this, and in a quarter of them, tells outputs apart no more
COMMON_SHARE = 4  # one output in so many


class Standing(StrEnum):
    """What the index makes of one output."""

    OPAQUE = "opaque"  # introduced nothing that could be recognised: no opinion
    OPEN = "open"
    UNREFERENCED = "unreferenced"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Record:
    """The use that was made of one output, counted in messages of the transcript."""

    introduced: int  # names and lines that the output introduced
    reused: int  # how many of them were used while no newer output carried them
    references: int  # messages that used one
    last_reference: int | None  # index of the latest such message
    age: int | None  # messages after that one
    later_turns: int  # assistant messages after the output
    standing: Standing

    @property
    def used_share(self) -> float:
        return self.reused / self.introduced if self.introduced else 0.0


@dataclass(frozen=True, slots=True)
class Index:
    """Records of a transcript's tool outputs by identity; of two with the same identity the later counts."""

    records: Mapping[Identity, Record]

    def record(self, identity: Identity) -> Record | None:
        return self.records.get(identity)

    def is_open(self, identity: Identity) -> bool:
        found = self.records.get(identity)
        return found is not None and found.standing is Standing.OPEN

    def refers_since(self, identity: Identity, message: int) -> bool:
        """Whether any message from index `message` on used what the output introduced."""
        found = self.records.get(identity)
        return found is not None and found.last_reference is not None and found.last_reference >= message


class Build(Protocol):
    """Makes the index of a transcript."""

    def __call__(self, transcript: Transcript, *, min_later_turns: int = ...) -> Index: ...


@dataclass(slots=True)
class _Output:
    text: ToolText
    introduced: set[bytes]
    reused: set[bytes] = field(default_factory=set)
    references: int = 0
    last_reference: int | None = None


@dataclass(slots=True)
class _Ledger:
    """Who carried what last, while the transcript is walked from its start."""

    spoken: set[bytes] = field(default_factory=set)  # prose and calls used it before any output carried it
    carrier: dict[bytes, int] = field(default_factory=dict)  # item -> index of the message that carried it last
    carriers: Counter[bytes] = field(default_factory=Counter)  # item -> outputs so far
    by_message: dict[int, list[_Output]] = field(default_factory=dict)
    n_outputs: int = 0

    def listen(self, message: int, used: set[bytes]) -> None:
        """Credit the outputs whose items a message's prose and calls use."""
        known = used & self.carrier.keys()
        limit = max(COMMON_CARRIERS, self.n_outputs // COMMON_SHARE)
        credited: dict[int, set[bytes]] = defaultdict(set)
        for item in known:
            if self.carriers[item] <= limit:
                credited[self.carrier[item]].add(item)
        for source, named in credited.items():
            for output in self.by_message[source]:
                if mine := output.introduced & named:
                    output.reused |= mine
                    output.references += 1
                    output.last_reference = message
        self.spoken |= used - known

    def read(self, message: int, texts: Iterable[ToolText]) -> list[_Output]:
        """Take in the outputs that one message carries; siblings share what both introduce."""
        outputs = []
        for text in texts:
            introduced = items(text.content) - self.spoken
            self.carrier.update(dict.fromkeys(introduced, message))
            self.carriers.update(introduced)
            outputs.append(_Output(text, introduced))
        self.n_outputs += len(outputs)
        self.by_message[message] = outputs
        return outputs


def decoded_arguments(arguments: bytes) -> Any:
    """A call's arguments as a value, or None where they cannot be read."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def prose(transcript: Transcript) -> Iterator[tuple[str, int, str]]:
    """(role, message, text) of what was written outside calls and results; message -1 is the system prompt."""
    for kind, message, text in transcript.scan.pieces():
        if kind == "text":
            yield "system" if message < 0 else transcript.roles[message], message, text


def spoken_items(transcript: Transcript) -> dict[int, set[bytes]]:
    """The names and lines in each message's prose and calls; -1 is the system prompt."""
    found: dict[int, set[bytes]] = defaultdict(set)
    for _, message, text in prose(transcript):
        found[message] |= items(text.encode("utf-8", "surrogatepass"))
    for call in transcript.tool_uses.values():
        for text in strings(decoded_arguments(call.arguments)):
            found[call.message] |= items(text.encode("utf-8", "surrogatepass"))
    return found


def turns_up_to(roles: Sequence[str]) -> list[int]:
    """Assistant messages up to and with each message."""
    return list(accumulate(int(role == "assistant") for role in roles))


def standing(introduced: int, references: int, age: int | None, later_turns: int, min_later_turns: int) -> Standing:
    """The class of an output; without enough turns after it, it is open whatever was used."""
    if not introduced:
        return Standing.OPAQUE
    if later_turns < min_later_turns:
        return Standing.OPEN
    if not references or age is None:
        return Standing.UNREFERENCED
    return Standing.OPEN if references >= OPEN_REFERENCES or age < OPEN_AGE else Standing.CLOSED


def build(transcript: Transcript, *, min_later_turns: int = MIN_LATER_TURNS) -> Index:
    """The index of a transcript, a pure function of it; time and memory are linear in its text.

    Within one message the results come first: prose beside them may speak of them.
    """
    spoken = spoken_items(transcript)
    read: dict[int, list[ToolText]] = defaultdict(list)
    for text in transcript.tool_texts:
        read[text.message].append(text)
    ledger = _Ledger()
    outputs: list[_Output] = []
    for message in sorted(spoken.keys() | read.keys()):
        if message in read:
            outputs += ledger.read(message, read[message])
        if message in spoken:
            ledger.listen(message, spoken[message])
    turns = turns_up_to(transcript.roles)
    last = transcript.n_messages - 1
    records = {}
    for output in outputs:
        age = None if output.last_reference is None else last - output.last_reference
        later = turns[-1] - turns[output.text.message]
        n = len(output.introduced)
        kind = standing(n, output.references, age, later, min_later_turns)
        records[output.text.identity] = Record(
            n, len(output.reused), output.references, output.last_reference, age, later, kind
        )
    return Index(records)
