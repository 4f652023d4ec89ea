"""What comes back in a request: removals that end, originals that are stored again, and answers to calls of our tool."""

from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.core.expansion import (
    expand,
    expand_id,
    in_body,
    repeated_reads,
    unanswered_expansions,
    unmarked_expansions,
)
from cg.sweep.core.removal import answered, payload_of, substitute
from cg.sweep.core.request_state import RequestState
from cg.sweep.counters import Decline, Event
from cg.sweep.effects import Put, Steps
from cg.sweep.values import Ending, Switch


def restore(state: RequestState) -> None:
    """Stop replaying removals that a client's "unchanged" notice leans on; each is restored once, for good."""
    for identity in repeated_reads(state.transcript, state.thread):
        state.ended.append((identity, Ending.RESTORED))
        state.tally.event(Event.RESTORED)
        state.frozen = {t: r for t, r in state.frozen.items() if r.identity != identity}


def end_paused(state: RequestState) -> None:
    """End the removals that this request carries, if a person wants none to stand. Answers to calls of our tool are no
    removals: without them the model would read its client's "no such tool"."""
    if state.switch is not Switch.PAUSED_ALL:
        return
    calls = state.transcript.tool_uses
    ours = {call.id for call in calls.values() if call.name == EXPAND_TOOL}
    stays = {text: removal for text, removal in state.frozen.items() if text.tool_use_id in ours}
    ended = [removal.identity for text, removal in state.frozen.items() if text not in stays]
    state.ended += [(identity, Ending.PAUSED) for identity in ended]
    state.tally.event(Event.PAUSED, len(ended))
    state.frozen = stays


def put_back(state: RequestState) -> Steps[None]:
    """Store again what a replayed removal stands for and the store let go of: the client has just sent it."""
    missing = state.thread.missing
    texts = [text for text, removal in state.frozen.items() if removal.identity in missing] if missing else []
    if texts:
        stored = yield Put(tuple(payload_of(state.transcript, text) for text in texts))
        state.tally.event(Event.PUT_BACK, len(stored))
        state.tally.decline(Decline.STORE_REFUSED, len(texts) - len(stored))


def answer_expansions(state: RequestState) -> Steps[None]:
    """Put originals in the place of the errors with which a client answered calls of our tool."""
    state.expanded.extend(unmarked_expansions(state.transcript, state.thread))
    for text, use in unanswered_expansions(state.transcript, state.thread):
        expanded = yield from expand(expand_id(use.arguments), state.transcript, state.thread)
        answer = answered(text, expanded.answer, state.now, is_original=expanded.sha256 is not None)
        kept = yield from substitute(state.transcript, text, answer)
        if kept is None:
            state.tally.decline(Decline.STORE_REFUSED)
            if expanded.sha256 is None or text.identity in state.thread.ended:
                continue
        # Where nothing can be frozen an original still leads to the same bytes at the next request: the client's "no
        # such tool" would cost the model its only way back. That it came back is counted when it first does.
        state.frozen[text] = kept or answer
        if kept is None and expanded.sha256 in state.thread.expanded:
            continue
        state.tally.event(Event.EXPANDED if expanded.sha256 else Event.EXPAND_UNRESOLVED)
        if expanded.sha256:
            state.expanded.append(expanded.sha256)


def answer_from_body(state: RequestState) -> None:
    """As `answer_expansions` for a request that is to wait for no store: what stands in the body itself is answered, with
    the bytes that are frozen for it once there is a store again."""
    for text, use in unanswered_expansions(state.transcript, state.thread):
        found = in_body(expand_id(use.arguments), state.transcript, state.thread.removals)
        if found is None or text.identity in state.thread.ended:
            continue
        state.frozen[text] = answered(text, found.answer, state.now, is_original=True)
        if found.sha256 is not None and found.sha256 not in state.thread.expanded:
            state.tally.event(Event.EXPANDED)
            state.expanded.append(found.sha256)
