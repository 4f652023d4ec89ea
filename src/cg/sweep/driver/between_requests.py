"""What happens between two requests: the idle ask, pings, expansions, revocations, and what replies teach."""

import asyncio
import logging
from collections import Counter
from collections.abc import Container
from dataclasses import replace

from cg.sweep.accounting.ping_economics import billed, is_covered, pinged
from cg.sweep.accounting.tally import Tally
from cg.sweep.body.transcript import Transcript
from cg.sweep.core.changes import Changes
from cg.sweep.core.expansion import Expansion, ExpansionOutcome, expand, in_body, plain_key
from cg.sweep.core.idle_ask import Settled, is_ping_fair, settle
from cg.sweep.core.request_state import ratio
from cg.sweep.counters import Decline, Event
from cg.sweep.driver.effect_runner import REFUSED, EffectRunner
from cg.sweep.effects import Asker, AsyncAsker
from cg.sweep.ledger import Reason
from cg.sweep.planning.gaps import NOBODY, Client
from cg.sweep.planning.lifetime import REFUSED_LIFETIME
from cg.sweep.store import stands
from cg.sweep.values import Branch, Ending, Identity, Switch, Thread, Usage, moment

log = logging.getLogger("cg.sweep")


class BetweenRequests(EffectRunner):
    """What is done for a thread when none of its requests is being answered."""

    def settle(self, thread: str, branch: Branch, now: float, *, asker: Asker | None = None) -> Settled:
        """Make the idle ask of a branch, as of `now`: its verdicts wait for a request at which applying them pays."""
        moment(now)
        if self.is_paused():
            return Settled(Reason.PAUSED)
        booked = tuple(self._store.rows(thread))
        steps = settle(self.core, self.read_sent(thread, branch), self.state(thread), branch, now, booked=booked)
        settled = self._drive(steps, thread, now, asker)
        self._commit(thread, settled.changes, now, seen=branch)
        return settled

    async def settle_async(self, thread: str, branch: Branch, now: float, *, asker: AsyncAsker) -> Settled:
        """As `settle`, but nothing is written: `remember` does that, when the caller may write."""
        moment(now)
        if await asyncio.to_thread(self.is_paused):
            return Settled(Reason.PAUSED)
        transcript = await asyncio.to_thread(self.read_sent, thread, branch)
        state = await asyncio.to_thread(self.state, thread)
        booked = await asyncio.to_thread(lambda: tuple(self._store.rows(thread)))
        steps = settle(self.core, transcript, state, branch, now, booked=booked)
        return await self._drive_async(
            steps, thread, now, asker.ask
        )  # settling wants nothing of the store but its reading

    def remember(self, thread: str, branch: Branch, settled: Settled, now: float) -> None:
        """Write what came of an idle ask of `branch`. Should a request have come since, the branch stays as that left
        it; the verdicts hold all the same, since whatever is newer than they are is looked at when they are applied."""
        self._commit(thread, settled.changes, moment(now), seen=branch)
        self.note(thread, settled.tally)

    def is_paused(self) -> bool:
        """Whether a person has switched removal off, and with it every call of ours."""
        return self._store.switch() is not Switch.ON

    def stands(self, thread: str, branch: Branch) -> bool:
        """No request, ask or ping has touched the branch since it was seen like this, here or in another process."""
        return stands(self.state(thread), branch)

    def claim(self, thread: str, name: str, until: float, branch: Branch) -> bool:
        """True for the first of several processes that want to do the same thing once for a branch as it stands."""
        return self._store.claim(thread, name, until, branch=branch)

    def is_ping_fair(self, thread: str, branch: Branch) -> bool:
        """Whether a ping of a branch that is about to expire should be made: it pays by what all waits have shown."""
        if self.is_paused():
            return False
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

    def expand(
        self,
        thread: str,
        key: str,
        now: float,
        *,
        transcript: Transcript | None = None,
        carried: Container[Identity] = (),
    ) -> Expansion:
        """The original that a key of this thread stands for, from the body if one is given, else from the store; it
        stays whole from then on. What the body `carried` when it left is answered whatever the store knows; of a store
        that fails the last known state counts, and one that cannot write does not keep the answer back. Raises
        StoreError where the original would have to come from a store that fails."""
        moment(now)
        expansion = self.expand_in_body(key, transcript, carried) or self._looked_up(thread, key, now, transcript)
        known = self._known.get(thread)
        if expansion.sha256 and (known is None or expansion.sha256 not in known.expanded):
            try:
                self._commit(thread, Changes(expanded=(expansion.sha256,)), now)
            except Exception as error:
                log.error("an expansion was not remembered: %s", type(error).__name__)
                self._mark_later(thread, (expansion.sha256,))
        return expansion

    def expand_in_body(self, key: str, transcript: Transcript | None, carried: Container[Identity]) -> Expansion | None:
        """The original that stands in the body itself, for whoever can wait for no store; None if it does not."""
        return in_body(plain_key(key), transcript, carried)

    def _looked_up(self, thread: str, key: str, now: float, transcript: Transcript | None) -> Expansion:
        failed: Exception | None = None
        try:
            state = self.state(thread)
        except Exception as error:
            log.error("a state was not read: %s", type(error).__name__)
            state, failed = self._known.get(thread) or Thread(), error
        expansion = self._drive(expand(plain_key(key), transcript, state), thread, now, None)
        if failed is not None and expansion.outcome is ExpansionOutcome.UNKNOWN:
            raise failed  # of a thread that cannot be read nobody can say that it never had this id
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

    def refuse_lifetime(self, thread: str, branch: Branch, sent: bytes) -> None:
        """Write no lifetimes into a thread any more, in any process: the provider refused a body with other marks than
        its client's, and took the original, `sent`, which is what the branch has sent then."""
        self._store.expand_mark(thread, REFUSED_LIFETIME)
        asked_s = self.read(sent).ttl_s
        if self._store.touch(thread, replace(branch, ttl_s=asked_s), seen=branch):
            self._store.keep_body(thread, branch.branch, sent)
        self.note(thread, Tally(Counter({Event.LIFETIME_REFUSED: 1})))

    def observe(self, thread: str, usage: Usage, sent_bytes: int, client: Client = NOBODY) -> None:
        """Learn from a reply's usage: bytes per token, whether the provider caches at all, and what requests cost."""
        self._store.learn(thread, usage=usage, sent_bytes=sent_bytes)
        self.book(thread, usage, client)

    def book(self, thread: str, usage: Usage, client: Client) -> None:
        """Count what a request cost, for its thread and for whose it is."""
        cost = billed(usage)
        self.note(thread, cost)
        self.learn(client, {}, cost.events)
