"""What is done in the gap between two requests: one idle ask a branch while its prefix is still cached, or a ping.

A timer is armed by a reply that reached its client whole, and the next request of its branch cancels it. It holds the
request's credential in memory, until it is used, cancelled or refused; after a restart nothing fires, since no
credential is known then.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial

from cg.gateway.events import AskEnded, Events, Fault, Spend, Timer
from cg.gateway.exchange import Headers
from cg.gateway.messages.upstream_asker import UpstreamAsker
from cg.gateway.state.clock import Clock
from cg.gateway.turns.prepared_request import PreparedRequest
from cg.gateway.turns.turn_runner import TurnRunner
from cg.gateway.upstream.contract import Upstream
from cg.sweep.accounting.ping_economics import PING_TTL_S
from cg.sweep.accounting.tally import Tally
from cg.sweep.body.splice import delete_members, set_member, splice
from cg.sweep.body.transcript import Unreadable, read
from cg.sweep.config import Config
from cg.sweep.core.idle_ask import Settled, claim_of, due_at
from cg.sweep.core.outcome import Gap
from cg.sweep.drivers import Sweep
from cg.sweep.effects import Failure
from cg.sweep.ledger import Reason
from cg.sweep.values import Branch, Usage

log = logging.getLogger("cg.gateway")
MAX_ARMED = 1024  # branches that wait; one holds its request's headers, some 2 KB
MAX_AT_ONCE = 8  # asks under way
MAX_GAPS = 1024  # outcomes that wait for the next request of their branch, to be its reason
PING_TIMEOUT_S = 60.0
NOT_TIMED = frozenset([Reason.SIDE_CALL, Reason.UNREADABLE, Reason.SERVER_THREAD, Reason.TOOL_NAME_TAKEN])
Name = tuple[str, str]  # thread, branch


@dataclass(slots=True)
class ArmedTimer:
    """One branch that waits, with what a call in its client's name needs."""

    thread: str
    branch: Branch
    fires_at: float
    target: bytes
    headers: Headers
    pings_left: int
    call: object = None
    task: "asyncio.Task[None] | None" = None

    @property
    def name(self) -> Name:
        return self.thread, self.branch.branch


class IdleTimers:
    """The gaps of all branches of one gateway. For use from one event loop."""

    def __init__(
        self, sweep: Sweep, turns: TurnRunner, upstream: Upstream, events: Events, clock: Clock, config: Config
    ) -> None:
        self._sweep, self._turns, self._upstream = sweep, turns, upstream
        self._events, self._clock, self._config = events, clock, config
        self._armed: dict[Name, ArmedTimer] = {}
        self._firing: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._gaps: OrderedDict[Name, Settled] = OrderedDict()
        self._is_closed = False

    def arm(self, turn: PreparedRequest) -> None:
        """Wait for the branch of a turn whose reply has reached its client."""
        branch = turn.swept.branch
        if branch is None or self._is_closed or turn.swept.report.reason in NOT_TIMED:
            return
        pings = self._config.pings if self._config.judge != "model" else 0
        fires_at = due_at(self._sweep.core, branch)
        if fires_at is None and pings and branch.ttl_s == PING_TTL_S:
            fires_at = branch.clock + branch.ttl_s - self._config.window_s
        if fires_at is None:
            return
        self.cancel(turn.thread, branch.branch)
        if len(self._armed) >= MAX_ARMED:
            self._events.tell(Timer.DROPPED)
            return
        armed = ArmedTimer(turn.thread, branch, fires_at, turn.inbound.target, turn.headers, pings, turn.inbound.call)
        self._armed[armed.name] = armed
        self._events.tell(Timer.ARMED)
        self._start(armed)

    def cancel(self, thread: str, branch: str) -> None:
        """A request of the branch has come: what waits for it ends. A call that is under way is paid already and goes
        on; what it says of older outputs stays true."""
        armed = self._armed.pop((thread, branch), None)
        if armed is not None and armed.task is not None:
            armed.task.cancel()
            self._events.tell(Timer.CANCELLED)

    def gap(self, thread: str) -> Gap:
        """How the gap before a branch's next request was used, given once."""
        return lambda branch: self._gaps.pop((thread, branch), None)

    async def close(self) -> None:
        """Let go of everything that waits, credentials with it, and end what is under way."""
        self._is_closed = True
        tasks = [armed.task for armed in self._armed.values() if armed.task is not None] + list(self._firing)
        for _ in self._armed:
            self._events.tell(Timer.DROPPED)
        self._armed.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- one timer ---------------------------------------------------------------------------------------------------

    def _start(self, armed: ArmedTimer) -> None:
        armed.task = asyncio.get_running_loop().create_task(self._wait(armed))

    async def _wait(self, armed: ArmedTimer) -> None:
        await self._clock.sleep_until(armed.fires_at)
        if self._armed.get(armed.name) is armed:
            del self._armed[armed.name]
        task = asyncio.current_task()
        assert task is not None
        self._firing.add(task)
        try:
            async with self._slots:
                await self._fire(armed)
        except Exception as error:
            log.error("an idle ask failed: %s", type(error).__name__)
            self._events.tell(Fault.TIMER)
        finally:
            self._firing.discard(task)

    async def _fire(self, armed: ArmedTimer) -> None:
        now, branch = self._clock.now(), armed.branch
        if now >= branch.clock + (branch.ttl_s or 0):  # slept too long: the prefix has expired
            self._events.tell(Timer.DROPPED)
            return
        if not await self._turns.run(lambda: self._sweep.stands(armed.thread, branch)):
            self._events.tell(Timer.CANCELLED)  # by a request that another gateway on this store has served
            return
        if not await self._turns.run(lambda: self._is_ours(armed)):
            self._events.tell(Timer.CLAIMED_ELSEWHERE)
            return
        self._events.tell(Timer.FIRED)
        if armed.pings_left:
            await self._ping(armed, now)
        else:
            await self._ask(armed, now)

    def _is_ours(self, armed: ArmedTimer) -> bool:
        """Whether the gap is this gateway's to use. Without the body that was sent nobody can be asked from here: then
        nothing is claimed, and the gap is left to the gateway that holds it."""
        branch = armed.branch
        if self._sweep.last_sent(armed.thread, branch) is None:
            return True
        return self._sweep.claim(armed.thread, *claim_of(branch), branch)

    async def _ask(self, armed: ArmedTimer, now: float) -> None:
        asker = UpstreamAsker(self._upstream, armed.target, armed.headers, self._events, self._clock, call=armed.call)
        settled = await self._sweep.settle_async(armed.thread, armed.branch, now, asker=asker)
        await self._turns.run(lambda: self._remember(armed, settled, now))
        if settled.asked is not None:
            self._events.tell(AskEnded(self._sweep.row(armed.thread, settled.asked, now)))
        if asker.is_refused:
            self._events.tell(Timer.CREDENTIAL_REFUSED)
        # Its counts are in the totals already: what the next request takes over is only why it had nothing to apply.
        self._gaps[armed.name] = Settled(settled.reason, tally=Tally())
        while len(self._gaps) > MAX_GAPS:
            self._gaps.popitem(last=False)

    def _remember(self, armed: ArmedTimer, settled: Settled, now: float) -> None:
        with self._turns.thread_lock(armed.thread):
            self._sweep.remember(armed.thread, armed.branch, settled, now)

    async def _ping(self, armed: ArmedTimer, now: float) -> None:
        """Read the prefix once, for one token of reply, if that is worth it, and wait again if that is allowed."""
        if not await self._turns.run(lambda: self._sweep.is_ping_fair(armed.thread, armed.branch)):
            return
        body = await self._turns.run(lambda: ping_body(self._sweep.last_sent(armed.thread, armed.branch)))
        if body is None:
            return
        asker = UpstreamAsker(
            self._upstream, armed.target, armed.headers, self._events, self._clock, Spend.PING, armed.call
        )
        answer = await asker.ask(body, PING_TIMEOUT_S)
        if asker.is_refused:
            self._events.tell(Timer.CREDENTIAL_REFUSED)
        if isinstance(answer, Failure) or answer.usage is None:
            return
        renewed = await self._turns.run(partial(self._renew, armed, now, answer.usage))
        if renewed is None or armed.pings_left <= 1 or self._is_closed or armed.name in self._armed:
            return
        again = replace(
            armed, branch=renewed, fires_at=now + PING_TTL_S - self._config.window_s, pings_left=armed.pings_left - 1
        )
        self._armed[again.name] = again
        self._events.tell(Timer.ARMED)
        self._start(again)

    def _renew(self, armed: ArmedTimer, now: float, usage: Usage) -> Branch | None:
        with self._turns.thread_lock(armed.thread):
            return self._sweep.renew(armed.thread, armed.branch, now, usage)


def ping_body(sent: bytes | None) -> bytes | None:
    """A body that was sent, asking for one token; None where it cannot be asked for so little."""
    try:
        transcript = read(sent) if sent is not None else None
    except Unreadable:
        return None
    if transcript is None or transcript.thinking_budget is not None:  # thinking has to fit below max_tokens
        return None
    return splice(transcript.body, [set_member(transcript, "max_tokens", b"1"), *delete_members(transcript, "stream")])
