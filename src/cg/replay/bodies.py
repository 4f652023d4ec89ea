"""Whole request bodies from a step's messages: the fixed part in front, and the cache marks that Claude Code sets."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of every request that logs leave out."""

    model: str
    max_tokens: int
    system: bytes  # JSON array of text blocks, without cache_control
    tools: bytes  # JSON array of tool definitions


def neutral_frame(model: str, *, system_bytes: int, tools_bytes: int) -> Frame:
    """A made-up frame of about the given sizes: two system blocks and the usual tools with filler descriptions."""
    raise NotImplementedError


def body(frame: Frame, messages: Sequence[bytes], *, ttl_s: int | None) -> bytes:
    """The request's JSON text: model, max_tokens, system, tools, messages, in this order.

    Marks stand on the last two system blocks and on the last block of the last message; `ttl` is spelled at one hour;
    `ttl_s` None sets no mark. Raises ValueError for messages that do not end in a user message.
    """
    raise NotImplementedError
