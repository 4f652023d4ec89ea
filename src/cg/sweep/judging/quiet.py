"""The rule `quiet`: which outputs nothing leans on any more, as far as the body itself shows.

An output *carries* a line or an identifier (`cg.reuse`) last while no newer output, user text or answer holds it.
It is spent when all that it held has been said again by something newer (superseded), or when it has been quiet for a
number of requests: none passed in which it arrived, an answer used what it carried last, or a call read or wrote its
path. Requests are counted as answers in the body, so that the same body gives the same result, whatever was sent before.

Figures: docs/studies/policies.md.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cg.reuse import contents
from cg.sweep.body.transcript import ToolText, ToolUse, Transcript, read, strings
from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.judging.coreference import decoded_arguments
from cg.sweep.judging.paths import composed, is_same_file, named_paths, names_file
from cg.sweep.judging.run_logs import is_run_log
from cg.sweep.values import DIGEST_BYTES, Identity

MOST_CARRIERS = 3  # an item in more outputs than this tells them apart no more
FEW_IDENTIFIERS = 2  # fewer than this are chance
MOSTLY = 0.8  # of a text's bytes: with less of it recognisable nobody can tell that all of it was said again
FILE_TOOLS = frozenset(  # words of names
    ["read", "edit", "multiedit", "write", "view", "replace", "create", "patch", "notebook", "insert", "append"]
)
COMMANDS = ("command", "cmd")
CACHED_BYTES = 16 * 1024 * 1024  # of conversations that are kept read: about 50 MB

# What clients write into user messages by themselves: a tag, to its end.
CLIENT_TAG = re.compile(r"\s*<(system-reminder|(?:local-)?command-[a-z]+|task-notification|environment_[a-z]+)>")

Item = tuple[bool, str]  # (is a line, text)
Contents = tuple[set[str], set[str], set[int], float]  # of a text, as `cg.reuse.contents` has them


@dataclass(frozen=True, slots=True)
class _Call:
    """What a call is about."""

    tool: str = ""
    paths: tuple[str, ...] = ()
    command: str | None = None


@dataclass(slots=True)
class _Output:
    """One output and what of it is still carried last."""

    held: frozenset[Item]
    call: _Call
    is_error: bool
    moved_at: int  # answers in the body when it arrived or something it carried last was used
    sha256: str
    share: float  # of its bytes that are recognisable
    rest: int = 0  # lines that it carries last and that are not recognised whole
    lines: int = 0  # that it carries last
    rare_lines: int = 0  # of them, those in at most MOST_CARRIERS outputs
    rare_identifiers: int = 0


@dataclass(slots=True)
class Quiet:
    """What one conversation has said, message by message."""

    size_bytes: int = 0  # of the bodies' messages that were read; what is kept of them takes about three times that
    _chain: bytes = b""
    _answers: int = 0
    _carrier: dict[Item, int | None] = field(
        default_factory=dict
    )  # item -> the output that holds it last; None: a text
    _carriers: Counter[Item] = field(default_factory=Counter)  # item -> outputs that have held it
    _rest_carrier: dict[int, int | None] = field(default_factory=dict)  # the same for the other lines, by their hash
    _newest: dict[str, int] = field(default_factory=dict)  # SHA-256 -> the newest output with that text
    _outputs: list[_Output] = field(default_factory=list)
    _number: dict[Identity, int] = field(default_factory=dict)  # of two outputs with one identity the later counts
    _calls: dict[str, _Call] = field(default_factory=dict)  # by id
    # last part of a path -> paths that end in it -> answers when a call last read or wrote that
    _touched: dict[str, dict[str, int]] = field(default_factory=dict)
    _is_done: bool = False  # what was asked is answered: the last answer made no call
    _asked: dict[str, None] = field(default_factory=dict)  # texts of the newest task, with the letters of normal paths
    _asked_items: set[Item] = field(default_factory=set)

    def read(self, transcript: Transcript) -> "Quiet":
        """Take in what a body adds to the last one, which it must go on from; returns itself."""
        assert transcript.chain.startswith(self._chain)
        for message in range(len(self._chain) // DIGEST_BYTES, transcript.n_messages):
            self._take(transcript, message)
        self._chain = transcript.chain
        return self

    def is_before(self, transcript: Transcript) -> bool:
        """Whether a body goes on from what was read."""
        return transcript.chain.startswith(self._chain)

    def is_superseded(self, identity: Identity) -> bool:
        """Whether something newer has said all that an output held: the same text, or, of one that is mostly recognisable,
        each line and all but one of the identifiers."""
        number = self._number[identity]
        output = self._outputs[number]
        if self._newest[output.sha256] != number:
            return True
        if output.share < MOSTLY or output.rest:
            return False
        if output.rare_lines or output.rare_identifiers >= FEW_IDENTIFIERS:
            return False
        if any(self._carriers[item] <= MOST_CARRIERS for item in output.held):
            return any(self._carrier[item] != number for item in output.held)
        # All of it stands in many outputs: the newest of several copies must not go with the others.
        return not output.lines and any(is_line for is_line, _ in output.held)

    def quiet_for(self, identity: Identity, *, is_path_counted: bool = True) -> int:
        """Requests since an output arrived, was used, or, if that counts, its path was read or written."""
        output = self._outputs[self._number[identity]]
        touched = max(map(self._touched_at, output.call.paths), default=0) if is_path_counted else 0
        return self._answers - max(output.moved_at, touched)

    def is_run_log(self, identity: Identity) -> bool:
        """Whether an output says only how a run went, or that a call failed."""
        output = self._outputs[self._number[identity]]
        return output.is_error or is_run_log(output.call.tool, output.call.command)

    def is_named(self, identity: Identity) -> bool:
        """Whether the newest task names an output: its file, a line of it, or two of its identifiers."""
        output = self._outputs[self._number[identity]]
        common = output.held & self._asked_items
        if any(is_line for is_line, _ in common) or len(common) >= FEW_IDENTIFIERS:
            return True
        return any(names_file(text, path) for path in output.call.paths for text in self._asked)

    # -- one message -------------------------------------------------------------------------------------------------

    def _take(self, transcript: Transcript, message: int) -> None:
        start, end = transcript.span(message)
        self.size_bytes += end - start
        alone = read(b'{"messages":[%b]}' % transcript.body[start:end])
        for text in alone.tool_texts:
            self._bring(text)
        said = [text for kind, _, text in alone.scan.pieces() if kind == "text"]
        if transcript.roles[message] == "assistant":
            self._answer(said, alone.tool_uses.values())
        elif said:
            self._ask(transcript.roles[message], said)

    def _ask(self, role: str, said: list[str]) -> None:
        """A user's text. It takes the place of the one before it if an answer without calls stood between; what comes beside
        results, or from the client alone, is added: the task is still the one before."""
        found = [contents(text) for text in said]
        held = _items(found)
        if self._is_done and role == "user" and not all(map(_is_by_client, said)):
            self._asked_items, self._asked, self._is_done = set(), {}, False
        self._asked_items |= held
        self._asked.update(dict.fromkeys(map(composed, said)))
        self._hand_over_all(held, found, None)

    def _bring(self, text: ToolText) -> None:
        found = contents(text.text)
        call = self._calls.get(text.tool_use_id, _Call())
        output = _Output(_items([found]), call, text.is_error, self._answers, text.sha256, found[3])
        number = self._number[text.identity] = self._newest[text.sha256] = len(self._outputs)
        self._outputs.append(output)
        self._hand_over_all(output.held, [found], number)
        for item in output.held:
            if self._carriers[item] <= MOST_CARRIERS:
                output.rare_lines += item[0]
                output.rare_identifiers += not item[0]
            output.lines += item[0]

    def _answer(self, said: list[str], uses: Collection[ToolUse]) -> None:
        self._answers += 1
        self._is_done = not uses
        arguments = {use.id: decoded_arguments(use.arguments) for use in uses}
        written = [*said, *(text for value in arguments.values() for text in strings(value))]
        found = [contents(text) for text in written]
        held = _items(found)
        for item in held:
            carrier = self._carrier.get(item)
            if carrier is not None and self._carriers[item] <= MOST_CARRIERS:
                self._outputs[carrier].moved_at = self._answers
        self._hand_over_all(held, found, None)
        for use in uses:
            value = arguments[use.id]
            call = self._calls[use.id] = _Call(use.name, named_paths(value), _argument(value, COMMANDS))
            if _is_file_tool(use.name):
                for path in call.paths:
                    self._touched.setdefault(path.rpartition("/")[2], {})[path] = self._answers

    def _touched_at(self, path: str) -> int:
        """Answers when a call last read or wrote what may be this file."""
        near = self._touched.get(path.rpartition("/")[2], {})
        return max((answers for other, answers in near.items() if is_same_file(path, other)), default=0)

    def _hand_over_all(self, held: Iterable[Item], found: Iterable[Contents], carrier: int | None) -> None:
        for item in held:
            self._hand_over(item, carrier)
        for line in {line for _, _, rest, _ in found for line in rest}:
            before = self._rest_carrier.get(line)
            if before is not None:
                self._outputs[before].rest -= 1
            self._rest_carrier[line] = carrier
            if carrier is not None:
                self._outputs[carrier].rest += 1

    def _hand_over(self, item: Item, carrier: int | None) -> None:
        """An item is held last by an output, or by other text, and no more by whoever did before."""
        before = self._carrier.get(item)
        if before is not None:
            output = self._outputs[before]
            if self._carriers[item] <= MOST_CARRIERS:
                output.rare_lines -= item[0]
                output.rare_identifiers -= not item[0]
            output.lines -= item[0]
        self._carrier[item] = carrier
        if carrier is not None:
            self._carriers[item] += 1


def _items(found: Iterable[Contents]) -> frozenset[Item]:
    """The lines and identifiers of some texts."""
    held: set[Item] = set()
    for lines, identifiers, *_ in found:
        held.update((True, line) for line in lines)
        held.update((False, identifier) for identifier in identifiers)
    return frozenset(held)


def _argument(arguments: Any, names: tuple[str, ...]) -> str | None:
    if not isinstance(arguments, dict):
        return None
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


@lru_cache(maxsize=1024)
def _is_file_tool(name: str) -> bool:
    """Whether a tool reads or writes the files that its calls name: `Read`, `str_replace_based_edit_tool`, `mcp__fs__read_file`."""
    return any(word.lower() in FILE_TOOLS for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name))


def _is_by_client(text: str) -> bool:
    """Whether a text is nothing but what the client wrote for the user."""
    at = 0
    while tag := CLIENT_TAG.match(text, at):
        end = f"</{tag[1]}>"
        close = text.find(end, tag.end())
        if close < 0:
            return False
        at = close + len(end)
    return at > 0 and not text[at:].strip()


class QuietCache:
    """What was read of the conversations that were judged last, so that a body costs what it adds to one of them.

    A conversation is known by its last digest. Whoever reads on from there takes it; another branch from the same
    message reads from the start.
    """

    def __init__(self, capacity_bytes: int = CACHED_BYTES) -> None:
        self._read: BoundedCache[bytes, Quiet] = BoundedCache(capacity_bytes, lambda quiet: quiet.size_bytes)

    def __len__(self) -> int:
        return len(self._read)

    @contextmanager
    def reading(self, transcript: Transcript) -> Iterator[Quiet]:
        """What the body says; nobody else reads on from it meanwhile."""
        chain = transcript.chain
        ends = (chain[end - DIGEST_BYTES : end] for end in range(len(chain), 0, -DIGEST_BYTES))
        found = (quiet for end in ends if end in self._read and (quiet := self._read.take(end)) is not None)
        quiet = next((one for one in found if one.is_before(transcript)), None) or Quiet()
        yield quiet.read(transcript)
        self._read.put(chain[-DIGEST_BYTES:], quiet)


def spent(quiet: Quiet, identity: Identity, quiet_requests: int, run_log_requests: int) -> bool:
    """Whether an output is spent, by all but what the newest task names."""
    if quiet.is_superseded(identity):
        return True
    if quiet.quiet_for(identity) >= quiet_requests:
        return True
    return quiet.quiet_for(identity, is_path_counted=False) >= run_log_requests and quiet.is_run_log(identity)
