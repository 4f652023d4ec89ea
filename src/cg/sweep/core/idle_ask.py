"""The idle ask: made while the cache is still warm, off the request path, over what the branch last sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cg.sweep.accounting.ping_economics import is_fair
from cg.sweep.accounting.tally import Tally
from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.body.transcript import Transcript
from cg.sweep.core.changes import Changes
from cg.sweep.core.policy import MISSES_TO_LATCH, Core
from cg.sweep.core.request_state import ratio
from cg.sweep.counters import Decline
from cg.sweep.economics import ReplyLength, ask_cost, ask_worth, verdict_tokens
from cg.sweep.effects import Steps
from cg.sweep.judging.adjudication import Asked, adjudicate
from cg.sweep.judging.free_judges import by_index, by_quiet, recency
from cg.sweep.judging.inventory import Candidate, note_thinned
from cg.sweep.ledger import AskRow, Reason
from cg.sweep.values import DIGEST_BYTES, Branch, Pending, Thread

CLAIM_S = 7200.0  # how long a gap stays claimed: longer than any lifetime, after which its ask is due no more


def claim_of(branch: Branch) -> tuple[str, float]:
    """Name and end of the claim with which one of several processes takes the ask of this gap upon itself."""
    return f"gap:{branch.branch}:{branch.clock!r}", branch.clock + CLAIM_S


@dataclass(frozen=True, slots=True)
class Settled:
    """How a gap was used: an ask with its outcome, or why none was made."""

    reason: Reason
    asked: Asked | None = None
    tally: Tally = field(default_factory=Tally)
    changes: Changes = field(default_factory=Changes)


def due_at(core: Core, branch: Branch) -> float | None:
    """When the idle ask of a branch falls due, seconds since the epoch; None when it asks nobody, or has asked.

    The moment is the last at which the provider surely still holds the prefix: lifetime less window after its last
    touch. One ask a gap: an ask renews the entry, but nothing new has been said since.
    """
    config = core.config
    if config.judge != "model" or config.ask != "idle" or branch.ttl_s is None or branch.asked_at == branch.clock:
        return None
    return branch.clock + branch.ttl_s - config.window_s


def settle(
    core: Core, sent: Transcript | None, thread: Thread, branch: Branch, now: float, *, booked: Sequence[AskRow] = ()
) -> Steps[Settled]:
    """Ask about the outputs of the branch's last body as of `now`; verdicts that drop wait for a request that pays.

    `booked` are the thread's asks so far, oldest first: how long their replies were says what the next one will cost.
    """
    tally = Tally()
    if sent is None:
        tally.decline(Decline.NO_PREFIX)
        return Settled(Reason.NOTHING_JUDGED, tally=tally)
    standstill = _standstill(core, sent, thread)
    if standstill is not None:
        return Settled(standstill, tally=tally)
    if thread.paid_misses >= MISSES_TO_LATCH:
        return Settled(Reason.ASKING_LATCHED, tally=tally)
    inventory = core.inventory(core.eligible(sent, thread, tally), tally)
    note_thinned(tally, inventory, core.config.ask_cap)
    if not inventory:
        return Settled(Reason.BELOW_INVENTORY, tally=tally)
    if not is_worth_asking(core, sent, inventory, branch, thread, booked):
        tally.decline(Decline.ASK_NOT_REPAID)
        return Settled(Reason.ASK_NOT_REPAID, tally=tally)
    asked = yield from adjudicate(sent, sent, inventory, core.sent_index(sent), core.config)
    tally.add(asked.tally)
    history = branch.chain[-DIGEST_BYTES:].hex()  # the client's: what was sent has our words in places of its own
    pending = tuple(Pending(c.text.identity, c.tokens, now, sent.n_messages, history) for c in asked.drops)
    clock = now if asked.read_prefix else branch.clock
    touched = replace(branch, clock=clock, asked_at=clock)
    changes = Changes(branch=touched, pend=pending, paid_misses=asked.paid_misses, asked=asked)
    return Settled(asked.reason, asked if asked.legs else None, tally, changes)


def _standstill(core: Core, sent: Transcript, thread: Thread) -> Reason | None:
    """Why no verdict could be applied at the requests that go on from this body: they are as large as it is, or larger."""
    if not sent.has_tools:
        return Reason.SIDE_CALL
    if thread.declaration is None and EXPAND_TOOL in sent.declares:
        return Reason.TOOL_NAME_TAKEN
    carried = {(text.tool_use_id, text.block) for text in sent.tool_texts if text.has_marker}
    removed = (r.saved_bytes for i, r in thread.removals.items() if (i.tool_use_id, i.block) in carried)
    if core.is_too_big(sent.model, len(sent.body) + sum(removed), thread):
        return Reason.UNSWEPT_TOO_BIG
    return None


QUESTION_TOKENS = 600.0  # of the ask's fixed words, and 60 more a line: measured on the prompt's own text
LINE_TOKENS = 60.0
ACCEPTED = 0.5  # share of the offered tokens that an ask is expected to drop, until a thread has shown its own


def is_worth_asking(
    core: Core,
    sent: Transcript,
    inventory: Sequence[Candidate],
    branch: Branch,
    thread: Thread,
    booked: Sequence[AskRow] = (),
) -> bool:
    """Whether an ask is expected to bring in what it costs: it reads the prefix, pays its question and its reply."""
    if branch.ttl_s is None:
        return False
    prefix = len(sent.body) / ratio(thread)
    n = len(inventory)
    offered = sum(candidate.tokens for candidate in inventory)
    # Another model's replies say nothing of this one's: it may think at length, or not at all.
    verdict = verdict_tokens([ReplyLength(row.offered, row.usage.output) for row in booked if row.model == sent.model])
    cost = ask_cost(prefix, QUESTION_TOKENS + LINE_TOKENS * n, verdict * n)
    return ask_worth(ACCEPTED * offered, branch.ttl_s, prefix=prefix) >= cost


def is_ping_fair(core: Core, sent: Transcript, thread: Thread, events: Mapping[str, float]) -> bool:
    """Whether to renew the entry of a body that was `sent`, by the `events` of all threads (`cg.sweep.accounting.ping_economics`)."""
    return is_fair(len(sent.body) / ratio(thread), _removable(core, sent, thread), events)


def _removable(core: Core, sent: Transcript, thread: Thread) -> float:
    """Tokens that would go if the next request were cold: what the rule would take out, or what was judged already."""
    config = core.config
    if config.judge == "model":
        return sum(pending.tokens for pending in thread.pending.values())
    found = core.eligible(sent, thread, Tally(), is_to_be_shown=False)
    if config.judge == "recency":
        return sum(one.tokens for one in recency(found, config.keep_newest).drops)
    if config.judge == "quiet":
        with core.quiet.reading(sent) as quiet:
            return sum(one.tokens for one in by_quiet(found, quiet, config).drops)
    return sum(
        one.tokens for one in by_index(found, core.sent_index(sent, min_later_turns=config.min_later_turns)).drops
    )
