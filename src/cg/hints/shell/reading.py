"""Requests from a byte stream, never holding more than one of the largest allowed size."""

from __future__ import annotations

from cg.hints.limits import MAX_REQUEST_BYTES
from cg.hints.refusal import Code, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_SKIP_BYTES = 65_536  # read at once while the rest of an overlong line is thrown away


def _too_large(what: str) -> Refusal:
    return Refusal(Code.REQUEST_TOO_LARGE, f"the {what} is over {MAX_REQUEST_BYTES} bytes")


def read_body(stream: BinaryIO) -> bytes:
    """All of the stream; raises Refusal one byte past the limit, with the rest unread."""
    body = stream.read(MAX_REQUEST_BYTES + 1)
    if len(body) > MAX_REQUEST_BYTES:
        raise _too_large("request")
    return body


def read_lines(stream: BinaryIO) -> Iterator[bytes | Refusal]:
    """Each line as soon as it is complete, without its newline; a line over the limit is passed over as a Refusal."""
    while line := stream.readline(MAX_REQUEST_BYTES + 1):
        if line.endswith(b"\n"):
            yield line[:-1]
        elif len(line) <= MAX_REQUEST_BYTES:
            yield line
        else:
            del line  # 16 MiB that the next line will need
            while (rest := stream.readline(_SKIP_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield _too_large("line")
