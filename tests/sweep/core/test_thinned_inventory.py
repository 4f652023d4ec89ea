"""A filter that takes candidates away between their listing and the ask shows, wherever it stands."""

from typing import Any

import pytest
from presets import paid
from sessions import Client, Replies, drops, history, request

from cg.sweep.config import Config
from cg.sweep.core.policy import Core
from cg.sweep.counters import Event
from cg.sweep.store_memory import MemoryStore


class BehindTheListing(Core):
    def eligible(self, *given: Any, **named: Any) -> Any:
        return super().eligible(*given, **named)[:11]


class BeforeTheInventory(Core):
    def inventory(self, candidates: Any, tally: Any) -> Any:
        return super().inventory(candidates[:11], tally)


class BehindTheInventory(Core):
    def inventory(self, candidates: Any, tally: Any) -> Any:
        return super().inventory(candidates, tally)[:11]


class NothingIsLeft(Core):
    def inventory(self, candidates: Any, tally: Any) -> Any:
        return super().inventory(candidates[:1], tally)


IN_REQUEST = {"ask": "on-request", "apply": "at-once"}


def thinned(core: type[Core], config: Config) -> int:
    """What one ask about the twelve oldest of fourteen outputs counts."""
    client = Client(MemoryStore(), config)
    client.sweep.core = core(config, client.sweep.core.prices)
    client.send(request(history(0)), 0.0)
    client.send(request(history(14)), 10.0)
    if config.ask == "on-request":
        client.send(request(history(15)), 260.0, Replies(drops(12)))
        return int(client.report.events.get(Event.INVENTORY_THINNED, 0))
    (branch,) = client.store.load("t").branches
    settled = client.sweep.settle("t", branch, 250.0, asker=Replies(drops(12)))
    return settled.tally.events[Event.INVENTORY_THINNED]


@pytest.mark.parametrize("keys", [{}, IN_REQUEST], ids=["in the gap", "in a request"])
@pytest.mark.parametrize(
    ("core", "n"),
    [(Core, 0), (BehindTheListing, 1), (BeforeTheInventory, 1), (BehindTheInventory, 1), (NothingIsLeft, 11)],
)
def test_u40_a_filter_between_listing_and_ask_shows_wherever_it_stands(
    core: type[Core], n: int, keys: dict[str, str]
) -> None:
    """Fourteen listed, a cap of twelve: the cap is no thinning, anything else is."""
    assert thinned(core, paid(**keys)) == n
