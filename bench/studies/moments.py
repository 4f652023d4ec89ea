"""The outputs that a rule has before it at moments of a session, with what it can see and what the rest of the session says."""

from collections.abc import Iterator
from dataclasses import dataclass

from cg.replay.reading import BEFORE, BEHIND, Message, Recording
from cg.replay.recordings.hindsight import Label
from cg.sweep.body.transcript import read
from cg.sweep.economics import START_BYTES_PER_TOKEN
from cg.sweep.judging.coreference import build

EVERY = 10  # requests between two moments
FLOOR_TOKENS = 250  # the floor of the preset `cold`
COLD_S = 300.0  # a request this long after the one before is one at which a five-minute entry is gone
SPENT, UNSURE, LIVE = range(3)
_LABELS = {Label.SPENT: SPENT, Label.UNSURE: UNSURE, Label.LIVE: LIVE}


@dataclass(frozen=True, slots=True)
class Seen:
    """One output of `FLOOR_TOKENS` or more."""

    tokens: float
    newer: int  # outputs of that size after it
    later_turns: int
    has_names: bool  # it introduced something that can be recognised
    references: int  # messages that used something it introduced
    since: int  # messages since the last of them; without any, since the output came
    label: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A request, before it is answered."""

    request: int
    is_cold: bool
    seen: tuple[Seen, ...]


def moments(recording: Recording) -> tuple[Moment, ...]:
    """Every tenth request of a session and every one after five minutes' wait, where there is an output to judge."""
    history: list[Message] = []
    found = []
    last: float | None = None
    for turn in recording.turns:
        history = list(turn.messages) if turn.opens else [*history, *turn.messages]
        is_cold = recording.timed and last is not None and turn.at - last >= COLD_S
        last = turn.at
        if is_cold or turn.index % EVERY == EVERY - 1:
            seen = tuple(_seen(recording, history, turn.index))
            if seen:
                found.append(Moment(turn.index, is_cold, seen))
    return tuple(found)


def _seen(recording: Recording, history: list[Message], request: int) -> Iterator[Seen]:
    """The outputs in body order. Those of the newest message are not judged: the model has not read them."""
    transcript = read(BEFORE + b",".join(message.json for message in history) + BEHIND)
    index = build(transcript, min_later_turns=0)
    newest = transcript.n_messages - 1
    floor = FLOOR_TOKENS * START_BYTES_PER_TOKEN
    texts = [t for t in transcript.tool_texts if t.size_bytes >= floor and t.message < newest]
    for n, text in enumerate(texts):
        record = index.record(text.identity)
        if record is None:
            continue
        yield Seen(
            tokens=text.size_bytes / START_BYTES_PER_TOKEN,
            newer=len(texts) - 1 - n,
            later_turns=record.later_turns,
            has_names=record.introduced > 0,
            references=record.references,
            since=newest - text.message if record.age is None else record.age,
            label=_LABELS[recording.hindsight.label(text.tool_use_id, request)],
        )
