"""What one more turn costs the cache model, at lengths of the session that differ a hundredfold."""

import json

from cg.replay.cache_model import Breakpoint, CacheModel, Prompt, parts_of

STEP_S = 10.0
OUTPUT_BYTES = 2000  # the mean tool output of recorded sessions


def message(n: int, role: str = "user") -> bytes:
    """A message of one block, about as large as a recorded one."""
    text = f"{n} " + "output of a tool, in words. " * (OUTPUT_BYTES // 28)
    return json.dumps({"role": role, "content": [{"type": "text", "text": text}]}).encode()


class Turn:
    """One request of a warm session: two new messages, a mark on the system prompt and one on the last block."""

    params, param_names = [10, 100, 1000, 10_000], ["turns"]
    number = 100

    def setup(self, turns: int) -> None:
        self.model, self.prompt, self.now = CacheModel(), Prompt("m"), 0.0
        self.prompt.add_system(json.dumps("s" * 40_000).encode())
        self.pair = [message(1, "assistant"), message(2)]
        self.parts = [parts_of(text) for text in self.pair]
        for _ in range(turns):
            self.time_request(turns)

    def time_request(self, turns: int) -> None:
        """The blocks were read before, as for the second and later policies of a comparison."""
        for parts in self.parts:
            self.prompt.add_parts(parts)
        self._ask()

    def time_read_and_request(self, turns: int) -> None:
        """The blocks are read from the messages' JSON."""
        for text in self.pair:
            self.prompt.add_message(text)
        self._ask()

    def _ask(self) -> None:
        self.now += STEP_S
        marks = [Breakpoint(0, 300), Breakpoint(self.prompt.last_block(), 300)]
        self.model.request(self.prompt, marks, self.now)
