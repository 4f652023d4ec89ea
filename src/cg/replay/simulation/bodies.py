"""Whole request bodies from a step's messages: the fixed part in front, and the cache marks that Claude Code sets.

Logs hold neither system prompt nor tools. What stands in for them is neutral text of the same size, since the size is
what every request pays for.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cg.replay.prompt import parts_of
from cg.replay.recordings.blocks import encoded
from cg.replay.recordings.recording import Step
from cg.sweep.economics import START_BYTES_PER_TOKEN
from cg.sweep.values import Usage

MAX_TOKENS = 32_000  # what the client asks for; an answer's own length decides what is paid
UNKNOWN_MODEL = "claude-sonnet-4-5"  # prices a log that names no model
FRAME_TOKENS = 35_800  # median of the fixed part over eleven recorded sessions: the first prompt less its messages
TOOLS_SHARE = 0.7  # of the fixed part; the rest is system prompt
MIN_PART_BYTES = 2_000  # below, the tools would not have their names
MAX_FRAME_BYTES = 16 * 2**20  # half of the largest request that the API takes
TOOL_NAMES = (
    "Task TaskCreate TaskUpdate TaskOutput Bash BashOutput KillShell Glob Grep LS Read Edit MultiEdit Write NotebookEdit "
    "WebFetch WebSearch TodoWrite AskUserQuestion ExitPlanMode Skill SlashCommand StructuredOutput"
)
WORDS = (
    "the a this that each every any some when where while after before until unless file folder line name path text "
    "value result command option error test change branch call step answer question reader writer list table number "
    "gives takes keeps reads writes shows names holds checks starts ends asks tells finds makes leaves moves counts "
    "short long first last next other same plain clear whole empty open closed safe exact ready local new old"
)
PAGE_WORDS = 20_000  # before the text repeats itself

MARK_5M = b'"cache_control":{"type":"ephemeral"}'
MARK_1H = b'"cache_control":{"type":"ephemeral","ttl":"1h"}'
LAST_BLOCK_ENDS = b"}]}"  # of a message and of its last block


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of every request that logs leave out."""

    model: str
    max_tokens: int
    system: bytes  # JSON array of text blocks, without cache_control
    tools: bytes  # JSON array of tool definitions


def body(frame: Frame, messages: Sequence[bytes], *, ttl_s: int | None) -> bytes:
    """The request's JSON text: model, max_tokens, system, tools and messages, in this order.

    Marks stand on the last two system blocks and on the last block of the last message, as the client sets them; `ttl`
    is spelled at one hour, and `ttl_s` None sets no mark. Raises ValueError if the last message is not a user's with a
    list of blocks. Takes time and memory in proportion to the body.
    """
    if not messages or not messages[-1].startswith(b'{"role":"user","content":['):
        raise ValueError("a request ends in a user message")
    last = _marked(messages[-1], len(LAST_BLOCK_ENDS), ttl_s) + b"]}"
    if len(messages) == 1:
        return head(frame, ttl_s) + last
    return b",".join((head(frame, ttl_s) + messages[0], *messages[1:-1], last))  # the body is copied once


@lru_cache(maxsize=32)  # every request of a session begins with the same bytes
def head(frame: Frame, ttl_s: int | None) -> bytes:
    """The body's beginning up to the first message; the last two system blocks carry marks."""
    blocks = [encoded(block) for block in json.loads(frame.system)]
    marked = [*blocks[:-2], *(_marked(block, 1, ttl_s) for block in blocks[-2:])]
    return b'{"model":%s,"max_tokens":%d,"system":[%s],"tools":%s,"messages":[' % (
        encoded(frame.model),
        frame.max_tokens,
        b",".join(marked),
        frame.tools,
    )


def mark_of(ttl_s: int | None) -> bytes:
    """The member that a client adds to a block to have the prompt kept for this long; empty for None."""
    if ttl_s is None:
        return b""
    return MARK_1H if ttl_s >= 3600 else MARK_5M


def neutral_frame(model: str, *, system_bytes: int, tools_bytes: int, max_tokens: int = MAX_TOKENS) -> Frame:
    """A made-up frame of about the given sizes: two system blocks, and the client's tools with filler descriptions.

    The same arguments give the same bytes. Raises ValueError for a size past MAX_FRAME_BYTES; one below 2,000 bytes a
    part counts as that.
    """
    for size in (system_bytes, tools_bytes):
        if size > MAX_FRAME_BYTES:
            raise ValueError(f"{size} bytes of a frame's part; at most {MAX_FRAME_BYTES}")
    system, tools = _parts(max(system_bytes, MIN_PART_BYTES), max(tools_bytes, MIN_PART_BYTES))
    return Frame(model or UNKNOWN_MODEL, max_tokens, system, tools)


def frame_for(step: Step, *, tokens: int | None = None, bytes_per_token: float = START_BYTES_PER_TOKEN) -> Frame:
    """The frame of a session by its first step.

    Its size is what the provider counted in the first prompt less that prompt's messages; without recorded usage it is
    the median of recorded sessions; `tokens` overrides both.
    """
    if tokens is None:
        parts = (part for message in step.messages for part in parts_of(message))
        held = sum(part.tokens(bytes_per_token) for part in parts)
        tokens = left_for_frame(step.usage, held)
        tokens = FRAME_TOKENS if tokens is None else tokens
    return frame_of(step.model, tokens, bytes_per_token)


def frame_of(model: str, tokens: int, bytes_per_token: float) -> Frame:
    """A frame of so many tokens."""
    size = min(tokens * bytes_per_token, MAX_FRAME_BYTES)
    tools = round(size * TOOLS_SHARE)
    return neutral_frame(model, system_bytes=round(size) - tools, tools_bytes=tools)


def left_for_frame(usage: Usage | None, held: int) -> int | None:
    """What a recorded prompt leaves for the frame beside messages of `held` tokens; None where none was recorded."""
    prompt = 0 if usage is None else usage.fresh + usage.read + usage.write_5m + usage.write_1h
    return max(0, prompt - held) if prompt else None


def _marked(text: bytes, tail: int, ttl_s: int | None) -> bytes:
    """The text with a mark in the object whose closing brace stands `tail` bytes from the end."""
    mark = mark_of(ttl_s)
    if not mark:
        return text
    if not text.endswith(LAST_BLOCK_ENDS[:tail]):
        raise ValueError("a mark goes into a block, and this content has none")
    return b"".join((text[:-tail], b",", mark, text[-tail:]))


@lru_cache(maxsize=8)  # sessions of one client have frames of one size or of few
def _parts(system_bytes: int, tools_bytes: int) -> tuple[bytes, bytes]:
    opening = encoded({"type": "text", "text": "You are an agent that works on software in a terminal."})
    empty = len(encoded({"type": "text", "text": ""}))
    rest = encoded({"type": "text", "text": _prose(0, system_bytes - len(opening) - empty)})
    bare = [
        {"name": n, "description": "", "input_schema": {"type": "object", "properties": {}}} for n in TOOL_NAMES.split()
    ]
    room = (tools_bytes - len(encoded(bare))) // len(bare)
    tools = [{**tool, "description": _prose(997 * (i + 1), room)} for i, tool in enumerate(bare)]
    return b"[%s,%s]" % (opening, rest), encoded(tools)


def _prose(start: int, size: int) -> str:
    """Words of `size` bytes in all, at least one; ASCII without anything that JSON escapes."""
    page = _page()
    start %= len(page)
    return (page * ((start + max(size, 1)) // len(page) + 1))[start : start + size].strip() or "the"


@lru_cache(maxsize=1)
def _page() -> str:
    rng = random.Random(0)
    words = WORDS.split()
    return "".join(f"{rng.choice(words)} " for _ in range(PAGE_WORDS))
