"""What the core asks of whoever drives it, and what it is told; the core itself reads no clock, disk or network."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from cg.sweep.values import Payload, Removal, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Put:
    """Store originals; told: the frozenset of identities that were stored, read back and hashed."""

    payloads: tuple[Payload, ...]


@dataclass(frozen=True, slots=True)
class Freeze:
    """Record removals before a marker leaves; told: the tuple of removals that now stand (the first writer's)."""

    removals: tuple[Removal, ...]


@dataclass(frozen=True, slots=True)
class Declare:
    """Fix the tool declaration of the thread; told: the bytes that stand."""

    declaration: bytes


@dataclass(frozen=True, slots=True)
class Fetch:
    """Look an original up by its key; told: a Payload, an Expired, or None for a key that never was."""

    key: str


@dataclass(frozen=True, slots=True)
class Recall:
    """All originals of the thread; told: a tuple of Payload."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a body to the request's own model; told: an Answer or a Failure."""

    body: bytes
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's reply to an ask. `usage` is None when the provider did not say."""

    text: str
    usage: Usage | None
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """An ask that brought no reply; `asker` is False when there is nobody to ask."""

    reason: str
    milliseconds: float = 0.0
    asker: bool = True


Want = Put | Freeze | Declare | Fetch | Recall | Ask
Steps = Generator[Want, Any, T]
