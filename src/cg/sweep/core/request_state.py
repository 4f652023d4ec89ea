"""One request while the core's rules are applied to it."""

from dataclasses import dataclass, field

from cg.sweep.accounting.tally import Tally
from cg.sweep.body.transcript import ToolText, Transcript
from cg.sweep.economics import START_BYTES_PER_TOKEN
from cg.sweep.history.branches import Place
from cg.sweep.judging.adjudication import Asked
from cg.sweep.planning.lifetime import Choice
from cg.sweep.values import Ending, Identity, Phase, Removal, Switch, Thread


@dataclass(slots=True)
class RequestState:
    """What is known of the request, and what was decided so far."""

    transcript: Transcript
    thread: Thread
    place: Place
    phase: Phase
    now: float
    frozen: dict[ToolText, Removal]  # replayed
    fresh: dict[ToolText, Removal] = field(default_factory=dict)  # new in this turn
    tally: Tally = field(default_factory=Tally)
    ended: list[tuple[Identity, Ending]] = field(default_factory=list)
    switch: Switch = Switch.ON
    expanded: list[str] = field(default_factory=list)
    unpend: list[Identity] = field(default_factory=list)
    asked: Asked | None = None
    kept_s: int | None = None  # the lifetime of the marks while the prefix holds
    choice: Choice | None = None  # the lifetime that was settled; None where lifetimes are the client's

    @property
    def written_s(self) -> int | None:
        """The lifetime that the marks get in the body that leaves."""
        return self.transcript.ttl_s if self.choice is None else self.choice.ttl_s


def ratio(thread: Thread) -> float:
    """Bytes a token: learnt from the thread's usage, else the measured start value."""
    return thread.bytes_per_token or START_BYTES_PER_TOKEN
