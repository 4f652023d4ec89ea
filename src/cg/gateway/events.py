"""What the gateway says about its work: events, which are values, each told once to whoever listens.

A refusal, a fault and a step of a timer are events as they stand; the other events are the dataclasses below. A label
is an enum member and never a string that a client, an upstream or a model can choose, so the number of time series is
bounded by this file, and no content can leave through a metric.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from cg.sweep.ledger import AskRow, TurnReport
from cg.sweep.values import Usage


class Route(StrEnum):
    """What a request was for."""

    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    OTHER = "other"  # another path of the same provider, passed through
    FOREIGN = "foreign"  # a path that belongs to another provider, passed through
    OWN = "own"  # /healthz, /metrics, /stats, /expand, /dashboard


class Refusal(StrEnum):
    """The gateway itself turned a request away, and why."""

    HOST = "host"  # a host name that is not one of this machine, and no token
    ORIGIN = "origin"  # a page of another web origin
    TOKEN = "token"  # a token is needed, and is missing or wrong
    TARGET = "target"  # absolute form, or a path that is none
    FRAMING = "framing"  # lengths and encodings that two readers could understand differently
    TOO_LARGE = "too_large"  # a body over `max_body_mb`
    BUSY = "busy"  # more than `max_requests`, `max_connections` or `max_buffered_mb` at a time


class Fault(StrEnum):
    """Something failed, and the request went on as the rules say; the first group is ours, the second is the world's."""

    SWEEP = "sweep"
    STORE = "store"
    WATCHDOG = "watchdog"  # our own work took longer than its budget; the turn left in its last frozen form
    TIMER = "timer"
    RECOVERY = "recovery"
    METRICS = "metrics"

    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    UPSTREAM_CUT = "upstream_cut"  # the reply ended before its end
    UPSTREAM_UNREADABLE = "upstream_unreadable"  # a reply that we had to understand and could not
    CLIENT_GONE = "client_gone"


OURS = frozenset([Fault.SWEEP, Fault.STORE, Fault.WATCHDOG, Fault.TIMER, Fault.RECOVERY, Fault.METRICS])


class Spend(StrEnum):
    """What a model call was made for. Only REQUEST is the client's own."""

    REQUEST = "request"  # the client's own
    ASK = "ask"  # which outputs are spent
    PING = "ping"  # a read of one token that keeps an entry alive
    RECOVERY = "recovery"  # an inner round that answered a call of our tool


class Mode(StrEnum):
    """How an original came back."""

    HIDDEN = "hidden"  # answered inside the gateway; the client saw one message
    SHOWN = "shown"  # the call passed through, and the client's error was replaced in later copies
    ROUTE = "route"  # read on our own route


class Outcome(StrEnum):
    """What a call of our tool brought."""

    ORIGINAL = "original"
    EXPIRED = "expired"
    UNKNOWN = "unknown"  # never existed in this thread
    ROUNDS_SPENT = "rounds_spent"  # passed through because the rounds were used up


class Timer(StrEnum):
    """A step in the life of an idle ask."""

    ARMED = "armed"  # a reply has ended, and a gap may begin
    CANCELLED = "cancelled"  # the branch's next request came first
    FIRED = "fired"  # its moment came
    CLAIMED_ELSEWHERE = "claimed_elsewhere"  # another gateway on this store had it
    DROPPED = "dropped"  # queue full, or stopping
    CREDENTIAL_REFUSED = "credential_refused"  # answered 401: the credential is let go


class Stage(StrEnum):
    """Which time was measured."""

    SWEEP = "sweep"  # our own work between the request's last byte and the first byte sent upstream
    FIRST_BYTE = "first_byte"  # request received to the reply's first byte
    TOTAL = "total"  # request received to the reply's last byte
    ASK = "ask"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True)
class RequestOpened:
    """A request is being served from now on; `RequestClosed` follows exactly once."""


@dataclass(frozen=True, slots=True)
class RequestClosed:
    """A request is done, however it ended."""

    route: Route
    status: int  # of the answer; 0 if the client was gone before one could be given


@dataclass(frozen=True, slots=True)
class UpstreamReplied:
    """The upstream answered with this status, whatever the call was made for."""

    status: int


@dataclass(frozen=True, slots=True)
class TurnSent:
    """What the sweep did to one request that was really sent."""

    report: TurnReport
    at: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class TurnProjected:
    """What the sweep would have done to a request that was sent untouched: kept apart from every real figure."""

    report: TurnReport
    at: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A model call has ended; None for a usage that the provider did not say."""

    spend: Spend
    model: str  # finds the price and labels nothing
    usage: Usage | None
    at: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class AskEnded:
    """An adjudication ended. Its tokens are those of its `ModelCalled` events with `Spend.ASK`, not counted again."""

    row: AskRow


@dataclass(frozen=True, slots=True)
class ExpandAnswered:
    """A call of our tool was answered; `rounds` calls were made inside the gateway for it."""

    mode: Mode
    outcome: Outcome
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class OriginalResent:
    """The upstream refused a body that we had changed with this status, and the original was sent."""

    status: int


@dataclass(frozen=True, slots=True)
class StageTimed:
    """How long a stage took, by a monotonic clock."""

    stage: Stage
    seconds: float


GatewayEvent = (
    RequestOpened
    | RequestClosed
    | UpstreamReplied
    | TurnSent
    | TurnProjected
    | ModelCalled
    | AskEnded
    | ExpandAnswered
    | OriginalResent
    | StageTimed
    | Refusal
    | Fault
    | Timer
)


class Events(Protocol):
    """Whoever listens. Calls return at once, never block, and come from any thread."""

    def tell(self, event: GatewayEvent) -> None:
        """Take in one event."""
        ...
