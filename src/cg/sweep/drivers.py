"""Drive the core: one synchronous driver, one asynchronous, over the same steps."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from cg.shape import content_key
from cg.sweep.accounting.ping_economics import billed, is_covered, pinged
from cg.sweep.accounting.tally import Tally
from cg.sweep.body.transcript import Transcript, Unreadable
from cg.sweep.body.transcript_cache import Readings
from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.config import Config
from cg.sweep.core import expansion as recovery
from cg.sweep.core.changes import Changes
from cg.sweep.core.idle_ask import Settled, is_ping_fair, settle
from cg.sweep.core.outcome import Abandoned, Gap, Swept, always, ignored
from cg.sweep.core.policy import Core, Turn, ratio, untouched
from cg.sweep.counters import Decline, Event
from cg.sweep.effects import Ask, Asker, AsyncAsker, Declare, Failure, Fetch, Freeze, Put, Steps, Want
from cg.sweep.judging.adjudication import Asked
from cg.sweep.ledger import AskRow, Reason, TurnReport, ask_row, legs_usd
from cg.sweep.prices import PriceTable
from cg.sweep.store import Store, StoreError, stands
from cg.sweep.values import Branch, Ending, Identity, Removal, Thread, Usage, moment

log = logging.getLogger("cg.sweep")
T = TypeVar("T")
REMEMBERED_THREADS = 256  # last known states, for a store that stops answering in mid-session
# Stands among the digests of what was expanded, which every store keeps for good: no content has this one.
REFUSED = content_key("the provider refuses the declaration of cg_expand")
NOBODY = Failure("no asker", asker=False)


class Sweep:
    """The sweep over one store. Safe to share between threads: all state is the store's, but for a bounded memory of
    last known states that only serves when the store fails."""

    def __init__(self, config: Config, store: Store, *, prices: PriceTable | None = None) -> None:
        self._store = store
        self.core = Core(config, prices if prices is not None else PriceTable.default())
        self._known: BoundedCache[str, Thread] = BoundedCache(REMEMBERED_THREADS)
        self._readings = Readings()

    def process(
        self,
        body: bytes | Transcript,
        thread: str,
        now: float,
        *,
        asker: Asker | None = None,
        settled: Settled | Gap | None = None,
        is_wanted: Callable[[], bool] = always,
        leave: Callable[[Swept], object] = ignored,
    ) -> Swept:
        """The body to send in place of `body`, which may have been read already. Never raises for content: on a fault
        of ours the last frozen form leaves if it is known, else the client's bytes. `settled` is how the gap before it
        was used, for the report. Once `is_wanted` says no, nothing new is decided or remembered, and the turn counts
        as a fault. `leave` is told the turn as soon as every marker in its body resolves, before it is remembered; what
        fails after that is in the returned `fault`. Raises ValueError for a `now` that is no moment, as all calls do."""
        moment(now)
        try:
            transcript = self.read(body) if isinstance(body, bytes) else body
        except Unreadable:
            assert isinstance(body, bytes)
            return self.passed(body, thread, Reason.UNREADABLE)
        try:
            state = self.state(thread)
            if REFUSED in state.expanded:
                return self.passed(transcript.body, thread, Reason.BYPASSED)
            steps = self.core.turn(transcript, state, now, sent=self._sent(thread, state, transcript, now))
            turn = self._drive(steps, thread, now, asker, is_wanted)
            return self._finish(thread, turn, now, settled, is_wanted, leave)
        except Exception as error:
            return self._fail_open(transcript, thread, error)

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

    def passed(self, body: bytes, thread: str, reason: Reason) -> Swept:
        """A body as it came, counted as a turn that ended for this reason."""
        return self._counted(thread, Turn(body, TurnReport.of(reason)))

    def frozen(self, transcript: Transcript, thread: str) -> Swept:
        """Only what was decided before, from memory: reads no store, writes none, counts nothing."""
        known = self._known.get(thread)
        return Swept.of(self._frozen(transcript, known))

    def _frozen(self, transcript: Transcript, known: Thread | None) -> Turn:
        if known is None or REFUSED in known.expanded:
            return untouched(transcript, Reason.FAULT)
        return self.core.frozen_form(transcript, known)

    def counted(self, transcript: Transcript, thread: str, now: float) -> Swept:
        """What would be sent now, for a body that is only to be measured: decides, writes and counts nothing."""
        state = self.state(thread)
        refused = REFUSED in state.expanded
        return Swept.of(
            untouched(transcript, Reason.BYPASSED) if refused else self.core.counted_form(transcript, state, now)
        )

    def settle(self, thread: str, branch: Branch, now: float, *, asker: Asker | None = None) -> Settled:
        """Make the idle ask of a branch, as of `now`: its verdicts wait for a request at which applying them pays."""
        moment(now)
        booked = tuple(self._store.rows(thread))
        steps = settle(self.core, self.read_sent(thread, branch), self.state(thread), branch, now, booked=booked)
        settled = self._drive(steps, thread, now, asker)
        self._commit(thread, settled.changes, now, seen=branch)
        return settled

    async def settle_async(self, thread: str, branch: Branch, now: float, *, asker: AsyncAsker) -> Settled:
        """As `settle`, but nothing is written: `remember` does that, when the caller may write."""
        moment(now)
        transcript = await asyncio.to_thread(self.read_sent, thread, branch)
        state = await asyncio.to_thread(self.state, thread)
        booked = await asyncio.to_thread(lambda: tuple(self._store.rows(thread)))
        steps = settle(self.core, transcript, state, branch, now, booked=booked)
        return await self._drive_async(steps, thread, now, asker)

    def remember(self, thread: str, branch: Branch, settled: Settled, now: float) -> None:
        """Write what came of an idle ask of `branch`. Should a request have come since, the branch stays as that left
        it; the verdicts hold all the same, since whatever is newer than they are is looked at when they are applied."""
        self._commit(thread, settled.changes, moment(now), seen=branch)
        self.note(thread, settled.tally)

    def stands(self, thread: str, branch: Branch) -> bool:
        """No request, ask or ping has touched the branch since it was seen like this, here or in another process."""
        return stands(self.state(thread), branch)

    def claim(self, thread: str, name: str, until: float, branch: Branch) -> bool:
        """True for the first of several processes that want to do the same thing once for a branch as it stands."""
        return self._store.claim(thread, name, until, branch=branch)

    def last_sent(self, thread: str, branch: Branch) -> bytes | None:
        """The body that a branch last sent, if it is still kept."""
        return self._store.last_body(thread, branch.branch)

    def is_ping_fair(self, thread: str, branch: Branch) -> bool:
        """Whether a ping of a branch that is about to expire should be made: it pays by what all waits have shown."""
        state, events = self.state(thread), self.totals()["events"]
        size = len(self.last_sent(thread, branch) or b"")
        # Most are refused by what the totals say alone, before the body is looked into.
        sent = self.read_sent(thread, branch) if is_covered(size / ratio(state), events) else None
        is_fair = sent is not None and is_ping_fair(self.core, sent, state, events)
        if not is_fair:
            self.note(thread, Tally(declines=Counter({Decline.PING_NOT_REPAID: 1})))
        return is_fair

    def renew(self, thread: str, branch: Branch, now: float, usage: Usage) -> Branch | None:
        """Book a ping; where it read the prefix, move its branch's clock. None if it did not, or if a request has
        touched the branch since."""
        renewed = replace(branch, clock=moment(now), asked_at=now)
        self.note(thread, pinged(usage))
        if not usage.read or not self._store.touch(thread, renewed, seen=branch):
            return None
        return renewed

    def expand(self, thread: str, key: str, now: float, *, transcript: Transcript | None = None) -> recovery.Expansion:
        """The original that a key of this thread stands for, from the body if one is given, else from the store; it
        stays whole from then on. A store that cannot write that down does not keep the answer back."""
        moment(now)
        state = self.state(thread)
        expansion = self._drive(recovery.expand(recovery.plain_key(key), transcript, state), thread, now, None)
        if expansion.sha256 and expansion.sha256 not in state.expanded:
            try:
                self._commit(thread, Changes(expanded=(expansion.sha256,)), now)
            except StoreError as error:
                log.error("an expansion was not remembered: %s", type(error).__name__)
        return expansion

    def revoke(
        self, thread: str, identities: tuple[Identity, ...], now: float, *, sent: tuple[Branch, bytes] | None = None
    ) -> None:
        """End removals for good: the provider refused a body that carried them and took the original, which is what
        the branch has sent then. With none in that body it was our tool that was refused: the thread is left alone from
        then on, by every process."""
        if not identities:
            self._store.expand_mark(thread, REFUSED)
        self._commit(thread, Changes(ended=tuple((i, Ending.REVOKED) for i in identities)), moment(now))
        if sent is not None:
            self._store.keep_body(thread, sent[0].branch, sent[1])
        self.note(thread, Tally(Counter({Event.REVOKED: len(identities)})))

    def note(self, thread: str, tally: Tally) -> None:
        """Count what happened between two turns."""
        try:
            self._store.count(thread, tally)
        except StoreError as error:
            log.error("events were not counted: %s", type(error).__name__)

    def totals(self) -> Mapping[str, Mapping[str, float]]:
        """What all threads together have counted, by family and name."""
        return self._store.totals()

    def observe(self, thread: str, usage: Usage, sent_bytes: int) -> None:
        """Learn from a reply's usage: bytes per token, whether the provider caches at all, and what requests cost."""
        self._store.learn(thread, usage=usage, sent_bytes=sent_bytes)
        self.note(thread, billed(usage))

    def state(self, thread: str) -> Thread:
        """What is remembered of a thread."""
        state = self._store.load(thread)
        self._known.put(thread, state)
        return state

    def _amend(self, thread: str, change: Callable[[Thread], Thread]) -> None:
        """Know at once what was just written: should the store fail from now on, it has to be replayed without it."""
        self._known.change(thread, change)

    def _sent(self, thread: str, state: Thread, transcript: Transcript, now: float) -> bytes | None:
        branch = self.core.asks_at_request(transcript, state, now)
        return self._store.last_body(thread, branch.branch) if branch else None

    def _drive(
        self, steps: Steps[T], thread: str, now: float, asker: Asker | None, is_wanted: Callable[[], bool] = always
    ) -> T:
        told: Any = None
        while True:
            try:
                want = steps.send(told)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if not is_wanted():
                raise Abandoned(type(want).__name__)
            if isinstance(want, Ask):
                told = asker.ask(want.body, want.timeout_s) if asker else NOBODY
            else:
                told = self._tell(want, thread, now)

    async def _drive_async(self, steps: Steps[T], thread: str, now: float, asker: AsyncAsker | None) -> T:
        told: Any = None
        while True:
            try:
                want = steps.send(told)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(want, Ask):
                told = await asker.ask(want.body, want.timeout_s) if asker else NOBODY
            else:
                told = await asyncio.to_thread(self._tell, want, thread, now)

    def _tell(self, want: Want, thread: str, now: float) -> object:
        match want:
            case Put():
                return self._store.put(thread, want.payloads, now)
            case Freeze():
                return self._freeze(thread, want.removals)
            case Declare():
                declaration = self._store.declare(thread, want.declaration)
                self._amend(thread, lambda known: replace(known, declaration=declaration))
                return declaration
            case Fetch():
                return self._store.fetch(thread, want.key)
            case _:
                raise TypeError(f"not a want of the store: {type(want).__name__}")

    def _freeze(self, thread: str, removals: tuple[Removal, ...]) -> tuple[Removal, ...]:
        standing = self._store.freeze(thread, removals)
        new = {removal.identity: removal for removal in standing}
        self._amend(thread, lambda known: replace(known, removals={**known.removals, **new}))
        return standing

    def _finish(
        self,
        thread: str,
        turn: Turn,
        now: float,
        settled: Settled | Gap | None,
        is_wanted: Callable[[], bool] = always,
        leave: Callable[[Swept], object] = ignored,
    ) -> Swept:
        """Remember the turn; the body leaves even if that fails, since every marker in it resolves already."""
        if not is_wanted():
            raise Abandoned("turn")
        if callable(settled):
            settled = settled(turn.branch.branch) if turn.branch else None
        if settled:
            turn = replace(turn, report=self._after(turn.report, settled))
        leave(Swept.of(turn))
        try:
            self._decide(thread, turn.changes, now)
        except StoreError as error:
            log.error("a turn was not remembered: %s", type(error).__name__)
            return self._counted(thread, turn)
        except Exception as error:
            if leave is ignored:
                raise
            log.error("a turn was not remembered: %s", type(error).__name__)
            return self._counted(thread, turn, error)  # it has left: no other form of it can
        try:
            self._store.turned(thread, turn.report, turn.changes.branch, turn.changes.sent)
            self._keep_again(thread, turn)
        except Exception as error:
            log.error("a turn was not remembered: %s", type(error).__name__)
        return Swept.of(turn)

    def _keep_again(self, thread: str, turn: Turn) -> None:
        """A retry may come to another process than the request did: then the body that the branch has sent is here too,
        and whoever is there when its ask falls due can make it."""
        branch = turn.branch if turn.changes.branch is None else None
        if branch is not None and self._store.last_body(thread, branch.branch) is None:
            self._store.keep_body(thread, branch.branch, turn.body)

    def _after(self, report: TurnReport, settled: Settled) -> TurnReport:
        """A report that also holds what the idle ask before it did and cost."""
        asked = settled.asked
        cost = legs_usd(asked.legs, self.core.prices.price(asked.model)) if asked else 0.0
        return report.after(settled.reason, asked, settled.tally, ask_usd=cost)

    def _counted(self, thread: str, turn: Turn, fault: Exception | None = None) -> Swept:
        """The turn as it leaves; every one is counted, so that the reasons of a session sum to its turns."""
        try:
            self._store.count(thread, turn.report)
        except Exception as error:
            log.error("a turn was not counted: %s", type(error).__name__)
        return Swept.of(turn, fault)

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

    def _fail_open(self, transcript: Transcript, thread: str, error: Exception) -> Swept:
        """The last frozen form if it is known, else the client's bytes; the fault is logged without any content."""
        log.error("fault in the sweep: %s", type(error).__name__)
        known = self._known.get(thread)
        try:
            turn = self._frozen(transcript, known)
        except Exception as again:
            log.error("fault in replaying: %s", type(again).__name__)
            turn = untouched(transcript, Reason.FAULT)
        if isinstance(error, StoreError):  # a store that has just kept the request waiting is not asked once more
            return Swept.of(turn, error)
        return self._counted(thread, turn, error)


def _without(identity: Identity, known: Thread) -> Thread:
    """What is known, less a removal that has ended."""
    return replace(known, removals={i: r for i, r in known.removals.items() if i != identity})
