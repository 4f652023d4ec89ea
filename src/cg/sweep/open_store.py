"""Opens the state that a text names: a file, or a server that several gateways share."""

from pathlib import Path
from typing import TYPE_CHECKING

from cg.sweep.config import Config
from cg.sweep.storage.redis.address import Address, is_address, parse
from cg.sweep.store import Limits, StoreError
from cg.sweep.store_sqlite import SqliteStore

if TYPE_CHECKING:
    from cg.sweep.store_redis import RedisStore


def limits_of(config: Config) -> Limits:
    """What a configuration lets a store keep."""
    return Limits(config.payload_ttl_h * 3600.0, config.store_max_mb * 1024 * 1024)


def open_store(state: str, config: Config, *, must_exist: bool = False) -> "SqliteStore | RedisStore":
    """The store behind a path or a server's URL; a file that must exist is not made. Raises ConfigError or StoreError."""
    if is_address(state):
        return open_server(parse(state), config)
    return SqliteStore(Path(state), config, must_exist=must_exist)


def open_server(address: Address, config: Config) -> "RedisStore":
    """The store on a server. Raises StoreError, also where the client package is not installed."""
    try:
        from cg.sweep.store_redis import RedisStore
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "redis":
            raise
        raise StoreError("a state on a server needs the package redis: pip install 'cg-context[redis]'") from error
    return RedisStore(address, limits=limits_of(config))
