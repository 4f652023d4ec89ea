"""A gateway's figures after a little of everything, for tests of what shows them."""

from cg.gateway.events import (
    AskEnded,
    ExpandAnswered,
    Fault,
    Mode,
    ModelCalled,
    OriginalResent,
    Outcome,
    Refusal,
    RequestClosed,
    RequestOpened,
    Route,
    Spend,
    Stage,
    StageTimed,
    Timer,
    TurnSent,
    UpstreamReplied,
)
from cg.gateway.telemetry.metrics import Metrics
from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import AskLeg, Reason, Removed, Savings, TurnReport, ask_row
from cg.sweep.prices import PriceTable
from cg.sweep.values import Phase, Usage

START = 1_800_000_000.0
MODEL = "claude-sonnet-5"  # 2 USD per million tokens of fresh input, 10 of output
SECRET = "sk-canary-4242"


def removal(n: int = 1, saved: Savings | None = None) -> TurnReport:
    """A turn that removed n outputs of 5,000 bytes."""
    removed = tuple(Removed(f"toolu_{k}", 0, "0123456789abcdef", 5000) for k in range(n))
    return TurnReport(
        Reason.REMOVED,
        Phase.COLD,
        removed,
        replayed=2,
        events={Event.APPLIED: n, Event.REAPPLIED: 2},
        declines={Decline.KEPT: 3},
        sizes={"le_2900": 4, "more": 1, "le_180": 0},
        savings=saved if saved is not None else Savings(5000 * n, 10_000, 300, 0.05, 0.01, 0.04),
    )


def busy(metrics: Metrics | None = None) -> Metrics:
    """Three turns over three minutes, two asks, recoveries, faults, refusals."""
    m = metrics if metrics is not None else Metrics()
    for _ in range(6):  # the last one is still being served
        m.tell(RequestOpened())
    for minute, report in enumerate([TurnReport(Reason.WARM, Phase.WARM), removal(3), removal(1)]):
        at = START + 60 * minute
        m.tell(RequestClosed(Route.MESSAGES, 200))
        m.tell(UpstreamReplied(200))
        m.tell(TurnSent(report, at))
        m.tell(ModelCalled(Spend.REQUEST, MODEL, Usage(fresh=100, read=50_000, write_5m=2_000, output=400), at))
        m.tell(StageTimed(Stage.SWEEP, 0.0008))
        m.tell(StageTimed(Stage.TOTAL, 2.0))
    m.tell(RequestClosed(Route.MESSAGES, 529))
    m.tell(UpstreamReplied(529))
    m.tell(RequestClosed(Route.OWN, 200))
    m.tell(Refusal.HOST)
    usage = Usage(fresh=900, read=48_000, output=200)
    price = PriceTable.default().price(MODEL)
    m.tell(ModelCalled(Spend.ASK, MODEL, usage, START + 240))
    leg = AskLeg("prefix_ask", usage, 2400.0)
    m.tell(AskEnded(ask_row("thread", START + 240, MODEL, [leg], price, offered=12, judged_spent=5, dropped=4)))
    m.tell(
        AskEnded(ask_row("thread", START + 300, MODEL, [AskLeg("prefix_ask", None, 90_000, False)], price, offered=11))
    )
    m.tell(ExpandAnswered(Mode.HIDDEN, Outcome.ORIGINAL, rounds=1))
    m.tell(ExpandAnswered(Mode.SHOWN, Outcome.EXPIRED))
    m.tell(ModelCalled(Spend.RECOVERY, MODEL, Usage(fresh=1900, read=50_000, output=100), START + 130))
    m.tell(OriginalResent(400))
    m.tell(Timer.ARMED)
    m.tell(Timer.FIRED)
    m.tell(Fault.STORE)
    m.tell(Fault.UPSTREAM_CUT)
    return m
