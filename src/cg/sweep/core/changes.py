"""What a turn leaves behind."""

from dataclasses import dataclass

from cg.sweep.judging.adjudication import Asked
from cg.sweep.values import Branch, Ending, Identity, Pending


@dataclass(frozen=True, slots=True)
class Changes:
    """What a turn leaves behind, written once it is decided; nothing here is needed for a marker to resolve."""

    branch: Branch | None = None
    sent: bytes | None = None  # the body as sent, for the branch's next ask
    pend: tuple[Pending, ...] = ()
    unpend: tuple[Identity, ...] = ()
    ended: tuple[tuple[Identity, Ending], ...] = ()
    expanded: tuple[str, ...] = ()
    paid_misses: int = 0
    asked: Asked | None = None  # to be booked, with its legs
