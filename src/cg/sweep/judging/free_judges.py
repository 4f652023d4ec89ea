"""The judges that ask nobody: recency and the index, the free baselines that a model has to beat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cg.sweep.config import Config
from cg.sweep.counters import Decline, Event
from cg.sweep.judging.coreference import Index, Standing
from cg.sweep.judging.inventory import Candidate
from cg.sweep.judging.quiet import Quiet, spent
from cg.sweep.judging.verdict_rules import Judged

OF_A_STANDING = {
    Standing.OPAQUE: Decline.INDEX_OPAQUE,
    Standing.OPEN: Decline.INDEX_OPEN,
    Standing.CLOSED: Decline.INDEX_CLOSED,
}


def recency(candidates: Sequence[Candidate], keep_newest: int) -> Judged:
    """All but the newest `keep_newest` candidates, which stand in body order. It judges nothing."""
    n_old = max(0, len(candidates) - keep_newest)
    return judged(tuple(candidates[:n_old]), Counter({Decline.NEWEST_KEPT: len(candidates) - n_old}))


def by_index(candidates: Sequence[Candidate], index: Index) -> Judged:
    """The candidates that introduced something nobody used, with the turns after them that the index was built with."""
    drops = []
    declines: Counter[Decline] = Counter()
    for candidate in candidates:
        standing = index.records[candidate.text.identity].standing
        if standing is Standing.UNREFERENCED:
            drops.append(candidate)
        else:
            declines[OF_A_STANDING[standing]] += 1
    return judged(tuple(drops), declines)


def by_quiet(candidates: Sequence[Candidate], quiet: Quiet, config: Config) -> Judged:
    """The candidates that nothing leans on any more, but for those that the newest task names (`rescue`)."""
    drops = []
    declines: Counter[Decline] = Counter()
    for candidate in candidates:
        identity = candidate.text.identity
        if not spent(quiet, identity, config.quiet_requests, config.run_log_requests):
            declines[Decline.STILL_IN_USE] += 1
        elif config.rescue and quiet.is_named(identity):
            declines[Decline.NAMED_BY_USER] += 1
        else:
            drops.append(candidate)
    return judged(tuple(drops), declines)


def of_what_was_read(found: Judged, answered: int) -> Judged:
    """The same without the drops behind the first `answered` messages: what a request itself brings, nobody has read."""
    drops = tuple(one for one in found.drops if one.text.message < answered)
    unread = len(found.drops) - len(drops)
    return judged(drops, found.declines + Counter({Decline.CANDIDATE_UNSEEN: unread}))


def judged(drops: tuple[Candidate, ...], declines: Counter[Decline]) -> Judged:
    return Judged(drops, +Counter({Event.DROPPED: len(drops)}), +declines, len(drops))
