"""The events, which are values."""

from dataclasses import FrozenInstanceError, is_dataclass
from typing import get_args

import pytest

from cg.gateway import events
from cg.gateway.events import Fault, GatewayEvent, Outcome, Route
from cg.sweep.core.expansion import ExpansionOutcome


def test_an_event_is_a_value() -> None:
    """What one listener has heard, another one cannot have changed."""
    closed = events.RequestClosed(Route.OWN, 200)
    with pytest.raises(FrozenInstanceError):
        closed.status = 500  # type: ignore[misc]
    assert closed == events.RequestClosed(Route.OWN, 200) and not hasattr(closed, "__dict__")


def test_every_event_is_in_the_union() -> None:
    """A listener that takes all of it misses none."""
    own = {kind for kind in vars(events).values() if is_dataclass(kind) and kind.__module__ == events.__name__}
    assert own | {events.Refusal, Fault, events.Timer} == set(get_args(GatewayEvent))


def test_every_fault_is_either_ours_or_the_worlds() -> None:
    """The page and the alert rules keep the two apart."""
    assert set(Fault) > events.OURS
    assert {f for f in Fault if f.value.startswith(("upstream", "client"))} == set(Fault) - events.OURS


def test_what_an_id_brought_has_one_spelling() -> None:
    """The gateway counts what the sweep says, and one outcome of its own."""
    assert {*map(Outcome, ExpansionOutcome), Outcome.ROUNDS_SPENT} == set(Outcome)
