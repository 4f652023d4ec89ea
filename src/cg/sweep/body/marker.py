"""What a removal leaves behind, and the tools that bring it back. All texts here are fixed: they are cached prefixes.

A changed byte breaks each cached prefix that holds it once, which is why what was written is stored and replayed, and
these constants serve new removals and new threads alone.
"""

import json
import re

from cg.shape import content_key, describe
from cg.sweep.body.transcript import ToolText

MARKER = re.compile(r"<<cg:([0-9a-f]{16})>>")
MARKER_OPENING = "<<cg:"
EXPAND_TOOL = "cg_expand"
RECALL_TOOL = "cg_recall"

DECLARATION = (
    b'{"name":"cg_expand","description":"Shows a tool output again, whole, by the 16-digit id that stands in its place.'
    b'","input_schema":{"type":"object","properties":{"id":{"type":"string","description":"The 16 hexadecimal digits '
    b'of the id"}},"required":["id"]}}'
)
RECALL_DECLARATION = (
    b'{"name":"cg_recall","description":"Searches the earlier tool outputs of this conversation and shows the ids and '
    b'excerpts of those that match best.","input_schema":{"type":"object","properties":{"query":{"type":"string",'
    b'"description":"Words to search for"}},"required":["query"]}}'
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


def find_markers(text: str) -> list[str]:
    """The ids of the markers in a text, in order, each as often as it stands there."""
    return MARKER.findall(text)


def holds_marker(text: str) -> bool:
    """True if a text holds the opening of a marker, whole or not; it is never removed then."""
    return MARKER_OPENING in text
