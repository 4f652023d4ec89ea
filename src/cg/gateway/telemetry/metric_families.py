"""The metric families: every name, its help line, its labels and each value that a label may take.

Two names come from an earlier system, whose alert rules they keep working: `cg_component_gate_declines_total` and
`cg_component_events_total`. All series of a closed set start at zero, so that a rate over the first count is right.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from itertools import product
from typing import Literal

from cg.gateway.events import OURS, Fault, Mode, Outcome, Refusal, Route, Spend, Stage, Timer
from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import SIZE_BOUNDS, AskOutcome, Reason
from cg.sweep.values import Phase

# Upper ends in seconds: our own work is about a millisecond, a reply's first byte a second, a whole reply minutes.
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

OVERLOADED = 529  # the provider's own status, in no register
KNOWN_STATUSES = frozenset({*(int(status) for status in HTTPStatus), OVERLOADED})


class Tier(StrEnum):
    """What a token was paid as; the spellings are the fields of a usage."""

    FRESH = "fresh"
    READ = "read"
    WRITE_5M = "write_5m"
    WRITE_1H = "write_1h"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, eq=False)  # each is one object: hashed as such, and on every count
class Family:
    """One metric. A label stands with its values, or with None where the closed set is too large to list at zero."""

    name: str
    help: str
    kind: Literal["counter", "gauge", "histogram"] = "counter"
    labels: tuple[tuple[str, tuple[str, ...] | None], ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.labels)

    def series(self) -> Iterator[tuple[str, ...]]:
        """The label values that stand at zero from the start."""
        listed = [values for _, values in self.labels]
        if all(values is not None for values in listed):
            yield from product(*(values for values in listed if values is not None))


def _of(values: Iterable[StrEnum]) -> tuple[str, ...]:
    return tuple(value.value for value in values)


_COMPONENT = ("component", ("sweep",))
_FOR = ("for", _of(Spend))
_TIER = ("tier", _of(Tier))

REQUESTS = Family("cg_requests_total", "Requests answered.", labels=(("route", _of(Route)), ("status", None)))
REFUSED = Family("cg_refused_total", "Requests that the gateway turned away.", labels=(("why", _of(Refusal)),))
UPSTREAM = Family("cg_upstream_responses_total", "Replies of the upstream.", labels=(("status", None),))
TURNS = Family("cg_turns_total", "Turns by the one reason that each has.", labels=(("reason", _of(Reason)),))
PHASES = Family("cg_turn_phases_total", "Turns by the state of their cached prefix.", labels=(("phase", _of(Phase)),))
EVENTS = Family("cg_component_events_total", "Work done.", labels=(_COMPONENT, ("event", _of(Event))))
GATES = Family(
    "cg_component_gate_declines_total",
    "Outputs, verdicts and asks turned away, and doubts noted.",
    labels=(_COMPONENT, ("gate", _of(Decline))),
)
OUTPUTS = Family(
    "cg_tool_outputs_total",
    "New tool outputs by size, before any filter: at most so many bytes.",
    labels=(("size", (*(f"le_{bound}" for bound in SIZE_BOUNDS), "more")),),
)
REMOVED = Family("cg_removed_outputs_total", "Outputs removed for the first time.")
BYTES = Family(
    "cg_body_bytes_total",
    "Bytes taken out of bodies that were sent (unique, repeat), and put into them (charged).",
    labels=(("kind", ("unique", "repeat", "charged")),),
)
SAVED = Family("cg_saved_usd_total", "What removals saved, before charges, of turns whose price is known.")
CHARGED = Family("cg_charged_usd_total", "What markers, our tool and asks within requests cost, price known.")
UNPRICED_TURNS = Family("cg_unpriced_turns_total", "Changed turns whose price is unknown.")
TOKENS = Family("cg_tokens_total", "Tokens by what they were for and tier.", labels=(_FOR, _TIER))
COST = Family("cg_cost_usd_total", "Dollars by what they were for and tier, price known.", labels=(_FOR, _TIER))
CALLS = Family("cg_model_calls_total", "Model calls by what they were for.", labels=(_FOR,))
UNPRICED_CALLS = Family("cg_unpriced_calls_total", "Calls without usage or without a known price.", labels=(_FOR,))
ASKS = Family("cg_asks_total", "Adjudications by outcome.", labels=(("outcome", _of(AskOutcome)),))
VERDICTS = Family(
    "cg_ask_outputs_total",
    "Outputs in adjudications: offered, judged spent, dropped.",
    labels=(("step", ("offered", "judged_spent", "dropped")),),
)
RECOVERED = Family("cg_recoveries_total", "Calls of our tool.", labels=(("mode", _of(Mode)), ("outcome", _of(Outcome))))
ROUNDS = Family("cg_recovery_rounds_total", "Model calls made inside the gateway to answer calls of our tool.")
RESENT = Family(
    "cg_resent_originals_total", "Originals sent since a changed body was refused.", labels=(("status", None),)
)
TIMERS = Family("cg_timers_total", "Idle asks by what became of them.", labels=(("what", _of(Timer)),))
FAULTS_OURS = Family("cg_faults_total", "Failures of ours.", labels=(("fault", _of(f for f in Fault if f in OURS)),))
FAULTS_WORLD = Family(
    "cg_outside_faults_total",
    "Failures of upstream, network or client.",
    labels=(("fault", _of(f for f in Fault if f not in OURS)),),
)
STAGES = Family(
    "cg_stage_seconds", "How long each stage took.", "histogram", labels=(("stage", _of(Stage)),), bounds=SECONDS
)
IN_FLIGHT = Family("cg_in_flight_requests", "Requests being served.", "gauge")

PROJECTED_TURNS = Family(
    "cg_projected_turns_total", "Observing: turns by the reason they would have had.", labels=(("reason", _of(Reason)),)
)
PROJECTED_REMOVED = Family("cg_projected_removed_outputs_total", "Observing: outputs that would have been removed.")
PROJECTED_BYTES = Family(
    "cg_projected_body_bytes_total",
    "Observing: bytes that would have been taken out of bodies, or put into them.",
    labels=(("kind", ("unique", "repeat", "charged")),),
)
PROJECTED_SAVED = Family("cg_projected_saved_usd_total", "Observing: what removals would have saved.")
PROJECTED_CHARGED = Family("cg_projected_charged_usd_total", "Observing: what markers and our tool would have cost.")
PROJECTED_UNPRICED = Family("cg_projected_unpriced_turns_total", "Observing: turns whose price is unknown.")

ALL_FAMILIES: tuple[Family, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Family))


def status_label(status: int) -> str:
    """A status as a label: itself if it is a registered one, else its class, `none` if no answer was given."""
    if status in KNOWN_STATUSES:
        return str(status)
    if status == 0:
        return "none"
    return f"{status // 100}xx" if 100 <= status <= 599 else "other"
