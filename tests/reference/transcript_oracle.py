"""The same transcript through json: slow and plain. Spans are not its business; texts, marks and digests are.

Strict as the reader is: no duplicate keys where parts are read, no NaN, UTF-8 without surrogates. `Refused` stands for
every body that the compiled reader has to refuse.
"""

import hashlib
import json
from dataclasses import dataclass, field

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Refused(Exception):
    """The body is none that the reader may accept."""


class Number(str):
    """A number in its own spelling."""


class Pairs(list):
    """An object, with its keys in order and as often as they stand."""


@dataclass
class Found:
    texts: list = field(default_factory=list)  # (message, block, id, text, is_error)
    uses: dict = field(default_factory=dict)  # id -> (name, message, canonical input)
    marks: list = field(default_factory=list)  # (section, message, block, ttl)
    pieces: list = field(default_factory=list)  # (kind, message)
    roles: list = field(default_factory=list)
    chain: bytes = b""
    head: bytes = b""


def refuse(_word):
    raise Refused("NaN or Infinity")


def decode(body: bytes):
    """The body as Pairs, lists, strings, Numbers, and the three words."""
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=refuse
        )
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from None


def quoted(text: str) -> bytes:
    out = "".join(SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text)
    return b'"' + out.encode("utf-8", "surrogatepass") + b'"'


def canonical(value) -> bytes:
    if isinstance(value, Number):
        return value.encode()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Pairs):
        return b"{" + b",".join(quoted(k) + b":" + canonical(v) for k, v in value) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(canonical, value)) + b"]"
    return {None: b"null", True: b"true", False: b"false"}[value]


def fields(pairs, read=("type", "text", "content", "role", "id", "name", "input", "tool_use_id", "is_error", "ttl")):
    """The object as a dict, refused if it is none or has a key twice that some part reads."""
    if not isinstance(pairs, Pairs):
        raise Refused("no object")
    names = [k for k, _ in pairs]
    for key in (*read, "cache_control", "messages", "tools", "system"):
        if names.count(key) > 1:
            raise Refused("duplicate")
    return dict(pairs)


def string(value) -> str:
    if not isinstance(value, str) or isinstance(value, Number):
        raise Refused("no string")
    return value


def mark(found, value, section, message, block):
    if value is None:
        return
    control = fields(value)
    ttl = control.get("ttl")
    ttl_s = 300 if ttl is None else {"5m": 300, "1h": 3600}.get(string(ttl), 0)
    kind = string(control["type"]) if "type" in control else ""
    found.marks.append((section, message, block, ttl_s if kind == "ephemeral" else 0))


def members(found, pairs, place, special):
    """Canonical text of an object without its cache mark; `special` reads the members that it names."""
    parts = []
    for key, value in pairs:
        if key == "cache_control":
            mark(found, value, *place)
        else:
            parts.append(quoted(key) + b":" + (special[key](value) if key in special else canonical(value)))
    return b"{" + b",".join(parts) + b"}"


def is_bare(block) -> bool:
    return {k for k, _ in block} <= {"type", "text", "cache_control"}


def listed(blocks, texts):
    """A list of blocks; one bare text block counts as its string, whose canonical text is texts[0]."""
    if len(blocks) == 1 and texts[0] is not None:
        return texts[0]
    return b"[" + b",".join(blocks) + b"]"


def kind_of(block) -> str:
    at = fields(block)
    if "type" not in at:
        raise Refused("no type")
    return string(at["type"])


def text_block(found, block, place, read):
    """(canonical block, canonical text if the block is a bare text block)"""
    texts = []

    def text(value):
        texts.append(read(value))
        return texts[0]

    kind = kind_of(block)
    special = {"text": text} if kind == "text" else {}
    out = members(found, block, place, special)
    if kind == "text" and not texts:
        raise Refused("no text")
    return out, texts[0] if texts and is_bare(block) else None


def plain_text(found, message):
    def read(value):
        found.pieces.append(("text", message, string(value)))
        return quoted(string(value))

    return read


def result_text(found, rows, message, block):
    def read(value):
        content = string(value).encode("utf-8", "surrogatepass")
        rows.append((message, block, value))
        found.pieces.append(("result", message, value))
        return b"#" + hashlib.sha256(content).digest()

    return read


def result_content(found, rows, value, message, block):
    if isinstance(value, str) and not isinstance(value, Number):
        return result_text(found, rows, message, 0)(value)
    if not isinstance(value, list) or isinstance(value, Pairs):
        raise Refused("content")
    made = [
        text_block(found, b, ("messages", message, block), result_text(found, rows, message, i))
        for i, b in enumerate(value)
    ]
    return listed([m[0] for m in made], [m[1] for m in made])


def tool_result(found, block, message, number):
    rows: list = []

    def error(value):
        if value not in (True, False, None) or isinstance(value, (str, list)):
            raise Refused("is_error")
        return canonical(value)

    special = {
        "content": lambda v: result_content(found, rows, v, message, number),
        "tool_use_id": lambda v: quoted(string(v)),
        "is_error": error,
    }
    out = members(found, block, ("messages", message, number), special)
    at = dict(block)
    if "tool_use_id" not in at:
        raise Refused("no id")
    found.texts += [(m, b, at["tool_use_id"], text, at.get("is_error") is True) for m, b, text in rows]
    return out


def tool_use(found, block, message, number):
    def arguments(value):
        if not isinstance(value, Pairs):
            raise Refused("input")
        return canonical(value)

    special = {"id": lambda v: quoted(string(v)), "name": lambda v: quoted(string(v)), "input": arguments}
    out = members(found, block, ("messages", message, number), special)
    at = dict(block)
    if not {"id", "name", "input"} <= at.keys() or at["id"] in found.uses:
        raise Refused("call")
    found.uses[at["id"]] = (at["name"], message, canonical(at["input"]))
    found.pieces.append(("arguments", message, None))
    return out


def message_content(found, value, message, role):
    if isinstance(value, str) and not isinstance(value, Number):
        return plain_text(found, message)(value)
    if not isinstance(value, list) or isinstance(value, Pairs):
        raise Refused("content")
    blocks, texts = [], []
    for number, block in enumerate(value):
        kind = kind_of(block)
        if kind == "tool_result" and role == "user":
            made = tool_result(found, block, message, number), None
        elif kind == "tool_use" and role == "assistant":
            made = tool_use(found, block, message, number), None
        else:
            made = text_block(found, block, ("messages", message, number), plain_text(found, message))
        blocks.append(made[0])
        texts.append(made[1])
    return listed(blocks, texts)


def read_messages(found, messages):
    if not isinstance(messages, list) or isinstance(messages, Pairs):
        raise Refused("messages")
    digest = bytes(32)
    for number, pairs in enumerate(messages):
        at = fields(pairs)
        role = at.get("role")
        if role not in ("user", "assistant", "system") or isinstance(role, Number) or "content" not in at:
            raise Refused("message")
        special = {"content": lambda v, n=number, r=role: message_content(found, v, n, r)}
        canon = members(found, pairs, ("messages", number, -1), special)
        digest = hashlib.sha256(digest + canon).digest()
        found.chain += digest[:8]
        found.roles.append(role)


def read_tools(found, tools):
    if tools is None:
        return b"null"
    if not isinstance(tools, list) or isinstance(tools, Pairs):
        raise Refused("tools")
    out = []
    for number, tool in enumerate(tools):
        fields(tool)
        out.append(members(found, tool, ("tools", -1, number), {"name": lambda v: quoted(string(v))}))
    return b"[" + b",".join(out) + b"]"


def read_system(found, system):
    if system is None:
        return b"null"
    if isinstance(system, str) and not isinstance(system, Number):
        return plain_text(found, -1)(system)
    if not isinstance(system, list) or isinstance(system, Pairs):
        raise Refused("system")
    made = [text_block(found, b, ("system", -1, i), plain_text(found, -1)) for i, b in enumerate(system)]
    return listed([m[0] for m in made], [m[1] for m in made])


def read(body: bytes) -> Found:
    """What the reader has to find, in body order; raises Refused."""
    top = decode(body)
    fields(top)
    if len({k for k, _ in top}) != len(top) or "messages" not in dict(top):
        raise Refused("body")
    found, tools, system = Found(), b"", b""
    for key, value in top:
        if key == "messages":
            read_messages(found, value)
        elif key == "tools":
            tools = read_tools(found, value)
        elif key == "system":
            system = read_system(found, value)
        elif key == "cache_control":
            mark(found, value, "top", -1, -1)
    found.head = hashlib.sha256(b"tools:" + tools + b"\nsystem:" + system).digest()[:16]
    places = [(tool_use_id, block) for _, block, tool_use_id, _, _ in found.texts]
    if len(set(places)) != len(places):
        raise Refused("two results of one call")
    return found
