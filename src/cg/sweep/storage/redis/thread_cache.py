"""What this process has read of threads on a server, good for as long as the server's versions are the same."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.storage.redis.records import (
    as_branch,
    as_declaration,
    as_ended,
    as_identity,
    as_pending,
    as_removals,
    as_usages,
)
from cg.sweep.values import Branch, Ending, Identity, Pending, Removal, Thread

REMEMBERED_THREADS = 256  # read anew beyond that; a thread's branches and decisions take some 100 KB at most


@dataclass(frozen=True, slots=True)
class Known:
    """One thread as it was last read, with the versions that it had."""

    decided: bytes = b""  # version of the decisions
    placed: bytes = b""  # version of the branches
    branches: dict[str, Branch] = field(default_factory=dict)
    removals: dict[Identity, Removal] = field(default_factory=dict)
    ended: dict[Identity, Ending] = field(default_factory=dict)
    pending: dict[Identity, Pending] = field(default_factory=dict)
    expanded: frozenset[str] = frozenset()
    missing: frozenset[Identity] = frozenset()
    learnt: tuple[bytes, bytes] = (b"", b"")  # ratio and usages, as they lie there


class KnownThreads:
    """A bounded memory of threads. Safe between threads of this process."""

    def __init__(self) -> None:
        self._known: BoundedCache[str, Known] = BoundedCache(REMEMBERED_THREADS)

    def of(self, thread: str) -> Known:
        """What is known of a thread; an empty Known, whose versions no server has, for one that is not."""
        return self._known.get(thread) or Known()

    def read(self, thread: str, reply: Sequence[Any], before: Known) -> Thread:
        """The thread that a server has told of, to one who knew `before` of it; it is known from now on."""
        if len(reply) < 4:
            self.forget(thread)
            return Thread()
        _, (decided, placed, declaration, ratio, usages, misses), branches, decisions = reply
        known = replace(before, decided=decided, placed=placed, learnt=(ratio or b"", usages or b""))
        if branches is not None:
            read = (as_branch(name, value) for name, value in zip(branches[::2], branches[1::2], strict=True))
            known = replace(known, branches={branch.branch: branch for branch in read})
        if decisions is not None:
            removals, ended, pending, expanded, missing = decisions
            known = replace(
                known,
                removals=as_removals(removals),
                ended=as_ended(ended),
                pending=as_pending(pending),
                expanded=frozenset(sha256.decode("ascii") for sha256 in expanded),
                missing=frozenset(as_identity(name) for name in missing),
            )
        self._known.put(thread, known)
        return Thread(
            branches=tuple(sorted(known.branches.values(), key=lambda b: (b.clock, b.branch))),
            removals=known.removals,
            ended=known.ended,
            pending=known.pending,
            expanded=known.expanded,
            declaration=as_declaration(declaration),
            bytes_per_token=float(ratio) if ratio else None,
            usages=as_usages(usages),
            paid_misses=int(misses or 0),
            missing=known.missing,
        )

    def placed(self, thread: str, branch: Branch, *, before: bytes, version: str, gone: Sequence[str]) -> None:
        """Take in a branch that was just written under a new version, if nobody else wrote one since `before`."""

        def take_in(known: Known) -> Known:
            if known.placed != before:
                return known
            branches = {**known.branches, branch.branch: branch}
            kept = {name: value for name, value in branches.items() if name not in gone}
            return replace(known, placed=version.encode(), branches=kept)

        self._known.change(thread, take_in)

    def forget(self, thread: str | None) -> None:
        """Drop a thread, or all."""
        if thread is None:
            self._known.clear()
        else:
            self._known.pop(thread)
