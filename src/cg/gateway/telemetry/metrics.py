"""The gateway's figures, counted from its events."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cg.gateway.events import (
    OURS,
    AskEnded,
    ExpandAnswered,
    Fault,
    GatewayEvent,
    ModelCalled,
    OriginalResent,
    Refusal,
    RequestClosed,
    RequestOpened,
    Spend,
    StageTimed,
    Timer,
    TurnProjected,
    TurnSent,
    UpstreamReplied,
)
from cg.gateway.telemetry import metric_families
from cg.gateway.telemetry.metric_families import Tier, status_label
from cg.gateway.telemetry.registry import MetricRegistry, MetricSnapshot
from cg.gateway.telemetry.timeline import Timeline
from cg.sweep.ledger import AskRow, Savings
from cg.sweep.prices import PriceTable, cost_usd
from cg.sweep.values import Usage

LAST_ASKS = 50  # rows shown on the page; the store's ledger has them all


@dataclass(frozen=True, slots=True)
class MoneySummary:
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
        self.figures = MetricRegistry()
        self.timeline = Timeline()
        self._prices = prices if prices is not None else PriceTable.default()
        self._asks_in_request = asks_in_request
        self._asks: deque[AskRow] = deque(maxlen=LAST_ASKS)

    @property
    def last_asks(self) -> tuple[AskRow, ...]:
        """The newest adjudications, newest first."""
        return tuple(reversed(self._asks))

    def tell(self, event: GatewayEvent) -> None:
        """Count one event."""
        _COUNTED[type(event)](self, event)

    def _opened(self, event: RequestOpened) -> None:
        self.figures.add(metric_families.IN_FLIGHT)

    def _closed(self, event: RequestClosed) -> None:
        self.figures.add(metric_families.IN_FLIGHT, amount=-1)
        self.figures.add(metric_families.REQUESTS, event.route.value, status_label(event.status))

    def _replied(self, event: UpstreamReplied) -> None:
        self.figures.add(metric_families.UPSTREAM, status_label(event.status))

    def _resent(self, event: OriginalResent) -> None:
        self.figures.add(metric_families.RESENT, status_label(event.status))

    def _refused(self, event: Refusal) -> None:
        self.figures.add(metric_families.REFUSED, event)

    def _fault(self, event: Fault) -> None:
        self.figures.add(metric_families.FAULTS_OURS if event in OURS else metric_families.FAULTS_WORLD, event)

    def _timer(self, event: Timer) -> None:
        self.figures.add(metric_families.TIMERS, event)

    def _timed(self, event: StageTimed) -> None:
        self.figures.observe(metric_families.STAGES, event.stage, value=event.seconds)

    def _expanded(self, event: ExpandAnswered) -> None:
        self.figures.add(metric_families.RECOVERED, event.mode, event.outcome)
        self.figures.add(metric_families.ROUNDS, amount=event.rounds)

    def _sent(self, event: TurnSent) -> None:
        report, add = event.report, self.figures.add
        add(metric_families.TURNS, report.reason)
        add(metric_families.PHASES, report.phase)
        for name, n in report.events.items():
            add(metric_families.EVENTS, "sweep", str(name), amount=n)
        for decline, n in report.declines.items():
            add(metric_families.GATES, "sweep", str(decline), amount=n)
        for size, n in report.sizes.items():
            add(metric_families.OUTPUTS, size, amount=n)
        add(metric_families.REMOVED, amount=len(report.removed))
        if report.savings is not None:
            self._save(
                report.savings,
                metric_families.BYTES,
                metric_families.SAVED,
                metric_families.CHARGED,
                metric_families.UNPRICED_TURNS,
            )
        self.timeline.add(event.at, {"turns": 1, "removed": len(report.removed), "replayed": report.replayed})

    def _projected(self, event: TurnProjected) -> None:
        report, add = event.report, self.figures.add
        add(metric_families.PROJECTED_TURNS, report.reason)
        add(metric_families.PROJECTED_REMOVED, amount=len(report.removed))
        if report.savings is not None:
            self._save(
                report.savings,
                metric_families.PROJECTED_BYTES,
                metric_families.PROJECTED_SAVED,
                metric_families.PROJECTED_CHARGED,
                metric_families.PROJECTED_UNPRICED,
            )

    def _save(
        self,
        savings: Savings,
        sizes: metric_families.Family,
        saved: metric_families.Family,
        charged: metric_families.Family,
        unpriced: metric_families.Family,
    ) -> None:
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

    def _called(self, event: ModelCalled) -> None:
        purpose, usage = event.spend, event.usage
        self.figures.add(metric_families.CALLS, purpose)
        price = self._prices.price(event.model)
        if usage is None or price is None:
            self.figures.add(metric_families.UNPRICED_CALLS, purpose)
            self.timeline.add(event.at, {"unpriced": 1})
        if usage is None:
            return
        amounts: dict[str, float] = {}
        for tier in Tier:
            tokens = getattr(usage, tier)
            if not tokens:
                continue
            self.figures.add(metric_families.TOKENS, purpose, tier, amount=tokens)
            usd = cost_usd(Usage(**{tier: tokens}), price)
            if usd:
                self.figures.add(metric_families.COST, purpose, tier, amount=usd)
                name = f"usd_{tier}" if purpose is Spend.REQUEST else f"usd_{purpose}"
                amounts[name] = amounts.get(name, 0.0) + usd
        self.timeline.add(event.at, amounts)

    def _asked(self, event: AskEnded) -> None:
        row = event.row
        self.figures.add(metric_families.ASKS, row.outcome)
        for step, n in (("offered", row.offered), ("judged_spent", row.judged_spent), ("dropped", row.dropped)):
            self.figures.add(metric_families.VERDICTS, step, amount=n)
        self._asks.append(row)
        self.timeline.add(row.asked_at, {"asks": 1})

    def money(self, snapshot: MetricSnapshot) -> MoneySummary:
        """The headline of a snapshot: what was saved less all that the gateway itself added to the bill."""
        costs = snapshot.values[metric_families.COST]
        client = sum(usd for (why, _), usd in costs.items() if why == Spend.REQUEST.value)
        added = {Spend.ASK, Spend.PING, Spend.RECOVERY} - ({Spend.ASK} if self._asks_in_request else set())
        saved, charged = snapshot.total(metric_families.SAVED), snapshot.total(metric_families.CHARGED)
        charged += sum(usd for (why, _), usd in costs.items() if why in {spend.value for spend in added})
        is_priced = bool(client or saved or charged)
        return MoneySummary(
            client_usd=client if is_priced else None,
            saved_usd=saved if is_priced else None,
            charged_usd=charged if is_priced else None,
            net_usd=saved - charged if is_priced else None,
            unpriced_turns=int(snapshot.total(metric_families.UNPRICED_TURNS)),
            unpriced_calls=int(snapshot.total(metric_families.UNPRICED_CALLS)),
        )


# A table, since this is on the way of every request: asking for one class after the other takes twice as long.
_COUNTED: Mapping[type, Callable[[Metrics, Any], None]] = {
    RequestOpened: Metrics._opened,
    RequestClosed: Metrics._closed,
    UpstreamReplied: Metrics._replied,
    TurnSent: Metrics._sent,
    TurnProjected: Metrics._projected,
    ModelCalled: Metrics._called,
    AskEnded: Metrics._asked,
    ExpandAnswered: Metrics._expanded,
    OriginalResent: Metrics._resent,
    StageTimed: Metrics._timed,
    Refusal: Metrics._refused,
    Fault: Metrics._fault,
    Timer: Metrics._timer,
}
