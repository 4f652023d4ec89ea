"""What a gateway is started with: flags over environment over file over default, every value checked where it enters."""

import ipaddress
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cg.gateway.upstream.base_url import checked
from cg.sweep import config as sweep_config
from cg.sweep.config import Config, ConfigError
from cg.sweep.storage.redis.address import Address, is_address, parse

MIN_TOKEN_CHARS = 16  # what is shorter can be tried out

DEFAULT_UPSTREAM = "https://api.anthropic.com"
ENVIRONMENT_PREFIX = "CG_PROXY_"
NOT_KEYS = frozenset({"CONFIG", "PRESET", "TOKEN"})  # variables of the same prefix that are read elsewhere
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Settings:
    """One gateway's settings. `state` is None for a state in memory only. Raises ConfigError for what cannot work."""

    listen: tuple[str, int] = ("127.0.0.1", 8788)
    upstream: str = DEFAULT_UPSTREAM
    state: Path | Address | None = None
    config: Config = field(default_factory=Config)
    token: str | None = field(default=None, repr=False)
    observe: bool = False
    budget_ms: float = 2000.0  # our own work on one request; past it rule 10
    max_body_bytes: int = 100 * MIB  # of a request that is read whole
    max_buffered_bytes: int = 512 * MIB  # of all such requests together
    max_requests: int = 512  # served at one time
    max_connections: int = 1024  # of clients, idle ones included
    head_timeout_s: float = 30.0  # for a request's line and headers
    body_idle_s: float = 60.0  # without a byte of a request's body
    client_idle_s: float = 600.0  # without the client taking a byte of its answer
    connect_timeout_s: float = 15.0
    upstream_idle_s: float = 900.0  # without a byte of the upstream's reply
    stop_timeout_s: float = 300.0  # for streams that are open when a stop is asked for

    def __post_init__(self) -> None:
        checked(self.upstream)
        if self.token is not None and not _is_token(self.token):
            raise ConfigError(f"the token must be at least {MIN_TOKEN_CHARS} characters of visible ASCII")
        if not self.is_loopback and self.token is None:
            raise ConfigError(f"listen is {self.listen[0]!r}, not a loopback address: that needs a token")
        if self.max_buffered_bytes < self.max_body_bytes:
            raise ConfigError(
                f"max_buffered_bytes {self.max_buffered_bytes} is less than one body of {self.max_body_bytes}"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the gateway."""
        return is_loopback_name(self.listen[0])


@dataclass(frozen=True, slots=True)
class Key:
    """One key of [proxy]: the field that it sets, and what may stand there."""

    name: str
    field: str
    meaning: str
    unit: str = ""  # a number if it has one
    low: float = 0
    high: float = 0
    scale: float = 1  # from the key's unit to the field's
    is_switch: bool = False

    @property
    def is_count(self) -> bool:
        """Whether only whole numbers have a meaning."""
        return self.unit in ("requests", "connections")

    @property
    def range(self) -> str:
        if self.is_switch:
            return "true or false"
        whole = "a whole number, " if self.is_count else ""
        return f"{whole}{self.low:.10g} to {self.high:.10g} {self.unit}" if self.unit else "text"


KEYS: tuple[Key, ...] = (
    Key("listen", "listen", "address and port; port 0 takes a free one"),
    Key("upstream", "upstream", "base URL of the provider"),
    Key("state", "state", "file of the state, made if absent, or URL of a server that several gateways share"),
    Key("token_file", "token", "file with the token that other machines, and routes with content, need"),
    Key("observe", "observe", "change nothing, and project what would have been saved", is_switch=True),
    Key("budget_ms", "budget_ms", "time for our own work on a request", "milliseconds", 10, 60_000),
    Key("max_body_mb", "max_body_bytes", "longest request that is read whole", "MiB", 1, 1024, MIB),
    Key("max_buffered_mb", "max_buffered_bytes", "all such requests together", "MiB", 1, 65_536, MIB),
    Key("max_requests", "max_requests", "requests at one time", "requests", 1, 100_000),
    Key("max_connections", "max_connections", "connections of clients", "connections", 1, 100_000),
    Key("client_idle_s", "client_idle_s", "wait for a client that takes nothing", "seconds", 1, 86_400),
    Key("upstream_idle_s", "upstream_idle_s", "wait for an upstream that sends nothing", "seconds", 1, 86_400),
    Key("connect_timeout_s", "connect_timeout_s", "wait for a connection to the upstream", "seconds", 1, 600),
    Key("stop_timeout_s", "stop_timeout_s", "wait for open streams when stopping", "seconds", 0, 86_400),
)
_BY_NAME = {key.name: key for key in KEYS}
_WHOLE = frozenset(["max_body_bytes", "max_buffered_bytes", "max_requests", "max_connections"])


def load(
    text: str | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    preset: str | None = None,
    *,
    defaults: Mapping[str, object] | None = None,
) -> Settings:
    """The settings in force. `text` is TOML with the tables [proxy] and [sweep]; `flags` and `defaults` that are None
    were not given, and `defaults` give way to all others.

    The token comes from `token_file` or from CG_PROXY_TOKEN, never from a flag, which others could see.
    Raises ConfigError.
    """
    environment = env or {}
    values: dict[str, object] = {}
    sources: list[tuple[str, Mapping[str, object]]] = [
        ("default", _given(defaults)),
        ("file", _file_values(text)),
        ("environment", dict(_environment_values(environment))),
        ("flag", _given(flags)),
    ]
    for source, found in sources:
        for name, value in found.items():
            if name not in _BY_NAME:
                raise ConfigError(f"{source}: unknown key {name!r} in [proxy]; known are {', '.join(_BY_NAME)}")
            key = _BY_NAME[name]
            values[key.field] = _value(key, value, source)
    if token := environment.get(ENVIRONMENT_PREFIX + "TOKEN"):
        values["token"] = token
    chosen = preset or environment.get(ENVIRONMENT_PREFIX + "PRESET")
    config = sweep_config.load(text, environment, {}, chosen)
    return Settings(config=config, **values)  # type: ignore[arg-type]


def _given(values: Mapping[str, object] | None) -> dict[str, object]:
    return {name: value for name, value in (values or {}).items() if value is not None}


def default_state(env: Mapping[str, str]) -> Path:
    """Where the state stands if nobody says so: under the user's own state directory."""
    if os.name == "nt" and env.get("LOCALAPPDATA"):
        return Path(env["LOCALAPPDATA"]) / "cg" / "gateway.db"
    base = env.get("XDG_STATE_HOME", "")
    folder = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state"
    return folder / "cg" / "gateway.db"


def _file_values(text: str | None) -> Mapping[str, object]:
    if text is None:
        return {}
    try:
        table: Any = tomllib.loads(text).get("proxy", {})
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"configuration is not TOML: {error}") from error
    if not isinstance(table, dict):
        raise ConfigError("'proxy' must be a table: [proxy]")
    return table


def _environment_values(env: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """The variables of our prefix as (key, value), text turned into the key's own type."""
    for variable, text in env.items():
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name == variable or name in NOT_KEYS:
            continue
        key = _BY_NAME.get(name.lower())
        if key is None:
            raise ConfigError(f"environment: {variable} is unknown; known keys are {', '.join(_BY_NAME)}")
        yield key.name, _from_text(key, text)


def _from_text(key: Key, text: str) -> object:
    if key.is_switch:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower(), text)
    if not key.unit:
        return text
    try:
        return float(text)
    except ValueError:
        return text  # refused by its type


def _value(key: Key, value: object, source: str) -> object:
    """The field's value. Raises ConfigError that names what may stand there."""
    if key.is_switch:
        is_good = isinstance(value, bool)
    elif key.unit:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_good = is_number and key.low <= float(value) <= key.high  # type: ignore[arg-type]
        is_good = is_good and (not key.is_count or float(value).is_integer())  # type: ignore[arg-type]
    else:
        is_good = isinstance(value, str | Path) and bool(str(value))
    if not is_good:
        raise ConfigError(f"{source}: {key.name} is {value!r:.80}; it must be {key.range}")
    if key.unit:
        number = float(value) * key.scale  # type: ignore[arg-type]
        return int(number) if key.field in _WHOLE else number
    if key.name == "listen":
        return address(str(value))
    if key.name == "token_file":
        return _token_in(Path(str(value)))
    return state_named(str(value)) if key.name == "state" else value


def state_named(text: str) -> Path | Address:
    """The file or the server that a state's name means. Raises ConfigError for a URL that is none of a server."""
    return parse(text) if is_address(text) else Path(text).expanduser()


def address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `[HOST]:PORT`, or a port alone, which is of 127.0.0.1. Raises ConfigError."""
    host, mark, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    is_good = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if not is_good or (mark and not host) or (":" in host and "[" not in text):
        raise ConfigError(f"listen is {text!r:.80}; it must be HOST:PORT, with an IPv6 address in brackets")
    return host or "127.0.0.1", int(port)


def _token_in(path: Path) -> str:
    """The first line of a token file, which nobody else may read."""
    try:
        with path.expanduser().open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(4096)
    except OSError as error:
        raise ConfigError(f"token_file {str(path)!r} cannot be read: {type(error).__name__}") from error
    if os.name == "posix" and mode & 0o077:
        raise ConfigError(f"token_file {str(path)!r} can be read by others: its mode is {mode & 0o777:o}, not 600")
    return raw.decode("ascii", "replace").partition("\n")[0].strip()


def _is_token(text: str) -> bool:
    return len(text) >= MIN_TOKEN_CHARS and all("!" <= character <= "~" for character in text)


def is_loopback_name(name: str) -> bool:
    """Whether a host name or address is this machine's own, by what it says: nothing is resolved."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
