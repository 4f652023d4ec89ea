"""Drive the core: one synchronous driver, one asynchronous, over the same steps."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from cg.sweep import recovery
from cg.sweep.asker import Asker
from cg.sweep.asking import Asked
from cg.sweep.config import Config
from cg.sweep.idle import Settled, settle
from cg.sweep.ledger import AskRow, Reason, TurnReport, ask_row, legs_usd
from cg.sweep.policy import Core, Turn, untouched
from cg.sweep.prices import PriceTable
from cg.sweep.store import Store, StoreError
from cg.sweep.transcript import Transcript, Unreadable, read
from cg.sweep.values import Branch, Ending, Identity, Removal, Thread, Usage
from cg.sweep.wants import Answer, Ask, Changes, Declare, Failure, Fetch, Freeze, Put, Recall, Steps, Want

log = logging.getLogger("cg.sweep")
T = TypeVar("T")
REMEMBERED_THREADS = 256  # last known states, for a store that stops answering in mid-session
NOBODY = Failure("no asker", asker=False)


@dataclass(frozen=True, slots=True)
class Swept:
    """What to send, and what was done to it."""

    body: bytes
    report: TurnReport


class AsyncAsker(Protocol):
    """An asker for an event loop."""

    def ask(self, body: bytes, timeout_s: float) -> Awaitable[Answer | Failure]:
        """The reply's text with its usage, or why there is none."""
        ...


class Sweep:
    """The sweep over one store. Safe to share between threads: all state is the store's, but for a bounded memory of
    last known states that only serves when the store fails."""

    def __init__(self, config: Config, store: Store, *, prices: PriceTable | None = None) -> None:
        self._store = store
        self.core = Core(config, prices if prices is not None else PriceTable.default())
        self._known: OrderedDict[str, Thread] = OrderedDict()

    def process(
        self, body: bytes, thread: str, now: float, *, asker: Asker | None = None, settled: Settled | None = None
    ) -> Swept:
        """The body to send in place of `body`. Never raises for content: on a fault of ours the last frozen form
        leaves if it is known, else the client's bytes. `settled` is how the gap before it was used, for the report."""
        try:
            transcript = read(body)
        except Unreadable:
            return self._counted(thread, Turn(body, TurnReport.of(Reason.UNREADABLE)))
        try:
            state = self.state(thread)
            steps = self.core.turn(transcript, state, now, sent=self._sent(thread, state, transcript, now))
            return self._finish(thread, self._drive(steps, thread, now, asker), now, settled)
        except Exception as error:
            return self._fail_open(transcript, thread, error)

    async def process_async(
        self, body: bytes, thread: str, now: float, *, asker: AsyncAsker | None = None, settled: Settled | None = None
    ) -> Swept:
        """As `process`; the store works in threads, the asker on the event loop."""
        try:
            transcript = await asyncio.to_thread(read, body)
        except Unreadable:
            return await asyncio.to_thread(self._counted, thread, Turn(body, TurnReport.of(Reason.UNREADABLE)))
        try:
            state = await asyncio.to_thread(self.state, thread)
            sent = await asyncio.to_thread(self._sent, thread, state, transcript, now)
            turn = await self._drive_async(self.core.turn(transcript, state, now, sent=sent), thread, now, asker)
            return await asyncio.to_thread(self._finish, thread, turn, now, settled)
        except Exception as error:
            return await asyncio.to_thread(self._fail_open, transcript, thread, error)

    def settle(self, thread: str, branch: Branch, now: float, *, asker: Asker | None = None) -> Settled:
        """Make the idle ask of a branch, as of `now`: its verdicts wait for a request at which applying them pays."""
        sent = self._store.last_body(thread, branch.branch)
        steps = settle(self.core, read(sent) if sent else None, self.state(thread), branch, now)
        settled = self._drive(steps, thread, now, asker)
        self._commit(thread, settled.changes, now)
        return settled

    def expand(self, thread: str, key: str, now: float) -> recovery.Expansion:
        """The original that a key of this thread stands for; it stays whole from then on."""
        state = self.state(thread)
        expansion = self._drive(recovery.expand(recovery.plain_key(key), None, state), thread, now, None)
        if expansion.sha256:
            self._commit(thread, Changes(expanded=(expansion.sha256,)), now)
        return expansion

    def revoke(self, thread: str, identities: tuple[Identity, ...], now: float) -> None:
        """End removals for good: the provider refused a body that carried them and took the original."""
        self._commit(thread, Changes(ended=tuple((i, Ending.REVOKED) for i in identities)), now)

    def observe(self, thread: str, usage: Usage, sent_bytes: int) -> None:
        """Learn from a reply's usage: bytes per token, and whether the provider caches at all."""
        self._store.learn(thread, usage=usage, sent_bytes=sent_bytes)

    def state(self, thread: str) -> Thread:
        """What is remembered of a thread."""
        state = self._store.load(thread)
        self._known[thread] = state
        self._known.move_to_end(thread)
        while len(self._known) > REMEMBERED_THREADS:
            self._known.popitem(last=False)
        return state

    def _sent(self, thread: str, state: Thread, transcript: Transcript, now: float) -> bytes | None:
        branch = self.core.asks_at_request(transcript, state, now)
        return self._store.last_body(thread, branch.branch) if branch else None

    def _drive(self, steps: Steps[T], thread: str, now: float, asker: Asker | None) -> T:
        told: Any = None
        while True:
            try:
                want = steps.send(told)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
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
                if thread in self._known:
                    self._known[thread] = replace(self._known[thread], declaration=declaration)
                return declaration
            case Fetch():
                return self._store.fetch(thread, want.key)
            case Recall():
                return tuple(self._store.payloads(thread))
            case _:
                raise TypeError(f"not a want of the store: {type(want).__name__}")

    def _freeze(self, thread: str, removals: tuple[Removal, ...]) -> tuple[Removal, ...]:
        """Freeze, and know it: should the store fail from now on, these have to be replayed without it."""
        standing = self._store.freeze(thread, removals)
        known = self._known.get(thread)
        if known is not None:
            frozen = {**known.removals, **{removal.identity: removal for removal in standing}}
            self._known[thread] = replace(known, removals=frozen)
        return standing

    def _finish(self, thread: str, turn: Turn, now: float, settled: Settled | None) -> Swept:
        """Remember the turn; the body leaves even if that fails, since every marker in it resolves already."""
        report = self._after(turn.report, settled) if settled else turn.report
        try:
            self._commit(thread, turn.changes, now)
        except StoreError as error:
            log.error("a turn was not remembered: %s", type(error).__name__)
        return self._counted(thread, replace(turn, report=report))

    def _after(self, report: TurnReport, settled: Settled) -> TurnReport:
        """A report that also holds what the idle ask before it did and cost."""
        asked = settled.asked
        cost = legs_usd(asked.legs, self.core.prices.price(asked.model)) if asked else 0.0
        return report.after(settled.reason, asked, settled.tally, ask_usd=cost)

    def _counted(self, thread: str, turn: Turn) -> Swept:
        """The turn as it leaves; every one is counted, so that the reasons of a session sum to its turns."""
        try:
            self._store.count(thread, turn.report)
        except Exception as error:
            log.error("a turn was not counted: %s", type(error).__name__)
        return Swept(turn.body, turn.report)

    def _commit(self, thread: str, changes: Changes, now: float) -> None:
        """Write what a turn leaves behind. No marker hangs on it: originals and removals are stored already."""
        store = self._store
        for identity, ending in changes.ended:
            store.end(thread, identity, ending, now)
            known = self._known.get(thread)
            if known is not None and identity in known.removals:
                self._known[thread] = replace(
                    known, removals={i: r for i, r in known.removals.items() if i != identity}
                )
        for sha256 in changes.expanded:
            store.expand_mark(thread, sha256)
        if changes.pend:
            store.pend(thread, changes.pend)
        if changes.unpend:
            store.unpend(thread, changes.unpend)
        for _ in range(changes.paid_misses):
            store.learn(thread, paid_miss=True)
        if changes.asked is not None and changes.asked.legs:
            store.book(self._row(thread, changes.asked, now))
        if changes.branch is not None:
            store.touch(thread, changes.branch)
            if changes.sent is not None:
                store.keep_body(thread, changes.branch.branch, changes.sent)

    def _row(self, thread: str, asked: Asked, now: float) -> AskRow:
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
            turn = self.core.frozen_form(transcript, known) if known else untouched(transcript, Reason.FAULT)
        except Exception as again:
            log.error("fault in replaying: %s", type(again).__name__)
            turn = untouched(transcript, Reason.FAULT)
        if isinstance(error, StoreError):  # a store that has just kept the request waiting is not asked once more
            return Swept(turn.body, turn.report)
        return self._counted(thread, turn)
