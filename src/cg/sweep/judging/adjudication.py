"""One adjudication: the ask over the cached prefix, at most one fallback, and what the usage says of both."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cg.sweep.accounting.tally import Tally
from cg.sweep.body.splice import ask_body
from cg.sweep.body.transcript import Transcript
from cg.sweep.config import Config
from cg.sweep.counters import Decline, Event
from cg.sweep.effects import Answer, Ask, Failure, Steps
from cg.sweep.judging.coreference import Index
from cg.sweep.judging.inventory import Candidate
from cg.sweep.judging.question import REPLY_TOKENS, fallback_question, intent, question, sample
from cg.sweep.judging.verdict_rules import decide, haystack_of
from cg.sweep.ledger import AskLeg, Reason
from cg.sweep.values import Usage
from cg.verdicts import decode

PREFIX, FALLBACK = "prefix_ask", "fallback"


@dataclass(frozen=True, slots=True)
class Asked:
    """What an adjudication decided, what its legs cost, and how the provider's cache took it."""

    drops: tuple[Candidate, ...] = ()
    legs: tuple[AskLeg, ...] = ()
    model: str = ""
    offered: int = 0
    judged_spent: int = 0
    paid_misses: int = 0
    read_prefix: bool = False  # the prefix was read, which renews its entry
    reply_read: bool = False  # an answer was found in the reply
    tally: Tally = field(default_factory=Tally)

    @property
    def reason(self) -> Reason:
        """How it ended, as the reason of the turn that it was made for; JUDGED if it brought drops."""
        if not self.legs:
            return Reason.NO_ASKER
        if not any(leg.answered for leg in self.legs):
            return Reason.ASK_FAILED
        return Reason.JUDGED if self.drops else Reason.NOTHING_SPENT


def adjudicate(
    sent: Transcript | None, current: Transcript, inventory: Sequence[Candidate], index: Index, config: Config
) -> Steps[Asked]:
    """Ask over `sent`, the body whose prefix the provider holds; without one, or when it was missed, over samples.

    Two legs at the most, each with a deadline of its own: a slow first leg leaves the second its time.
    """
    tally = Tally()
    legs: list[AskLeg] = []
    text: str | None = None
    misses, read = 0, False
    if sent is None:
        tally.decline(Decline.NO_PREFIX)
    else:
        shown = index if config.evidence else None
        body = ask_body(sent, question(inventory, index=shown, head_line=config.head_line))
        answer: Answer | Failure = yield Ask(body, config.ask_timeout_s)
        if isinstance(answer, Failure) and not answer.asker:
            tally.decline(Decline.NO_ASKER)
            return Asked(tally=tally)
        legs.append(_leg(PREFIX, answer))
        if isinstance(answer, Failure):
            tally.decline(Decline.ASK_FAILED)
        else:
            misses, read = _cache_outcome(answer.usage, tally)
            # An ask that read nothing was not over the prefix that is priced and trusted: its words are not used.
            text = answer.text if read else None
    fell_back = text is None
    if fell_back:
        text = yield from _fall_back(current, inventory, index, config, tally, legs)
    outcome = Asked(
        legs=tuple(legs), model=current.model, offered=len(inventory), paid_misses=misses, read_prefix=read, tally=tally
    )
    return outcome if text is None else _judged(outcome, text, sent or current, inventory, index, fell_back)


def _leg(name: str, answer: Answer | Failure) -> AskLeg:
    if isinstance(answer, Failure):
        return AskLeg(name, None, answer.milliseconds, False)
    return AskLeg(name, answer.usage, answer.milliseconds, True)


def _cache_outcome(usage: Usage | None, tally: Tally) -> tuple[int, bool]:
    """(paid misses, prefix read): a read of zero or a paid write each say that the ask did not ride on the cache.

    Where the provider does not say, the entry counts as renewed: to take a live one for dead would break it.
    """
    if usage is None:
        return 0, True
    wrote = usage.write_5m + usage.write_1h
    if usage.read == 0:
        tally.decline(Decline.PREFIX_CACHE_READ_ZERO)
    if wrote:
        tally.decline(Decline.PREFIX_CACHE_WRITE)
    missed = usage.read == 0 or wrote > 0
    if not missed:
        tally.event(Event.PREFIX_CACHE_READ_OK)
    return int(missed), usage.read > 0


def _fall_back(
    current: Transcript, inventory: Sequence[Candidate], index: Index, config: Config, tally: Tally, legs: list[AskLeg]
) -> Steps[str | None]:
    """The samples ask, unless it is switched off; None when it brought nothing."""
    if config.block_fallback:
        tally.decline(Decline.FALLBACK_BLOCKED)
        return None
    answer: Answer | Failure = yield Ask(
        fallback_body(current, inventory, index if config.evidence else None), config.fallback_timeout_s
    )
    if isinstance(answer, Failure):
        if answer.asker:
            legs.append(_leg(FALLBACK, answer))
        tally.decline(Decline.FALLBACK_FAILED if answer.asker else Decline.NO_ASKER)
        return None
    legs.append(_leg(FALLBACK, answer))
    tally.event(Event.FALLBACK_USED)
    return answer.text


def fallback_body(current: Transcript, inventory: Sequence[Candidate], index: Index | None) -> bytes:
    """A request of its own to the same model, with the beginning of each output in place of the conversation."""
    samples = [sample(candidate.text.content) for candidate in inventory]
    prompt = fallback_question(inventory, intent(current), samples, index=index)
    request = {
        "model": current.model,
        "max_tokens": REPLY_TOKENS,
        "messages": [{"role": "user", "content": prompt}],
    }
    return json.dumps(request).encode()


def _judged(
    outcome: Asked, text: str, read_by_model: Transcript, inventory: Sequence[Candidate], index: Index, fell_back: bool
) -> Asked:
    """The reply's verdicts as decisions, added to what the legs brought."""
    decoded = decode(text, range(len(inventory)))
    judged = decide(inventory, decoded, haystack_of(read_by_model), index, is_fallback=fell_back)
    outcome.tally.events.update(judged.events)
    outcome.tally.declines.update(judged.declines)
    return replace(
        outcome, drops=judged.drops, judged_spent=judged.spent_judged, reply_read=decoded.status != "unparseable"
    )
