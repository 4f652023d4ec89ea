"""Edits on a body's own bytes: what is not replaced stays as the client wrote it.

An edit is (start, end, replacement). Functions here make edits; `splice` applies them all at once, so they can be
collected from several hands before one copy is made.
"""

import json
from collections.abc import Iterable
from operator import itemgetter

from cg.bodies import is_string_token, is_value
from cg.sweep.body.transcript import ToolText, Transcript, Unreadable, read

Edit = tuple[int, int, bytes]

MAX_BREAKPOINTS = 4  # the API refuses a fifth, and counts the one at the top of a body
ASK_TOKENS = 16_000  # reply budget of an ask, above any thinking budget
NO_ERROR = b',"is_error":false'
FILLER = b'{"role":"assistant","content":"Understood."}'


def splice(body: bytes, edits: Iterable[Edit]) -> bytes:
    """The body with each span replaced; insertions at one place stand in the order given.

    Raises ValueError if a span lies outside the body or overlaps another. One copy, linear.
    """
    view, at = memoryview(body), 0
    parts: list[bytes | memoryview] = []
    for start, end, replacement in sorted(edits, key=itemgetter(0, 1)):
        if not at <= start <= end <= len(body):
            raise ValueError(f"edit of bytes {start} to {end} overlaps another or leaves the body of {len(body)}")
        parts += [view[at:start], replacement]
        at = end
    return b"".join([*parts, view[at:]])


def string_token(content: str | bytes) -> bytes:
    """The JSON string token of a text (bytes: its UTF-8, surrogatepass), in UTF-8 where that can be written."""
    text = content.decode("utf-8", "surrogatepass") if isinstance(content, bytes) else content
    try:
        return json.dumps(text, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 of its own, only an escape
        return json.dumps(text).encode("ascii")


def replace_text(text: ToolText, token: bytes) -> Edit:
    """The edit that puts a JSON string token in the place of a text's; raises ValueError if it is none."""
    if not is_string_token(token):
        raise ValueError(f"{len(token)} bytes for the text at {text.start} are no JSON string")
    return text.start, text.end, token


def replace_result(text: ToolText, written: bytes) -> list[Edit]:
    """The edits that put what was written down in the place of a result's text: a JSON string token, and behind one that
    ends in `NO_ERROR` that the result is no error; raises ValueError if it is neither."""
    token = written.removesuffix(NO_ERROR)
    edits = [replace_text(text, token)]
    if token != written and text.error_at:
        edits.append((text.error_at, text.error_at + len(b"true"), b"false"))
    return edits


def declare(transcript: Transcript, declaration: bytes) -> Edit:
    """The edit that puts a tool last in `tools`.

    Raises ValueError if the declaration is no JSON object with a name, the body has no tools, or has one of that name.
    """
    name = json.loads(declaration).get("name") if declaration[:1] == b"{" and is_value(declaration) else None
    if not isinstance(name, str):
        raise ValueError(f"declaration of {len(declaration)} bytes is no JSON object with a name")
    if not transcript.has_tools or name in transcript.declares:
        raise ValueError(f"{name} cannot be declared: the body has no tools, or has it already")
    end = transcript.scan.tools()[-1][2]
    return end, end, b"," + declaration


def set_lifetime(transcript: Transcript, ttl_s: int) -> list[Edit]:
    """The edits that give every mark of the body this lifetime: its `ttl` in its place, or one behind its last member.

    Raises ValueError for a body with a mark whose lifetime is not known here: what it says is not understood.
    """
    if transcript.ttl_s is None:
        raise ValueError("a body without marks, or with one that is not understood")
    wanted, edits = (b'"1h"' if ttl_s == 3600 else b'"5m"'), []
    for start, end, stop in transcript.scan.lifetimes():
        stands = transcript.body[start:end]
        if stands in (b"", b"null") and ttl_s != 3600:  # five minutes is what a mark without a lifetime asks for
            continue
        if not stands:
            edits.append((stop - 1, stop - 1, b',"ttl":"1h"'))
        elif stands != wanted:
            edits.append((start, end, wanted))
    return edits


def add_breakpoint(transcript: Transcript, before: ToolText, ttl_s: int | None = None) -> list[Edit]:
    """The edit that sets the spare cache breakpoint just before a removed text; none if it cannot help.

    It stands on the last block of the last user message in front of the text's own message: there a client that marks
    its newest message had a breakpoint in an earlier request, so a live entry may end there. Nothing is set if the
    body has no mark, no spare one, or one of a lifetime not known here; nor if that place is marked already or takes
    no mark. The lifetime is `ttl_s`, or that of the next mark behind it: the API refuses a longer one behind a shorter one.
    """
    if not transcript.breakpoints or len(transcript.breakpoints) >= MAX_BREAKPOINTS or transcript.ttl_s is None:
        return []
    scan = transcript.scan
    behind = [ttl for section, message, _, ttl in scan.marks() if section == "top" or message >= before.message]
    place = next((m for m in range(before.message - 1, -1, -1) if transcript.roles[m] == "user"), None)
    if place is None or not behind or scan.is_marked(place) or scan.is_empty(place):
        return []
    mark = b'"cache_control":{"type":"ephemeral"%s}' % (b',"ttl":"1h"' if (ttl_s or behind[0]) == 3600 else b"")
    start, end, n_blocks = scan.content(place)
    if n_blocks is None:
        return [(start, end, b'[{"type":"text","text":%s,%s}]' % (transcript.body[start:end], mark))]
    last = scan.last_block(place)
    if last is None or not last[2]:
        return []
    return [(last[1] - 1, last[1] - 1, b"," + mark)]


def set_member(transcript: Transcript, key: str, value: bytes) -> Edit:
    """The edit that gives a member of the body a value: in its place, or new behind `messages`.

    Raises ValueError if the value is no JSON.
    """
    if not is_value(value):
        raise ValueError(f"{len(value)} bytes for {key} are no JSON value")
    span = transcript.member(key)
    if span is not None:
        return *span, value
    end = _messages(transcript)[1]
    return end, end, b",%s:%s" % (json.dumps(key).encode(), value)


def delete_members(transcript: Transcript, *keys: str) -> list[Edit]:
    """Edits that take members out of the body, each with one comma; absent ones are passed over.

    `messages` stays: raises ValueError if it is named.
    """
    if "messages" in keys:
        raise ValueError("messages cannot be taken out of a body")
    members, edits = transcript.members, []
    kept = [i for i, member in enumerate(members) if member[0] not in keys]
    for i, (key, start, _, _) in enumerate(members[: kept[-1]]):
        if key in keys:
            edits.append((start, members[i + 1][1], b""))
    if kept[-1] < len(members) - 1:
        edits.append((members[kept[-1]][3], members[-1][3], b""))
    return edits


def append_messages(transcript: Transcript, *messages: bytes) -> Edit:
    """The edit that puts messages behind the last one; raises ValueError if one is no JSON object."""
    for message in messages:
        if not (message.startswith(b"{") and is_value(message)):
            raise ValueError(f"{len(message)} bytes are no message")
    if transcript.n_messages:
        end = transcript.span(transcript.n_messages - 1)[1]
        return end, end, b"".join([b"," + message for message in messages])
    start = _messages(transcript)[0] + 1
    return start, start, b",".join(messages)


def ask_body(request: Transcript | bytes, question: str) -> bytes:
    """The request as it was sent, with one user message behind it, asking `question`.

    `stream` goes; `max_tokens` is the ask's (`reply_tokens`); tool_choice is none, where tools allow it; a body that
    ends in role system gets a short assistant turn first, as the API takes no user message there. All other bytes
    are the request's, so that its cached prefix is read. Raises Unreadable.
    """
    transcript = request if isinstance(request, Transcript) else read(request)
    if transcript.server_thread:
        raise Unreadable("the server holds this thread's history")
    message = b'{"role":"user","content":%s}' % json.dumps(question).encode()
    messages = [FILLER, message] if transcript.last_role == "system" else [message]
    edits = [
        append_messages(transcript, *messages),
        *delete_members(transcript, "stream"),
        set_member(transcript, "max_tokens", b"%d" % reply_tokens(transcript.max_tokens, transcript.thinking_budget)),
    ]
    if transcript.has_tools:
        edits.append(set_member(transcript, "tool_choice", b'{"type":"none"}'))
    return splice(transcript.body, edits)


def reply_tokens(max_tokens: int | None, thinking_budget: int | None) -> int:
    """max_tokens of an ask: 16,000 above the thinking budget, or the request's own where that lies between.

    The thinking block cannot change (the cache is keyed on it), a limit below its budget is refused, and so is a sum
    above the model's own cap, which the request's own limit is known to respect.
    """
    budget = thinking_budget or 0
    if budget and max_tokens is not None and budget < max_tokens < budget + ASK_TOKENS:
        return max_tokens
    return budget + ASK_TOKENS


def _messages(transcript: Transcript) -> tuple[int, int]:
    span = transcript.member("messages")
    assert span is not None  # `read` refuses a body without
    return span
