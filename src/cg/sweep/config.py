"""The sweep's configuration: flags over environment over file over preset, every value checked where it enters."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from cg.key_table import ConfigError, Key, KeyTable, given, parsed, table

__all__ = ["KEYS", "PRESETS", "Config", "ConfigError", "describe", "load", "preset_values"]

PRESETS = ("quiet", "cold", "paid", "classic")
DEFAULT_PRESET = "quiet"  # makes no call of its own
ENVIRONMENT_PREFIX = "CG_SWEEP_"
NOT_KEYS = frozenset({"PRESET", "CONFIG", "STATE"})  # variables of the same prefix that other parts read

Lifetime = Literal["client", "5m", "1h", "plan"]


@dataclass(frozen=True, slots=True)
class Config:
    """What is in force; the defaults are the preset `quiet`. One field a key, as `describe` explains them."""

    ask: Literal["idle", "on-request", "off"] = "off"
    apply: Literal["paid", "free", "at-once"] = "free"
    judge: Literal["quiet", "recency", "index", "model"] = "quiet"
    min_tokens: int = 100
    min_inventory: int = 1
    ask_cap: int = 12
    select: Literal["oldest", "largest"] = "oldest"
    quiet_requests: int = 40
    run_log_requests: int = 10
    keep_newest: int = 0
    pings: int = 0
    rescue: bool = True
    window_s: float = 60.0
    cold_margin_s: float = 60.0
    min_later_turns: int = 8
    block_fallback: bool = False
    ask_timeout_s: float = 90.0
    fallback_timeout_s: float = 90.0
    payload_ttl_h: float = 168.0
    store_max_mb: int = 2048
    spare_breakpoint: bool = True
    lifetime: Lifetime = "client"
    evidence: bool = True
    head_line: bool = False
    protected_tools: tuple[str, ...] = ()
    protected_paths: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All keys with their values, in the order of the reference."""
        return asdict(self)

    @property
    def removes(self) -> bool:
        """Whether anything can be judged at all: without a judge nothing is removed, and no tool is declared for it."""
        return self.judge != "model" or self.ask != "off"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is valid but may not be meant: settings that take all effect from one another."""
        found = []
        if not self.removes:
            found.append("judge is 'model' but ask is 'off': no model is ever asked, so nothing is removed")
        if self.judge != "model" and self.ask != "off":
            found.append(f"judge is {self.judge!r}, which asks nobody: ask = {self.ask!r} has no effect")
        if self.judge == "model" and self.min_inventory > self.ask_cap:
            found.append(f"min_inventory {self.min_inventory} is above ask_cap {self.ask_cap}: no ask is ever made")
        return tuple(found)


# Upper ends are guards against a wrong unit (milliseconds, bytes), not opinions.
KEYS: tuple[Key, ...] = (
    Key("ask", "when the model is asked", choices=("idle", "on-request", "off")),
    Key("apply", "when what is spent is removed", choices=("paid", "free", "at-once")),
    Key("judge", "who says what is spent", choices=("quiet", "recency", "index", "model")),
    Key("min_tokens", "smallest output that is a candidate", "tokens", 1, 1_000_000),
    Key("min_inventory", "fewest candidates that are asked about together", "outputs", 1, 40),
    Key("ask_cap", "most candidates of one ask", "outputs", 1, 40),
    Key("select", "which candidates are asked about when there are more", choices=("oldest", "largest")),
    Key("quiet_requests", "requests without use after which the rule quiet drops", "requests", 1, 10_000),
    Key("run_log_requests", "the same for logs of what ran", "requests", 1, 10_000),
    Key("keep_newest", "newest candidates that recency keeps", "outputs", 0, 10_000),
    Key("pings", "reads that renew a five-minute entry while its client is idle", "pings", 0, 2),
    Key("rescue", "a judged output that anything newer refers to is kept after all"),
    # A window as long as the shortest lifetime would call every warm request about to expire.
    Key("window_s", "last part of a lifetime, in which an ask is due", "seconds", 1, 299, is_whole=False),
    Key("cold_margin_s", "how long past its lifetime an entry may still be there", "seconds", 0, 3600, is_whole=False),
    Key("min_later_turns", "turns after an output before the index may drop it", "turns", 0, 10_000),
    Key("block_fallback", "no second ask, over samples, when the prefix was missed"),
    Key("ask_timeout_s", "deadline of an ask", "seconds", 1, 600, is_whole=False),
    Key("fallback_timeout_s", "deadline of a fallback ask", "seconds", 1, 600, is_whole=False),
    Key("payload_ttl_h", "how long an original is kept after its last use", "hours", 1, 8760, is_whole=False),
    Key("store_max_mb", "most that originals may take on disk", "MB", 1, 1_048_576),
    Key("spare_breakpoint", "a free cache breakpoint is set before the first removed output"),
    Key("lifetime", "which lifetime the client's cache marks get", choices=("client", "5m", "1h", "plan")),
    Key("evidence", "the ask shows the index's counters of each output"),
    Key("head_line", "the ask shows the first line of each output"),
    Key("protected_tools", "tools whose outputs are never removed", is_list=True),
    Key("protected_paths", "paths whose outputs are never removed", is_list=True),
)
_UNKNOWN = "unknown key {name!r}; known are {known}"
_TABLE = KeyTable(
    KEYS,
    ENVIRONMENT_PREFIX,
    NOT_KEYS,
    unknown_key="{source}: " + _UNKNOWN,
    unknown_variable="environment ({variable}): " + _UNKNOWN,
)

_PRESET_VALUES: Mapping[str, Mapping[str, Any]] = {
    "quiet": {},
    "cold": {"judge": "recency", "min_tokens": 250, "keep_newest": 10, "pings": 1, "rescue": False},
    "paid": {"ask": "idle", "apply": "paid", "judge": "model", "min_tokens": 500, "min_inventory": 10},
    "classic": {
        "ask": "on-request",
        "apply": "at-once",
        "judge": "model",
        "min_tokens": 1000,
        "min_inventory": 10,
        "select": "largest",
        "rescue": False,
        "evidence": False,
        "head_line": True,
    },
}

# Keys of the older design. Looked for before unknown keys, so that the reason wins over "unknown".
_REFUSED: Mapping[str, str] = {
    "strategy": "a verdict keeps or drops, it does not choose a way to compact; 'judge' says who decides",
    "rewrite": "nothing is rewritten: an output stays whole or goes; 'apply' says when",
    "aggressiveness": "there is no target size to steer towards; use 'min_tokens', 'keep_newest' or 'ask_cap'",
    "max_chars": "outputs are not projected, only a descriptor is left; 'min_tokens' says which are candidates",
    "model": "only the request's own model has the transcript in its cache, another would read it at full price;"
    " use 'judge' to ask no model at all",
    "context": "the asked model reads the conversation itself; use 'head_line' to show more of each output",
    "context_messages": "the asked model reads the conversation itself; use 'head_line' to show more of each output",
    "max_calls": "one call covers all candidates; 'ask_cap' bounds how many those are",
    "economic_gate": "it priced one call per output, which there is none of; use 'apply' = 'paid' or 'free'",
    "per_output": "outputs are judged together in one ask; use 'min_inventory' and 'ask_cap'",
    "cold_cache": "it is a preset now: use 'preset' = 'cold'",
    "pre_expiry_seconds": "use 'window_s'",
    "marker_mode": "a removal can always be undone; there is no other mode",
    "recall": "there is no second tool: 'cg_expand' brings an output back by the id that stands in its place",
    "econ_trigger": "use 'apply' = 'paid'",
}


def load(
    text: str | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    preset: str | None = None,
    *,
    other_tables: Collection[str] = ("proxy",),
) -> Config:
    """The configuration in force: flags over environment (CG_SWEEP_...) over file over preset.

    `text` is TOML with a table [sweep]; `other_tables` are left to other readers of the same file. `flags` whose value
    is None were not given. The preset is the one named by `preset`, CG_SWEEP_PRESET, or the file's `preset`, in this
    order, else `quiet`. Raises ConfigError.
    """
    file = _file_values(text, other_tables) if text is not None else {}
    _refuse_older(file, "file")
    env = env or {}
    ours = [
        variable.removeprefix(ENVIRONMENT_PREFIX).lower() for variable in env if variable.startswith(ENVIRONMENT_PREFIX)
    ]
    _refuse_older(ours, "environment")
    environment = dict(_TABLE.in_environment(env))
    by_flag = given(flags)
    _refuse_older(by_flag, "flag")
    in_file = file.pop("preset", None)
    chosen = preset or env.get(ENVIRONMENT_PREFIX + "PRESET") or in_file or DEFAULT_PRESET
    values = dict(preset_values(chosen))
    values |= _TABLE.merged([("file", file), ("environment", environment), ("flag", by_flag)])
    return Config(**values)


def preset_values(name: object) -> dict[str, Any]:
    """The keys in which presets differ, with the values of one of them. Raises ConfigError for a name that is none."""
    if not isinstance(name, str) or name not in _PRESET_VALUES:
        raise ConfigError(f"preset is {name!r}; it must be one of {', '.join(PRESETS)}")
    plain = Config()
    differing = {key: getattr(plain, key) for values in _PRESET_VALUES.values() for key in values}
    return {**differing, **_PRESET_VALUES[name]}


def describe() -> Iterator[dict[str, str]]:
    """One row a key for a reference: key, meaning, range, environment variable, and its value in each preset."""
    presets = {name: load(preset=name).to_dict() for name in PRESETS}
    for key in KEYS:
        row = {"key": key.name, "meaning": key.meaning, "range": key.range}
        row["environment"] = ENVIRONMENT_PREFIX + key.name.upper()
        yield row | {name: _shown(values[key.name]) for name, values in presets.items()}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _file_values(text: str, other_tables: Collection[str]) -> dict[str, Any]:
    tables = parsed(text)
    stray = sorted(tables.keys() - {"sweep", *other_tables})
    if stray:
        raise ConfigError(f"unknown {stray[0]!r} at the top of the file; the sweep's keys belong into [sweep]")
    return dict(table(tables, "sweep"))


def _refuse_older(names: Iterable[str], source: str) -> None:
    """The reason why an older key is gone comes before the complaint about any other unknown key."""
    for name in names:
        if name in _REFUSED:
            raise ConfigError(f"{source}: {name!r} is a key of an older design: {_REFUSED[name]}")


assert tuple(field.name for field in fields(Config)) == tuple(key.name for key in KEYS)  # one field a key, in one order
