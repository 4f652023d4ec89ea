"""The counting side of a gateway, put together."""

import asyncio
import json

import pytest

from cg.gateway.build import _telemetry
from cg.gateway.events import Fault, RequestClosed, Route, TurnSent
from cg.gateway.exchange import Inbound
from cg.gateway.settings import Settings
from cg.gateway.upstream.base_url import place_of
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.store_memory import MemoryStore


def test_what_is_told_is_what_is_shown() -> None:
    """Events, figures and routes belong to one another, and the store's totals stand beside them."""
    store = MemoryStore()
    store.count("thread", TurnReport(Reason.WARM))
    telemetry = _telemetry(Settings(upstream="https://host.example/secret"), lambda: 100.0, store, lambda: False)
    telemetry.events.tell(TurnSent(TurnReport(Reason.COLD), 100.0))
    telemetry.events.tell(RequestClosed(Route.MESSAGES, 200))
    telemetry.events.tell(Fault.STORE)
    answer = asyncio.run(telemetry.routes.handlers[b"/stats"](Inbound("GET", b"/stats", [])))  # type: ignore[arg-type]
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
