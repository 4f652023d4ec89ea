"""Recovery on the wire: a reply that only calls our tool is answered here, and its client sees one message.

A round is one such reply with the answers that go back for it. Whatever is not plainly that passes through as it came;
the client, which does not know the tool, answers with an error, and later copies carry the original in its place.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cg.gateway.events import Events, Fault, Mode, Outcome, Spend, Stage
from cg.gateway.exchange import Headers
from cg.gateway.http.content_encoding import Undecodable, decoder_for, read_decoded
from cg.gateway.replies.message import Block, Message, add_usage, as_one, as_turn, of_json, visible
from cg.gateway.state.clock import Clock
from cg.gateway.turns.prepared_request import PreparedRequest
from cg.gateway.turns.turn_runner import Turns
from cg.gateway.upstream.contract import Reply, Upstream, UpstreamError
from cg.sweep.body.splice import append_messages, splice, string_token
from cg.sweep.body.transcript import read
from cg.sweep.core.expansion import NEVER_EXISTED, Expansion, expand_id
from cg.sweep.drivers import Sweep

MAX_ROUNDS = 3
MAX_REPLY_BYTES = 32 * 1024 * 1024  # a message that is held back to be looked at


@dataclass(slots=True)
class Rounds:
    """The rounds of one request: what was said in them, and what they cost."""

    turn: PreparedRequest
    headers: Headers  # of the calls
    messages: list[bytes] = field(default_factory=list)  # our additions to the history, two a round
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Rounds that were made."""
        return len(self.messages) // 2


class Recovery:
    """Answers calls of our tool inside the gateway."""

    def __init__(self, sweep: Sweep, turns: Turns, upstream: Upstream, events: Events, clock: Clock) -> None:
        self._sweep, self._turns, self._upstream = sweep, turns, upstream
        self._events, self._clock = events, clock

    async def in_json(self, raw: bytes, rounds: Rounds) -> tuple[bytes, Message | None]:
        """The reply that the client gets for one that came whole, and the first message as it came."""
        first = current = of_json(raw)
        if first is None or current is None:
            return raw, None
        kept: list[Block] = []
        usage, whole = first.usage, raw
        while calls := self.to_answer(current, rounds):
            said = await self._next_json(current, calls, rounds)
            if said is None:
                break
            last, following = said
            kept += visible(current.blocks)
            usage = add_usage(usage, following.usage)
            try:
                whole = as_one(raw, last, [*kept, *following.blocks], usage)
            except (ValueError, RecursionError):
                self._failed(rounds)
                break
            current = following
        self.told(rounds)
        return whole, first

    def to_answer(self, message: Message, rounds: Rounds) -> list[Block]:
        """The calls that are answered here; none where the reply passes through."""
        calls = message.calls()
        if not calls or rounds.n < MAX_ROUNDS:
            return calls
        for _ in calls:
            self._events.recovered(Mode.SHOWN, Outcome.ROUNDS_SPENT, rounds.n)
        return []

    async def next_reply(
        self, message: Message, calls: Sequence[Block], rounds: Rounds, suits: Callable[[Headers], bool]
    ) -> Reply | None:
        """The upstream's reply to a round, its head read; None when none came that suits, so that the calls pass
        through."""
        start = time.monotonic()
        made = len(rounds.messages)
        try:
            body, outcomes = await self._turns.run(self._round(message, calls, rounds))
            inbound = rounds.turn.inbound
            reply = await self._upstream.send("POST", inbound.target, rounds.headers, body, inbound.call)
            self._events.upstream(reply.status)
        except Exception:
            del rounds.messages[made:]
            self._events.fault(Fault.RECOVERY)
            return None
        if reply.status != 200 or not suits(reply.headers) or decoder_for(reply.headers) is None:
            await reply.close()
            del rounds.messages[made:]
            self._events.fault(Fault.RECOVERY)
            return None
        rounds.outcomes += outcomes
        self._events.took(Stage.RECOVERY, time.monotonic() - start)
        return reply

    def told(self, rounds: Rounds) -> None:
        """Count what was answered, once the client has its message."""
        for outcome in rounds.outcomes:
            self._events.recovered(Mode.HIDDEN, outcome, rounds.n)
        rounds.outcomes = []

    def spent(self, message: Message) -> None:
        """Count an inner call's usage."""
        self._events.spent(Spend.RECOVERY, message.model, message.tiers, self._clock.now())

    async def _next_json(
        self, message: Message, calls: Sequence[Block], rounds: Rounds
    ) -> tuple[bytes, Message] | None:
        """The reply to a round, as it came and as a message; None when none came that can be merged."""
        reply = await self.next_reply(message, calls, rounds, lambda headers: True)
        if reply is None:
            return None
        try:
            raw = await read_decoded(reply, MAX_REPLY_BYTES)
            said = of_json(raw)
        except (UpstreamError, Undecodable):
            said = None
        finally:
            await reply.close()
        if said is not None:
            self.spent(said)
            if said.is_whole:
                return raw, said
        self._failed(rounds)
        return None

    def _failed(self, rounds: Rounds) -> None:
        """The last round came to nothing that the client could be given: its calls pass through."""
        del rounds.messages[-2:]
        self._events.fault(Fault.RECOVERY)

    def _round(
        self, message: Message, calls: Sequence[Block], rounds: Rounds
    ) -> Callable[[], tuple[bytes, list[Outcome]]]:
        """For a worker: look the originals up, and write the body of the next round."""

        def work() -> tuple[bytes, list[Outcome]]:
            results, outcomes = [], []
            for call in calls:
                expansion = self._expand(call, rounds.turn)
                outcomes.append(outcome_of(expansion))
                results.append(
                    b'{"type":"tool_result","tool_use_id":%b,"content":%b}'
                    % (json.dumps(call["id"]).encode(), string_token(expansion.answer))
                )
            rounds.messages += [
                as_turn(message.blocks),
                b'{"role":"user","content":[%b]}' % b",".join(results),
            ]
            sent = read(rounds.turn.body)
            return splice(sent.body, [append_messages(sent, *rounds.messages)]), outcomes

        return work

    def _expand(self, call: Block, turn: PreparedRequest) -> Expansion:
        key = expand_id(json.dumps(call["input"]).encode())
        if key is None:
            return Expansion(NEVER_EXISTED.encode())
        with self._turns.holding(turn.thread):
            return self._sweep.expand(turn.thread, key, self._clock.now(), transcript=turn.transcript)


def outcome_of(expansion: Expansion) -> Outcome:
    """What an answer was, as it is counted."""
    if expansion.sha256 is not None:
        return Outcome.ORIGINAL
    return Outcome.UNKNOWN if expansion.answer == NEVER_EXISTED.encode() else Outcome.EXPIRED
