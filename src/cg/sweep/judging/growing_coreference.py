"""The index of a conversation that grows: the records of `index.build`, at the cost of what is new and what is asked for.

Whoever sees one conversation again and again (a replay) keeps a `Growing` for it and gives it to the core in the place of
`index.build`. It holds, for each name and line, the messages whose outputs carry it and those that use it, so that the
record of one output is a few look-ups, made when it is asked for. A message that has changed is taken out and read anew.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cg.references import items
from cg.sweep.body.transcript import Transcript, read
from cg.sweep.history.branches import common_messages
from cg.sweep.judging.coreference import (
    COMMON_CARRIERS,
    COMMON_SHARE,
    MIN_LATER_TURNS,
    Index,
    Record,
    spoken_items,
    standing,
)
from cg.sweep.values import Identity

SYSTEM = -1  # the system prompt's place in front of the messages


@dataclass(frozen=True, slots=True)
class _Message:
    """One message as it was read."""

    carried: tuple[tuple[Identity, frozenset[bytes]], ...]  # its outputs and what they hold
    spoken: frozenset[bytes]


class Growing(Mapping[Identity, Record]):
    """A builder of indexes over one conversation; the one that it gave last is the one that holds."""

    def __init__(self) -> None:
        self._seen: Transcript | None = None
        self._system: bytes | None = None
        self._messages: list[_Message] = []
        self._place: dict[Identity, tuple[int, frozenset[bytes]]] = {}
        self._uses: dict[bytes, list[int]] = {}  # item -> messages whose prose or calls hold it, ascending
        self._carries: dict[bytes, list[int]] = {}  # the same of outputs, for the few items that are in `_uses`
        self._known: set[bytes] = set()  # items that an output holds or has held: what is not here needs no search
        self._outputs: list[int] = []  # the message of each output, ascending
        self._min_later_turns = MIN_LATER_TURNS
        self.read = 0  # messages taken in so far, for tests: work follows what is new

    def __call__(self, transcript: Transcript, *, min_later_turns: int = MIN_LATER_TURNS) -> Index:
        """The index of a transcript, equal to `index.build`; it holds until the next call."""
        self._take_system(transcript)
        self._take(transcript)
        self._seen, self._min_later_turns = transcript, min_later_turns
        return Index(self)

    # -- what changes ------------------------------------------------------------------------------------------------

    def _take_system(self, transcript: Transcript) -> None:
        span = transcript.member("system")
        system = b"" if span is None else transcript.body[span[0] : span[1]]
        if system == self._system:
            return
        if self._system is not None:  # what it said comes first of all: everything is read anew
            self.__init__()  # type: ignore[misc]
        self._system = system
        alone = read(b'{"messages":[],"system":%b}' % (system or b"null"))
        self._speak(frozenset(spoken_items(alone).get(SYSTEM, ())), SYSTEM)

    def _take(self, transcript: Transcript) -> None:
        seen, n = self._seen, transcript.n_messages
        while len(self._messages) > n:
            self._forget(len(self._messages) - 1)
            self._messages.pop()
        same = common_messages(seen.chain, transcript.chain) if seen is not None else 0
        changed = [i for i in range(same, len(self._messages)) if seen is None or _raw(seen, i) != _raw(transcript, i)]
        for i in changed:  # all of them first: an output that has moved would stand in two places for a while
            self._forget(i)
        for i in changed:
            self._messages[i] = self._learn(i, _raw(transcript, i))
        for i in range(len(self._messages), n):
            self._messages.append(self._learn(i, _raw(transcript, i)))

    def _learn(self, i: int, raw: bytes) -> _Message:
        self.read += 1
        message = _message(raw)
        for identity, held in message.carried:
            self._place[identity] = i, held
            self._known |= held
            insort(self._outputs, i)
            for item in held & self._uses.keys():
                insort(self._carries.setdefault(item, []), i)
        self._speak(message.spoken, i)
        return message

    def _speak(self, spoken: frozenset[bytes], i: int) -> None:
        first = (spoken - self._uses.keys()) & self._known  # used for the first time: who holds it was not noted
        for place, held in self._place.values() if first else ():
            if not first.isdisjoint(held):
                for item in first & held:
                    insort(self._carries.setdefault(item, []), place)
        for item in spoken:
            insort(self._uses.setdefault(item, []), i)

    def _forget(self, i: int) -> None:
        gone = self._messages[i]
        for identity, held in gone.carried:
            if self._place.get(identity, (None,))[0] == i:
                del self._place[identity]
            del self._outputs[bisect_left(self._outputs, i)]
            for item in held & self._carries.keys():
                _remove(self._carries, item, i)
        for item in gone.spoken:
            _remove(self._uses, item, i)
            if item not in self._uses:
                self._carries.pop(item, None)

    # -- what stands -------------------------------------------------------------------------------------------------

    def __getitem__(self, identity: Identity) -> Record:
        assert self._seen is not None
        place, held = self._place[identity]
        hidden, reused, references = self._reuse(place, held)
        introduced, last = len(held) - hidden, max(references, default=None)
        roles = self._seen.roles
        age = None if last is None else len(roles) - 1 - last
        later = roles[place + 1 :].count("assistant")
        kind = standing(introduced, len(references), age, later, self._min_later_turns)
        return Record(introduced, reused, len(references), last, age, later, kind)

    def _reuse(self, place: int, held: frozenset[bytes]) -> tuple[int, int, set[int]]:
        """(items that were spoken of first, items that were used, messages that used one) of one output."""
        hidden, reused, references = 0, 0, set[int]()
        for item in held & self._carries.keys():
            uses, carries = self._uses[item], self._carries[item]
            if uses[0] < carries[0]:
                hidden += 1
                continue
            n_carriers = bisect_right(carries, place)
            end = bisect_left(uses, carries[n_carriers]) if n_carriers < len(carries) else len(uses)
            found = uses[bisect_left(uses, place) : end]
            if n_carriers > COMMON_CARRIERS:
                found = [u for u in found if n_carriers <= bisect_right(self._outputs, u) // COMMON_SHARE]
            reused += bool(found)
            references.update(found)
        return hidden, reused, references

    def __iter__(self) -> Iterator[Identity]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)


@lru_cache(maxsize=1024)  # what a client sends and what leaves have nearly all messages in common
def _message(raw: bytes) -> _Message:
    alone = read(b'{"messages":[%b]}' % raw)
    carried = tuple((text.identity, frozenset(items(text.content))) for text in alone.tool_texts)
    return _Message(carried, frozenset(spoken_items(alone).get(0, ())))


def _raw(transcript: Transcript, message: int) -> bytes:
    start, end = transcript.span(message)
    return transcript.body[start:end]


def _remove(lists: dict[bytes, list[int]], item: bytes, i: int) -> None:
    found = lists[item]
    del found[bisect_left(found, i)]
    if not found:
        del lists[item]
