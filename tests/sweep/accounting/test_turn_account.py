"""What a turn is booked with: sizes before any filter, and savings of the body that was really sent."""

import pytest
from presets import paid
from sessions import COLD_AFTER_S, MODEL, Client, Replies, drops, history, output, request, results

from cg.sweep.body.marker import DECLARATION
from cg.sweep.config import Config
from cg.sweep.ledger import Reason
from cg.sweep.prices import PriceTable
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Phase

COLD = paid(judge="recency", ask="off", apply="free")


def client(config: Config = COLD) -> Client:
    return Client(MemoryStore(), config)


def test_u40_every_output_s_size_is_counted_once_before_any_filter() -> None:
    """Small ones, declined ones and ours alike; what an earlier request of the branch held is not counted again."""
    one = client()
    one.send(request(history(2, size=100)), 0.0)
    one.send(request(history(2, size=100) + history(2)[1:3]), 10.0)  # id used twice: not read at all
    assert one.report.reason is Reason.UNREADABLE
    one.send(request(history(5, size=100)), 20.0)
    one.send(request(history(5, size=100)), 21.0)  # a retry
    assert one.store.totals("t")["sizes"] == {"le_180": 5}


def test_a_body_s_savings_are_its_own_bytes_at_the_rate_of_the_moment() -> None:
    """Removed first: at the write rate where the prefix is written anyway. Replayed: at the read rate. Our tool and
    nothing else is charged, and a request that is repeated is booked once."""
    one = client()
    price = PriceTable.default().price(MODEL)
    assert price is not None
    one.send(request(history(1)), 0.0)
    sent = one.send(request(history(1) + history(2)[3:]), COLD_AFTER_S)
    assert one.report.phase is Phase.COLD
    saved = sum(len(output(n)) - len(results(sent)[f"toolu_{n}"]) for n in range(2))
    unique = one.report.savings
    assert unique is not None and (unique.repeat_bytes, unique.charged_bytes) == (0, len(DECLARATION))
    assert unique.unique_bytes == pytest.approx(saved, rel=0.05)  # escapes of line ends count as they stand
    assert unique.gross_usd == pytest.approx(unique.unique_bytes / 2.9 * price.write_5m * 1e-6)
    one.send(request(history(3)), COLD_AFTER_S + 10)
    again = one.report.savings
    assert again is not None and (again.unique_bytes, again.repeat_bytes) == (0, unique.unique_bytes)
    assert again.gross_usd == pytest.approx(again.repeat_bytes / 2.9 * price.read * 1e-6)
    one.send(request(history(3)), COLD_AFTER_S + 11)
    assert one.report.reason is Reason.RETRY and one.report.savings is None
    assert one.store.totals("t")["savings"]["unique_bytes"] == unique.unique_bytes


def test_an_idle_ask_is_in_the_totals_as_it_is_in_its_row() -> None:
    """What a session saved, net, is what its bodies saved less what its asks cost, whoever paid when."""
    one = Client(MemoryStore(), paid(min_inventory=1))
    one.send(request(history(0)), 0.0)
    one.send(request(history(12)), 10.0)
    (branch,) = one.sweep.state("t").branches
    gap = one.sweep.settle("t", branch, 250.0, asker=Replies(drops(12)))
    swept = one.sweep.process(request(history(12) + history(13)[-2:]), "t", 1000.0, settled=gap)
    (row,) = one.store.rows("t")
    assert row.cost_usd is not None and row.cost_usd > 0
    booked, totals = swept.report.savings, one.store.totals("t")["savings"]
    assert booked is not None and booked.gross_usd is not None and booked.charged_usd is not None
    declared = len(DECLARATION) / 2.9 * 1e-6 * PriceTable.default().price(MODEL).read
    assert booked.charged_usd == pytest.approx(row.cost_usd + declared, rel=1e-3)
    assert booked.net_usd == pytest.approx(booked.gross_usd - booked.charged_usd)
    assert totals["net_usd"] == pytest.approx(totals["gross_usd"] - totals["charged_usd"])
    assert totals["charged_usd"] == pytest.approx(row.cost_usd + 3 * declared, rel=1e-3)


def test_an_unknown_model_s_savings_are_unknown() -> None:
    """Bytes are booked, dollars are not, and the turn is counted as unpriced."""
    one = client()
    one.send(request(history(1), model="nobody-knows"), 0.0)
    one.send(request(history(2), model="nobody-knows"), COLD_AFTER_S)
    assert one.report.savings is not None and one.report.savings.unique_bytes > 0
    assert one.report.savings.net_usd is None
    assert one.store.totals("t")["savings"]["unpriced_turns"] == 1  # nothing was changed in the first
