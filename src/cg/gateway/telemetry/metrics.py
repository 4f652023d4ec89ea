"""The gateway's figures, counted as its rooms tell of their work."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from cg.gateway.events import OURS, Fault, Mode, Outcome, Refusal, Route, Spend, Stage, Timer
from cg.gateway.telemetry import metric_families as f
from cg.gateway.telemetry.metric_families import Tier, status_label
from cg.gateway.telemetry.registry import Figures, Snapshot
from cg.gateway.telemetry.timeline import Timeline
from cg.sweep.ledger import AskRow, Savings, TurnReport
from cg.sweep.prices import PriceTable, cost_usd
from cg.sweep.values import Usage

log = logging.getLogger("cg.gateway.telemetry.metrics")
P = ParamSpec("P")
LAST_ASKS = 50  # rows shown on the page; the store's ledger has them all


def _harmless(
    method: Callable[Concatenate["Metrics", P], None],
) -> Callable[Concatenate["Metrics", P], None]:
    """A count that fails is counted and logged, and the request goes on."""

    @wraps(method)
    def counted(self: "Metrics", /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.figures.add(f.FAULTS_OURS, Fault.METRICS.value)
            log.error("a figure was not counted: %s", type(error).__name__)

    return counted


@dataclass(frozen=True, slots=True)
class Money:
    """The headline, in USD of calls and turns whose price is known; None where no price was known at all."""

    client_usd: float | None  # what the client's own requests cost as sent
    saved_usd: float | None  # gross, by removals
    charged_usd: float | None  # markers, our tool, asks, pings, inner rounds
    net_usd: float | None
    unpriced_turns: int
    unpriced_calls: int


class Metrics:
    """Counts what the gateway does; an `Events`.

    `asks_in_request`: asks are made within requests (the preset `classic`), whose savings carry their price already;
    otherwise an ask's price is charged when it was made.
    """

    def __init__(self, prices: PriceTable | None = None, *, asks_in_request: bool = False) -> None:
        self.figures = Figures()
        self.timeline = Timeline()
        self._prices = prices if prices is not None else PriceTable.default()
        self._asks_in_request = asks_in_request
        self._asks: deque[AskRow] = deque(maxlen=LAST_ASKS)

    @property
    def last_asks(self) -> tuple[AskRow, ...]:
        """The newest adjudications, newest first."""
        return tuple(reversed(self._asks))

    @_harmless
    def request(self, route: Route, status: int) -> None:
        self.figures.add(f.REQUESTS, route.value, status_label(status))

    @_harmless
    def refused(self, why: Refusal) -> None:
        self.figures.add(f.REFUSED, why.value)

    @_harmless
    def upstream(self, status: int) -> None:
        self.figures.add(f.UPSTREAM, status_label(status))

    @_harmless
    def turn(self, report: TurnReport, at: float) -> None:
        add = self.figures.add
        add(f.TURNS, report.reason.value)
        add(f.PHASES, report.phase.value)
        for event, n in report.events.items():
            add(f.EVENTS, "sweep", str(event), amount=n)
        for decline, n in report.declines.items():
            add(f.GATES, "sweep", str(decline), amount=n)
        for size, n in report.sizes.items():
            add(f.OUTPUTS, size, amount=n)
        add(f.REMOVED, amount=len(report.removed))
        if report.savings is not None:
            self._save(report.savings, f.BYTES, f.SAVED, f.CHARGED, f.UNPRICED_TURNS)
        self.timeline.add(at, {"turns": 1, "removed": len(report.removed), "replayed": report.replayed})

    @_harmless
    def projected(self, report: TurnReport, at: float) -> None:
        add = self.figures.add
        add(f.PROJECTED_TURNS, report.reason.value)
        add(f.PROJECTED_REMOVED, amount=len(report.removed))
        if report.savings is not None:
            self._save(report.savings, f.PROJECTED_BYTES, f.PROJECTED_SAVED, f.PROJECTED_CHARGED, f.PROJECTED_UNPRICED)

    def _save(self, savings: Savings, sizes: f.Family, saved: f.Family, charged: f.Family, unpriced: f.Family) -> None:
        add = self.figures.add
        for kind, n in (
            ("unique", savings.unique_bytes),
            ("repeat", savings.repeat_bytes),
            ("charged", savings.charged_bytes),
        ):
            add(sizes, kind, amount=n)
        if savings.gross_usd is None or savings.charged_usd is None:
            add(unpriced)
            return
        add(saved, amount=savings.gross_usd)
        add(charged, amount=savings.charged_usd)

    @_harmless
    def spent(self, why: Spend, model: str, usage: Usage | None, at: float) -> None:
        self.figures.add(f.CALLS, why.value)
        price = self._prices.price(model)
        if usage is None or price is None:
            self.figures.add(f.UNPRICED_CALLS, why.value)
            self.timeline.add(at, {"unpriced": 1})
        if usage is None:
            return
        amounts: dict[str, float] = {}
        for tier in Tier:
            tokens = getattr(usage, tier.value)
            if not tokens:
                continue
            self.figures.add(f.TOKENS, why.value, tier.value, amount=tokens)
            usd = cost_usd(Usage(**{tier.value: tokens}), price)
            if usd:
                self.figures.add(f.COST, why.value, tier.value, amount=usd)
                name = f"usd_{tier.value}" if why is Spend.REQUEST else f"usd_{why.value}"
                amounts[name] = amounts.get(name, 0.0) + usd
        self.timeline.add(at, amounts)

    @_harmless
    def asked(self, row: AskRow) -> None:
        self.figures.add(f.ASKS, row.outcome.value)
        for step, n in (("offered", row.offered), ("judged_spent", row.judged_spent), ("dropped", row.dropped)):
            self.figures.add(f.VERDICTS, step, amount=n)
        self._asks.append(row)
        self.timeline.add(row.asked_at, {"asks": 1})

    @_harmless
    def recovered(self, mode: Mode, outcome: Outcome, rounds: int = 0) -> None:
        self.figures.add(f.RECOVERED, mode.value, outcome.value)
        self.figures.add(f.ROUNDS, amount=rounds)

    @_harmless
    def resent(self, status: int) -> None:
        self.figures.add(f.RESENT, status_label(status))

    @_harmless
    def timer(self, what: Timer) -> None:
        self.figures.add(f.TIMERS, what.value)

    @_harmless
    def fault(self, what: Fault) -> None:
        self.figures.add(f.FAULTS_OURS if what in OURS else f.FAULTS_WORLD, what.value)

    @_harmless
    def took(self, stage: Stage, seconds: float) -> None:
        self.figures.observe(f.STAGES, stage.value, value=seconds)

    @_harmless
    def opened(self) -> None:
        self.figures.add(f.IN_FLIGHT)

    @_harmless
    def closed(self) -> None:
        self.figures.add(f.IN_FLIGHT, amount=-1)

    def money(self, snapshot: Snapshot) -> Money:
        """The headline of a snapshot: what was saved less all that the gateway itself added to the bill."""
        of = snapshot.values[f.COST]
        client = sum(usd for (why, _), usd in of.items() if why == Spend.REQUEST.value)
        own = {Spend.ASK, Spend.PING, Spend.RECOVERY} - ({Spend.ASK} if self._asks_in_request else set())
        saved, charged = snapshot.total(f.SAVED), snapshot.total(f.CHARGED)
        charged += sum(usd for (why, _), usd in of.items() if why in {spend.value for spend in own})
        is_priced = bool(client or saved or charged)
        return Money(
            client_usd=client if is_priced else None,
            saved_usd=saved if is_priced else None,
            charged_usd=charged if is_priced else None,
            net_usd=saved - charged if is_priced else None,
            unpriced_turns=int(snapshot.total(f.UNPRICED_TURNS)),
            unpriced_calls=int(snapshot.total(f.UNPRICED_CALLS)),
        )
