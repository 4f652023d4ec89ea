"""A Messages request as the sweep sees it: tool results with their byte spans, calls, texts, marks, digests.

Nothing here is ever written back as JSON: a body is read in place (`cg.bodies`), and what changes it are edits on its
own bytes (`cg.sweep.body.splice`). A body that cannot be understood is Unreadable, and its reader forwards it untouched.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cg.bodies import LARGEST_BODY, Scan, Stopped, TextToken, ToolUse
from cg.errors import CgError
from cg.sweep.values import Identity

__all__ = [
    "MAX_BYTES",
    "Breakpoint",
    "ToolText",
    "ToolUse",
    "Transcript",
    "Unreadable",
    "read",
    "read_sent",
    "strings",
]

MAX_BYTES = 100 * 2**20  # the API takes 32 MiB
SESSION_ID = re.compile(r"(?!\.+\Z)[A-Za-z0-9._:-]{1,128}\Z")
LARGEST_USER_ID = 1024  # bytes of metadata.user_id that are looked at

Breakpoint = tuple[str, int, int]  # (section, message or -1, block or -1); sections: tools, system, messages, top


class Unreadable(CgError):
    """A body that cannot be understood; the message says why and where and holds nothing of the body."""


class ToolText(TextToken):
    """One text of a tool result: string content, or one text block of its list.

    `start` and `end` span the JSON string token in the body, quotes included; `text` and `content` decode it anew at
    each call, `sha256` and `size_bytes` were taken while the body was read. Compares by object, as one body's part.
    """

    __slots__ = ("_identity",)
    _identity: Identity

    @property
    def identity(self) -> Identity:
        """What a verdict about this text binds to."""
        try:
            return self._identity
        except AttributeError:
            self._identity = Identity(self.tool_use_id, self.block, self.sha256)
            return self._identity

    def take_identity(self, identity: Identity) -> bool:
        """True if this is the text's identity; it is kept then, so that none has to be made."""
        if identity.tool_use_id != self.tool_use_id or identity.block != self.block or identity.sha256 != self.sha256:
            return False
        self._identity = identity
        return True


@dataclass(frozen=True, slots=True)
class Transcript:
    """A request that was read.

    `chain` holds one 8-byte digest a message, each over the digest before it and the message's canonical JSON, so that
    one chain is the beginning of another exactly if its messages are (64 bits of SHA-256 apart). Two messages are
    equal if they are the same JSON once cache_control is set aside (on the message, its blocks and the blocks of a
    tool result, nowhere else: inside a call's arguments it is data) and a list of one text block that has nothing but
    type, text and cache_control counts as its string, in a message's content and in a tool result's. White space and
    the spelling of escapes do not matter; the order of keys and the spelling of numbers do.

    `head` is the digest of tools and system under the same rules. `fingerprint` is one of all that is asked: messages,
    tools and system under the same rules, the places of the marks, and every other member as it stands. `ttl_s` is 3600
    if any mark asks for one hour, 300 if all ask for five minutes, None without a mark or with one whose lifetime is
    not known here. `breakpoints` stand in prompt order.
    """

    body: bytes
    model: str
    roles: tuple[str, ...]
    tool_uses: Mapping[str, ToolUse]
    tool_texts: tuple[ToolText, ...]
    chain: bytes
    head: bytes
    fingerprint: bytes
    ttl_s: int | None
    breakpoints: tuple[Breakpoint, ...]
    has_tools: bool
    declares: frozenset[str]
    server_thread: bool
    max_tokens: int | None
    thinking_budget: int | None
    session_id: str | None
    members: tuple[tuple[str, int, int, int], ...] = field(repr=False)  # key, its start, start and end of the value
    scan: Scan = field(repr=False, compare=False)

    @property
    def n_messages(self) -> int:
        return len(self.roles)

    @property
    def assistant_turns(self) -> int:
        return self.roles.count("assistant")

    @property
    def last_role(self) -> str | None:
        """Role of the last message; None if there is none."""
        return self.roles[-1] if self.roles else None

    def member(self, key: str) -> tuple[int, int] | None:
        """(start, end) of the value of a member of the body, or None."""
        return next(((start, end) for name, _, start, end in self.members if name == key), None)

    def value(self, key: str) -> Any:
        """The decoded value of a member of the body; None if it is absent or null."""
        span = self.member(key)
        return None if span is None else _decode(self.body[span[0] : span[1]])

    def span(self, message: int) -> tuple[int, int]:
        """(start, end) of a message in the body."""
        return self.scan.span(message)

    def texts(self) -> Iterator[tuple[str, int, str]]:
        """(role, message, text) of all that the model reads as text, in body order, made one by one.

        System prompt (message -1), text blocks, tool results, and the arguments of calls: their JSON, followed, where
        escapes hide what they say, by a line for each decoded string.
        """
        for kind, message, text in self.scan.pieces():
            role = "system" if message < 0 else self.roles[message]
            yield role, message, _arguments_text(text) if kind == "arguments" else text


def read(body: bytes, *, max_bytes: int = MAX_BYTES, before: Scan | None = None) -> Transcript:
    """The transcript of a Messages request, in time linear in its bytes; those of the messages with which the body of
    an earlier scan, `before`, begins too are only compared.

    Raises Unreadable if it is larger than `max_bytes`, is not strict UTF-8 JSON, repeats a key that is read, is nested
    deeper than 192 levels inside one value, has another type where one is read, or gives one tool_use id to two calls
    or two results.
    """
    if len(body) > min(max_bytes, LARGEST_BODY):
        raise Unreadable(f"body of {len(body)} bytes is larger than {min(max_bytes, LARGEST_BODY)}")
    try:
        scan = Scan(bytes(body), ToolText, before=before)
        tool_uses = scan.tool_uses()
    except Stopped as stopped:
        raise Unreadable(str(stopped)) from None
    members = scan.members()
    if len({name for name, *_ in members}) != len(members):
        raise Unreadable("body has a key twice")
    values = {name: (start, end) for name, _, start, end in members}
    tool_texts: tuple[ToolText, ...] = scan.texts  # type: ignore[assignment]
    _check_results(tool_texts)
    tools, marks = scan.tools(), scan.marks()
    return Transcript(
        body=scan.body,
        model=_string(scan.body, values.get("model")) or "",
        roles=scan.roles,
        tool_uses=tool_uses,
        tool_texts=tool_texts,
        chain=scan.chain,
        head=scan.head,
        fingerprint=scan.fingerprint,
        ttl_s=_lifetime({mark[3] for mark in marks}),
        breakpoints=tuple([mark[:3] for mark in marks]),
        has_tools=bool(tools),
        declares=frozenset(name for name, *_ in tools if name is not None),
        server_thread=_raw(scan.body, values.get("thread")) not in (b"", b"null"),
        max_tokens=_integer(scan.body, values.get("max_tokens")),
        thinking_budget=_budget(scan.body, values.get("thinking")),
        session_id=_session_id(scan.body, values.get("metadata")),
        members=members,
        scan=scan,
    )


def read_sent(sent: bytes | None) -> Transcript | None:
    """The transcript of a body that was kept; None without one, or if it was damaged where it lay: all it costs is an ask."""
    try:
        return read(sent) if sent else None
    except Unreadable:
        return None


def _check_results(tool_texts: tuple[ToolText, ...]) -> None:
    """One text has one place: the API refuses two results of one call, and identities would not tell them apart."""
    if len({(text.tool_use_id, text.block) for text in tool_texts}) != len(tool_texts):
        raise Unreadable("messages hold two results of one call")


def _lifetime(ttls: set[int]) -> int | None:
    # A lifetime that is not known here may be longer than both that are: calling its prefix cold would be a guess.
    return None if not ttls or 0 in ttls else max(ttls)


def _raw(body: bytes, span: tuple[int, int] | None) -> bytes:
    return b"" if span is None else body[span[0] : span[1]]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable("body has a key twice in a value that is read")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once)  # json.loads would make one at each call


def _decode(raw: bytes) -> Any:
    return _DECODER.decode(raw.decode())


def _string(body: bytes, span: tuple[int, int] | None) -> str | None:
    raw = _raw(body, span)
    if raw in (b"", b"null"):
        return None
    if not raw.startswith(b'"'):
        raise Unreadable("model is no string")
    return str(_decode(raw))


def _integer(body: bytes, span: tuple[int, int] | None) -> int | None:
    raw = _raw(body, span)
    if raw in (b"", b"null"):
        return None
    if not raw.isdigit() or len(raw) > 18:
        raise Unreadable("max_tokens is no whole number")
    return int(raw)


def _budget(body: bytes, span: tuple[int, int] | None) -> int | None:
    """budget_tokens of thinking that is enabled; None for adaptive, disabled or absent."""
    thinking = _decode(_raw(body, span) or b"null")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return None
    budget = thinking.get("budget_tokens")
    if budget is None:
        return None
    if type(budget) is not int or not 0 <= budget < 10**9:
        raise Unreadable("thinking.budget_tokens is no whole number")
    return budget


def _session_id(body: bytes, span: tuple[int, int] | None) -> str | None:
    """session_id of the JSON object that some clients put into metadata.user_id as a string."""
    raw = _raw(body, span)
    if not raw.startswith(b"{") or len(raw) > 8 * LARGEST_USER_ID:
        return None
    user_id = _decode(raw).get("user_id")
    if not isinstance(user_id, str) or not user_id.startswith("{") or len(user_id) > LARGEST_USER_ID:
        return None
    try:
        found = json.loads(user_id).get("session_id")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str) and SESSION_ID.match(found) else None


def _arguments_text(raw: str) -> str:
    if "\\" not in raw:
        return raw
    return "\n".join([raw, *strings(json.loads(raw))])


def strings(value: Any) -> Iterator[str]:
    """The strings inside a decoded JSON value, in order, without recursion."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, dict):
            waiting.extend(reversed(here.values()))
        elif isinstance(here, list):
            waiting.extend(reversed(here))
