"""From chosen outputs to frozen removals: stored first, recorded second, and only then on the wire."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cg.sweep.accounting.tally import Tally
from cg.sweep.body.marker import would_shrink, written_token
from cg.sweep.body.splice import NO_ERROR, string_token
from cg.sweep.body.transcript import ToolText, Transcript
from cg.sweep.counters import Decline, Event
from cg.sweep.effects import Freeze, Put, Steps
from cg.sweep.values import Payload, Removal


@dataclass(frozen=True, slots=True)
class Applied:
    """What now stands, by the text it replaces, and what was refused on the way."""

    removals: dict[ToolText, Removal] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)


def payload_of(transcript: Transcript, text: ToolText) -> Payload:
    """An original with the call that made it."""
    use = transcript.tool_uses.get(text.tool_use_id)
    name = use.name if use else ""
    arguments = use.arguments.decode("utf-8", "replace") if use else "{}"
    return Payload(text.identity, text.content, name, arguments)


def apply(transcript: Transcript, chosen: Sequence[ToolText], now: float) -> Steps[Applied]:
    """Store each original, read it back, record the removal; whatever is refused at any step stays whole."""
    tally = Tally()
    written = {}
    for text in chosen:
        token = written_token(text.text)
        if would_shrink(text, token):
            written[text] = token
        else:
            tally.decline(Decline.DROP_WOULD_NOT_SHRINK)
    if not written:
        return Applied(tally=tally)
    stored = yield Put(tuple(payload_of(transcript, text) for text in written))
    refused = [text for text in written if text.identity not in stored]
    if refused:
        tally.decline(Decline.STORE_REFUSED, len(refused))
    removals = tuple(
        Removal(text.identity, token, (text.end - text.start) - len(token), now)
        for text, token in written.items()
        if text.identity in stored
    )
    standing = {r.identity: r for r in (yield Freeze(removals))} if removals else {}
    done = {text: standing[text.identity] for text in written if text.identity in standing}
    tally.event(Event.APPLIED, len(done))
    return Applied(done, tally)


def substitute(transcript: Transcript, text: ToolText, answer: Removal) -> Steps[Removal | None]:
    """Freeze an answer in the place of a client's own result, so that later copies carry the same bytes.

    The result that is replaced is stored like any original. None when the store refuses: the client's text stays.
    """
    stored = yield Put((payload_of(transcript, text),))
    if text.identity not in stored:
        return None
    standing = yield Freeze((answer,))
    return standing[0] if standing else None


def answered(text: ToolText, answer: bytes, now: float, *, is_original: bool) -> Removal:
    """An answer in the place of a client's own result, which is no error any more if the answer is what was asked for."""
    token = string_token(answer)
    saved = (text.end - text.start) - len(token)
    return Removal(text.identity, token + NO_ERROR if is_original and text.is_error else token, saved, now)
