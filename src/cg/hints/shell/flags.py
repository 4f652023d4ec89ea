"""What the command line of `cg-hints` can say, and what holds where it says nothing."""

from __future__ import annotations

from cg.hints.catalog import DEFAULT_ANALYZER, LAZY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from cg.hints.catalog import Analyzer, Merge


class Flags:
    """The checked flags of one run; a new one holds the defaults."""

    __slots__ = (
        "analyzer", "bound", "budget", "explain", "fields", "files", "first", "limit", "lines", "merge", "mix", "producer",
        "query", "table", "timeout", "verify",
    )  # fmt: skip

    def __init__(self) -> None:
        self.analyzer: Analyzer = DEFAULT_ANALYZER
        self.merge = "lazy"
        self.bound: float | None = None
        self.first: str | None = None
        self.mix: Merge = LAZY  # what the three say together
        self.producer: Literal["table"] | None = None  # who makes hints for a request that brings none
        self.limit: int | None = None  # candidates in an answer whose request does not say
        self.explain = False
        self.lines = False
        self.table = False
        self.query: str | None = None  # asks the files, instead of requests on standard input
        self.files: list[str] = []
        self.fields: str | None = None
        self.verify: str | None = None
        self.budget: int | None = None  # checks a request; None: as many as it has candidates
        self.timeout: float | None = None  # seconds a check may take; None: DEFAULT_TIMEOUT_S
