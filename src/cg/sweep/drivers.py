"""The driver: one request in, the body to send in its place out."""

import logging
from collections.abc import Callable
from dataclasses import replace

from cg.sweep.body.transcript import Transcript, Unreadable
from cg.sweep.core.idle_ask import Settled
from cg.sweep.core.outcome import Abandoned, Gap, Swept, always, ignored
from cg.sweep.core.policy import RequestPlan, untouched
from cg.sweep.driver.between_requests import BetweenRequests
from cg.sweep.driver.effect_runner import REFUSED
from cg.sweep.driver.inheritance import Inheritance
from cg.sweep.effects import Asker
from cg.sweep.ledger import Reason, TurnReport, legs_usd
from cg.sweep.planning.gaps import NOBODY, Client
from cg.sweep.store import StoreError
from cg.sweep.values import Thread, moment

log = logging.getLogger("cg.sweep")


class Sweep(BetweenRequests, Inheritance):
    """The sweep over one store, for the requests of all threads. Safe to share between threads."""

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
        client: Client = NOBODY,
        session: str | None = None,
    ) -> Swept:
        """The body to send in place of `body`, which may have been read already. Never raises for content: on a fault
        of ours the last frozen form leaves if it is known, else the client's bytes. `settled` is how the gap before it
        was used, for the report. Once `is_wanted` says no, nothing new is decided or remembered, and the turn counts
        as a fault. `leave` is told the turn as soon as every marker in its body resolves, before it is remembered; what
        fails after that is in the returned `fault`. `session` names the conversation whoever sends it: a body that goes
        on from what another thread of it has sent takes over what was decided for its own outputs. Raises ValueError for a `now` that is no moment, as all calls do."""
        moment(now)
        try:
            transcript = self.read(body) if isinstance(body, bytes) else body
        except Unreadable:
            assert isinstance(body, bytes)
            return self.passed(body, thread, Reason.UNREADABLE)
        try:
            state = self.state(thread)
            if session is not None:
                state = self.inherited(transcript, thread, session, state, now)
            if REFUSED in state.expanded:
                return self.passed(transcript.body, thread, Reason.BYPASSED)
            sent, switch = self._sent(thread, state, transcript, now), self._store.switch()
            steps = self.core.turn(transcript, state, now, sent=sent, switch=switch, client=client)
            turn = self._drive(steps, thread, now, asker, is_wanted)
            swept = self._finish(thread, turn, now, settled, is_wanted, leave)
            self.learn(client, swept.report.gaps, swept.report.events, now)
        except Exception as error:
            return self._fail_open(transcript, thread, error)
        if session is not None:
            self.list_thread(thread, session)
        return swept

    def passed(self, body: bytes, thread: str, reason: Reason) -> Swept:
        """A body as it came, counted as a turn that ended for this reason."""
        return self._counted(thread, RequestPlan(body, TurnReport.of(reason)))

    def frozen(self, transcript: Transcript, thread: str) -> Swept:
        """Only what was decided before, from memory, and answers that stand in the body: reads no store, writes none,
        counts nothing."""
        return Swept.of(self._frozen(transcript, thread))

    def _frozen(self, transcript: Transcript, thread: str) -> RequestPlan:
        known = self._known.get(thread)
        if known is None or REFUSED in known.expanded:
            return untouched(transcript, Reason.FAULT)
        turn = self.core.frozen_form(transcript, known)
        if turn.changes.expanded:
            self._mark_later(thread, turn.changes.expanded)
        return turn

    def counted(self, transcript: Transcript, thread: str, now: float) -> Swept:
        """What would be sent now, for a body that is only to be measured: decides, writes and counts nothing."""
        state = self.state(thread)
        refused = REFUSED in state.expanded
        return Swept.of(
            untouched(transcript, Reason.BYPASSED) if refused else self.core.counted_form(transcript, state, now)
        )

    def _sent(self, thread: str, state: Thread, transcript: Transcript, now: float) -> bytes | None:
        branch = self.core.asks_at_request(transcript, state, now)
        return self._store.last_body(thread, branch.branch) if branch else None

    def _finish(
        self,
        thread: str,
        turn: RequestPlan,
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

    def _keep_again(self, thread: str, turn: RequestPlan) -> None:
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

    def _counted(self, thread: str, turn: RequestPlan, fault: Exception | None = None) -> Swept:
        """The turn as it leaves; every one is counted, so that the reasons of a session sum to its turns."""
        try:
            self._store.count(thread, turn.report)
        except Exception as error:
            log.error("a turn was not counted: %s", type(error).__name__)
        return Swept.of(turn, fault)

    def _fail_open(self, transcript: Transcript, thread: str, error: Exception) -> Swept:
        """The last frozen form if it is known, else the client's bytes; the fault is logged without any content."""
        log.error("fault in the sweep: %s", type(error).__name__)
        try:
            turn = self._frozen(transcript, thread)
        except Exception as again:
            log.error("fault in replaying: %s", type(again).__name__)
            turn = untouched(transcript, Reason.FAULT)
        if isinstance(error, StoreError):  # a store that has just kept the request waiting is not asked once more
            return Swept.of(turn, error)
        return self._counted(thread, turn, error)
