"""Several listeners told as one, none of which can hurt a request or another."""

import logging

import pytest
from event_recorder import EventRecorder

from cg.gateway.events import Events, Fault, GatewayEvent, RequestClosed, TurnSent
from cg.gateway.telemetry import metric_families
from cg.gateway.telemetry.listeners import Listeners
from cg.gateway.telemetry.metrics import Metrics
from cg.sweep.ledger import Reason, TurnReport


def test_each_listener_is_told_in_order() -> None:
    """Figures and log hear the same, the first listener first."""
    heard: list[tuple[str, GatewayEvent]] = []

    class Named(Events):
        def __init__(self, name: str) -> None:
            self.name = name

        def tell(self, event: GatewayEvent) -> None:
            heard.append((self.name, event))

    turn = TurnSent(TurnReport(Reason.WARM), 1.0)
    listeners = Listeners(Named("a"), Named("b"))
    listeners.tell(turn)
    listeners.tell(Fault.STORE)
    assert heard == [("a", turn), ("b", turn), ("a", Fault.STORE), ("b", Fault.STORE)]


def test_a_figure_that_fails_harms_no_request(caplog: pytest.LogCaptureFixture) -> None:
    """It is counted as a fault of ours and logged without what it was about."""
    metrics = Metrics()
    with caplog.at_level(logging.ERROR):
        Listeners(metrics).tell(RequestClosed("not a route", 200))  # type: ignore[arg-type]
        Listeners(metrics).tell(TurnSent(None, 0.0))  # type: ignore[arg-type]
    assert metrics.figures.snapshot().values[metric_families.FAULTS_OURS]["metrics",] == 2
    assert "not a route" not in caplog.text


def test_a_listener_that_always_fails_hurts_no_other() -> None:
    """A program's own is one of them; what it did is counted once an event."""

    class Failing(Events):
        def tell(self, event: GatewayEvent) -> None:
            raise RuntimeError

    recorder = EventRecorder()
    Listeners(Failing(), recorder).tell(Fault.STORE)
    assert recorder.events == [Fault.METRICS, Fault.STORE]
