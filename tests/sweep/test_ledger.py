"""The ledger: one reason a turn, one row an ask, savings that are net and never invented."""

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cg.sweep.accounting.totals import shares
from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import (
    SIZE_BOUNDS,
    AskLeg,
    AskOutcome,
    AskRow,
    Reason,
    TurnReport,
    ask_row,
    savings,
    size_histogram,
)
from cg.sweep.prices import Price
from cg.sweep.values import Identity, Phase, Removal, Usage

CARD = Price(fresh=2, output=10, read=0.2, write_5m=2.5, write_1h=4)
SHA = "ab" * 32


def row(*legs: AskLeg, price: Price | None = CARD, **more: object) -> AskRow:
    return ask_row("t", 5.0, "m", legs, price, **{"offered": 12, **more})


def removal(saved_bytes: int) -> Removal:
    return Removal(Identity("toolu_1", 0, SHA), b'"x"', saved_bytes, 1.0)


def test_u8_a_row_has_the_dollars_of_its_request() -> None:
    """$0.0940 for the published ask, not zero."""
    booked = row(AskLeg("prefix_ask", Usage(fresh=1_700, read=449_304, output=74)))
    assert f"{booked.cost_usd:.4f}" == "0.0940"


def test_u10_both_legs_are_one_row() -> None:
    """Tokens, dollars and milliseconds are sums; the row names the legs that ran."""
    booked = row(
        AskLeg("prefix_ask", Usage(fresh=100, output=10), 900.0),
        AskLeg("fallback", Usage(fresh=10_709, output=20), 600.0),
    )
    assert booked.legs == ("prefix_ask", "fallback")
    assert booked.usage == Usage(fresh=10_809, output=30)
    assert booked.cost_usd == pytest.approx((10_809 * 2 + 30 * 10) * 1e-6)
    assert booked.milliseconds == 1500.0


def test_u10_a_leg_that_fails_still_counts_its_time() -> None:
    """There is a row even when the only leg failed."""
    alone = row(AskLeg("prefix_ask", None, 90_000.0, answered=False))
    assert (alone.outcome, alone.milliseconds, alone.cost_usd) == (AskOutcome.FAILED, 90_000.0, 0.0)
    second = row(AskLeg("prefix_ask", Usage(fresh=1000)), AskLeg("fallback", None, 5.0, answered=False))
    assert (second.milliseconds, second.cost_usd) == (5.0, 0.002)


def test_an_unknown_price_or_usage_leaves_the_cost_unknown() -> None:
    """None, never zero."""
    assert row(AskLeg("prefix_ask", Usage(fresh=1)), price=None).cost_usd is None
    assert row(AskLeg("prefix_ask", None), AskLeg("fallback", Usage(fresh=1))).cost_usd is None


@pytest.mark.parametrize(
    ("answered", "dropped", "readable", "outcome"),
    [
        (True, 2, True, AskOutcome.DROPPED),
        (True, 0, True, AskOutcome.KEPT_ALL),
        (True, 0, False, AskOutcome.UNREADABLE),
        (False, 0, True, AskOutcome.FAILED),
    ],
)
def test_an_ask_ends_in_one_way(answered: bool, dropped: int, readable: bool, outcome: AskOutcome) -> None:
    """An unreadable reply is not a judgement to keep."""
    booked = row(AskLeg("prefix_ask", Usage(), answered=answered), dropped=dropped, readable=readable)
    assert booked.outcome is outcome


def test_u24_refused_drops_were_judged() -> None:
    """Twelve verdicts that drop and name an obligation are not "nothing spent"."""
    booked = row(AskLeg("prefix_ask", Usage()), judged_spent=12)
    assert booked.describe() == "12 asked, 12 judged spent, none became a drop"
    assert row(AskLeg("prefix_ask", Usage()), judged_spent=12, dropped=3).describe().endswith("3 became drops")


def test_u41_the_fresh_share_of_an_ask_shows() -> None:
    """Measured live: 42,409 read and 28,764 fresh, two fifths paid in full."""
    usage = row(AskLeg("prefix_ask", Usage(fresh=28_764, read=42_409))).to_dict()["usage"]
    assert (usage["fresh"], usage["read"]) == (28_764, 42_409)


def test_a_row_survives_its_plain_form() -> None:
    """What a store writes it reads back equal."""
    booked = row(AskLeg("prefix_ask", Usage(1, 2, 3, 4, 5), 1.5), dropped=1, judged_spent=2)
    assert AskRow.from_dict(booked.to_dict()) == booked


def test_a_report_is_what_the_pipe_writes() -> None:
    """Reason, phase, removals with id, block, key and bytes, replays, ask, and the two families apart."""
    tally = SimpleNamespace(
        events=Counter({Event.DROPPED: 1, Event.OFFERED: 0}),
        declines=Counter({Decline.KEPT: 2, Decline.UNPARSEABLE: 0}),
        gaps=Counter(),
    )
    leg = AskLeg("prefix_ask", Usage(read=9), 3.0)
    asked = SimpleNamespace(legs=(leg,), offered=12, judged_spent=1)
    report = TurnReport.of(
        Reason.REMOVED, phase=Phase.COLD, removed={"text": removal(700)}, replayed=3, asked=asked, tally=tally
    )
    assert report.to_dict() == {
        "reason": "removed",
        "phase": "cold",
        "removed": [{"tool_use_id": "toolu_1", "block": 0, "key": SHA[:16], "bytes": 700}],
        "replayed": 3,
        "ask": {
            "legs": ["prefix_ask"],
            "offered": 12,
            "judged_spent": 1,
            "milliseconds": 3.0,
            "usage": {"fresh": 0, "read": 9, "write_5m": 0, "write_1h": 0, "output": 0},
        },
        "events": {"sweep_dropped": 1},
        "declines": {"sweep_kept": 2},
    }


def test_a_bare_report_has_every_member() -> None:
    """A turn in which nothing happened has the same form."""
    assert TurnReport.of(Reason.WARM).to_dict() == {
        "reason": "warm",
        "phase": "unknown",
        "removed": [],
        "replayed": 0,
        "ask": None,
        "events": {},
        "declines": {},
    }


def test_every_phase_names_a_reason() -> None:
    """A turn that only waits for its moment says which moment it was."""
    assert {Reason(phase.value) for phase in Phase} <= set(Reason)


def test_u4_successes_and_declines_are_two_families() -> None:
    """No name stands in both, so a series of declines cannot rise as the sweep works better."""
    assert not {str(e) for e in Event} & {str(d) for d in Decline}


def books(phase: Phase, unique=(1000,), repeats=(500,), **more: object):
    given_ = {"ttl_s": 300, "bytes_per_token": 2.0, "price": CARD, **more}
    return savings([removal(n) for n in unique], [removal(n) for n in repeats], phase=phase, **given_)


@pytest.mark.parametrize(
    ("phase", "ttl", "unique_rate", "repeat_rate"),
    [
        (Phase.COLD, 300, 2.5, 0.2),
        (Phase.COLD, 3600, 4.0, 0.2),
        (Phase.BROKEN, 300, 2.5, 0.2),
        (Phase.WARM, 300, 0.2, 0.2),
        (Phase.PRE_EXPIRY, 300, 0.2, 0.2),
        (Phase.UNCACHED, None, 2.0, 2.0),
    ],
)
def test_a_first_removal_counts_at_the_rate_of_its_moment(
    phase: Phase, ttl: int | None, unique_rate: float, repeat_rate: float
) -> None:
    """Written where the prefix was lost, read where it was warm, fresh where nothing is cached; replays as reads."""
    booked = books(phase, ttl_s=ttl)
    assert booked.gross_usd == pytest.approx((500 * unique_rate + 250 * repeat_rate) * 1e-6)
    assert booked.net_usd == booked.gross_usd


def test_u23_only_what_left_the_wire_is_saved() -> None:
    """A refused drop saves nothing; a made one saves its bytes less all that was written in its place."""
    assert books(Phase.COLD, unique=(), repeats=()).gross_usd == 0
    assert books(Phase.COLD, unique=(1050 - 190,), repeats=()).unique_bytes == 860


def test_rule8_a_longer_replacement_is_a_charge_and_never_a_saving() -> None:
    """Answers put in a result's place may be longer than it; they count against the sweep."""
    booked = books(Phase.COLD, unique=(1000, -300), repeats=(-200,))
    assert (booked.unique_bytes, booked.repeat_bytes, booked.charged_bytes) == (1000, 0, 500)
    assert booked.net_usd is not None and booked.gross_usd is not None and booked.net_usd < booked.gross_usd


def test_expansions_declarations_and_asks_are_charged() -> None:
    """Net is the headline, and it may be negative."""
    booked = books(Phase.WARM, unique=(), repeats=(100,), charged_bytes=1000, ask_usd=0.05)
    assert booked.charged_usd == pytest.approx(0.05 + 500 * 0.2e-6)
    assert booked.net_usd == pytest.approx(50 * 0.2e-6 - booked.charged_usd)
    assert booked.net_usd < 0


@pytest.mark.parametrize("unknown", [{"price": None}, {"ask_usd": None}])
def test_unknown_prices_leave_the_dollars_unknown(unknown: dict) -> None:
    """Bytes are still counted, and the totals show an unpriced turn instead of a zero."""
    booked = books(Phase.COLD, **unknown)
    assert (booked.unique_bytes, booked.gross_usd, booked.charged_usd, booked.net_usd) == (1000, None, None, None)
    counted = {(family, name): n for family, name, n in shares(TurnReport(Reason.REMOVED, savings=booked))}
    assert counted["savings", "unpriced_turns"] == 1
    assert ("savings", "net_usd") not in counted


def test_an_idle_ask_is_charged_to_the_turn_behind_its_gap() -> None:
    """With what the turn saved itself, or alone where it changed nothing; unknown stays unknown."""
    asked = SimpleNamespace(legs=(AskLeg("prefix_ask", Usage(read=9), 3.0),), offered=12, judged_spent=1)
    nobody = SimpleNamespace(legs=(), offered=12, judged_spent=0)
    tally = SimpleNamespace(events=Counter(), declines=Counter())
    saved = books(Phase.COLD)
    assert saved.net_usd is not None and saved.gross_usd is not None
    turn = TurnReport(Reason.REMOVED, savings=saved)
    charged = turn.after(Reason.JUDGED, asked, tally, ask_usd=0.25).savings
    assert charged is not None and charged.gross_usd == saved.gross_usd
    assert charged.net_usd == pytest.approx(saved.net_usd - 0.25) and charged.charged_usd == pytest.approx(0.25)
    alone = TurnReport(Reason.NOTHING_JUDGED).after(Reason.NOTHING_SPENT, asked, tally, ask_usd=0.25).savings
    assert alone is not None and (alone.gross_usd, alone.charged_usd, alone.net_usd) == (0.0, 0.25, -0.25)
    unknown = turn.after(Reason.JUDGED, asked, tally, ask_usd=None).savings
    assert unknown is not None and unknown.net_usd is None and unknown.unique_bytes == saved.unique_bytes
    assert turn.after(Reason.NO_ASKER, nobody, tally).savings == saved
    assert turn.after(Reason.BELOW_INVENTORY, None, tally).savings == saved


def test_a_mark_of_an_unknown_lifetime_is_still_a_cache() -> None:
    """What is replayed behind it would have been read, not paid fresh."""
    marked, bare = (books(Phase.UNKNOWN, unique=(), ttl_s=None, is_marked=m) for m in (True, False))
    assert marked.gross_usd == pytest.approx(250 * 0.2e-6)
    assert bare.gross_usd == pytest.approx(250 * 2.0e-6)


@given(st.lists(st.integers(0, 10**7)))
def test_every_output_is_in_the_histogram_once(sizes: list[int]) -> None:
    """Before any filter: the counts sum to the outputs, each under the smallest bound that holds it."""
    histogram = size_histogram(sizes)
    assert sum(histogram.values()) == len(sizes)
    assert histogram[f"le_{SIZE_BOUNDS[0]}"] == sum(size <= SIZE_BOUNDS[0] for size in sizes)
    assert histogram["more"] == sum(size > SIZE_BOUNDS[-1] for size in sizes)
