"""What a removal leaves behind, and the tool that brings it back. All texts here are fixed: they are cached prefixes.

A changed byte breaks each cached prefix that holds it once, which is why what was written is stored and replayed, and
these constants serve new removals and new threads alone.
"""

import json

from cg.shape import content_key, describe
from cg.sweep.body.transcript import ToolText

EXPAND_TOOL = "cg_expand"

DECLARATION = (
    b'{"name":"cg_expand","description":"Shows a tool output again, whole, by the 16-digit id that stands in its place.'
    b'","input_schema":{"type":"object","properties":{"id":{"type":"string","description":"The 16 hexadecimal digits '
    b'of the id"}},"required":["id"]}}'
)


def hint(key: str) -> str:
    """The line that says how to ask for a removed output."""
    return f"[call {EXPAND_TOOL} with id {key} to see it again; repeating the original call may not return it]"


def written_text(content: str | bytes) -> str:
    """What is left of a tool output: its descriptor, its marker, the hint; a pure function of the content."""
    key = content_key(content)[:16]
    return f"{describe(content).descriptor()}\n<<cg:{key}>>\n{hint(key)}"


def written_token(content: str | bytes) -> bytes:
    """`written_text` as the JSON string token that goes into the body, quotes included, ASCII."""
    return json.dumps(written_text(content)).encode("ascii")


def would_shrink(text: ToolText, token: bytes) -> bool:
    """True if the written token is shorter than the text's own, as it stands in the body and once decoded."""
    return len(token) < text.end - text.start and len(json.loads(token).encode()) < text.size_bytes
