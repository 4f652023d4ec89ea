"""Counts of one turn, in two families that are never mixed: work done, and candidates or asks turned away."""

from collections import Counter
from dataclasses import dataclass, field

from cg.sweep.counters import Decline, Event


@dataclass(slots=True)
class Tally:
    """A turn's events and declines; only the serial core writes one, so it needs no lock."""

    events: Counter[Event] = field(default_factory=Counter)
    declines: Counter[Decline] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)  # waits by length, and conversations
    listed: int = 0  # outputs that the last listing of candidates gave

    def event(self, name: Event, n: int = 1) -> None:
        if n:
            self.events[name] += n

    def decline(self, name: Decline, n: int = 1) -> None:
        if n:
            self.declines[name] += n

    def add(self, other: "Tally") -> None:
        self.events.update(other.events)
        self.declines.update(other.declines)
        self.gaps.update(other.gaps)
