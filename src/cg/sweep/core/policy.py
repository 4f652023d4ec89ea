"""The sweep's core: one request in, one request out, with every decision in between and no I/O of its own.

`Core.turn` is a generator: it yields what it wants (`wants`) and is told what came of it, so the synchronous driver, the
asynchronous one, the pipe, the replay and the gateway all run the same rules.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

from cg.sweep.accounting.ping_economics import count_wait
from cg.sweep.accounting.tally import Tally
from cg.sweep.body.frozen import frozen_in
from cg.sweep.body.marker import DECLARATION, EXPAND_TOOL
from cg.sweep.body.splice import add_breakpoint, declare, replace_result, set_lifetime, splice
from cg.sweep.body.transcript import ToolText, Transcript, read_sent
from cg.sweep.config import Config
from cg.sweep.core import lifetimes, selection
from cg.sweep.core.changes import Changes
from cg.sweep.core.removal import apply
from cg.sweep.core.request_state import RequestState, ratio
from cg.sweep.core.restoration import answer_expansions, answer_from_body, end_paused, put_back, restore
from cg.sweep.core.unchanged_notice import leaned_on
from cg.sweep.counters import Decline, Event
from cg.sweep.effects import Declare, Steps
from cg.sweep.history.branches import Continuation, Place, advanced, place
from cg.sweep.history.phase import phase_of
from cg.sweep.judging.adjudication import adjudicate
from cg.sweep.judging.coreference import Build, build
from cg.sweep.judging.free_judges import by_index, by_quiet, of_what_was_read, recency
from cg.sweep.judging.inventory import Candidate, answered_messages, assemble, eligible, note_thinned
from cg.sweep.judging.quiet import QuietCache
from cg.sweep.ledger import Reason, Savings, TurnReport, legs_usd, savings, size_histogram
from cg.sweep.planning.gaps import NOBODY, Client
from cg.sweep.planning.lifetime import Planner, Why
from cg.sweep.prices import PriceTable
from cg.sweep.values import PREFIX_LOST, Branch, Identity, Phase, Switch, Thread

WINDOW_SHARE = 0.9  # past this share of the model's window the client has to see the real size and compact
MISSES_TO_LATCH = 2  # asks that missed the cache and were paid, after which a thread asks no more


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """What leaves, what is reported, and what is to be remembered."""

    body: bytes
    report: TurnReport
    changes: Changes = field(default_factory=Changes)
    carries: tuple[Identity, ...] = ()  # the removals that the body carries
    declares: bool = False  # the body declares our tool
    branch: Branch | None = None  # the line of history as this turn leaves it, or as a retry found it


def untouched(transcript: Transcript, reason: Reason) -> RequestPlan:
    """The client's own bytes."""
    return RequestPlan(transcript.body, TurnReport.of(reason))


class Core:
    """The rules of one configuration; holds no state of any thread."""

    def __init__(
        self,
        config: Config,
        prices: PriceTable,
        *,
        index: Build = build,
        sent_index: Build = build,
    ) -> None:
        self.config = config
        self.prices = prices
        self.planner = Planner(config)
        self.quiet = QuietCache()
        self.index, self.sent_index = index, sent_index  # of what clients send, and of what has left

    def turn(
        self,
        transcript: Transcript,
        thread: Thread,
        now: float,
        *,
        sent: bytes | None = None,
        switch: Switch = Switch.ON,
        client: Client = NOBODY,
    ) -> Steps[RequestPlan]:
        """One request. `sent` is what the branch last sent, for a judge that is asked in the request itself; `client` is
        whose waits are learnt."""
        if transcript.server_thread:
            return untouched(transcript, Reason.SERVER_THREAD)
        where = place(transcript, thread, now)
        frozen, kept_s = frozen_in(transcript, thread), self.planner.kept(transcript, thread, where.branch)
        phase = self._phase(transcript, thread, where, now, kept_s)
        state = RequestState(transcript, thread, where, phase, now, frozen, switch=switch, kept_s=kept_s)
        prefix = transcript.span(where.common - 1)[1] / ratio(thread) if where.common else 0.0
        count_wait(state.tally, where, now, self.config.window_s, prefix, asks=self.config.judge == "model")
        lifetimes.count_gap(state, self.config.window_s)
        yield from lifetimes.decide(state, self.planner, client)
        restore(state)
        end_paused(state)
        yield from put_back(state)
        yield from answer_expansions(state)
        reason = yield from self._remove(state, sent)
        declaration = yield from self._declaration(state)
        body = self._rewrite(state, declaration)
        report = replace(
            self._report(state, reason),
            sizes=new_sizes(state),
            savings=self._savings(state, declaration),
            lifetime=lifetimes.described(state),
        )
        changes = self._changes(state, body)
        return RequestPlan(
            body, report, changes, carried(state), declaration is not None, changes.branch or where.branch
        )

    def frozen_form(self, transcript: Transcript, thread: Thread) -> RequestPlan:
        """Only what was decided before, and answers that stand in the body, for a turn in which something of ours failed.

        A thread whose tool was never declared has sent no marker yet, and none leaves without the tool that answers it.
        """
        if transcript.server_thread:
            return untouched(transcript, Reason.FAULT)
        frozen = frozen_in(transcript, thread) if thread.declaration is not None else {}
        where = Place(Continuation.FIRST, None, 0, False)
        state = RequestState(transcript, thread, where, Phase.UNKNOWN, 0.0, frozen)
        lifetimes.keep(state, self.planner)
        declaration = None if EXPAND_TOOL in transcript.declares or not transcript.has_tools else thread.declaration
        answer_from_body(state)
        body = self._rewrite(state, declaration)
        report = replace(self._report(state, Reason.FAULT), lifetime=lifetimes.described(state))
        changes = Changes(expanded=tuple(state.expanded))
        return RequestPlan(body, report, changes, carries=carried(state), declares=declaration is not None)

    def counted_form(self, transcript: Transcript, thread: Thread, now: float) -> RequestPlan:
        """What would leave now but for new removals: also a thread's first request would carry our tool."""
        if thread.declaration is None and transcript.has_tools and not transcript.server_thread:
            where = place(transcript, thread, now)
            kept_s = self.planner.kept(transcript, thread, where.branch)
            phase = self._phase(transcript, thread, where, now, kept_s)
            if where.standing is not Continuation.RETRY and self._opens(transcript, phase):
                thread = replace(thread, declaration=DECLARATION)
        return self.frozen_form(transcript, thread)

    # -- where the request stands ------------------------------------------------------------------------------------

    def _phase(self, transcript: Transcript, thread: Thread, where: Place, now: float, kept_s: int | None) -> Phase:
        first = next((t.message for t in transcript.tool_texts if not t.has_marker), transcript.n_messages)
        lost = where.standing is Continuation.OPENS and where.common <= first  # a compaction, a rewind, another opening
        return phase_of(
            now=now,
            branch=where.branch,
            ttl_s=kept_s,
            broken=where.head_changed or lost,
            # A mark whose lifetime is not known here is a mark: there is a prefix to lose.
            uncached=not transcript.breakpoints and _shows_no_cache(thread),
            config=self.config,
        )

    def is_too_big(self, model: str, raw_bytes: int, thread: Thread) -> bool:
        """Whether a body of this size, as its client sends it, is so close to the model's window that nothing new goes."""
        window = self.prices.window_tokens(model)
        return window is not None and raw_bytes / ratio(thread) > WINDOW_SHARE * window

    def _standstill(self, state: RequestState) -> Reason | None:
        """Why nothing new can be removed in this turn, whatever a judge would say."""
        transcript = state.transcript
        if state.place.standing is Continuation.RETRY:
            return Reason.RETRY
        if state.switch is not Switch.ON:
            return Reason.PAUSED
        if not transcript.has_tools:
            return Reason.SIDE_CALL
        if EXPAND_TOOL in transcript.declares:
            return Reason.TOOL_NAME_TAKEN
        if self.is_too_big(transcript.model, len(transcript.body), state.thread):
            return Reason.UNSWEPT_TOO_BIG
        if not _may_declare(state):
            return Reason.NOT_DECLARED
        return None

    # -- what goes ---------------------------------------------------------------------------------------------------

    def _remove(self, state: RequestState, sent: bytes | None) -> Steps[Reason]:
        """Remove what a judge calls spent where that pays; the reason says how it ended."""
        standstill = self._standstill(state)
        if standstill is not None:
            return standstill
        # a rule removes nothing while the prefix holds: nothing is looked at
        if self.config.judge != "model" and state.phase not in PREFIX_LOST:
            return Reason(state.phase.value)
        waits = self.config.judge == "model" and self.config.ask != "on-request"
        candidates = self._waiting(state) if waits else self._candidates(state)
        if not candidates:
            return Reason.NOTHING_JUDGED if waits else Reason.NO_CANDIDATES
        drops = yield from self._drops(state, candidates, sent)
        if isinstance(drops, Reason):
            return drops
        per_token = ratio(state.thread)
        chosen = selection.paying(drops, state.transcript, state.phase, per_token, self.config, state.written_s)
        state.tally.add(selection.booked(len(drops), len(chosen), state.phase, self.config))
        if not chosen:
            return Reason.NOT_REPAID if self.config.apply == "paid" else Reason.WAITING
        applied = yield from apply(state.transcript, [c.text for c in chosen], state.now)
        state.fresh = applied.removals
        state.tally.add(applied.tally)
        state.unpend += [c.text.identity for c in chosen]
        return Reason.REMOVED if applied.removals else Reason.REFUSED

    def _candidates(self, state: RequestState) -> tuple[Candidate, ...]:
        """The outputs that may be judged in this request."""
        asks = self.config.judge == "model"
        return self.eligible(state.transcript, state.thread, state.tally, removed=state.frozen, is_to_be_shown=asks)

    def _waiting(self, state: RequestState) -> tuple[Candidate, ...]:
        """The outputs that were judged over this history and wait to be applied; what was judged over another is forgotten."""
        pending = state.thread.pending
        if not pending:
            return ()
        # judged already: the floor decides who is asked about, and the ratio it counts with moves on
        thread, config = replace(state.thread, pending={}), replace(self.config, min_tokens=0)
        found = self.eligible(state.transcript, thread, state.tally, config, removed=state.frozen, is_to_be_shown=False)
        here, elsewhere = selection.judged_here(found, pending, state.transcript.chain)
        state.tally.decline(Decline.JUDGED_ELSEWHERE, len(elsewhere))
        state.unpend += [c.text.identity for c in elsewhere]
        return here

    def _drops(
        self, state: RequestState, candidates: Sequence[Candidate], sent: bytes | None
    ) -> Steps[tuple[Candidate, ...] | Reason]:
        """What the configured judge calls spent, or the reason why it was not heard in this turn."""
        config = self.config
        if config.judge != "model":
            if config.judge == "recency":
                judged = recency(candidates, config.keep_newest)
            elif config.judge == "quiet":
                with self.quiet.reading(state.transcript) as quiet:
                    judged = by_quiet(candidates, quiet, config)
            else:
                judged = by_index(candidates, self.index(state.transcript, min_later_turns=config.min_later_turns))
            judged = of_what_was_read(judged, answered_messages(state.transcript))
            state.tally.events.update(judged.events)
            state.tally.declines.update(judged.declines)
            return judged.drops or Reason.NOTHING_SPENT
        if config.ask == "on-request":
            return (yield from self._ask_in_request(state, candidates, sent))
        if state.phase is Phase.UNKNOWN or (config.apply == "free" and state.phase not in PREFIX_LOST):
            return Reason.WAITING
        if not config.rescue:
            return tuple(candidates)
        kept, rescued = selection.rescue(candidates, state.thread.pending, self.index(state.transcript))
        state.tally.event(Event.RESCUED, len(rescued))
        state.unpend += [c.text.identity for c in rescued]
        return kept or Reason.NOTHING_SPENT

    def _ask_in_request(
        self, state: RequestState, candidates: Sequence[Candidate], sent: bytes | None
    ) -> Steps[tuple[Candidate, ...] | Reason]:
        """The first publication's way: ask in the window before expiry, apply the answer at once."""
        if state.phase is not Phase.PRE_EXPIRY:
            state.tally.decline(Decline.NOT_IN_WINDOW)
            return Reason(state.phase.value)
        if state.thread.paid_misses >= MISSES_TO_LATCH:
            return Reason.ASKING_LATCHED
        seen = read_sent(sent)
        known = {t.identity for t in seen.tool_texts} if seen else None
        # A judge that was not shown an output can only guess from the inventory line: such outputs wait a turn.
        answered = answered_messages(state.transcript)
        offered = [c for c in candidates if c.text.message < answered and (known is None or c.text.identity in known)]
        state.tally.decline(Decline.CANDIDATE_UNSEEN, len(candidates) - len(offered))
        state.tally.listed -= len(candidates) - len(offered)
        inventory = self.inventory(offered, state.tally)
        note_thinned(state.tally, inventory, self.config.ask_cap)
        if not inventory:
            return Reason.BELOW_INVENTORY
        state.asked = yield from adjudicate(
            seen, state.transcript, inventory, self.index(state.transcript), self.config
        )
        state.tally.add(state.asked.tally)
        return state.asked.drops or state.asked.reason

    def eligible(
        self,
        transcript: Transcript,
        thread: Thread,
        tally: Tally,
        config: Config | None = None,
        *,
        removed: Container[ToolText] = (),
        is_to_be_shown: bool = True,
    ) -> tuple[Candidate, ...]:
        """The outputs that may be judged at all; one that a client's "unchanged" notice leans on would only come back."""
        found, declines = eligible(
            transcript, thread, config or self.config, ratio(thread), removed=removed, is_to_be_shown=is_to_be_shown
        )
        tally.declines.update(declines)
        leaned = set(leaned_on(transcript)) if found else set()
        free = tuple(c for c in found if c.text.identity not in leaned)
        tally.decline(Decline.KEPT_VERBATIM, len(found) - len(free))
        tally.listed = len(free)
        return free

    def inventory(self, candidates: Sequence[Candidate], tally: Tally) -> tuple[Candidate, ...]:
        """The outputs of one ask, or none when there are too few to compare."""
        config = self.config
        made = assemble(candidates, cap=config.ask_cap, select=config.select, min_inventory=config.min_inventory)
        tally.events.update(made.events)
        tally.declines.update(made.declines)
        return made.offered if made.is_enough else ()

    def asks_at_request(self, transcript: Transcript, thread: Thread, now: float) -> Branch | None:
        """The branch whose last body an ask in this request would ride on; None when none could be made."""
        if self.config.judge != "model" or self.config.ask != "on-request":
            return None
        return place(transcript, thread, now).branch

    # -- what leaves -------------------------------------------------------------------------------------------------

    def _declaration(self, state: RequestState) -> Steps[bytes | None]:
        """The tool declaration that this body carries, if any: fixed at the first, the same bytes from then on."""
        transcript = state.transcript
        if not transcript.has_tools or EXPAND_TOOL in transcript.declares:
            return None
        if state.thread.declaration is not None:
            return state.thread.declaration
        is_new = state.switch is Switch.ON and state.place.standing is not Continuation.RETRY
        if state.fresh or (is_new and self._opens(transcript, state.phase)):
            standing: bytes = yield Declare(DECLARATION)
            return standing
        return None

    def _opens(self, transcript: Transcript, phase: Phase) -> bool:
        """Whether a thread that has not declared our tool declares it with this body, whatever it removes."""
        return (
            transcript.ttl_s is not None
            and self.config.removes
            and (transcript.assistant_turns == 0 or phase in (Phase.COLD, Phase.BROKEN))
        )

    def _rewrite(self, state: RequestState, declaration: bytes | None) -> bytes:
        """The client's bytes with the removed strings, our tool, and the spare breakpoint in their places."""
        transcript = state.transcript
        written = {**state.frozen, **state.fresh}
        edits = [edit for text, removal in written.items() for edit in replace_result(text, removal.written)]
        ttl_s = state.choice.ttl_s if state.choice is not None and state.choice.why is not Why.LEFT else None
        if ttl_s is not None:
            edits += set_lifetime(transcript, ttl_s)
        if declaration is not None:
            edits.append(declare(transcript, declaration))
        if written and self.config.spare_breakpoint:
            edits += add_breakpoint(transcript, before=min(written, key=lambda t: t.start), ttl_s=ttl_s)
        return splice(transcript.body, edits) if edits else transcript.body

    def _report(self, state: RequestState, reason: Reason) -> TurnReport:
        state.tally.event(Event.REAPPLIED, len(state.frozen))
        return TurnReport.of(
            reason,
            phase=state.phase,
            removed=state.fresh,
            replayed=len(state.frozen),
            asked=state.asked,
            tally=state.tally,
        )

    def _savings(self, state: RequestState, declaration: bytes | None) -> Savings | None:
        """What this body saves, less what it carries for that; None where nothing was changed, or sent before."""
        asked, transcript = state.asked, state.transcript
        changed = state.frozen or state.fresh or declaration is not None or (asked is not None and asked.legs)
        if state.place.standing is Continuation.RETRY or not changed:
            return None
        price = self.prices.price(transcript.model)
        return savings(
            state.fresh.values(),
            state.frozen.values(),
            phase=state.phase,
            ttl_s=state.written_s,
            is_marked=bool(transcript.breakpoints),
            bytes_per_token=ratio(state.thread),
            price=price,
            charged_bytes=len(declaration or b""),
            ask_usd=legs_usd(asked.legs, price) if asked is not None else 0.0,
        )

    def _changes(self, state: RequestState, body: bytes) -> Changes:
        if state.place.standing is Continuation.RETRY:
            return Changes(ended=tuple(state.ended), expanded=tuple(state.expanded))
        branch = advanced(state.place, state.transcript, state.now, state.written_s)
        return Changes(
            branch=branch,
            sent=body,
            unpend=tuple(state.unpend),
            ended=tuple(state.ended),
            expanded=tuple(state.expanded),
            paid_misses=state.asked.paid_misses if state.asked else 0,
            asked=state.asked,
        )


def carried(state: RequestState) -> tuple[Identity, ...]:
    """The removals in the body that leaves, in no order."""
    return tuple([removal.identity for removed in (state.frozen, state.fresh) for removal in removed.values()])


def new_sizes(state: RequestState) -> dict[str, int]:
    """The sizes of all tool outputs that were not in the history before, whatever becomes of them: each counts once."""
    if state.place.standing is Continuation.RETRY:
        return {}
    common = state.place.common
    return size_histogram([text.size_bytes for text in state.transcript.tool_texts if text.message >= common])


def _may_declare(state: RequestState) -> bool:
    """A thread whose tool is not declared may take it on at its first request, or when the prefix is lost anyway."""
    return state.thread.declaration is not None or state.transcript.assistant_turns == 0 or state.phase in PREFIX_LOST


def _shows_no_cache(thread: Thread) -> bool:
    """The provider's last two usages show neither reads nor writes."""
    last = thread.usages[-2:]
    return len(last) == 2 and not any(u.read or u.write_5m or u.write_1h for u in last)
