"""Which judged drops are applied now: those nothing newer refers to, and those whose removal pays."""

from collections.abc import Mapping, Sequence

from cg.sweep.accounting.tally import Tally
from cg.sweep.body.transcript import Transcript
from cg.sweep.config import Config
from cg.sweep.counters import Decline, Event
from cg.sweep.economics import net_worth
from cg.sweep.judging.coreference import Index
from cg.sweep.judging.inventory import Candidate
from cg.sweep.values import DIGEST_BYTES, PREFIX_LOST, Identity, Pending, Phase


def judged_here(
    found: Sequence[Candidate], pending: Mapping[Identity, Pending], chain: bytes
) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...]]:
    """(here, elsewhere): of the candidates with a verdict, those that were judged over a history which the one with this
    `chain` goes on from, and those of another that a rewind or an edit has left behind: what was spent there may be what
    comes next here."""
    here: list[Candidate] = []
    elsewhere: list[Candidate] = []
    for candidate in found:
        verdict = pending.get(candidate.text.identity)
        if verdict is not None:
            end = DIGEST_BYTES * verdict.messages
            is_here = verdict.messages > 0 and chain[end - DIGEST_BYTES : end].hex() == verdict.history
            (here if is_here else elsewhere).append(candidate)
    return tuple(here), tuple(elsewhere)


def rescue(
    waiting: Sequence[Candidate], pending: Mapping[Identity, Pending], index: Index
) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...]]:
    """(still spent, rescued): an output that anything written since its verdict refers to is needed after all."""
    kept: list[Candidate] = []
    rescued: list[Candidate] = []
    for candidate in waiting:
        since = pending[candidate.text.identity].messages
        (rescued if index.refers_since(candidate.text.identity, since) else kept).append(candidate)
    return tuple(kept), tuple(rescued)


def paying(
    drops: Sequence[Candidate],
    transcript: Transcript,
    phase: Phase,
    bytes_per_token: float,
    config: Config,
    ttl_s: int | None = None,
) -> tuple[Candidate, ...]:
    """All drops where the prefix is lost anyway; else the set, counted from the end, that repays its rewrite most.

    At a warm request everything behind the first removed output is written again, so the drops are taken latest first
    and the longest run of them is kept whose net worth is largest, if any is positive. `ttl_s` is the lifetime
    that is written, where it is not the body's own.
    """
    if phase in PREFIX_LOST or config.apply == "at-once":
        return tuple(drops)
    ttl_s = transcript.ttl_s if ttl_s is None else ttl_s
    if config.apply != "paid" or phase is Phase.UNKNOWN or ttl_s is None:
        return ()
    messages_end = transcript.span(transcript.n_messages - 1)[1]
    latest_first = sorted(drops, key=lambda c: c.text.start, reverse=True)
    best, best_worth, removed = 0, 0.0, 0.0
    for n, candidate in enumerate(latest_first, start=1):
        removed += candidate.tokens
        behind = (messages_end - candidate.text.start) / bytes_per_token - removed
        worth = net_worth(removed, max(behind, 0.0), ttl_s)
        if worth > best_worth:
            best, best_worth = n, worth
    return tuple(sorted(latest_first[:best], key=lambda c: c.text.start))


def booked(n_drops: int, n_chosen: int, phase: Phase, config: Config) -> Tally:
    """How the sums of `paying` went; where the prefix is lost, or nothing is weighed, there is nothing to tell."""
    tally = Tally()
    if phase in PREFIX_LOST or phase is Phase.UNKNOWN or config.apply != "paid":
        return tally
    if n_chosen:
        tally.event(Event.PREFIX_REWRITE_REPAID)
        tally.decline(Decline.DROP_UNAFFORDABLE_PRUNED, n_drops - n_chosen)
    else:
        tally.decline(Decline.PREFIX_REWRITE_NOT_REPAID)
    return tally
