"""Whether a server may hold a state: one that evicts, or forgets when it is restarted, would leave markers without
their originals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

OLDEST = (6, 2)  # ZADD GT, which keeps the later of two moments
Ask = Callable[..., Any]  # one command with its arguments; raises PermissionError where that is not for us


class Unfit(StrEnum):
    """What keeps a server from holding a state."""

    TOO_OLD = "too_old"
    CLUSTER = "cluster"
    REPLICA = "replica"
    EVICTS = "evicts"
    FORGETS = "forgets"
    SILENT = "silent"  # it does not tell, and nobody answers for it


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing may be removed over a server; `words` name the setting and its value."""

    why: Unfit
    words: str

    def __str__(self) -> str:
        return self.words


def refusal(ask: Ask, assumed: frozenset[str]) -> Refusal | None:
    """Why nothing may be removed over this server; None if all is well.

    INFO tells of eviction and of an append-only file; only for snapshots is CONFIG needed, which providers of managed
    servers keep for themselves. What is `assumed` is not looked at: the operator answers for it.
    """
    try:
        info = _fields(ask("INFO"))
    except PermissionError:
        info = {}
    for refused in (_version(info), _role(info), _eviction(ask, info, assumed), _persistence(ask, info, assumed)):
        if refused is not None:
            return refused
    return None


def _version(info: Mapping[str, str]) -> Refusal | None:
    version = info.get("valkey_version") or info.get("redis_version")
    if version is None:
        return None  # the scripts' own commands will tell
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers >= OLDEST:
        return None
    return Refusal(Unfit.TOO_OLD, f"version {version:.20} is too old: it must be {'.'.join(map(str, OLDEST))} or newer")


def _role(info: Mapping[str, str]) -> Refusal | None:
    if info.get("redis_mode") == "cluster" or info.get("cluster_enabled") == "1":
        return Refusal(Unfit.CLUSTER, "cluster mode is on: a state stands on one server, or on one with replicas")
    if info.get("role") == "slave":
        return Refusal(Unfit.REPLICA, "it is a replica: a state is written to the primary")
    return None


def _eviction(ask: Ask, info: Mapping[str, str], assumed: frozenset[str]) -> Refusal | None:
    policy = info.get("maxmemory_policy") or _setting(ask, "maxmemory-policy")
    if policy == "noeviction" or (policy is None and "noeviction" in assumed):
        return None
    if policy is None:
        return _untold("maxmemory-policy", "noeviction")
    words = f"maxmemory-policy is {policy!r:.40}: it must be noeviction, else originals vanish behind their markers"
    return Refusal(Unfit.EVICTS, words)


def _persistence(ask: Ask, info: Mapping[str, str], assumed: frozenset[str]) -> Refusal | None:
    if info.get("aof_enabled") == "1" or "persistence" in assumed:
        return None
    appendonly, save = _setting(ask, "appendonly"), _setting(ask, "save")
    if appendonly == "yes" or (save is not None and save.strip()):
        return None
    if save is None:
        return _untold("whether it saves (appendonly, save)", "persistence")
    words = f"appendonly is {appendonly!r:.10} and save is {save!r:.40}: one must be on, else a restart loses originals"
    return Refusal(Unfit.FORGETS, words)


def _untold(what: str, option: str) -> Refusal:
    words = f"it does not tell {what}, and CONFIG is refused: if you know it, add assume={option} to the URL"
    return Refusal(Unfit.SILENT, words)


def _setting(ask: Ask, name: str) -> str | None:
    """A setting's value; None where CONFIG is refused."""
    try:
        reply = ask("CONFIG", "GET", name)
    except PermissionError:
        return None
    return reply[1].decode("utf-8", "replace") if isinstance(reply, list) and len(reply) == 2 else None


def _fields(info: object) -> dict[str, str]:
    text = info.decode("utf-8", "replace") if isinstance(info, bytes) else ""
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, _, value in pairs}
