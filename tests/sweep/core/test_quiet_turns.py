"""The rule quiet in whole turns, as the default preset drives it, and what a person protects from every judge."""

from typing import Any

import pytest
from presets import paid
from sessions import COLD_AFTER_S, Client, Replies, drops, history, output, request, results, step

from cg.sweep.config import Config, load
from cg.sweep.core.idle_ask import due_at
from cg.sweep.counters import Decline
from cg.sweep.ledger import Reason
from cg.sweep.store_memory import MemoryStore


def cold_turn(messages: list[dict[str, Any]], config: Config, last: list[dict[str, Any]] | None = None) -> Client:
    """A conversation, and a request after its prefix is lost."""
    client = Client(MemoryStore(), config)
    client.send(request(messages), 0.0)
    client.send(request(messages + (step(900) if last is None else last)), COLD_AFTER_S)
    return client


def gone(client: Client) -> list[str]:
    return [one.tool_use_id for one in client.report.removed]


def test_the_default_removes_what_was_quiet_for_forty_requests_and_asks_nobody() -> None:
    """Of 45 outputs that nothing used, the newest forty stay; the others go at the cold request, and are counted."""
    client = cold_turn(history(45), Config())
    assert client.report.reason is Reason.REMOVED and client.report.phase == "cold"
    assert gone(client) == [f"toolu_{i}" for i in range(6)]
    assert client.report.declines[Decline.STILL_IN_USE] == 40
    (branch,) = client.store.load("t").branches
    assert due_at(client.sweep.core, branch) is None and client.report.ask is None


def test_nothing_is_looked_at_while_the_prefix_lives() -> None:
    """A warm turn under the rule costs what a turn without a judge costs."""
    client = Client(MemoryStore(), Config())
    for n in (0, 45, 46):
        client.send(request(history(n)), 10.0 * n / 45)
    assert client.report.reason is Reason.WARM and len(client.sweep.core.quiet) == 0


def test_what_no_request_was_answered_about_stays_even_if_it_is_superseded() -> None:
    """Two copies come with the newest request: nobody has read the older one yet."""
    first, second = step(1, output(1)), step(2, output(1))
    both = [
        {"role": one["role"], "content": one["content"] + other["content"]}
        for one, other in zip(first, second, strict=True)
    ]
    assert gone(cold_turn(history(1), Config(), both)) == []
    answered = [*both, {"role": "assistant", "content": "So."}, {"role": "user", "content": "Go on."}]
    assert gone(cold_turn(history(1), Config(), answered)) == ["toolu_1"]


@pytest.mark.parametrize(("rescue", "n"), [(True, 5), (False, 6)])
def test_what_the_newest_user_text_names_stays_and_is_counted(rescue: bool, n: int) -> None:
    """Its file here; `rescue` switches that off."""
    config = load(flags={"rescue": rescue})
    asks = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Now look at 3.py again."}]
    client = cold_turn(history(45), config, asks)
    assert ("toolu_3" in gone(client)) is not rescue and len(gone(client)) == n
    assert client.report.declines.get(Decline.NAMED_BY_USER, 0) == int(rescue)


def test_the_next_cold_body_costs_what_it_adds() -> None:
    """The core keeps what it read; nothing of it is in the thread's state."""
    client = cold_turn(history(45), Config())
    assert len(client.sweep.core.quiet) == 1
    client.send(request(history(45) + step(900) + step(901)), 2 * COLD_AFTER_S)
    assert len(client.sweep.core.quiet) == 1 and gone(client) == ["toolu_6"]


JUDGES = [Config(), load(preset="cold", flags={"pings": 0}), load(flags={"judge": "index"})]


@pytest.mark.parametrize("config", JUDGES, ids=lambda config: config.judge)
@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ({"protected_tools": ["Read"]}, {0, 1, 2, 3, 4}),
        ({"protected_tools": ["mcp__*", "R*"]}, {0, 1, 2, 3, 4}),
        ({"protected_tools": ["read", "Rea", "mcp__*"]}, set()),
        ({"protected_paths": ["src/2.py"]}, {2}),
        ({"protected_paths": ["2.py", "3.*"]}, {2, 3}),
        ({"protected_paths": ["src/"]}, {0, 1, 2, 3, 4}),
        ({"protected_paths": ["SRC\\2.py"]}, {2}),
        ({"protected_paths": ["/w/./src//2.py", "**/[3].py"]}, {2, 3}),
        ({"protected_paths": ["rc/2.py", ".py", "src/2"]}, set()),
    ],
)
def test_no_rule_removes_what_a_person_protects(config: Config, keys: dict[str, list[str]], kept: set[int]) -> None:
    """By the tool's name or a glob; by a path, a folder on it, or a glob. Each is counted."""
    values = {**config.to_dict(), **{name: tuple(value) for name, value in keys.items()}}
    free, client = cold_turn(history(45), config), cold_turn(history(45), Config(**values))
    assert {f"toolu_{i}" for i in range(5)} <= set(gone(free))
    assert {i for i in range(5) if f"toolu_{i}" not in gone(client)} == kept
    assert (client.report.declines.get(Decline.PROTECTED, 0) > 0) is bool(kept)


def test_no_model_is_asked_about_what_a_person_protects() -> None:
    """It does not stand in the inventory."""
    config = paid(ask="on-request", apply="at-once", protected_paths=("src/1.py", "src/2.py"))
    client, asker = Client(MemoryStore(), config), Replies(drops(12))
    client.send(request(history(0)), 0.0)
    client.send(request(history(14)), 10.0)
    client.send(request(history(15)), 260.0, asker)
    (asked,) = asker.asked
    question = asked.decode().rpartition("The list:")[2]
    assert "toolu_0" in question and "id toolu_1," not in question and "id toolu_2," not in question
    assert client.report.declines[Decline.PROTECTED] == 2


def test_what_was_removed_before_it_was_protected_stays_removed() -> None:
    """A frozen removal is replayed whatever the configuration says by now: no prefix breaks."""
    client = cold_turn(history(45), Config())
    later = Client(client.store, load(flags={"protected_tools": ("*",)}))
    body = later.send(request(history(45) + step(900) + step(901)), COLD_AFTER_S + 10)
    assert later.report.replayed == 6 and "cg_expand" in str(results(body)["toolu_0"])
