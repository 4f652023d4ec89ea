"""Recovery on the wire: a reply that only calls our tool is answered here, and its client sees one message.

A round is one such reply with the answers that go back for it. Whatever is not plainly that passes through as it came;
the client, which does not know the tool, answers with an error, and later copies carry the original in its place.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cg.gateway.events import (
    Events,
    ExpandAnswered,
    Fault,
    Mode,
    ModelCalled,
    Outcome,
    Spend,
    Stage,
    StageTimed,
    UpstreamReplied,
)
from cg.gateway.exchange import Headers
from cg.gateway.http.content_encoding import Undecodable, decoder_for, read_decoded
from cg.gateway.replies.message import (
    Block,
    ReplyMessage,
    add_usage,
    assistant_message,
    merged_reply,
    of_json,
    without_calls,
)
from cg.gateway.state.clock import Clock
from cg.gateway.turns.prepared_request import PreparedRequest
from cg.gateway.turns.turn_runner import TurnRunner
from cg.gateway.upstream.contract import Reply, Upstream, UpstreamError
from cg.sweep.body.splice import append_messages, splice, string_token
from cg.sweep.body.transcript import read
from cg.sweep.core.expansion import UNKNOWN_ID, Expansion, expand_id
from cg.sweep.drivers import Sweep
from cg.sweep.store import StoreError

MAX_ROUNDS = 3
MAX_REPLY_BYTES = 32 * 1024 * 1024  # a message that is held back to be looked at


Round = tuple[bytes, list[bytes], list[Outcome]]  # the next body, all our additions to its history, what calls brought


@dataclass(slots=True)
class ExpansionRounds:
    """The rounds of one request: what was reply in them, and what they cost."""

    turn: PreparedRequest
    headers: Headers  # of the calls
    messages: list[bytes] = field(default_factory=list)  # our additions to the history, two a round
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Rounds that were made."""
        return len(self.messages) // 2


class Expander:
    """Answers calls of our tool inside the gateway."""

    def __init__(self, sweep: Sweep, turns: TurnRunner, upstream: Upstream, events: Events, clock: Clock) -> None:
        self._sweep, self._turns, self._upstream = sweep, turns, upstream
        self._events, self._clock = events, clock

    async def in_json(self, raw: bytes, rounds: ExpansionRounds) -> tuple[bytes, ReplyMessage | None]:
        """The reply that the client gets for one that came whole, and the first message as it came."""
        first = current = of_json(raw)
        if first is None or current is None:
            return raw, None
        blocks: list[Block] = []
        usage, body = first.usage, raw
        while calls := self.to_answer(current, rounds):
            merged = await self._next_json(current, calls, rounds)
            if merged is None:
                break
            last, following = merged
            blocks += without_calls(current.blocks)
            usage = add_usage(usage, following.usage)
            try:
                body = merged_reply(raw, last, [*blocks, *following.blocks], usage)
            except (ValueError, RecursionError):
                self._failed(rounds)
                break
            current = following
        self.count_answers(rounds)
        return body, first

    def to_answer(self, message: ReplyMessage, rounds: ExpansionRounds) -> list[Block]:
        """The calls that are answered here; none where the reply passes through."""
        calls = message.calls()
        if not calls or rounds.n < MAX_ROUNDS:
            return calls
        for _ in calls:
            self._events.tell(ExpandAnswered(Mode.SHOWN, Outcome.ROUNDS_SPENT, rounds.n))
        return []

    async def next_reply(
        self, message: ReplyMessage, calls: Sequence[Block], rounds: ExpansionRounds, suits: Callable[[Headers], bool]
    ) -> Reply | None:
        """The upstream's reply to a round, its head read; None when none came that suits, so that the calls pass
        through."""
        start = time.monotonic()
        made, turn = len(rounds.messages), rounds.turn
        try:
            body, rounds.messages, outcomes = await self._turns.run_or(
                self._round(message, calls, rounds, self._from_body_or_store(turn)),
                self._round(message, calls, rounds, self._from_body(turn)),
            )
            inbound = rounds.turn.inbound
            reply = await self._upstream.send("POST", inbound.target, rounds.headers, body, inbound.call)
            self._events.tell(UpstreamReplied(reply.status))
        except Exception:
            del rounds.messages[made:]
            self._events.tell(Fault.RECOVERY)
            return None
        if reply.status != 200 or not suits(reply.headers) or decoder_for(reply.headers) is None:
            await reply.close()
            del rounds.messages[made:]
            self._events.tell(Fault.RECOVERY)
            return None
        rounds.outcomes += outcomes
        self._events.tell(StageTimed(Stage.RECOVERY, time.monotonic() - start))
        return reply

    def count_answers(self, rounds: ExpansionRounds) -> None:
        """Count what was answered, once the client has its message."""
        for outcome in rounds.outcomes:
            self._events.tell(ExpandAnswered(Mode.HIDDEN, outcome, rounds.n))
        rounds.outcomes = []

    def count_call(self, message: ReplyMessage) -> None:
        """Count an inner call's usage."""
        self._events.tell(ModelCalled(Spend.RECOVERY, message.model, message.tiers, self._clock.now()))

    async def _next_json(
        self, message: ReplyMessage, calls: Sequence[Block], rounds: ExpansionRounds
    ) -> tuple[bytes, ReplyMessage] | None:
        """The reply to a round, as it came and as a message; None when none came that can be merged."""
        reply = await self.next_reply(message, calls, rounds, lambda headers: True)
        if reply is None:
            return None
        try:
            raw = await read_decoded(reply, MAX_REPLY_BYTES)
            following = of_json(raw)
        except (UpstreamError, Undecodable):
            following = None
        finally:
            await reply.close()
        if following is not None:
            self.count_call(following)
            if following.is_complete:
                return raw, following
        self._failed(rounds)
        return None

    def _failed(self, rounds: ExpansionRounds) -> None:
        """The last round came to nothing that the client could be given: its calls pass through."""
        del rounds.messages[-2:]
        self._events.tell(Fault.RECOVERY)

    def _round(
        self, message: ReplyMessage, calls: Sequence[Block], rounds: ExpansionRounds, answer: Callable[[str], Expansion]
    ) -> Callable[[], Round]:
        """For a worker: look the originals up, and write the body of the next round."""

        def work() -> Round:
            results, outcomes = [], []
            for call in calls:
                key = expand_id(json.dumps(call["input"]).encode())
                expansion = UNKNOWN_ID if key is None else answer(key)
                outcomes.append(Outcome(expansion.outcome))
                results.append(
                    b'{"type":"tool_result","tool_use_id":%b,"content":%b}'
                    % (json.dumps(call["id"]).encode(), string_token(expansion.answer))
                )
            answered = b'{"role":"user","content":[%b]}' % b",".join(results)
            messages = [*rounds.messages, assistant_message(message.blocks), answered]
            sent = read(rounds.turn.body)
            return splice(sent.body, [append_messages(sent, *messages)]), messages, outcomes

        return work

    def _from_body_or_store(self, turn: PreparedRequest) -> Callable[[str], Expansion]:
        def answer(key: str) -> Expansion:
            with self._turns.thread_lock(turn.thread):
                return self._sweep.expand(
                    turn.thread, key, self._clock.now(), transcript=turn.transcript, carried=turn.swept.carries
                )

        return answer

    def _from_body(self, turn: PreparedRequest) -> Callable[[str], Expansion]:
        """The originals that stand in the body that was answered: no store is asked for them, and none can keep them."""

        def answer(key: str) -> Expansion:
            expansion = self._sweep.expand_in_body(key, turn.transcript, turn.swept.carries)
            if expansion is None:
                raise StoreError("the body does not hold it, and the store does not answer")
            return expansion

        return answer
