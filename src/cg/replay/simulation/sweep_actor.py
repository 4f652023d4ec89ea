"""The sweep itself as an actor: the gateway's core and driver, run in full only where they could do something.

At a warm request that carries nothing new of interest the core changes nothing: what was removed stands, and the body
is the one before with the new messages behind it. Such a request is quiet, costs only what is new in it, and the store
hears of the last of them before the core is asked again. `every_turn` runs all of them through the core: the bodies are
the same, and a test holds that.
"""

from collections import Counter
from dataclasses import replace

from cg.errors import CgError
from cg.replay.reading import Turn
from cg.replay.recordings.recording import Before
from cg.replay.row import Row
from cg.replay.simulation.account import Account
from cg.replay.simulation.askers import FolderAsker, HindsightAsker
from cg.replay.simulation.history import History
from cg.replay.simulation.outcomes import Outcomes
from cg.sweep.accounting.ping_economics import PING_TTL_S
from cg.sweep.accounting.tally import Tally
from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.config import Config
from cg.sweep.core.idle_ask import Settled, due_at
from cg.sweep.core.policy import Core
from cg.sweep.core.unchanged_notice import Read
from cg.sweep.counters import Event
from cg.sweep.drivers import Sweep
from cg.sweep.history.phase import phase_of
from cg.sweep.judging.growing_coreference import Growing
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.planning.gaps import BOUNDS_S, Client
from cg.sweep.prices import PriceTable
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import PREFIX_LOST, Branch, Identity, Phase, Usage

THREAD = "replay"  # a store of its own for each run
USER = Client("user")

# Verdicts that a warm request did not apply are not repaid at a later warm one either: what they would take out stays the
# same or shrinks by rescues, and what stands behind it grows. So they are looked at once, then at the next lost prefix. A
# rescue can wait as well: a reference, once made, stays. These are the reasons of a turn that looked, or of one whose
# obstacle lasts until the prefix is lost.
LOOKED_AT = frozenset(
    {
        Reason.REMOVED,
        Reason.REFUSED,
        Reason.NOT_REPAID,
        Reason.NOTHING_SPENT,
        Reason.NOTHING_JUDGED,
        Reason.NO_CANDIDATES,
        Reason.NOT_DECLARED,
        Reason.UNSWEPT_TOO_BIG,
    }
)


class SweepActor:
    """One configuration of the sweep over one line."""

    def __init__(
        self,
        line: History,
        config: Config,
        account: Account,
        outcomes: Outcomes,
        *,
        prices: PriceTable,
        bytes_per_token: float,
        every_turn: bool = False,
        before: Before | None = None,
    ) -> None:
        self._line, self._config, self._account, self._outcomes = line, config, account, outcomes
        self._store = MemoryStore()
        self._store.learn(THREAD, bytes_per_token=bytes_per_token)
        self._sweep = Sweep(config, self._store, prices=prices)
        # One conversation is seen over and over: its indexes, as the client sends it and as it left, grow with it.
        self._sweep.core = Core(config, prices, index=Growing(), sent_index=Growing())
        if before is not None:
            known = before.gaps.counts() + Counter({Event.BILLED_UNITS: round(before.billed)})
            self._store.count(USER.user or "", Tally(gaps=known))
        self._ratio, self._every_turn = bytes_per_token, every_turn
        self.asker: HindsightAsker | FolderAsker | None = None
        self.now = 0.0  # of the ask that is being answered
        self._branch: Branch | None = None  # as the store has it, but for the clock
        self._clock = 0.0  # when the prefix was last read or written
        self._unheard: tuple[float, float] | None = None  # (clock before it, time) of a quiet request the store missed
        self._settled: Settled | None = None
        self._is_fresh = False  # verdicts came in that no request has looked at
        self._written: dict[Identity, bytes] = {}
        self._n_offered = 0  # messages whose outputs a rule has had before it
        self._removed_reads: set[Read] = set()  # a notice may point at them

    @property
    def _row(self) -> Row:
        return self._account.row

    # -- between requests ----------------------------------------------------------------------------------------------

    def gap(self, until: float, request: int) -> None:
        """The idle ask and the keep-alive reads that fall due before `until`, each as of its own moment."""
        self._settled = None
        if self._branch is None:
            return
        due = due_at(self._sweep.core, replace(self._branch, clock=self._clock))
        if due is not None and due < until:
            self._ask(due, request)
        for _ in range(self._config.pings if self._line.written_s == PING_TTL_S else 0):
            due = self._clock + self._line.written_s - self._config.window_s
            if due >= until or not self._ping(due):
                break

    def _ask(self, due: float, request: int) -> None:
        self._catch_up()
        assert self._branch is not None
        self._expect_ask(due, request)
        self._settled = settled = self._sweep.settle(THREAD, self._branch, due, asker=self.asker)
        if settled.asked is not None:
            self._offered(request)
        if settled.changes.branch is not None:
            self._branch = settled.changes.branch
            self._clock = self._branch.clock
        self._is_fresh = self._is_fresh or bool(settled.changes.pend)

    def _expect_ask(self, now: float, request: int) -> None:
        self.now = now
        if self.asker is not None:
            self.asker.request, self.asker.offered = request, []

    def _offered(self, request: int) -> None:
        if self.asker is not None:
            self._outcomes.offer(self.asker.offered, request)

    def _ping(self, due: float) -> bool:
        """Send the last body once more for one token; False if there is no entry that this could renew."""
        self._catch_up()
        line = self._line
        assert self._branch is not None
        if not self._is_ping_fair():
            return False
        usage = self._account.peek(line.prompt, line.breakpoints(), due)
        if not usage.read:
            return False
        usage = self._account.call("ping", line.model, line.prompt, line.breakpoints(), due, 1)
        renewed = self._sweep.renew(THREAD, self._branch, due, usage)
        assert renewed is not None  # nothing else touches the branch
        self._branch, self._clock = renewed, due
        return True

    def _is_ping_fair(self) -> bool:
        assert self._branch is not None
        return self._sweep.is_ping_fair(THREAD, self._branch)

    # -- a request -----------------------------------------------------------------------------------------------------

    def turn(self, turn: Turn) -> None:
        """Take the line on, through the core unless the request is quiet."""
        if not self._every_turn and self._is_quiet(turn):
            self._line.take(turn, self._written)
            self._unheard = self._clock, turn.at
            self._clock = turn.at
            return
        self._catch_up()
        was_live = self._branch is not None and turn.at - self._clock < self._line.written_s
        old = 0 if turn.opens else len(self._line.messages)
        self._n_offered = min(self._n_offered, old)
        self._line.take(turn, self._written)
        body = self._line.client_body()
        self._expect_ask(turn.at, turn.index)
        swept = self._sweep.process(body, THREAD, turn.at, asker=self.asker, settled=self._settled, client=USER)
        report, self._settled = swept.report, None
        self._is_fresh = self._is_fresh and report.reason not in LOOKED_AT
        if report.reason in (Reason.FAULT, Reason.UNREADABLE):
            raise CgError(f"request {turn.index}: the sweep ended with reason {report.reason}")
        lifetime = self._line.written_s
        self._find_branch(turn.at)
        self._count(report, turn)
        first = self._follow(turn, report, swept.body, lifetime)
        self._row.prefix_breaks += was_live and first is not None and first < old

    def _is_quiet(self, turn: Turn) -> bool:
        """Whether the core would leave this request as it stands: warm, on the same line, and nothing points back."""
        if self._branch is None or turn.opens or not turn.messages or self._is_fresh:
            return False
        if (
            turn.model != self._line.model or self._branch.asked_at == self._clock
        ):  # the core counts how a renewed wait ends
            return False
        if self._config.lifetime == "plan" and turn.at - self._clock >= BOUNDS_S[0]:  # a wait that is learnt
            return False
        phase = phase_of(
            now=turn.at,
            branch=replace(self._branch, clock=self._clock),
            ttl_s=self._line.written_s,
            broken=False,
            uncached=False,
            config=self._config,
        )
        return phase is Phase.WARM and not self._points_back(turn)

    def _points_back(self, turn: Turn) -> bool:
        """A result of our tool, or a notice that may lean on a removed read."""
        new = {call.id: call for message in turn.messages for call in message.calls}
        for output in (output for message in turn.messages for output in message.outputs):
            call = new.get(output.identity.tool_use_id) or self._line.calls.get(output.identity.tool_use_id)
            if call is not None and call.tool == EXPAND_TOOL:
                return True
            if call is not None and output.is_notice and call.read in self._removed_reads:
                return True
        return False

    def _catch_up(self) -> None:
        """Let the store hear of the last quiet request, as of its own moment: its branch is then the true one."""
        if self._unheard is None:
            return
        before, at = self._unheard
        self._unheard = None
        assert self._branch is not None
        self._store.touch(THREAD, replace(self._branch, clock=before))
        swept = self._sweep.process(self._line.client_body(), THREAD, at)
        if swept.report.removed or swept.report.reason in (Reason.FAULT, Reason.UNREADABLE):
            raise CgError(f"a request that was taken for quiet ended with reason {swept.report.reason}")
        self._row.rescued += swept.report.events.get(Event.RESCUED, 0)
        self._find_branch(at)

    def _find_branch(self, at: float) -> None:
        """The branch that the last request advanced; a repeated request advances none."""
        branches = self._sweep.state(THREAD).branches
        if branches:
            self._branch = max(branches, key=lambda b: (b.clock, len(b.chain)))
            self._clock = self._branch.clock
            self._line.written_s = self._branch.ttl_s or self._line.ttl_s

    # -- what came of it -----------------------------------------------------------------------------------------------

    def _count(self, report: TurnReport, turn: Turn) -> None:
        row = self._row
        row.rescued += report.events.get(Event.RESCUED, 0)
        row.removals += len(report.removed)
        row.removed_tokens += sum(removed.bytes for removed in report.removed) / self._ratio
        if self._config.judge == "model":
            self._offered(turn.index)
        elif report.phase in PREFIX_LOST:
            floor = self._config.min_tokens * self._ratio
            first, self._n_offered = self._n_offered, len(self._line.messages)  # the rest was offered before
            offered = (o.identity for o in self._line.outputs(first) if o.size_bytes >= floor)
            self._outcomes.offer((i.tool_use_id for i in offered if i not in self._written), turn.index)

    def _follow(self, turn: Turn, report: TurnReport, body: bytes, lifetime: int) -> int | None:
        """Bring the line to what the sweep sent, with marks of `lifetime` before; returns the first message that was
        changed."""
        line, state = self._line, self._sweep.state(THREAD)
        written = {identity: removal.written for identity, removal in state.removals.items()}
        gone, back = written.keys() - self._written.keys(), self._written.keys() - written.keys()
        for identity in gone:
            self._outcomes.remove(identity.tool_use_id, turn.index)
        for identity in back:
            self._outcomes.restore(identity.tool_use_id)
        self._written = written
        first = line.rewrite((i.tool_use_id for i in gone | back), written)
        if state.declaration is not None and line.declaration is None:
            line.declare(state.declaration)
        if written and (gone or back or turn.opens or line.spare is None or lifetime != line.written_s):
            line.mark_spare(self._sweep.read(body))
        if gone or back:
            self._removed_reads = {c.read for i in written if (c := line.calls.get(i.tool_use_id)) and c.read}
        return first

    def bill(self, usage: Usage) -> None:
        """Take in what a request cost; the bytes per token are fixed here, so nothing else is learnt from it."""
        self._sweep.book(THREAD, usage, USER)

    def expand(self, tool_use_id: str, at: float) -> None:
        """Mark an original as asked for: later copies of it stay whole."""
        for identity in self._written:
            if identity.tool_use_id == tool_use_id:
                self._sweep.expand(THREAD, identity.key, at)
