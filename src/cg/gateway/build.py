"""Puts one gateway together from its settings."""

from dataclasses import dataclass

from cg.gateway.app import App
from cg.gateway.events import Events, Silent
from cg.gateway.pool import PooledUpstream
from cg.gateway.settings import Settings


@dataclass(frozen=True, slots=True)
class Gateway:
    """What a server serves, and whoever counts what it does."""

    app: App
    events: Events


def build(settings: Settings) -> Gateway:
    """A gateway that is ready to be served. Raises CgError for a state or a proxy that cannot be used."""
    events = Silent()
    upstream = PooledUpstream(
        settings.upstream,
        connect_timeout_s=settings.connect_timeout_s,
        idle_timeout_s=settings.upstream_idle_s,
        max_connections=settings.max_requests,
    )
    return Gateway(App(settings, upstream, events), events)
