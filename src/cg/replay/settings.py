"""What a replay takes for granted where a log is silent, as one value."""

from dataclasses import dataclass, field

from cg.sweep.config import Lifetime
from cg.sweep.economics import START_BYTES_PER_TOKEN
from cg.sweep.prices import ONE_HOUR_S, PriceTable

FIVE_MINUTES_S = 300
TTLS = {"auto": None, "5m": FIVE_MINUTES_S, "1h": ONE_HOUR_S}
PLAN: Lifetime = "plan"  # the sweep chooses between the two, whenever the prefix is lost anyway
VERDICT_TOKENS = 60  # a label, a letter and a short quote: what the question asks for, with room


@dataclass(frozen=True, slots=True)
class Settings:
    """The assumptions of one replay."""

    lifetime: Lifetime = "client"  # `lifetime` of the sweep, for policies that do not set their own
    ttl_s: int | None = None  # None: as recorded, five minutes where no write is recorded
    bytes_per_token: float = START_BYTES_PER_TOKEN
    min_cache_tokens: int = 1024
    verdict_tokens: int = VERDICT_TOKENS
    fixed_tokens: int | None = None  # None: by the first recorded usage, else the median
    prices: PriceTable = field(default_factory=PriceTable.default)
    every_turn: bool = False  # run the sweep at every request, also where it could do nothing
    with_trace: bool = False  # keep each turn's figures, for plots
    lifetimes: tuple[
        str, ...
    ] = ()  # of TTLS, or PLAN: what policies that could be switched on would cost at each of these too
    since: float | None = None  # seconds since the epoch: sessions that began earlier are left out, undated ones too
    until: float | None = None  # those that began at this moment or later

    def ttl_of(self, recorded: int | None) -> int:
        """The lifetime that a session is replayed with."""
        return self.ttl_s or recorded or FIVE_MINUTES_S

    def takes(self, started: float | None) -> bool:
        """Whether a session that began then is wanted; None: it has no date."""
        if self.since is None and self.until is None:
            return True
        if started is None:
            return False
        return (self.since is None or started >= self.since) and (self.until is None or started < self.until)
