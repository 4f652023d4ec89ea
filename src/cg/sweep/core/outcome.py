"""What a driver hands out: a body to send, and what was done to it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from cg.errors import CgError
from cg.sweep.core.idle_ask import Settled
from cg.sweep.core.policy import RequestPlan
from cg.sweep.judging.adjudication import Asked
from cg.sweep.ledger import TurnReport
from cg.sweep.values import Branch, Identity


@dataclass(frozen=True, slots=True)
class Swept:
    """What to send, and what was done to it."""

    body: bytes
    report: TurnReport
    carries: tuple[Identity, ...] = ()  # the removals in the body
    declares: bool = False  # the body declares our tool
    branch: Branch | None = None  # the line of history as it now stands; None: not to be continued
    asked: Asked | None = None  # the adjudication that was made in this turn
    fault: Exception | None = field(default=None, compare=False)  # ours, when the report's reason is one

    @property
    def written_s(self) -> int | None:
        """The lifetime that the marks were given here; None where they are the client's own."""
        lifetime = self.report.lifetime
        if lifetime is None or lifetime["written_s"] == lifetime["asked_s"]:
            return None
        return int(lifetime["written_s"])

    @classmethod
    def of(cls, turn: RequestPlan, fault: Exception | None = None) -> "Swept":
        return cls(turn.body, turn.report, turn.carries, turn.declares, turn.branch, turn.changes.asked, fault)


class Abandoned(CgError):
    """Whoever wanted this turn has sent something else in the meantime; nothing more of it is written."""


Gap = Callable[[str], Settled | None]  # how the gap before a branch's request was used, for its report


def always() -> bool:
    """A turn that is wanted however long it takes."""
    return True


def ignored(swept: Swept) -> None:
    """Nobody waits for the turn before it is remembered."""
