"""The protocol, and that every listener speaks it whole."""

import inspect

import pytest

from cg.gateway import events
from cg.gateway.events import Events, Fault, Silent
from cg.gateway.telemetry.event_log import Journal
from cg.gateway.telemetry.fan_out import Fan
from cg.gateway.telemetry.metrics import Metrics
from cg.sweep.ledger import Reason, TurnReport

METHODS = sorted(name for name in vars(Events) if not name.startswith("_"))


@pytest.mark.parametrize("listener", [Silent, Fan, Journal, Metrics])
@pytest.mark.parametrize("name", METHODS)
def test_every_listener_takes_what_the_protocol_says(listener: type, name: str) -> None:
    """A room that tells of its work never has to ask who listens."""
    wanted = list(inspect.signature(getattr(Events, name)).parameters)
    got = list(inspect.signature(inspect.unwrap(getattr(listener, name))).parameters)
    assert got == wanted


def test_a_fan_tells_each_listener_in_order() -> None:
    """Figures and log hear the same, the first listener first."""
    heard: list[tuple[str, str]] = []

    class Ear(Silent):
        def __init__(self, name: str) -> None:
            self.name = name

        def turn(self, report: TurnReport, at: float) -> None:
            heard.append((self.name, report.reason))

        def fault(self, what: Fault) -> None:
            heard.append((self.name, what))

    fan = Fan(Ear("a"), Ear("b"))
    fan.turn(TurnReport(Reason.WARM), 1.0)
    fan.fault(Fault.STORE)
    assert heard == [("a", "warm"), ("b", "warm"), ("a", "store"), ("b", "store")]


def test_every_fault_is_either_ours_or_the_worlds() -> None:
    """The page and the alert rules keep the two apart."""
    assert set(Fault) > events.OURS
    assert {f for f in Fault if f.value.startswith(("upstream", "client"))} == set(Fault) - events.OURS
