"""What a session's later turns say about its tool outputs: which were used again after a request, and which were not.

An item (a line, an identifier; `cg.reuse` says which count) has one owner, whoever brought it last: a tool output, or nobody once
a user or the assistant wrote it. A reply that uses an item owned by an output uses that output, unless more than three
outputs have brought it. From a request on, an output is

    live     if the reply to it or to a later one uses a line of it, or two of its identifiers between them
    unsure   if exactly one identifier is used
    spent    if nothing is

So a repeated read hands an output's items to the newer copy, and what the assistant once wrote out it no longer owes to
the output. Blind to reuse in other words and in hidden reasoning (these look spent), fooled by identifiers that were
known from elsewhere (these look live); the end of the log is the end of the evidence.
"""

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cg.replay.recordings.recording import Step
from cg.reuse import Ownership
from cg.sweep.body.transcript import strings

MOST_CARRIERS = 3  # outputs that brought an item; what more of them bring is common property of the session


class Label(StrEnum):
    """What became of an output from some request on."""

    LIVE = "live"
    UNSURE = "unsure"
    SPENT = "spent"


@dataclass(frozen=True, slots=True)
class Use:
    """What the reply to one request took from one output."""

    request: int
    lines: int
    identifiers: frozenset[str]


@dataclass(slots=True)
class _Fate:
    """Uses of one output in the order of their requests, and the last requests at which it was still wanted."""

    uses: list[Use] = field(default_factory=list)
    live_until: int = -1
    unsure_until: int = -1

    def settle(self) -> None:
        """Take both thresholds from the uses: labels only ever fall from live to unsure to spent."""
        later: set[str] = set()
        for use in reversed(self.uses):
            self.unsure_until = max(self.unsure_until, use.request)
            later |= use.identifiers
            if use.lines or len(later) >= 2:
                self.live_until = use.request
                break


class Hindsight:
    """The later use of every tool output of one session; one pass over it, then any request can be asked about."""

    def __init__(self, fates: dict[str, _Fate]) -> None:
        for fate in fates.values():
            fate.settle()
        self._fates = fates

    def __contains__(self, tool_use_id: str) -> bool:
        return tool_use_id in self._fates

    def label(self, tool_use_id: str, request: int) -> Label:
        """What the replies to `request` and later ones make of the output, in constant time.

        Raises KeyError for an output that the session does not have.
        """
        fate = self._fates[tool_use_id]
        if request <= fate.live_until:
            return Label.LIVE
        return Label.UNSURE if request <= fate.unsure_until else Label.SPENT

    def next_use(self, tool_use_id: str, request: int) -> int | None:
        """The first request, from `request` on, whose reply proves that the output is live; None if it is not."""
        if self.label(tool_use_id, request) is not Label.LIVE:
            return None
        named: set[str] = set()
        for use in self.uses(tool_use_id, request):
            named |= use.identifiers
            if use.lines or len(named) >= 2:
                return use.request
        raise AssertionError("a live output has a use that proves it")

    def uses(self, tool_use_id: str, request: int = 0) -> list[Use]:
        """The uses of the output by replies to `request` and later ones."""
        uses = self._fates[tool_use_id].uses
        return uses[bisect_left(uses, request, key=lambda use: use.request) :]


class _Reading:
    """A session on its way past: who owns what, and what became of each output so far."""

    def __init__(self) -> None:
        self.fates: dict[str, _Fate] = {}
        self._ownership = Ownership(MOST_CARRIERS)
        self._outputs: list[str] = []  # the tool_use id behind each owner's number

    def forget(self) -> None:
        """The history is no longer sent: what it brought cannot be used."""
        self._ownership.forget()

    def take_in(self, message: Any) -> None:
        """One message of the history: each block's items go to whoever brought it."""
        if message["role"] == "assistant":
            self._ownership.write(_written(message))
            return
        for block in message["content"]:
            if block["type"] == "tool_result":
                self._bring(block["tool_use_id"], _texts(block.get("content")))
            elif block["type"] == "text":
                self._ownership.write([block["text"]])

    def answer(self, reply: Any, request: int) -> None:
        """The reply to a request: note whose items it holds."""
        owners, named = self._ownership.use(_written(reply))
        if not owners and not named:
            return
        lines = Counter(owners)
        identifiers: dict[int, set[str]] = defaultdict(set)
        for owner, identifier in named:
            identifiers[owner].add(identifier)
        for owner in lines.keys() | identifiers.keys():
            use = Use(request, lines[owner], frozenset(identifiers.get(owner, ())))
            self.fates[self._outputs[owner]].uses.append(use)

    def _bring(self, tool_use_id: str, texts: list[str]) -> None:
        self.fates.setdefault(tool_use_id, _Fate())
        self._ownership.bring(len(self._outputs), texts)
        self._outputs.append(tool_use_id)


def look_back(steps: Iterable[Step]) -> Hindsight:
    """The hindsight of a session, from its steps in order; time and memory linear in their texts."""
    reading = _Reading()
    reply = b""
    for step in steps:
        if step.opens:
            reading.forget()
        for message in step.messages:
            if message != reply or step.opens:  # a reply was read when it was given
                reading.take_in(json.loads(message))
        reading.answer(json.loads(step.reply), step.index)
        reply = step.reply
    return Hindsight(reading.fates)


def _written(message: Any) -> list[str]:
    """What a reply wrote: its text and the strings in the arguments of its calls."""
    texts: list[str] = []
    for block in message["content"]:
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "tool_use":
            texts += strings(block.get("input"))
    return texts


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if block.get("type") == "text"]
