"""What the command line of `cg-hints` can say, and what holds where it says nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cg.hints.combine import First


class Flags:
    """The checked flags of one run; a new one holds the defaults."""

    __slots__ = ("budget", "first", "lines", "table", "timeout", "verify")

    def __init__(self) -> None:
        self.first: First = "hints"
        self.lines = False
        self.table = False
        self.verify: str | None = None
        self.budget: int | None = None  # checks a request; None: as many as it has candidates
        self.timeout: float | None = None  # seconds a check may take; None: DEFAULT_TIMEOUT_S
