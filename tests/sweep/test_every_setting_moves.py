"""Each setting of the sweep changes what a whole conversation comes to: one that changes nothing is deleted.

A scenario is a conversation with what can be seen of it from outside: bodies that left, questions that were asked, when,
and for how long. The table names, for each key, a scenario and two values under which it must not come out the same.
"""

import itertools
import random
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from presets import paid
from replaying import policy, recording
from sessions import COLD_AFTER_S, Client, Replies, drops, history, opening, output, request, step

from cg.replay.run import run
from cg.replay.settings import Settings
from cg.sweep.config import Config, load
from cg.sweep.core.idle_ask import due_at
from cg.sweep.effects import Answer
from cg.sweep.open_store import open_store
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Usage

DAY_S = 86_400.0
LONG_WAITS = "pi-long-373"  # a recording of five-minute entries, in which renewals are worth their price
Scenario = Callable[[Config, Path], object]


def cold(config: Config, folder: Path, messages: list[Any] | None = None, last: list[Any] | None = None) -> object:
    """What leaves at a cold request behind 45 outputs that nothing used."""
    client = Client(MemoryStore(), config)
    messages = history(45) if messages is None else messages
    client.send(request(messages), 0.0)
    return client.send(request(messages + (step(900) if last is None else last)), COLD_AFTER_S)


def late(config: Config, folder: Path) -> object:
    """A request a few seconds past the lifetime."""
    client = Client(MemoryStore(), config)
    client.send(request(history(45)), 0.0)
    return client.send(request(history(45) + step(900)), 310.0)


def failed_test_run(config: Config, folder: Path) -> object:
    """An early run of the tests, quiet since then for fewer requests than another output has to be."""
    run = step(0, output(0), name="Bash", command="python -m pytest tests")
    later = [message for n in range(1, 20) for message in step(n)]
    return cold(config, folder, opening() + run + later)


def named_by_user(config: Config, folder: Path) -> object:
    """The newest user text speaks of the file of an output that is spent."""
    return cold(config, folder, last=[*step(900), {"role": "user", "content": "Look at src/2.py once more."}])


def question(config: Config, folder: Path) -> object:
    """An idle ask: when it falls due, what is asked, and how long it may take."""
    client = Client(MemoryStore(), config)
    client.send(request(history(0)), 0.0)
    messages = opening() + [m for n in range(20) for m in step(n, output(n, 4000 + 100 * n))]
    client.send(request(messages), 10.0)
    (branch,) = client.store.load("t").branches
    due = due_at(client.sweep.core, branch)
    asker = Replies(drops(3))
    if due is not None:
        client.sweep.settle("t", branch, due, asker=asker)
    return due, asker.asked, asker.timeouts


def one_output(config: Config, folder: Path) -> object:
    """An idle ask where a single output could be asked about."""
    client = Client(MemoryStore(), config)
    client.send(request(history(0)), 0.0)
    client.send(request(opening() + step(0, output(0, 40_000))), 10.0)
    (branch,) = client.store.load("t").branches
    asker = Replies(drops(1))
    client.sweep.settle("t", branch, 250.0, asker=asker)
    return asker.asked


def missed_prefix(config: Config, folder: Path) -> object:
    """An ask that read nothing from the cache, and the one over samples behind it."""
    client = Client(MemoryStore(), config)
    client.send(request(history(0)), 0.0)
    client.send(request(history(20)), 10.0)
    (branch,) = client.store.load("t").branches
    asker = Replies(drops(3), Answer(drops(3), Usage(fresh=9000, output=20)), usage=Usage(fresh=500, output=10))
    client.sweep.settle("t", branch, 250.0, asker=asker)
    return len(asker.asked), asker.timeouts


def judged(config: Config, folder: Path) -> object:
    """Verdicts that wait, at a warm request and at a cold one that speaks of one of the outputs."""
    client = Client(MemoryStore(), config)
    client.send(request(history(0)), 0.0)
    client.send(request(history(20)), 10.0)
    (branch,) = client.store.load("t").branches
    client.sweep.settle("t", branch, 250.0, asker=Replies(drops(9)))
    warm = client.send(request(history(20) + step(900)), 260.0)
    use = [{"role": "user", "content": "What is entry_2_0001 there for, and entry_2_0002?"}]
    return warm, client.send(request(history(20) + step(900) + use), 260.0 + COLD_AFTER_S)


def stored(config: Config, folder: Path) -> object:
    """What a state holds of removed outputs that come to more than a megabyte, and what two days later."""
    noise = random.Random(1)
    with open_store(str(folder / "state" / "sweep.db"), replace(config, quiet_requests=5)) as store:
        for thread in "abcdefgh":
            client = Client(store, replace(config, quiet_requests=5), thread)
            texts = ["\n".join(f"row {noise.randbytes(40).hex()} end" for _ in range(100)) for _ in range(45)]
            messages = opening() + [message for n, text in enumerate(texts) for message in step(n, text)]
            client.send(request(messages), 1000.0)
            client.send(request(messages + step(900)), 1000.0 + COLD_AFTER_S)
        at_once = store.status()["payload_bytes"]
        store.sweep_ages(1000.0 + 2 * DAY_S)
        return at_once, store.status()["payloads"]


def pinged(config: Config, folder: Path) -> object:
    """The bill of a recorded session with waits, in which renewals pay."""
    which = policy("cold", **{field.name: getattr(config, field.name) for field in fields(config)})
    return run(recording(LONG_WAITS), which, Settings()).bills["ping"]


INDEX = Config(judge="index")
RECENCY = Config(judge="recency")
CASES: dict[str, tuple[Scenario, Config, Any, Any]] = {
    "ask": (question, paid(), "idle", "off"),
    "apply": (judged, paid(), "free", "at-once"),
    "judge": (cold, Config(), "quiet", "recency"),
    "min_tokens": (cold, Config(), 100, 100_000),
    "min_inventory": (one_output, paid(), 1, 2),
    "ask_cap": (question, paid(), 12, 3),
    "select": (question, paid(ask_cap=10), "oldest", "largest"),
    "quiet_requests": (cold, Config(), 40, 20),
    "run_log_requests": (failed_test_run, Config(), 10, 40),
    "keep_newest": (cold, RECENCY, 0, 30),
    "pings": (pinged, load(preset="cold"), 0, 1),
    "rescue": (named_by_user, Config(), True, False),
    "window_s": (question, paid(), 60.0, 30.0),
    "cold_margin_s": (late, Config(), 60.0, 5.0),
    "min_later_turns": (cold, INDEX, 8, 30),
    "block_fallback": (missed_prefix, paid(), False, True),
    "ask_timeout_s": (question, paid(), 90.0, 45.0),
    "fallback_timeout_s": (missed_prefix, paid(), 90.0, 45.0),
    "payload_ttl_h": (stored, Config(), 1.0, 168.0),
    "store_max_mb": (stored, Config(), 1, 2048),
    "spare_breakpoint": (cold, Config(), True, False),
    "lifetime": (cold, Config(), "client", "1h"),
    "evidence": (question, paid(), True, False),
    "head_line": (question, paid(), False, True),
    "protected_tools": (cold, Config(), (), ("Read",)),
    "protected_paths": (cold, Config(), (), ("src/*.py",)),
}


def test_the_table_holds_every_key_once() -> None:
    """And no other. A new key comes with a scenario that it changes."""
    assert sorted(CASES) == sorted(field.name for field in fields(Config))


@pytest.mark.parametrize("key", CASES)
def test_a_key_changes_what_comes_of_a_conversation(key: str, tmp_path: Path) -> None:
    """The same conversation under two values of one key, all else equal."""
    scenario, config, *values = CASES[key]
    seen = [scenario(replace(config, **{key: value}), tmp_path / str(n)) for n, value in enumerate(values)]
    assert seen[0] != seen[1]


def test_every_preset_is_unlike_the_others(tmp_path: Path) -> None:
    """A preset's name changes at least one key."""
    presets = [load(preset=name) for name in ("quiet", "cold", "paid", "classic")]
    assert all(one != other for one, other in itertools.combinations(presets, 2))
