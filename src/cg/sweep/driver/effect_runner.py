"""Carries out what the core wants, against one store, and writes what its decisions leave behind."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from cg.shape import content_key
from cg.sweep.accounting.tally import Tally
from cg.sweep.body.transcript import Transcript, Unreadable
from cg.sweep.body.transcript_cache import Readings
from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.config import Config
from cg.sweep.core.changes import Changes
from cg.sweep.core.outcome import Abandoned, always
from cg.sweep.core.policy import Core
from cg.sweep.counters import Event
from cg.sweep.effects import Answer, Ask, Asker, Declare, Effect, Failure, Fetch, Freeze, Put, Recall, Steps
from cg.sweep.judging.adjudication import Asked
from cg.sweep.ledger import AskRow, ask_row
from cg.sweep.planning.gaps import SUMS, Client, Gaps, Habits, Stake
from cg.sweep.prices import PriceTable
from cg.sweep.store import Store, StoreError
from cg.sweep.values import Branch, Identity, Removal, Thread

log = logging.getLogger("cg.sweep")
T = TypeVar("T")
AskCall = Callable[[bytes, float], Awaitable[Answer | Failure]]  # (body, seconds) -> the reply
REMEMBERED_THREADS = 256  # last known states, for a store that stops answering in mid-session
# Stands among the digests of what was expanded, which every store keeps for good: no content has this one.
REFUSED = content_key("the provider refuses the declaration of cg_expand")
NOBODY = Failure("no asker", asker=False)


class EffectRunner:
    """The core over one store. Safe to share between threads: all state is the store's, but for a bounded memory of
    last known states that only serves when the store fails."""

    def __init__(self, config: Config, store: Store, *, prices: PriceTable | None = None) -> None:
        self._store = store
        self.core = Core(config, prices if prices is not None else PriceTable.default())
        self._known: BoundedCache[str, Thread] = BoundedCache(REMEMBERED_THREADS)
        # SHA-256 of what was expanded while the store could not be told: it is, with the thread's next turn.
        self._unmarked: BoundedCache[str, frozenset[str]] = BoundedCache(REMEMBERED_THREADS)
        self._readings = Readings()

    def read(self, body: bytes) -> Transcript:
        """The transcript of a body, for `process`; what it shares with an earlier one is not read again. Raises
        Unreadable."""
        return self._readings.read(body)

    def read_sent(self, thread: str, branch: Branch) -> Transcript | None:
        """The transcript of what a branch last sent; None if it is not kept, or was damaged where it lay."""
        sent = self.last_sent(thread, branch)
        try:
            return self.read(sent) if sent else None
        except Unreadable:
            return None

    def last_sent(self, thread: str, branch: Branch) -> bytes | None:
        """The body that a branch last sent, if it is still kept."""
        return self._store.last_body(thread, branch.branch)

    def state(self, thread: str) -> Thread:
        """What is remembered of a thread."""
        state = self._store.load(thread)
        if unmarked := self._unmarked.get(thread):
            state = replace(state, expanded=state.expanded | unmarked)
        self._known.put(thread, state)
        return state

    def _mark_later(self, thread: str, expanded: Iterable[str]) -> None:
        """Texts that stay whole from now on, which the store is told of once it can be."""
        more = frozenset(expanded)
        self._unmarked.put(thread, more | (self._unmarked.get(thread) or frozenset()))
        self._amend(thread, lambda known: replace(known, expanded=known.expanded | more))

    def _mark_owed(self, thread: str) -> None:
        """Tell the store what it could not be told before."""
        owed = self._unmarked.take(thread) or frozenset()
        try:
            for sha256 in owed:
                self._store.expand_mark(thread, sha256)
        except StoreError:
            self._mark_later(thread, owed)
            raise

    def note(self, thread: str, tally: Tally) -> None:
        """Count what happened between two turns."""
        try:
            self._store.count(thread, tally)
        except StoreError as error:
            log.error("events were not counted: %s", type(error).__name__)

    def totals(self) -> Mapping[str, Mapping[str, float]]:
        """What all threads together have counted, by family and name."""
        return self._store.totals()

    def habits(self, thread: str, user: str | None) -> Habits:
        """What is learnt of the waits of a thread and of its user, and what choices by it have cost that user."""
        own = Gaps.of(self._store.totals(thread)["gaps"])
        if user is None:
            return Habits(own, own)
        known = self._store.totals(user)["gaps"]
        return Habits(Gaps.of(known), own, Stake.of(known))

    def learn(
        self, client: Client, gaps: Mapping[str, int], units: Mapping[Event, int], now: float | None = None
    ) -> None:
        """Add waits, and the sums of a plan, to what is known of a user, who is remembered as a thread is: for so long
        after the last wait, which came `now`."""
        counts = Counter(gaps)
        if self.core.planner.learns:
            counts.update({name: n for name, n in units.items() if name in SUMS})
        if client.user is None or not counts:
            return
        try:
            self._store.count(client.user, Tally(gaps=counts))
            if gaps and now is not None:
                self._store.put(client.user, (), now)
        except StoreError as error:
            log.error("waits were not counted: %s", type(error).__name__)

    def row(self, thread: str, asked: Asked, now: float) -> AskRow:
        """The ledger's row of an adjudication."""
        return ask_row(
            thread,
            now,
            asked.model,
            asked.legs,
            self.core.prices.price(asked.model),
            offered=asked.offered,
            judged_spent=asked.judged_spent,
            dropped=len(asked.drops),
            readable=asked.reply_read,
        )

    def _amend(self, thread: str, change: Callable[[Thread], Thread]) -> None:
        """Know at once what was just written: should the store fail from now on, it has to be replayed without it."""
        self._known.change(thread, change)

    def _drive(
        self, steps: Steps[T], thread: str, now: float, asker: Asker | None, is_wanted: Callable[[], bool] = always
    ) -> T:
        """Run the core's steps to their end, here and now."""

        async def ask(body: bytes, timeout_s: float) -> Answer | Failure:
            return asker.ask(body, timeout_s) if asker else NOBODY

        try:
            self._drive_async(steps, thread, now, ask, is_wanted).send(None)
        except StopIteration as end:  # nothing in it waits
            return end.value  # type: ignore[no-any-return]
        raise AssertionError("an asker that answers at once was waited for")

    async def _drive_async(
        self, steps: Steps[T], thread: str, now: float, ask: AskCall, is_wanted: Callable[[], bool] = always
    ) -> T:
        """Run the core's steps to their end; only asks are waited for, what they want of the store is done in place."""
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if not is_wanted():
                raise Abandoned(type(effect).__name__)
            if isinstance(effect, Ask):
                answer = await ask(effect.body, effect.timeout_s)
            else:
                answer = self._perform(effect, thread, now)

    def _perform(self, effect: Effect, thread: str, now: float) -> object:
        match effect:
            case Put():
                return self._store.put(thread, effect.payloads, now)
            case Freeze():
                return self._freeze(thread, effect.removals)
            case Declare():
                declaration = self._store.declare(thread, effect.declaration)
                self._amend(thread, lambda known: replace(known, declaration=declaration))
                return declaration
            case Fetch():
                return self._store.fetch(thread, effect.key)
            case Recall():
                return self.habits(thread, effect.user)
            case _:
                raise TypeError(f"not an effect of the store: {type(effect).__name__}")

    def _freeze(self, thread: str, removals: tuple[Removal, ...]) -> tuple[Removal, ...]:
        standing = self._store.freeze(thread, removals)
        new = {removal.identity: removal for removal in standing}
        self._amend(thread, lambda known: replace(known, removals={**known.removals, **new}))
        return standing

    def _commit(self, thread: str, changes: Changes, now: float, *, seen: Branch | None = None) -> None:
        """Write what an idle ask, or an expansion, leaves behind. With `seen`, a branch that a request has moved since
        stays as that left it."""
        self._decide(thread, changes, now)
        branch, sent = changes.branch, changes.sent
        if branch is not None and self._store.touch(thread, branch, seen=seen) and sent is not None:
            self._store.keep_body(thread, branch.branch, sent)

    def _decide(self, thread: str, changes: Changes, now: float) -> None:
        """Write what changes in decisions. No marker hangs on it: originals and removals are stored already."""
        store = self._store
        self._mark_owed(thread)
        for identity, ending in changes.ended:
            store.end(thread, identity, ending, now)
            self._amend(thread, partial(_without, identity))
        for sha256 in changes.expanded:
            store.expand_mark(thread, sha256)
        if changes.pend:
            store.pend(thread, changes.pend)
        if changes.unpend:
            store.unpend(thread, changes.unpend)
        for _ in range(changes.paid_misses):
            store.learn(thread, paid_miss=True)
        if changes.asked is not None and changes.asked.legs:
            store.book(self.row(thread, changes.asked, now))


def _without(identity: Identity, known: Thread) -> Thread:
    """What is known, less a removal that has ended."""
    return replace(known, removals={i: r for i, r in known.removals.items() if i != identity})
