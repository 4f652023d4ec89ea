"""What the core asks of whoever drives it, and what it is told; the core itself reads no clock, disk or network."""

from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

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
    """Look up what is learnt of this thread's waits and of a user's; told: the Habits."""

    user: str | None


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


class Asker(Protocol):
    """Whoever can put a body to the request's model."""

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        """The reply's text with its usage, or why there is none; never raises for what the other side does."""
        ...


class AsyncAsker(Protocol):
    """An asker for an event loop."""

    def ask(self, body: bytes, timeout_s: float) -> Awaitable[Answer | Failure]:
        """The reply's text with its usage, or why there is none."""
        ...


Effect = Put | Freeze | Declare | Fetch | Recall | Ask
Steps = Generator[Effect, Any, T]
