"""What a policy does to a conversation: nothing, or a rule that is applied at every request."""

from collections import deque
from typing import Protocol

from cg.replay.policies import Mask
from cg.replay.reading import Output, Turn, alone
from cg.replay.row import Row
from cg.replay.simulation.history import History
from cg.replay.simulation.outcomes import Outcomes
from cg.sweep.body.marker import would_shrink, written_token
from cg.sweep.values import Identity, Usage


class Actor(Protocol):
    """Takes a line from request to request and books what it did."""

    def gap(self, until: float, request: int) -> None:
        """What is due after the last request and before `until`, when `request` comes."""
        ...

    def turn(self, turn: Turn) -> None:
        """Take the line on to this request."""
        ...

    def bill(self, usage: Usage) -> None:
        """What the request cost."""
        ...

    def expand(self, tool_use_id: str, at: float) -> None:
        """A removed output was asked for."""
        ...


class Untouched:
    """The client's own requests."""

    def __init__(self, line: History) -> None:
        self._line = line

    def gap(self, until: float, request: int) -> None:
        return

    def turn(self, turn: Turn) -> None:
        self._line.take(turn, {})

    def bill(self, usage: Usage) -> None:
        return

    def expand(self, tool_use_id: str, at: float) -> None:
        raise AssertionError("nothing was removed")


class Masked:
    """A mask by age: what it removes is what the sweep would write, without a tool that brings it back.

    It asks nobody and waits for nothing, so each request costs the rewrite behind the output that has just grown old.
    """

    def __init__(self, line: History, mask: Mask, row: Row, outcomes: Outcomes, bytes_per_token: float) -> None:
        self._line, self._mask, self._row, self._outcomes = line, mask, row, outcomes
        self._ratio = bytes_per_token
        self._written: dict[Identity, bytes] = {}
        self._young: deque[tuple[int, Output]] = deque()  # outputs that may still go, oldest first

    def gap(self, until: float, request: int) -> None:
        return

    def turn(self, turn: Turn) -> None:
        line = self._line
        if turn.opens:
            self._young.clear()
        old = 0 if turn.opens else len(line.messages)
        line.take(turn, self._written)
        for n in range(old, len(line.messages)):
            for output in line.messages[n].outputs:
                if self._may_go(output):
                    self._young.append((n, output))
        self._outcomes.offer((output.identity.tool_use_id for _, output in self._young), turn.index)
        gone = [output.identity for output in self._grown_old()]
        changed = [identity.tool_use_id for identity in gone if self._write(identity, turn.index)]
        first = line.rewrite(changed, self._written)
        self._row.prefix_breaks += first is not None and first < old

    def bill(self, usage: Usage) -> None:
        return

    def expand(self, tool_use_id: str, at: float) -> None:
        return

    def _may_go(self, output: Output) -> bool:
        is_big = output.size_bytes / self._ratio >= self._mask.min_tokens
        return is_big and output.identity not in self._written

    def _grown_old(self) -> list[Output]:
        """The outputs that the rule lets go of at this request."""
        newest = len(self._line.messages) - 1
        gone = []
        while self._young and (
            self._young[0][0] < newest if self._mask.keep is None else len(self._young) > self._mask.keep
        ):
            gone.append(self._young.popleft()[1])
        return gone

    def _write(self, identity: Identity, request: int) -> bool:
        """Decide what stands in an output's place; False if nothing shorter does."""
        message = self._line.messages[self._line.places[identity.tool_use_id]]
        text = next(t for t in alone(message.json).tool_texts if t.identity == identity)
        token = written_token(text.text)
        if not would_shrink(text, token):
            return False
        self._written[identity] = token
        self._row.removals += 1
        self._row.removed_tokens += (text.end - text.start - len(token)) / self._ratio
        self._outcomes.remove(identity.tool_use_id, request)
        return True
