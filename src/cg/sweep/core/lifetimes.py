"""The lifetime of a request's marks, and what it costs beside the client's own."""

import math
from dataclasses import dataclass
from typing import Any

from cg.sweep.core.request_state import RequestState, ratio
from cg.sweep.counters import Decline, Event
from cg.sweep.effects import Recall, Steps
from cg.sweep.history.branches import Continuation, place
from cg.sweep.planning.gaps import CONVERSATIONS, Client, Habits, bin_of
from cg.sweep.planning.lifetime import NEEDED, Choice, Planner, Why, bill
from cg.sweep.values import DIGEST_BYTES, Phase, Switch

DECLINED = {Why.UNSURE: Decline.LIFETIME_UNSURE, Why.NOT_COVERED: Decline.LIFETIME_NOT_COVERED}
LOST = (Phase.COLD, Phase.BROKEN)


def count_gap(state: RequestState, window_s: float) -> None:
    """Note how long the branch waited for this request, and that a conversation has begun."""
    where, tally, branch = state.place, state.tally, state.place.branch
    if where.standing is Continuation.EXTENDS and branch is not None:
        # An ask or a ping of ours, which moves the clock, is made when so much of a lifetime has passed.
        before = (branch.ttl_s or 0) - window_s if branch.asked_at == branch.clock else 0.0
        length = bin_of(state.now - branch.clock + before)
        if length is not None:
            tally.gaps[length] += 1
    elif _begins(state):
        tally.gaps[CONVERSATIONS] += 1


def _begins(state: RequestState) -> bool:
    """A conversation's first request: what came before in its thread, if anything, were single questions."""
    transcript = state.transcript
    is_new = state.place.standing in (Continuation.FIRST, Continuation.OPENS) and not transcript.assistant_turns
    return is_new and transcript.has_tools and all(len(b.chain) <= DIGEST_BYTES for b in state.thread.branches)


def decide(state: RequestState, planner: Planner, client: Client) -> Steps[None]:
    """Settle the lifetime of this request's marks, and count what it costs beside the client's own."""
    transcript, where = state.transcript, state.place
    if not planner.is_active or transcript.ttl_s is None:
        return
    if not planner.may_write(transcript, state.thread) or (state.switch is not Switch.ON and _is_lost(state)):
        state.tally.decline(Decline.LIFETIME_LEFT)
        state.choice = Choice(transcript.ttl_s, Why.LEFT)
        return
    if where.standing is Continuation.RETRY:
        assert where.branch is not None
        state.choice = Choice(where.branch.ttl_s or transcript.ttl_s, Why.KEPT)
        return
    sizes = _sizes(state)
    if not _is_lost(state):
        state.choice = Choice(state.kept_s or transcript.ttl_s, Why.KEPT)
    else:
        habits: Habits = (yield Recall(client.user)) if planner.learns else Habits()
        state.choice = planner.choose(transcript.ttl_s, sizes.prompt, habits, client)
    _count_difference(state, sizes, state.choice.ttl_s)
    if state.choice.why in DECLINED:
        state.tally.decline(DECLINED[state.choice.why])
    state.tally.event(Event.LIFETIME_WRITTEN, int(state.choice.ttl_s != transcript.ttl_s))


def keep(state: RequestState, planner: Planner) -> None:
    """Only what was decided before, for a turn in which something of ours failed."""
    transcript, thread = state.transcript, state.thread
    if planner.may_write(transcript, thread):
        branch = place(transcript, thread, 0.0).branch  # of no moment: also the same body again goes on from its branch
        state.choice = Choice(planner.kept(transcript, thread, branch) or 0, Why.KEPT)


def described(state: RequestState) -> dict[str, Any] | None:
    """How the lifetime was settled, for the report; None where lifetimes are the client's."""
    choice = state.choice
    if choice is None:
        return None
    found: dict[str, Any] = {"asked_s": state.transcript.ttl_s, "written_s": choice.ttl_s, "why": choice.why.value}
    if choice.chance is not None:
        found |= {"chance_within_the_hour": round(choice.chance, 3), "needed": round(NEEDED, 3)}
    return found


def _is_lost(state: RequestState) -> bool:
    """The prefix is written anyway: a first body that no answer stands in, and every cold or broken one."""
    opens = state.place.branch is None and not state.transcript.assistant_turns
    return opens or state.phase in LOST


@dataclass(frozen=True, slots=True)
class _Sizes:
    """A prompt in tokens: what the provider may hold of it, and what is new."""

    prefix: float
    behind: float

    @property
    def prompt(self) -> float:
        return self.prefix + self.behind


def _sizes(state: RequestState) -> _Sizes:
    transcript, common = state.transcript, state.place.common
    n, per_token = transcript.n_messages, ratio(state.thread)
    start = transcript.span(common - 1)[1] if common else transcript.span(0)[0] if n else 0
    behind = transcript.span(n - 1)[1] - start if n else 0
    return _Sizes((len(transcript.body) - behind) / per_token, behind / per_token)


def _count_difference(state: RequestState, sizes: _Sizes, written_s: int) -> None:
    """Count what this request costs at the lifetime that is written beside the client's own, by its sizes."""
    branch, client_s = state.place.branch, state.transcript.ttl_s or written_s
    holds = branch is not None and not state.place.head_changed and state.phase is not Phase.BROKEN
    idle = state.now - branch.clock if branch is not None and holds else math.inf
    held_s = (branch.ttl_s if branch is not None else None) or written_s
    ours = bill(sizes.prefix, sizes.behind, written_s, is_read=idle < held_s)
    more = round(ours - bill(sizes.prefix, sizes.behind, client_s, is_read=idle < client_s))
    state.tally.event(Event.LIFETIME_COST_UNITS, max(0, more))
    state.tally.event(Event.LIFETIME_GAINED_UNITS, max(0, -more))
