"""One session under one policy, request by request.

Cost per request does not grow with the session: the line, the prompt and the cache model are appended to, and the sweep
runs in full only where it could do something (`cg.replay.simulation.sweep_actor`).
"""

import dataclasses
from collections.abc import Callable, Set
from dataclasses import dataclass
from math import inf

from cg.replay.cache_model import CacheModel, prompt_of
from cg.replay.policies import Oracle, Policy, Replies
from cg.replay.reading import Recording, Turn, alone
from cg.replay.row import Row
from cg.replay.settings import Settings
from cg.replay.simulation.account import Account
from cg.replay.simulation.actors import Actor, Masked, Untouched
from cg.replay.simulation.askers import FolderAsker, HindsightAsker, last_message
from cg.replay.simulation.bodies import frame_for, frame_of
from cg.replay.simulation.frames import frames
from cg.replay.simulation.history import History
from cg.replay.simulation.outcomes import Outcomes
from cg.replay.simulation.sweep_actor import SweepActor
from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.economics import RELATIVE
from cg.sweep.values import Usage

EXPAND_CALL_TOKENS = 80  # an assistant's call of our tool with one id
CALL = b'{"type":"tool_use","id":"%%d","name":"%b","input":{"id":"0123456789abcdef"}}' % EXPAND_TOOL.encode()
RESULT = b'{"type":"tool_result","tool_use_id":"%d","content":%b}'


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as it was sent, for whoever watches a run."""

    turn: Turn
    usage: Usage
    row: Row  # the sums so far
    line: History
    removed: Set[str]  # tool_use ids that are gone by now
    expanded: tuple[str, ...]
    is_cold: bool  # it came a lifetime or more after the request before


Watch = Callable[[Sent], None]


def run(recording: Recording, policy: Policy, settings: Settings, watch: Watch | None = None) -> Row:
    """What a policy costs on a session, and what becomes of its outputs."""
    return Run(recording, policy, settings, watch).finish()


class Run:
    """The state of one run."""

    _swept: type[SweepActor] = SweepActor  # a study may put another way of driving the sweep here

    def __init__(self, recording: Recording, policy: Policy, settings: Settings, watch: Watch | None) -> None:
        self._recording, self._watch, self._ratio = recording, watch, settings.bytes_per_token
        first, fixed = recording.turns[0], settings.fixed_tokens
        self._frames = frames(recording.turns, self._ratio) if fixed is None else {first.index: fixed}
        frame = frame_for(recording.first, tokens=self._frames[first.index], bytes_per_token=self._ratio)
        self.line = History(frame, settings.ttl_of(recording.ttl_s), self._ratio)
        self._as_asked: CacheModel | None = None  # what the provider would hold at the client's own lifetime
        self.outcomes = Outcomes(recording.hindsight)
        self.account = Account(CacheModel(min_tokens=settings.min_cache_tokens), settings.prices, Row())
        self._actor = self._make_actor(policy, settings)
        self._last_at: float | None = None
        self._n_sent = 0  # messages of the last request: what an ask rides on
        self._rides = True  # False while the history opens anew: an ask would ride on another one

    def _make_actor(self, policy: Policy, settings: Settings) -> Actor:
        if policy.mask is not None:
            return Masked(self.line, policy.mask, self.account.row, self.outcomes, self._ratio)
        if policy.config is None:
            return Untouched(self.line)
        config = policy.config
        if config.lifetime == "client":
            config = dataclasses.replace(config, lifetime=settings.lifetime)
        if config.lifetime != "client":
            self._as_asked = CacheModel(min_tokens=settings.min_cache_tokens)
        swept = self._swept(
            self.line,
            config,
            self.account,
            self.outcomes,
            prices=settings.prices,
            bytes_per_token=self._ratio,
            every_turn=settings.every_turn,
            before=self._recording.before,
        )
        swept.asker = self._make_asker(policy, settings, swept)
        return swept

    def _make_asker(self, policy: Policy, settings: Settings, swept: SweepActor) -> HindsightAsker | FolderAsker | None:
        def charge(body: bytes, output: int) -> Usage:
            return self._charge(body, swept.now, output)

        name, n = self._recording.name, settings.verdict_tokens
        match policy.judge:
            case Oracle():
                return HindsightAsker(self._recording.hindsight, policy.judge, name, n, charge)
            case Replies():
                return FolderAsker(policy.judge.folder, name, n, charge)
            case _:
                return None

    def _charge(self, body: bytes, at: float, output: int) -> Usage:
        """What an ask costs: over what was last sent, with the question behind it; a fallback stands alone."""
        line = self.line
        if self._rides and b'"tools":' in body[: body.index(b'"messages":')]:
            prompt, breakpoints = line.prompt.copy(), line.breakpoints_to(self._n_sent)
            prompt.cut(self._n_sent)
            prompt.add_message(last_message(body))
        else:
            prompt, breakpoints = prompt_of(body, bytes_per_token=self._ratio)
        return self.account.call("ask", line.model, prompt, breakpoints, at, output)

    def finish(self) -> Row:
        """Run all of it."""
        for turn in self._recording.turns:
            self._step(turn)
        row = self.account.row
        self.outcomes.count(row)
        self.account.row = after = Row()
        self._actor.gap(inf, self._recording.turns[-1].index + 1)
        row.after_end = after.total
        return row

    def _step(self, turn: Turn) -> None:
        self._actor.gap(turn.at, turn.index)
        n_old = 0 if turn.opens else len(self.line.messages)
        self._rides, held_s = not turn.opens, self.line.written_s
        if turn.index in self._frames and turn.index != self._recording.turns[0].index:
            self.line.next_frame = frame_of(turn.model, self._frames[turn.index], self._ratio)
        self._actor.turn(turn)
        self._rides = True
        self.account.terms = turn.terms
        line, row = self.line, self.account.row
        output = max(turn.usage.output if turn.usage else 0, round(turn.reply_bytes / self._ratio))
        usage = self.account.call("request", line.model, line.prompt, line.breakpoints(), turn.at, output)
        self._actor.bill(usage)
        if self._as_asked is not None:
            asked = self._as_asked.request(line.prompt, line.client_breakpoints(), turn.at)
            saved = self.account.difference(asked, usage, line.model, turn.at)
            row.lifetime.include(*saved)
        is_cold = bool(n_old) and self._last_at is not None and turn.at - self._last_at >= held_s
        if is_cold:
            again = max(0, line.prompt.tokens_to(line.prompt.last_block(n_old - 1)) - usage.read)
            row.cold_requests += 1
            row.cold_excess += again * (RELATIVE.write(line.written_s) - RELATIVE.read)
            saved = self.account.worth_of_reading(usage.read, held_s, line.model, turn.at, line.prompt.tokens)
            row.alive.include(*saved)
        self._last_at, self._n_sent = turn.at, len(line.messages)
        expanded = self._expand(turn)
        if self._watch is not None:
            self._watch(Sent(turn, usage, row, line, self.outcomes.removed, expanded, is_cold))

    def _expand(self, turn: Turn) -> tuple[str, ...]:
        """The round that brings back what the answer to this request uses of what was removed.

        Answered beside the conversation, as the gateway does: the request once more with a call and the originals behind
        it, which the client never sees. The originals are read fresh; a later use brings them back again.
        """
        line = self.line
        wanted = [i for i in self.outcomes.needed_at(turn.index) if i in line.places]
        if not wanted:
            return ()
        n = line.prompt.n_messages
        line.prompt.add_message(
            b'{"role":"assistant","content":[%s]}' % b",".join(CALL % i for i in range(len(wanted)))
        )
        results = [RESULT % (i, self._original(tool_use_id)) for i, tool_use_id in enumerate(wanted)]
        line.prompt.add_message(b'{"role":"user","content":[%s]}' % b",".join(results))
        output = EXPAND_CALL_TOKENS * len(wanted)
        self.account.call("expansion", line.model, line.prompt, line.breakpoints_to(n), turn.at, output)
        line.prompt.cut(n)
        self.account.row.expansions += len(wanted)
        for tool_use_id in wanted:
            self._actor.expand(tool_use_id, turn.at)
        return tuple(wanted)

    def _original(self, tool_use_id: str) -> bytes:
        """The string token of an output as the client holds it."""
        transcript = alone(self.line.messages[self.line.places[tool_use_id]].json)
        texts = (t for t in transcript.tool_texts if t.tool_use_id == tool_use_id)
        text = max(texts, key=lambda t: t.size_bytes)
        return transcript.body[text.start : text.end]
