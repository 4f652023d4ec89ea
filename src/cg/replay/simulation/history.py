"""A conversation under one policy: what the client holds, what was sent of it, and the prompt that this makes.

Everything here is appended to. Only a removal goes back, to the first message that it changes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cg.replay.prompt import Breakpoint, Part, Prompt, parts_of
from cg.replay.reading import BEFORE, BEHIND, Call, Message, Output, Turn, alone
from cg.replay.simulation.bodies import Frame, body
from cg.sweep.body.splice import replace_result, splice
from cg.sweep.body.transcript import Transcript
from cg.sweep.values import Identity

Written = Mapping[Identity, bytes]  # removed output -> the JSON string token that stands in its place


class History:
    """One history of a session as a client sends it and as it leaves."""

    def __init__(self, frame: Frame, ttl_s: int, bytes_per_token: float) -> None:
        self.frame, self.ttl_s, self._bytes_per_token = (
            frame,
            ttl_s,
            bytes_per_token,
        )  # the lifetime that the client asks for
        self.written_s = ttl_s  # the lifetime of the marks as they leave
        self.messages: list[Message] = []
        self._texts: list[bytes] = []  # of the messages, as the client sends them
        self.sent: list[bytes] = []
        self._parts: list[Sequence[Part]] = []  # of each sent message
        self.places: dict[str, int] = {}  # tool_use id -> message that holds its result
        self.calls: dict[str, Call] = {}
        self.declaration: bytes | None = None
        self.next_frame: Frame | None = None  # carried from the next request on, at which the history opens anew
        self.spare: tuple[int, bytes] | None = None  # message that carries the spare breakpoint, and its text with it
        self._start()

    @property
    def model(self) -> str:
        return self.frame.model

    def _start(self) -> None:
        """An empty prompt of this frame."""
        self.prompt = Prompt(self.frame.model, bytes_per_token=self._bytes_per_token)
        self.prompt.add_tools(self._tools())
        first = len(self.prompt)
        self.prompt.add_system(self.frame.system)
        end = len(self.prompt)
        self._system_marks = range(max(first, end - 2), end)

    def _fill(self, n_messages: int) -> None:
        """Cut the prompt back to its first messages and build the rest anew."""
        self.prompt.cut(n_messages)
        for parts in self._parts[n_messages:]:
            self.prompt.add_parts(parts)

    def _tools(self) -> bytes:
        tools = self.frame.tools
        return tools if self.declaration is None else tools[:-1] + b"," + self.declaration + b"]"

    # -- what changes ------------------------------------------------------------------------------------------------

    def take(self, turn: Turn, written: Written) -> None:
        """Go on to a request: its new messages behind the old ones, or in their place where the history opens anew."""
        if self.next_frame is not None or turn.model != self.frame.model:
            self.frame = self.next_frame or replace(self.frame, model=turn.model)
            self.next_frame = None
            self._start()
            self._fill(0)
        if turn.opens:
            self._open(turn.messages, written)
            return
        for message in turn.messages:
            self._append(message, rewritten(message, written))

    def _open(self, messages: Sequence[Message], written: Written) -> None:
        before = self.sent
        self.messages, self._texts, self.sent, self._parts = [], [], [], []
        self.places, self.calls, self.spare = {}, {}, None
        texts = [rewritten(message, written) for message in messages]
        shared = next((i for i, (a, b) in enumerate(zip(before, texts, strict=False)) if a != b), len(before))
        shared = min(shared, len(texts))
        self.prompt.cut(shared)
        for i, (message, text) in enumerate(zip(messages, texts, strict=True)):
            self._append(message, text, in_prompt=i < shared)

    def _append(self, message: Message, text: bytes, *, in_prompt: bool = False) -> None:
        n = len(self.messages)
        self.places.update((output.identity.tool_use_id, n) for output in message.outputs)
        self.calls.update((call.id, call) for call in message.calls)
        self.messages.append(message)
        self._texts.append(message.json)
        self.sent.append(text)
        self._parts.append(message.parts if text is message.json else parts_of(text))
        if not in_prompt:
            self.prompt.add_parts(self._parts[-1])

    def rewrite(self, tool_use_ids: Iterable[str], written: Written) -> int | None:
        """Write the messages that hold these results anew; returns the first message that changed, None if none did."""
        places = sorted({self.places[i] for i in tool_use_ids if i in self.places})
        first = None
        for place in places:
            text = rewritten(self.messages[place], written)
            if text != self.sent[place]:
                self.sent[place], self._parts[place] = text, parts_of(text)
                first = place if first is None else first
        if first is not None:
            self._fill(first)
        return first

    def declare(self, declaration: bytes) -> None:
        """Carry one more tool from now on."""
        self.declaration = declaration
        self._start()
        self._fill(0)

    def mark_spare(self, swept: Transcript) -> None:
        """Take over the spare breakpoint of a body that the sweep wrote, where it set one."""
        last = swept.n_messages - 1
        marked = [m for section, m, _ in swept.breakpoints if section == "messages" and m < last]
        if marked:
            start, end = swept.span(marked[0])
            self.spare = marked[0], swept.body[start:end]
        else:
            self.spare = None

    # -- what stands -------------------------------------------------------------------------------------------------

    def breakpoints(self) -> list[Breakpoint]:
        """Where the body as sent asks for cache entries, in prompt order."""
        return self.breakpoints_to(self.prompt.n_messages)

    def client_breakpoints(self) -> list[Breakpoint]:
        """The same with the lifetime that the client asks for."""
        return [Breakpoint(mark.block, self.ttl_s) for mark in self.breakpoints()]

    def breakpoints_to(self, n_messages: int) -> list[Breakpoint]:
        """The same for the first `n_messages`, where something stands behind them that carries no mark."""
        spare = [] if self.spare is None else [self.prompt.last_block(self.spare[0])]
        blocks = (*self._system_marks, *spare, self.prompt.last_block(n_messages - 1))
        return [Breakpoint(block, self.written_s) for block in blocks]

    def client_body(self) -> bytes:
        """The request as the client sends it."""
        return body(self.frame, self._texts, ttl_s=self.ttl_s)

    def outputs(self, first: int = 0) -> Iterable[Output]:
        """The tool outputs of the history from message `first` on, in order."""
        return (output for n in range(first, len(self.messages)) for output in self.messages[n].outputs)


def rewritten(message: Message, written: Written) -> bytes:
    """A message's text with its removed outputs replaced."""
    gone = [output.identity for output in message.outputs if output.identity in written]
    if not gone:
        return message.json
    transcript = alone(message.json)
    replaced = [t for t in transcript.tool_texts if t.identity in written]
    edits = [edit for text in replaced for edit in replace_result(text, written[text.identity])]
    return splice(transcript.body, edits)[len(BEFORE) : -len(BEHIND)]
