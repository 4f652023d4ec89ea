"""What a gateway is started with: flags over environment over file over default, every value checked where it enters."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cg.gateway.upstream.base_url import checked
from cg.key_table import ConfigError, Key, KeyTable, given, parsed, table
from cg.sweep import config as sweep_config
from cg.sweep.config import Config
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


def state_named(text: str) -> Path | Address:
    """The file or the server that a state's name means. Raises ConfigError for a URL that is none of a server."""
    return parse(text) if is_address(text) else in_home(Path(text))


def in_home(path: Path) -> Path:
    """The path with its `~` made out. Raises ConfigError where no such home folder is known, or it depends on where we are."""
    try:
        expanded = path.expanduser()
    except RuntimeError:  # no HOME, and a user id without an entry, as containers have
        expanded = Path()
    if path != expanded and not expanded.is_absolute():
        raise ConfigError(f"state is {str(path)!r:.80}, and there is no home folder: name it by its whole path")
    return expanded


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


def _number(name: str, meaning: str, unit: str, low: float, high: float, **more: Any) -> Key:
    return Key(name, meaning, unit, low, high, is_whole=False, **more)


def _count(name: str, meaning: str, unit: str, low: float, high: float) -> Key:
    return Key(name, meaning, unit, low, high, is_float=True)


KEYS: tuple[Key, ...] = (
    Key("listen", "address and port; port 0 takes a free one", is_text=True, convert=lambda v: address(str(v))),
    Key("upstream", "base URL of the provider", is_text=True),
    Key(
        "state",
        "file of the state, made if absent, or URL of a server that several gateways share",
        is_text=True,
        convert=lambda v: state_named(str(v)),
    ),
    Key(
        "token_file",
        "file with the token that other machines, and routes with content, need",
        is_text=True,
        field="token",
        convert=lambda v: _token_in(Path(str(v))),
    ),
    Key("observe", "change nothing, and project what would have been saved"),
    _number("budget_ms", "time for our own work on a request", "milliseconds", 10, 60_000),
    _number("max_body_mb", "longest request that is read whole", "MiB", 1, 1024, field="max_body_bytes", scale=MIB),
    _number("max_buffered_mb", "all such requests together", "MiB", 1, 65_536, field="max_buffered_bytes", scale=MIB),
    _count("max_requests", "requests at one time", "requests", 1, 100_000),
    _count("max_connections", "connections of clients", "connections", 1, 100_000),
    _number("client_idle_s", "wait for a client that takes nothing", "seconds", 1, 86_400),
    _number("upstream_idle_s", "wait for an upstream that sends nothing", "seconds", 1, 86_400),
    _number("connect_timeout_s", "wait for a connection to the upstream", "seconds", 1, 600),
    _number("stop_timeout_s", "wait for open streams when stopping", "seconds", 0, 86_400),
)
_TABLE = KeyTable(
    KEYS,
    ENVIRONMENT_PREFIX,
    NOT_KEYS,
    unknown_key="{source}: unknown key {name!r} in [proxy]; known are {known}",
    unknown_variable="environment: {variable} is unknown; known keys are {known}",
)


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
    values = _TABLE.merged(
        [
            ("default", given(defaults)),
            ("file", table(parsed(text or ""), "proxy")),
            ("environment", dict(_TABLE.in_environment(environment))),
            ("flag", given(flags)),
        ]
    )
    if token := environment.get(ENVIRONMENT_PREFIX + "TOKEN"):
        values["token"] = token
    chosen = preset or environment.get(ENVIRONMENT_PREFIX + "PRESET")
    config = sweep_config.load(text, environment, {}, chosen)
    return Settings(config=config, **values)


def in_force(settings: Settings) -> dict[str, dict[str, object]]:
    """Every key of the two tables with its value, as JSON holds them; of the token only whether there is one."""
    proxy: dict[str, object] = {}
    for key in KEYS:
        value = getattr(settings, key.field or key.name)
        match key.name:
            case "listen":
                value = f"[{value[0]}]:{value[1]}" if ":" in value[0] else f"{value[0]}:{value[1]}"
            case "token_file":
                value = "(set)" if value else None
            case "state":
                value = value and str(value)
        proxy[key.name] = value if key.scale == 1 else value / key.scale
    return {"proxy": proxy, "sweep": settings.config.to_dict()}


def default_state(env: Mapping[str, str]) -> Path:
    """Where the state stands if nobody says so: under the user's own state directory, which may begin with `~`."""
    if os.name == "nt" and env.get("LOCALAPPDATA"):
        return Path(env["LOCALAPPDATA"]) / "cg" / "gateway.db"
    base = env.get("XDG_STATE_HOME", "")
    return Path(base if os.path.isabs(base) else "~/.local/state") / "cg" / "gateway.db"
