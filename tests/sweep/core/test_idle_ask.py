"""The idle ask: made only where its verdicts could be applied."""

from typing import Any

import pytest
from presets import paid
from sessions import COLD_AFTER_S, RODE_ON_THE_CACHE, Client, Replies, drops, history, opening, output, request, step

from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.core.idle_ask import Settled
from cg.sweep.ledger import Reason
from cg.sweep.store_memory import MemoryStore

SMALL_WINDOW = "claude-haiku-4-5"  # 200,000 tokens
WINDOW_BYTES = int(0.9 * 200_000 * 2.9)


def in_the_gap(client: Client, clock: float, asker: Replies) -> Settled:
    branch = max(client.store.load("t").branches, key=lambda b: b.clock)
    return client.sweep.settle("t", branch, clock + 240.0, asker=asker)


def asked_over(messages: list[dict[str, Any]], **members: Any) -> tuple[Reason, int]:
    """How the gap behind a body ends, and how often the model was asked in it."""
    client = Client(MemoryStore(), paid(min_inventory=1))
    client.send(request(opening(), **members), 0.0)
    client.send(request(messages, **members), 10.0)
    asker = Replies(drops(40), drops(40), usage=RODE_ON_THE_CACHE)
    return in_the_gap(client, 10.0, asker).reason, len(asker.asked)


@pytest.mark.parametrize(
    ("share", "reason", "asks"),
    [(0.9, Reason.JUDGED, 1), (1.02, Reason.UNSWEPT_TOO_BIG, 0), (5.0, Reason.UNSWEPT_TOO_BIG, 0)],
)
def test_close_to_the_models_window_nobody_is_asked(share: float, reason: Reason, asks: int) -> None:
    """Nothing new goes at the requests that follow, until the client compacts: a verdict would be paid for nothing."""
    assert asked_over(history(20, int(share * WINDOW_BYTES / 20)), model=SMALL_WINDOW) == (reason, asks)


def test_the_size_is_that_of_the_clients_body() -> None:
    """What was removed before has made ours smaller, and the client's next one is as large as it was."""
    client = Client(MemoryStore(), paid(min_inventory=1, rescue=False))
    size = int(0.7 * WINDOW_BYTES / 20)
    client.send(request(opening(), model=SMALL_WINDOW), 0.0)
    client.send(request(history(20, size), model=SMALL_WINDOW), 10.0)
    gap = in_the_gap(client, 10.0, Replies(drops(40)))
    swept = client.sweep.process(
        request(history(21, size), model=SMALL_WINDOW), "t", 10.0 + COLD_AFTER_S + 240, settled=gap
    )
    assert swept.report.reason is Reason.REMOVED
    more = history(21, size) + step(90, output(90, int(0.35 * WINDOW_BYTES)))
    clock = 20.0 + COLD_AFTER_S + 240
    sent = client.send(request(more, model=SMALL_WINDOW), clock)
    assert len(sent) < WINDOW_BYTES < len(request(more))
    asker = Replies(drops(40))
    assert in_the_gap(client, clock, asker).reason is Reason.UNSWEPT_TOO_BIG and not asker.asked


def test_a_conversation_without_tools_or_with_a_tool_of_our_name_is_not_asked_about() -> None:
    """No removal can be declared in it."""
    taken = {"name": EXPAND_TOOL, "description": "Somebody else's.", "input_schema": {"type": "object"}}
    assert asked_over(history(14), tools=None) == (Reason.SIDE_CALL, 0)
    assert asked_over(history(14), tools=[taken]) == (Reason.TOOL_NAME_TAKEN, 0)
