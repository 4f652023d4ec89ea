"""An asker that answers from a file: conversations can be driven by hand or by a script, without a network."""

import json
from pathlib import Path

from cg.errors import CgError
from cg.sweep.economics import START_BYTES_PER_TOKEN
from cg.sweep.effects import Answer, Failure
from cg.sweep.values import Usage, usage_of

MAX_REPLY_BYTES = 4 * 1024 * 1024


class RecordedAsker:
    """Answers every ask with one recorded reply."""

    def __init__(self, text: str, usage: Usage | None) -> None:
        self._text, self._usage = text, usage

    @classmethod
    def from_file(cls, path: Path) -> "RecordedAsker":
        """Read a reply: JSON `{"text", "usage"}`, or the reply's bare text. Raises CgError for an unusable file."""
        try:
            if path.stat().st_size > MAX_REPLY_BYTES:
                raise CgError(f"{path}: {path.stat().st_size} bytes; a reply may have {MAX_REPLY_BYTES}")
            raw = path.read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise CgError(f"{path}: {error.strerror}") from error
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return cls(raw, None)
        if isinstance(value, dict) and isinstance(value.get("text"), str):
            return cls(value["text"], usage_of(value.get("usage")))
        return cls(raw, None)

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        """The recorded reply; without recorded usage the whole body counts as read from the cache."""
        assumed = Usage(
            read=round(len(body) / START_BYTES_PER_TOKEN), output=round(len(self._text) / START_BYTES_PER_TOKEN)
        )
        return Answer(self._text, self._usage or assumed)
