"""What a gateway is started with, checked where it enters."""

from dataclasses import dataclass, field
from pathlib import Path

from cg.sweep.config import Config

DEFAULT_UPSTREAM = "https://api.anthropic.com"
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Settings:
    """One gateway's settings. `state` is None for a state in memory only."""

    listen: tuple[str, int] = ("127.0.0.1", 8788)
    upstream: str = DEFAULT_UPSTREAM
    state: Path | None = None
    config: Config = field(default_factory=Config)
    token: str | None = field(default=None, repr=False)
    observe: bool = False
    budget_ms: float = 2000.0  # our own work on one request; past it rule 10
    max_body_bytes: int = 100 * MIB  # of a request that is read whole
    max_buffered_bytes: int = 512 * MIB  # of all such requests together
    max_requests: int = 512  # served at one time
    head_timeout_s: float = 30.0  # for a request's line and headers
    body_idle_s: float = 60.0  # without a byte of a request's body
    client_idle_s: float = 600.0  # without the client taking a byte of its answer
    connect_timeout_s: float = 15.0
    upstream_idle_s: float = 900.0  # without a byte of the upstream's reply
    stop_timeout_s: float = 300.0  # for streams that are open when a stop is asked for
