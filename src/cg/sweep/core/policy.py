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
from cg.sweep.body.splice import add_breakpoint, declare, replace_text, splice
from cg.sweep.body.transcript import ToolText, Transcript, read_sent
from cg.sweep.config import Config
from cg.sweep.core import expansion as recovery
from cg.sweep.core import selection
from cg.sweep.core.changes import Changes
from cg.sweep.core.removal import answered, apply, payload_of, substitute
from cg.sweep.counters import Decline, Event
from cg.sweep.economics import START_BYTES_PER_TOKEN
from cg.sweep.effects import Declare, Put, Steps
from cg.sweep.history.branches import Continuation, Place, advanced, place
from cg.sweep.history.phase import phase_of
from cg.sweep.judging.adjudication import Asked, adjudicate
from cg.sweep.judging.coreference import Build, build
from cg.sweep.judging.free_judges import by_index, by_quiet, of_what_was_read, recency
from cg.sweep.judging.inventory import Candidate, answered_messages, assemble, eligible, note_thinned
from cg.sweep.judging.quiet import QuietCache
from cg.sweep.ledger import Reason, Savings, TurnReport, legs_usd, savings, size_histogram
from cg.sweep.prices import PriceTable
from cg.sweep.values import PREFIX_LOST, Branch, Ending, Identity, Phase, Removal, Thread

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


@dataclass(slots=True)
class RequestState:
    """One turn in the making."""

    transcript: Transcript
    thread: Thread
    place: Place
    phase: Phase
    now: float
    frozen: dict[ToolText, Removal]  # replayed
    fresh: dict[ToolText, Removal] = field(default_factory=dict)  # new in this turn
    tally: Tally = field(default_factory=Tally)
    ended: list[tuple[Identity, Ending]] = field(default_factory=list)
    expanded: list[str] = field(default_factory=list)
    unpend: list[Identity] = field(default_factory=list)
    asked: Asked | None = None


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
        self.quiet = QuietCache()
        self.index, self.sent_index = index, sent_index  # of what clients send, and of what has left

    def turn(
        self, transcript: Transcript, thread: Thread, now: float, *, sent: bytes | None = None
    ) -> Steps[RequestPlan]:
        """One request. `sent` is what the branch last sent, for a judge that is asked in the request itself."""
        if transcript.server_thread:
            return untouched(transcript, Reason.SERVER_THREAD)
        where = place(transcript, thread, now)
        frozen = frozen_in(transcript, thread)
        work = RequestState(transcript, thread, where, self._phase(transcript, thread, where, now), now, frozen)
        prefix = transcript.span(where.common - 1)[1] / ratio(thread) if where.common else 0.0
        count_wait(work.tally, where, now, self.config.window_s, prefix, asks=self.config.judge == "model")
        self._restore(work)
        yield from self._put_back(work)
        yield from self._answer_expansions(work)
        reason = yield from self._remove(work, sent)
        declaration = yield from self._declaration(work)
        body = self._rewrite(work, declaration)
        report = replace(self._report(work, reason), sizes=new_sizes(work), savings=self._savings(work, declaration))
        changes = self._changes(work, body)
        return RequestPlan(
            body, report, changes, carried(work), declaration is not None, changes.branch or where.branch
        )

    def frozen_form(self, transcript: Transcript, thread: Thread) -> RequestPlan:
        """Only what was decided before, for a turn in which something of ours failed.

        A thread whose tool was never declared has sent no marker yet, and none leaves without the tool that answers it.
        """
        if thread.declaration is None:
            return untouched(transcript, Reason.FAULT)
        work = RequestState(
            transcript,
            thread,
            Place(Continuation.FIRST, None, 0, False),
            Phase.UNKNOWN,
            0.0,
            frozen_in(transcript, thread),
        )
        declaration = None if EXPAND_TOOL in transcript.declares or not transcript.has_tools else thread.declaration
        body, report = self._rewrite(work, declaration), self._report(work, Reason.FAULT)
        return RequestPlan(body, report, carries=carried(work), declares=declaration is not None)

    def counted_form(self, transcript: Transcript, thread: Thread, now: float) -> RequestPlan:
        """What would leave now but for new removals: also a thread's first request would carry our tool."""
        if thread.declaration is None and transcript.has_tools and not transcript.server_thread:
            where = place(transcript, thread, now)
            phase = self._phase(transcript, thread, where, now)
            if where.standing is not Continuation.RETRY and self._opens(transcript, phase):
                thread = replace(thread, declaration=DECLARATION)
        return self.frozen_form(transcript, thread)

    # -- where the request stands ------------------------------------------------------------------------------------

    def _phase(self, transcript: Transcript, thread: Thread, where: Place, now: float) -> Phase:
        first = next((t.message for t in transcript.tool_texts if not t.has_marker), transcript.n_messages)
        lost = where.standing is Continuation.OPENS and where.common <= first  # a compaction, a rewind, another opening
        return phase_of(
            now=now,
            branch=where.branch,
            ttl_s=transcript.ttl_s,
            broken=where.head_changed or lost,
            # A mark whose lifetime is not known here is a mark: there is a prefix to lose.
            uncached=not transcript.breakpoints and _shows_no_cache(thread),
            config=self.config,
        )

    def _standstill(self, work: RequestState) -> Reason | None:
        """Why nothing new can be removed in this turn, whatever a judge would say."""
        transcript = work.transcript
        if work.place.standing is Continuation.RETRY:
            return Reason.RETRY
        if not transcript.has_tools:
            return Reason.SIDE_CALL
        if EXPAND_TOOL in transcript.declares:
            return Reason.TOOL_NAME_TAKEN
        window = self.prices.window_tokens(transcript.model)
        if window and len(transcript.body) / ratio(work.thread) > WINDOW_SHARE * window:
            return Reason.UNSWEPT_TOO_BIG
        if not _may_declare(work):
            return Reason.NOT_DECLARED
        return None

    # -- what comes back ---------------------------------------------------------------------------------------------

    def _restore(self, work: RequestState) -> None:
        """Stop replaying removals that a client's "unchanged" notice leans on; each is restored once, for good."""
        for identity in recovery.repeated_reads(work.transcript, work.thread):
            work.ended.append((identity, Ending.RESTORED))
            work.tally.event(Event.RESTORED)
            work.frozen = {t: r for t, r in work.frozen.items() if r.identity != identity}

    def _put_back(self, work: RequestState) -> Steps[None]:
        """Store again what a replayed removal stands for and the store let go of: the client has just sent it."""
        missing = work.thread.missing
        texts = [text for text, removal in work.frozen.items() if removal.identity in missing] if missing else []
        if texts:
            stored = yield Put(tuple(payload_of(work.transcript, text) for text in texts))
            work.tally.event(Event.PUT_BACK, len(stored))
            work.tally.decline(Decline.STORE_REFUSED, len(texts) - len(stored))

    def _answer_expansions(self, work: RequestState) -> Steps[None]:
        """Put originals in the place of the errors with which a client answered calls of our tool."""
        work.expanded.extend(recovery.unmarked_expansions(work.transcript, work.thread))
        for text, use in recovery.unanswered_expansions(work.transcript, work.thread):
            expansion = yield from recovery.expand(recovery.expand_id(use.arguments), work.transcript, work.thread)
            kept = yield from substitute(work.transcript, text, expansion.answer, work.now)
            if kept is None:
                work.tally.decline(Decline.STORE_REFUSED)
                if expansion.sha256 is None or text.identity in work.thread.ended:
                    continue
            # Where nothing can be frozen an original still leads to the same bytes at the next request: the client's "no
            # such tool" would cost the model its only way back. That it came back is counted when it first does.
            work.frozen[text] = kept or answered(text, expansion.answer, work.now)
            if kept is None and expansion.sha256 in work.thread.expanded:
                continue
            work.tally.event(Event.EXPANDED if expansion.sha256 else Event.EXPAND_UNRESOLVED)
            if expansion.sha256:
                work.expanded.append(expansion.sha256)

    # -- what goes ---------------------------------------------------------------------------------------------------

    def _remove(self, work: RequestState, sent: bytes | None) -> Steps[Reason]:
        """Remove what a judge calls spent where that pays; the reason says how it ended."""
        still = self._standstill(work)
        if still is not None:
            return still
        if (
            self.config.judge != "model" and work.phase not in PREFIX_LOST
        ):  # a rule removes nothing there: nothing is looked at
            return Reason(work.phase.value)
        waits = self.config.judge == "model" and self.config.ask != "on-request"
        candidates = self._waiting(work) if waits else self._candidates(work)
        if not candidates:
            return Reason.NOTHING_JUDGED if waits else Reason.NO_CANDIDATES
        drops = yield from self._drops(work, candidates, sent)
        if isinstance(drops, Reason):
            return drops
        chosen = selection.paying(drops, work.transcript, work.phase, ratio(work.thread), self.config)
        work.tally.add(selection.booked(len(drops), len(chosen), work.phase, self.config))
        if not chosen:
            return Reason.NOT_REPAID if self.config.apply == "paid" else Reason.WAITING
        applied = yield from apply(work.transcript, [c.text for c in chosen], work.now)
        work.fresh = applied.removals
        work.tally.add(applied.tally)
        work.unpend += [c.text.identity for c in chosen]
        return Reason.REMOVED if applied.removals else Reason.REFUSED

    def _candidates(self, work: RequestState) -> tuple[Candidate, ...]:
        """The outputs that may be judged in this request."""
        asks = self.config.judge == "model"
        return self.eligible(work.transcript, work.thread, work.tally, removed=work.frozen, is_to_be_shown=asks)

    def _waiting(self, work: RequestState) -> tuple[Candidate, ...]:
        """The outputs that were judged over this history and wait to be applied; what was judged over another is forgotten."""
        pending = work.thread.pending
        if not pending:
            return ()
        # judged already: the floor decides who is asked about, and the ratio it counts with moves on
        thread, config = replace(work.thread, pending={}), replace(self.config, min_tokens=0)
        found = self.eligible(work.transcript, thread, work.tally, config, removed=work.frozen, is_to_be_shown=False)
        here, elsewhere = selection.judged_here(found, pending, work.transcript.chain)
        work.tally.decline(Decline.JUDGED_ELSEWHERE, len(elsewhere))
        work.unpend += [c.text.identity for c in elsewhere]
        return here

    def _drops(
        self, work: RequestState, candidates: Sequence[Candidate], sent: bytes | None
    ) -> Steps[tuple[Candidate, ...] | Reason]:
        """What the configured judge calls spent, or the reason why it was not heard in this turn."""
        config = self.config
        if config.judge != "model":
            if config.judge == "recency":
                judged = recency(candidates, config.keep_newest)
            elif config.judge == "quiet":
                with self.quiet.reading(work.transcript) as quiet:
                    judged = by_quiet(candidates, quiet, config)
            else:
                judged = by_index(candidates, self.index(work.transcript, min_later_turns=config.min_later_turns))
            judged = of_what_was_read(judged, answered_messages(work.transcript))
            work.tally.events.update(judged.events)
            work.tally.declines.update(judged.declines)
            return judged.drops or Reason.NOTHING_SPENT
        if config.ask == "on-request":
            return (yield from self._ask_in_request(work, candidates, sent))
        if work.phase is Phase.UNKNOWN or (config.apply == "free" and work.phase not in PREFIX_LOST):
            return Reason.WAITING
        if not config.rescue:
            return tuple(candidates)
        kept, rescued = selection.rescue(candidates, work.thread.pending, self.index(work.transcript))
        work.tally.event(Event.RESCUED, len(rescued))
        work.unpend += [c.text.identity for c in rescued]
        return kept or Reason.NOTHING_SPENT

    def _ask_in_request(
        self, work: RequestState, candidates: Sequence[Candidate], sent: bytes | None
    ) -> Steps[tuple[Candidate, ...] | Reason]:
        """The first publication's way: ask in the window before expiry, apply the answer at once."""
        if work.phase is not Phase.PRE_EXPIRY:
            work.tally.decline(Decline.NOT_IN_WINDOW)
            return Reason(work.phase.value)
        if work.thread.paid_misses >= MISSES_TO_LATCH:
            return Reason.ASKING_LATCHED
        seen = read_sent(sent)
        known = {t.identity for t in seen.tool_texts} if seen else None
        # A judge that was not shown an output can only guess from the inventory line: such outputs wait a turn.
        answered = answered_messages(work.transcript)
        offered = [c for c in candidates if c.text.message < answered and (known is None or c.text.identity in known)]
        work.tally.decline(Decline.CANDIDATE_UNSEEN, len(candidates) - len(offered))
        work.tally.listed -= len(candidates) - len(offered)
        inventory = self.inventory(offered, work.tally)
        note_thinned(work.tally, inventory, self.config.ask_cap)
        if not inventory:
            return Reason.BELOW_INVENTORY
        work.asked = yield from adjudicate(seen, work.transcript, inventory, self.index(work.transcript), self.config)
        work.tally.add(work.asked.tally)
        return work.asked.drops or work.asked.reason

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
        leaned = set(recovery.leaned_on(transcript)) if found else set()
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

    def _declaration(self, work: RequestState) -> Steps[bytes | None]:
        """The tool declaration that this body carries, if any: fixed at the first, the same bytes from then on."""
        transcript = work.transcript
        if not transcript.has_tools or EXPAND_TOOL in transcript.declares:
            return None
        if work.thread.declaration is not None:
            return work.thread.declaration
        if work.fresh or (self._opens(transcript, work.phase) and work.place.standing is not Continuation.RETRY):
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

    def _rewrite(self, work: RequestState, declaration: bytes | None) -> bytes:
        """The client's bytes with the removed strings, our tool, and the spare breakpoint in their places."""
        transcript = work.transcript
        written = {**work.frozen, **work.fresh}
        if not written and declaration is None:
            return transcript.body
        edits = [replace_text(text, removal.written) for text, removal in written.items()]
        if declaration is not None:
            edits.append(declare(transcript, declaration))
        if written and self.config.spare_breakpoint:
            edits += add_breakpoint(transcript, before=min(written, key=lambda t: t.start))
        return splice(transcript.body, edits)

    def _report(self, work: RequestState, reason: Reason) -> TurnReport:
        work.tally.event(Event.REAPPLIED, len(work.frozen))
        return TurnReport.of(
            reason, phase=work.phase, removed=work.fresh, replayed=len(work.frozen), asked=work.asked, tally=work.tally
        )

    def _savings(self, work: RequestState, declaration: bytes | None) -> Savings | None:
        """What this body saves, less what it carries for that; None where nothing was changed, or sent before."""
        asked, transcript = work.asked, work.transcript
        changed = work.frozen or work.fresh or declaration is not None or (asked is not None and asked.legs)
        if work.place.standing is Continuation.RETRY or not changed:
            return None
        price = self.prices.price(transcript.model)
        return savings(
            work.fresh.values(),
            work.frozen.values(),
            phase=work.phase,
            ttl_s=transcript.ttl_s,
            is_marked=bool(transcript.breakpoints),
            bytes_per_token=ratio(work.thread),
            price=price,
            charged_bytes=len(declaration or b""),
            ask_usd=legs_usd(asked.legs, price) if asked is not None else 0.0,
        )

    def _changes(self, work: RequestState, body: bytes) -> Changes:
        if work.place.standing is Continuation.RETRY:
            return Changes(ended=tuple(work.ended), expanded=tuple(work.expanded))
        branch = advanced(work.place, work.transcript, work.now)
        return Changes(
            branch=branch,
            sent=body,
            unpend=tuple(work.unpend),
            ended=tuple(work.ended),
            expanded=tuple(work.expanded),
            paid_misses=work.asked.paid_misses if work.asked else 0,
            asked=work.asked,
        )


def carried(work: RequestState) -> tuple[Identity, ...]:
    """The removals in the body that leaves, in no order."""
    return tuple([removal.identity for removed in (work.frozen, work.fresh) for removal in removed.values()])


def new_sizes(work: RequestState) -> dict[str, int]:
    """The sizes of all tool outputs that were not in the history before, whatever becomes of them: each counts once."""
    if work.place.standing is Continuation.RETRY:
        return {}
    common = work.place.common
    return size_histogram([text.size_bytes for text in work.transcript.tool_texts if text.message >= common])


def ratio(thread: Thread) -> float:
    """Bytes a token: learnt from the thread's usage, else the measured start value."""
    return thread.bytes_per_token or START_BYTES_PER_TOKEN


def _may_declare(work: RequestState) -> bool:
    """A thread whose tool is not declared may take it on at its first request, or when the prefix is lost anyway."""
    return work.thread.declaration is not None or work.transcript.assistant_turns == 0 or work.phase in PREFIX_LOST


def _shows_no_cache(thread: Thread) -> bool:
    """The provider's last two usages show neither reads nor writes."""
    last = thread.usages[-2:]
    return len(last) == 2 and not any(u.read or u.write_5m or u.write_1h for u in last)
