"""Where a state on a Valkey or Redis server stands: its URL, checked, and told without what is secret in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from cg.sweep.config import ConfigError

IS_TLS = {"redis": False, "valkey": False, "unix": False, "rediss": True, "valkeys": True}
DEFAULT_PORT = 6379
DEFAULT_PREFIX = "cg"
DEFAULT_TIMEOUT_MS = 1000.0  # half of the gateway's own budget: an answer later than this is of no use to the request
TIMEOUT_MS = (50.0, 60_000.0)
MAX_DATABASE = 1_000_000  # servers have 16 by default; whether this one is there is theirs to say
ASSUMED = frozenset({"noeviction", "persistence"})
TLS_FILES = {"tls_ca": "ssl_ca_certs", "tls_cert": "ssl_certfile", "tls_key": "ssl_keyfile"}
OPTIONS = ("prefix", "timeout_ms", "assume", "db", *TLS_FILES)
_PREFIX = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # nothing that a pattern of SCAN or of an access list could mean


@dataclass(frozen=True, slots=True)
class Address:
    """One server, as `parse` reads it from a URL. `str` of it, and its `repr`, hold no credential."""

    scheme: str
    host: str = ""  # empty for a socket file
    port: int = DEFAULT_PORT
    path: str = ""  # of a socket file
    database: int = 0
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    prefix: str = DEFAULT_PREFIX  # of all our keys
    timeout_s: float = DEFAULT_TIMEOUT_MS / 1000
    assumed: frozenset[str] = frozenset()  # what the operator answers for because the server does not tell
    tls_files: Mapping[str, str] = field(default_factory=dict)  # by the client's name for each

    def __str__(self) -> str:
        if self.path:
            return f"unix://{self.path}?db={self.database}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}/{self.database}"

    @property
    def is_tls(self) -> bool:
        return IS_TLS[self.scheme]


def is_address(text: str) -> bool:
    """Whether a state is named by a URL, of whatever kind, and not by a file."""
    return "://" in text


def parse(url: str) -> Address:
    """The server of `redis[s]://`, `valkey[s]://[user:password@]host[:port][/database]`, or `unix://path`.

    Options: `prefix`, `timeout_ms`, `assume=noeviction,persistence`, `db`, `tls_ca`, `tls_cert`, `tls_key` (files).
    Raises ConfigError that names the part, and never repeats what may be secret.
    """
    if "#" in url:
        raise ConfigError("state: the URL has a '#': in a password it must be written %23")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError("state: the URL cannot be read: its host or port is not one") from error
    if parts.scheme not in IS_TLS:
        raise ConfigError(f"state: scheme {parts.scheme!r:.20} is not known; known are {', '.join(IS_TLS)}")
    options = _options(parts.query)
    is_file = parts.scheme == "unix"
    if is_file and not parts.path.strip("/"):
        raise ConfigError("state: unix:// needs the path of a socket: unix:///run/valkey/valkey.sock")
    if not is_file and not parts.hostname:
        raise ConfigError(f"state: {parts.scheme}:// needs a host")
    return Address(
        scheme=parts.scheme,
        host="" if is_file else parts.hostname or "",
        port=DEFAULT_PORT if port is None else port,
        path=unquote(parts.path) if is_file else "",
        database=_database(parts, options),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        prefix=_prefix(options),
        timeout_s=_timeout_ms(options) / 1000,
        assumed=_assumed(options),
        tls_files=_tls_files(parts.scheme, options),
    )


def _options(query: str) -> dict[str, str]:
    try:
        given = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise ConfigError("state: what stands behind '?' in the URL is not name=value&name=value") from error
    for name, _ in given:
        if name not in OPTIONS:
            raise ConfigError(f"state: option {name!r:.40} is not known; known are {', '.join(OPTIONS)}")
    if len({name for name, _ in given}) < len(given):
        raise ConfigError("state: an option stands twice in the URL")
    return dict(given)


def _database(parts: SplitResult, options: Mapping[str, str]) -> int:
    in_path = "" if parts.scheme == "unix" else parts.path.strip("/")
    text = options.get("db", in_path or "0")
    if in_path and "db" in options:
        raise ConfigError("state: the database stands in the URL's path and in its option db")
    if not (text.isascii() and text.isdigit() and len(text) <= 7 and int(text) <= MAX_DATABASE):
        raise ConfigError(f"state: database is {text!r:.20}; it must be a number from 0 to {MAX_DATABASE}")
    return int(text)


def _prefix(options: Mapping[str, str]) -> str:
    prefix = options.get("prefix", DEFAULT_PREFIX)
    if not _PREFIX.fullmatch(prefix):
        raise ConfigError(f"state: prefix is {prefix!r:.80}; it must be 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-'")
    return prefix


def _timeout_ms(options: Mapping[str, str]) -> float:
    text, (low, high) = options.get("timeout_ms", str(DEFAULT_TIMEOUT_MS)), TIMEOUT_MS
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not low <= value <= high:
        raise ConfigError(f"state: timeout_ms is {text!r:.20}; it must be {low:.0f} to {high:.0f} milliseconds")
    return value


def _assumed(options: Mapping[str, str]) -> frozenset[str]:
    assumed = frozenset(options["assume"].split(",")) if "assume" in options else frozenset()
    if unknown := assumed - ASSUMED:
        raise ConfigError(f"state: assume has {min(unknown)!r:.40}; it may have {', '.join(sorted(ASSUMED))}")
    return assumed


def _tls_files(scheme: str, options: Mapping[str, str]) -> dict[str, str]:
    files = {TLS_FILES[name]: value for name, value in options.items() if name in TLS_FILES}
    if files and not IS_TLS[scheme]:
        raise ConfigError(f"state: {scheme}:// has no TLS, so its files mean nothing; write rediss:// or valkeys://")
    return files
