"""What follows from a reply: the candidates that may go, and a count for everything that stood in the way."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cg.sweep.body.transcript import Transcript
from cg.sweep.counters import Decline, Event
from cg.sweep.judging.coreference import Index
from cg.sweep.judging.inventory import Candidate
from cg.verdicts import Action, Decoded, Status, Verdict
from cg.verdicts import Counter as Said

# What the decoder counts about the reply as such; what it counts per verdict is decided here, label by label.
OF_THE_REPLY = {
    Said.UNKNOWN_LABEL: Decline.VERDICT_UNKNOWN_LABEL,
    Said.NO_LABEL: Decline.VERDICT_NO_LABEL,
    Said.DUPLICATE_LABEL: Decline.VERDICT_DUPLICATE_LABEL,
    Said.STRAY: Decline.VERDICT_STRAY,
    Said.LABEL_SHIFT: Decline.VERDICT_LABEL_SHIFT,
}
OF_AN_ACTION = {
    Action.KEEP: Decline.KEPT,
    Action.CONFLICT: Decline.VERDICT_CONFLICT,
    Action.REFUSED: Decline.DROP_REFUSED_OBLIGATION,
}


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge made of the candidates. Each candidate is either dropped or counted once for why it stays."""

    drops: tuple[Candidate, ...]
    events: Counter[Event]
    declines: Counter[Decline]
    spent_judged: int = 0  # labels with the word drop, refused ones included: tells "none spent" from "none applied"

    @property
    def counters(self) -> Counter[str]:
        """Both families in one."""
        return Counter[str](self.events) + Counter[str](self.declines)


class Haystack:
    """Everything that the asked model read, searched for quotes.

    It is put together at the first quote, as most replies hold none, and collapsed at the first miss.
    """

    def __init__(self, texts: Callable[[], Iterable[str]]) -> None:
        self._texts = texts
        self._exact: str | None = None
        self._collapsed: str | None = None

    def __contains__(self, quote: str) -> bool:
        if self._exact is None:
            self._exact = "\n".join(self._texts())
        if quote in self._exact:
            return True
        if self._collapsed is None:
            self._collapsed = " ".join(self._exact.split())
        return " ".join(quote.split()) in self._collapsed


def haystack_of(asked: Transcript) -> Haystack:
    """The texts of an asked body: system, all prose, tool arguments, results."""
    return Haystack(lambda: (text for _, _, text in asked.texts()))


def is_owed(needed_by: str | None) -> bool:
    """Whether an answer names an obligation; any word but none does, known or not."""
    return (needed_by or "").strip().lower() not in ("", "none")


def outcome(verdict: Verdict) -> Decline | None:
    """Why the candidate of one verdict stays, or None if it may go.

    The decoder has refused drops that name a need; looking again costs nothing and does not rest on one reader.
    """
    if verdict.action is Action.DROP:
        return Decline.DROP_REFUSED_OBLIGATION if is_owed(verdict.needed_by) else None
    return OF_AN_ACTION.get(verdict.action, Decline.VERDICT_UNUSABLE)


def of_the_reply(decoded: Decoded, n_offered: int, is_fallback: bool) -> Counter[Decline]:
    """The counts that belong to the reply as a whole, whatever its verdicts say."""
    told = decoded.counters
    declines = Counter({name: told[key] for key, name in OF_THE_REPLY.items() if key in told})
    if decoded.status is Status.TRUNCATED:
        declines[Decline.REPLY_TRUNCATED] = 1
    if decoded.status is Status.UNPARSEABLE:
        declines[Decline.UNPARSEABLE] = 1
    elif decoded.status is Status.OK and not decoded.verdicts and not declines:
        name = Decline.FALLBACK_KEPT_EVERYTHING if is_fallback else Decline.KEPT_EVERYTHING
        declines[name] = 1  # an empty array is an answer: nothing is missing from it
    else:
        declines[Decline.VERDICT_MISSING] = n_offered - len(decoded.verdicts)
    return +declines


def decide(
    inventory: Sequence[Candidate],
    decoded: Decoded,
    haystack: Haystack | str | Callable[[str], bool],
    index: Index | None = None,
    *,
    is_fallback: bool = False,
) -> Judged:
    """The drops that a decoded reply authorises among the candidates it was asked about.

    Doubt keeps. A quote that the asked model never read, and a criterion that is not answered, are counted and change
    nothing. If every candidate is to go, those that the index calls open stay: an output can carry "all is spent".
    """
    events: Counter[Event] = Counter()
    declines = of_the_reply(decoded, len(inventory), is_fallback)
    if decoded.status is not Status.UNPARSEABLE:
        events[Event.ADJUDICATED] = len(inventory)
    if isinstance(haystack, str):
        whole = haystack
        haystack = Haystack(lambda: (whole,))
    was_read = haystack if callable(haystack) else haystack.__contains__
    drops: list[Candidate] = []
    spent = 0
    for verdict in decoded.verdicts:
        if not 0 <= verdict.i < len(inventory):
            declines[Decline.VERDICT_UNKNOWN_LABEL] += 1
            continue
        declines[Decline.CRITERION_MISSING] += not (verdict.needed_by or "").strip()
        quote = (verdict.quote or "").strip()
        declines[Decline.QUOTE_FABRICATED] += bool(quote) and not was_read(quote)
        spent += (verdict.verdict or "").strip().lower() == "drop"
        reason = outcome(verdict)
        if reason is None:
            drops.append(inventory[verdict.i])
        else:
            declines[reason] += 1
    drops, saved = spared(inventory, drops, index)
    declines[Decline.DROP_ALL_KEPT_OPEN] += saved
    events[Event.DROPPED] = len(drops)
    return Judged(tuple(drops), +events, +declines, spent)


def spared(inventory: Sequence[Candidate], drops: list[Candidate], index: Index | None) -> tuple[list[Candidate], int]:
    """The drops without the open ones, where a reply drops the whole inventory; and how many that saved."""
    if index is None or len(drops) < len(inventory):
        return drops, 0
    closed = [one for one in drops if not index.is_open(one.text.identity)]
    return closed, len(drops) - len(closed)
