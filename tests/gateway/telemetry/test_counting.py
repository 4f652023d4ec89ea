"""The counting side of a gateway, put together."""

import asyncio
import json

import pytest

from cg.gateway.events import Fault, Route
from cg.gateway.exchange import Inbound
from cg.gateway.settings import Settings
from cg.gateway.telemetry.counting import counting, place_of
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.store_memory import MemoryStore


def test_what_is_told_is_what_is_shown() -> None:
    """Events, figures and routes belong to one another, and the store's totals stand beside them."""
    store = MemoryStore()
    store.count("thread", TurnReport(Reason.WARM))
    office = counting(Settings(upstream="https://host.example/secret"), lambda: 100.0, store=store)
    office.events.turn(TurnReport(Reason.COLD), 100.0)
    office.events.request(Route.MESSAGES, 200)
    office.events.fault(Fault.STORE)
    answer = asyncio.run(office.routes.handlers[b"/stats"](Inbound("GET", b"/stats", [])))  # type: ignore[arg-type]
    found = json.loads(bytes(answer.body))  # type: ignore[arg-type]
    assert found["reasons"] == {"cold": 1}
    assert found["lifetime"]["reasons"] == {"warm": 1}
    assert found["upstream"] == "https://host.example"
    assert found["config"]["judge"] == "quiet"
    assert "secret" not in json.dumps(found)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com"),
        ("http://u:p@127.0.0.1:8787/v1?key=k#f", "http://127.0.0.1:8787"),
        ("http://[::1]:80/x", "http://[::1]:80"),
        ("http://host:port", "http://host"),
    ],
)
def test_of_an_address_only_its_place_is_shown(url: str, place: str) -> None:
    """Credentials and paths are left out."""
    assert place_of(url) == place
