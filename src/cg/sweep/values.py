"""The frozen values that the sweep's rooms hand to each other."""

from dataclasses import dataclass, field
from enum import StrEnum

LARGEST_COUNT = 10**12  # tokens; a larger number is no count of them, and may be no float either
LATEST = 253_402_300_799  # the end of the year 9999; a time in milliseconds would age all other sessions away


class Phase(StrEnum):
    """Where a branch's cached prefix stands when a request arrives."""

    WARM = "warm"
    PRE_EXPIRY = "pre_expiry"
    COLD = "cold"
    BROKEN = "broken"
    UNCACHED = "uncached"
    UNKNOWN = "unknown"


# The prefix is lost, or there is none to lose: what changes in front of it costs nothing.
PREFIX_LOST = frozenset({Phase.COLD, Phase.BROKEN, Phase.UNCACHED})
DIGEST_BYTES = 8  # of a chain of digests, one a message, each over all messages up to it


class Ending(StrEnum):
    """How a frozen removal stopped being replayed; all are stored and counted."""

    RESTORED = "restored"
    REVOKED = "revoked"
    PAUSED = "paused"


class Switch(StrEnum):
    """Whether a state removes anything, as a person has set it for all of its threads."""

    ON = "on"
    PAUSED = "paused"  # nothing new is removed, asked about or renewed; what was removed stays so
    PAUSED_ALL = "paused_all"  # standing removals end too, each thread's at its next request


@dataclass(frozen=True, slots=True)
class Identity:
    """What a verdict binds to, inside one thread: the same text read again later is another output."""

    tool_use_id: str
    block: int  # position in the result's content list; 0 for string content
    sha256: str  # hex digest of the text's UTF-8 bytes, lone surrogates passed through

    def __hash__(self) -> int:
        # A str remembers its hash; one of a tuple of the three fields, made anew, is most of a look-up. The text alone will
        # not do: a thousand calls that answered the same would all share a place.
        return hash(self.sha256) ^ (hash(self.tool_use_id) + self.block)

    @property
    def key(self) -> str:
        """The 16 hex digits that stand in the marker."""
        return self.sha256[:16]


@dataclass(frozen=True, slots=True)
class Payload:
    """An original that a marker can bring back, with the call that made it."""

    identity: Identity
    content: bytes  # the exact UTF-8 bytes (surrogatepass)
    tool: str  # name of the tool that was called
    arguments: str  # its input as compact JSON, for the "expired" answer


@dataclass(frozen=True, slots=True)
class Removal:
    """A frozen decision: `written` is replayed byte for byte and never made anew."""

    identity: Identity
    written: bytes  # the JSON string token that replaces the original's, quotes included; see `splice.replace_result`
    saved_bytes: int  # UTF-8 bytes of the original less those of the text written
    decided_at: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Pending:
    """A drop that was judged and waits for a request at which applying it pays."""

    identity: Identity
    tokens: float  # size of the output, estimated
    judged_at: float
    messages: int  # length of the history that was judged: what stands behind it may refer to the output again
    history: str  # its last digest in the branch's chain, in hex: the verdict holds for what goes on from there


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of a thread's history: what was last sent, when, and how long the provider keeps it."""

    branch: str  # identifier inside the thread
    chain: bytes  # cumulative 8-byte digests, one a message: equal prefixes mean equal messages
    head: bytes  # digest of tools and system
    body: bytes  # fingerprint of the last body, to tell a retry
    clock: float  # when the prefix was last read or written, seconds since the epoch
    ttl_s: int | None  # lifetime asked for; None: no mark at all
    asked_at: float | None = None  # clock value of the wait in which an ask was made, so that a gap is asked once


@dataclass(frozen=True, slots=True)
class Usage:
    """A provider's usage figures, tokens by tier."""

    fresh: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0


def usage_of(usage: object) -> Usage | None:
    """A provider's usage object by tier, tokens; None when it is not one. Unlabelled writes are five-minute ones."""
    if not isinstance(usage, dict):
        return None
    split = usage.get("cache_creation")
    one_hour = _count(split.get("ephemeral_1h_input_tokens")) if isinstance(split, dict) else 0
    written = _count(usage.get("cache_creation_input_tokens"))
    return Usage(
        fresh=_count(usage.get("input_tokens")),
        read=_count(usage.get("cache_read_input_tokens")),
        write_5m=max(0, written - one_hour),
        write_1h=one_hour,
        output=_count(usage.get("output_tokens")),
    )


def _count(value: object) -> int:
    """A count of tokens; 0 for what is none, such as a number that no request could bring about."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT else 0


@dataclass(frozen=True, slots=True)
class Thread:
    """All that is remembered of one thread, as one value."""

    branches: tuple[Branch, ...] = ()
    removals: dict[Identity, Removal] = field(default_factory=dict)  # frozen and still replayed
    ended: dict[Identity, Ending] = field(default_factory=dict)
    pending: dict[Identity, Pending] = field(default_factory=dict)
    expanded: frozenset[str] = frozenset()  # SHA-256 of originals that were asked for: whole from then on
    declaration: bytes | None = None  # the tool declaration as first sent, replayed byte for byte
    bytes_per_token: float | None = None  # learnt from the provider's usage
    usages: tuple[Usage, ...] = ()  # the provider's last two, newest last
    paid_misses: int = 0  # asks that read nothing or paid a write; two latch asking off
    missing: frozenset[Identity] = frozenset()  # replayed removals whose original is gone, until a body brings it back


def moment(now: float) -> float:
    """`now`, if it is a moment: 0 to the end of the year 9999. Raises ValueError for any other, not-a-number too.

    An infinite clock would be written into a branch that no request ever extends again, and age every thread away.
    """
    if not 0 <= now <= LATEST:
        raise ValueError(f"now is {now!r}; it must be 0 to {LATEST} seconds since the epoch")
    return now
