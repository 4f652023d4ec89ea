"""Where a branch's cached prefix stands when a request arrives."""

from typing import Protocol

from cg.sweep.values import Branch, Phase


def phase(
    *,
    now: float,
    branch: Branch | None,
    ttl_s: int | None,
    broken: bool,
    uncached: bool,
    window_s: float,
    cold_margin_s: float,
) -> Phase:
    """The phase of a request at `now`; anything unclear is `unknown`, at which nothing is removed.

    With idle = now - the branch's clock: `warm` while ttl - idle > window, `pre_expiry` while idle < ttl, `unknown` up
    to ttl + cold_margin (providers keep many entries a little longer), then `cold`. The lifetime is the longer of what
    this request and the one before it asked for: taking a live entry for dead would break it. A request without any
    mark has no known lifetime; it is `uncached` when the provider's own usage shows that nothing is cached.
    """
    if ttl_s is None:
        return Phase.UNCACHED if uncached else Phase.UNKNOWN
    if broken:
        return Phase.BROKEN
    if branch is None:
        return Phase.UNKNOWN
    ttl = max(ttl_s, branch.ttl_s or 0)
    idle = now - branch.clock
    if idle < 0:  # a clock that runs backwards says nothing
        return Phase.UNKNOWN
    if idle >= ttl + cold_margin_s:
        return Phase.COLD
    if idle >= ttl:
        return Phase.UNKNOWN
    return Phase.WARM if ttl - idle > window_s else Phase.PRE_EXPIRY


class Margins(Protocol):
    """The two margins, in seconds, as a configuration holds them."""

    @property
    def window_s(self) -> float: ...

    @property
    def cold_margin_s(self) -> float: ...


def phase_of(
    *, now: float, branch: Branch | None, ttl_s: int | None, broken: bool, uncached: bool, config: Margins
) -> Phase:
    """`phase` with the margins of a configuration."""
    return phase(
        now=now,
        branch=branch,
        ttl_s=ttl_s,
        broken=broken,
        uncached=uncached,
        window_s=config.window_s,
        cold_margin_s=config.cold_margin_s,
    )
