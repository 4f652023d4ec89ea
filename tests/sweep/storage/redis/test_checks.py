"""Which servers may hold a state: those that neither evict nor forget, as far as they tell."""

from typing import Any

import pytest

from cg.sweep.storage.redis.checks import refusal

INFO = {
    "redis_version": "7.0.15",
    "redis_mode": "standalone",
    "role": "master",
    "maxmemory_policy": "noeviction",
    "aof_enabled": "1",
}
CONFIG = {"maxmemory-policy": "noeviction", "appendonly": "yes", "save": ""}


def server(info: dict[str, str] | None, config: dict[str, str] | None) -> Any:
    """A server that tells so much; None: the command is not for us."""

    def ask(*words: str) -> Any:
        if words == ("INFO",) and info is not None:
            return "".join(f"{name}:{value}\r\n" for name, value in {"# Server": "", **info}.items()).encode()
        if words[:2] == ("CONFIG", "GET") and config is not None:
            found = config.get(words[2])
            return [] if found is None else [words[2].encode(), found.encode()]
        raise PermissionError(words[0])

    return ask


@pytest.mark.parametrize(
    ("info", "config"),
    [
        ({}, None),  # INFO alone is enough where there is an append-only file
        ({}, CONFIG),
        ({"aof_enabled": "0"}, {"appendonly": "no", "save": "3600 1"}),
        ({"valkey_version": "8.0.1", "redis_version": "7.2.4"}, None),
        (None, CONFIG),
        (None, {**CONFIG, "appendonly": "no", "save": "900 1 300 10"}),
    ],
)
def test_a_server_that_keeps_what_it_is_given_is_taken(info: dict[str, str] | None, config: Any) -> None:
    """An append-only file or snapshots, and no eviction."""
    assert refusal(server(info if info is None else INFO | info, config), frozenset()) is None


@pytest.mark.parametrize(
    ("info", "config", "words"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, CONFIG, "maxmemory-policy is 'allkeys-lru': it must be noeviction"),
        ({"maxmemory_policy": "volatile-ttl"}, None, "maxmemory-policy is 'volatile-ttl'"),
        (None, {**CONFIG, "maxmemory-policy": "allkeys-lfu"}, "maxmemory-policy is 'allkeys-lfu'"),
        ({"aof_enabled": "0"}, {"appendonly": "no", "save": ""}, "appendonly is 'no' and save is ''"),
        ({"aof_enabled": "0"}, None, "add assume=persistence to the URL"),
        (None, None, "add assume=noeviction to the URL"),
        ({"role": "slave"}, CONFIG, "it is a replica"),
        ({"redis_mode": "cluster"}, CONFIG, "cluster mode is on"),
        ({"redis_version": "6.0.20"}, CONFIG, "version 6.0.20 is too old: it must be 6.2 or newer"),
    ],
)
def test_a_server_that_may_lose_an_original_is_refused(info: dict[str, str] | None, config: Any, words: str) -> None:
    """In words that name the setting and its value."""
    found = refusal(server(info if info is None else INFO | info, config), frozenset())
    assert found is not None and words in str(found)


def test_what_a_server_does_not_tell_its_operator_can_answer_for() -> None:
    """Providers of managed servers keep CONFIG to themselves."""
    silent = server(None, None)
    assert refusal(silent, frozenset({"noeviction"})) is not None
    assert refusal(silent, frozenset({"persistence"})) is not None
    assert refusal(silent, frozenset({"noeviction", "persistence"})) is None
    snapshots_elsewhere = server(INFO | {"aof_enabled": "0"}, {"appendonly": "no", "save": ""})
    assert refusal(snapshots_elsewhere, frozenset({"persistence"})) is None


def test_nobody_answers_for_an_eviction_that_the_server_tells_of() -> None:
    """What is assumed fills a gap; it does not outweigh what is seen."""
    evicts = server(INFO | {"maxmemory_policy": "allkeys-lru"}, CONFIG)
    assert refusal(evicts, frozenset({"noeviction", "persistence"})) is not None
