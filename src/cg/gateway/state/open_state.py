"""Opens the state that settings name: in memory, in a file, or on a server that several gateways share."""

from dataclasses import dataclass

from cg.gateway.settings import Settings
from cg.gateway.state.clock import Clock, SystemClock
from cg.gateway.state.secret import install_secret
from cg.sweep.open_store import limits_of, open_server
from cg.sweep.storage.redis.address import Address
from cg.sweep.store import Store
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore


@dataclass(frozen=True, slots=True)
class OpenState:
    """A store, the secret that its threads are named with, and the clock that all who share it go by."""

    store: Store
    secret: bytes
    clock: Clock

    def close(self) -> None:
        """Close what outlives the process; a state in memory stays readable until it goes."""
        if not isinstance(self.store, MemoryStore):
            self.store.close()


def open_state(settings: Settings, clock: Clock | None = None) -> OpenState:
    """The state of these settings; `clock` in place of its own. Raises CgError for one that cannot be used."""
    if isinstance(settings.state, Address):
        shared = open_server(settings.state, settings.config)
        return OpenState(shared, shared.secret, clock or SystemClock(lambda: shared.skew_s))
    secret, clock = install_secret(settings.state), clock or SystemClock()
    if settings.state is None:
        return OpenState(MemoryStore(limits_of(settings.config)), secret, clock)
    return OpenState(SqliteStore(settings.state, settings.config, bodies_in_memory=True), secret, clock)
