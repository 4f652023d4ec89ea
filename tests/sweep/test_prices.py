"""Prices: exact dollars from tokens by tier, dated rows, and unknown that stays unknown."""

from datetime import date

import pytest

from cg.sweep.prices import Price, PriceError, PriceTable, cost_usd
from cg.sweep.values import Usage

CARD = Price(fresh=2, output=10, read=0.2, write_5m=2.5, write_1h=4)


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage(fresh=1_700, read=449_304, output=74), "0.0940"),
        (Usage(fresh=1_707, read=449_376, output=7_191), "0.1652"),
    ],
)
def test_u8_the_two_published_asks_cost_what_was_published(usage: Usage, usd: str) -> None:
    """At 2, 10, 2.5 and 0.2 dollars per million tokens; never zero."""
    assert f"{cost_usd(usage, CARD):.4f}" == usd


def test_each_tier_has_its_own_rate() -> None:
    """A million tokens of a tier cost its list price."""
    for tier, rate in zip(("fresh", "output", "read", "write_5m", "write_1h"), (2, 10, 0.2, 2.5, 4), strict=True):
        assert cost_usd(Usage(**{tier: 1_000_000}), CARD) == pytest.approx(rate)


def test_d8_an_hour_s_write_is_dearer_than_five_minutes() -> None:
    """Both in the price and in the choice by lifetime."""
    price = Price.of(2.0)
    assert (price.write(300), price.write(None), price.write(3599), price.write(3600)) == (2.5, 2.5, 2.5, 4.0)


def test_missing_tiers_stand_at_the_usual_ratios() -> None:
    """Output 5, read 0.1, writes 1.25 and 2 of fresh."""
    assert Price.of(2.0) == CARD


def test_an_unknown_price_is_unknown_and_not_zero() -> None:
    """For an unknown model, and so for its dollars."""
    price = PriceTable.default().price("somebody/else-7b")
    assert price is None
    assert cost_usd(Usage(fresh=5), price) is None


@pytest.mark.parametrize(
    ("model", "fresh", "window"),
    [
        ("claude-sonnet-4-5", 3, 200_000),
        ("claude-opus-4-6", 5, 1_000_000),
        ("claude-opus-4-5-20251101", 5, 200_000),
        ("claude-sonnet-5", 2, 1_000_000),
        ("claude-opus-4-8", 5, 1_000_000),
        ("claude-haiku-4-5-20251001", 1, 200_000),
    ],
)
def test_the_models_of_the_recorded_sessions_are_known(model: str, fresh: float, window: int) -> None:
    """By family, and by dated snapshot at the family's price."""
    table = PriceTable.default()
    price = table.price(model)
    assert price is not None and (price.fresh, price.output) == (fresh, 5 * fresh)
    assert table.window_tokens(model) == window


@pytest.mark.parametrize("model", ["", "claude", "claude-opus-4-5-fast", "us.anthropic.claude-opus-4-5-v1:0"])
def test_a_name_that_only_looks_alike_is_unknown(model: str) -> None:
    """Another seller's or another variant's price is not guessed."""
    table = PriceTable.default()
    assert table.price(model) is None and table.window_tokens(model) is None


def test_a_read_may_be_cheaper_than_a_tenth() -> None:
    """No ratio is built in."""
    price = PriceTable.default().price("claude-fable-5-1")
    assert price is not None and price.read == 0.25


def test_a_table_is_overridden_model_by_model() -> None:
    """The rest stays; a model may also be made unknown."""
    text = '[models.mine]\ninput = 4\nread = 0.1\nwindow = 32000\n[models."claude-opus-4-8"]\nwindow = 500\n'
    table = PriceTable.default().overridden(text)
    assert table.price("mine") == Price(4.0, 20.0, 0.1, 5.0, 8.0)
    assert table.window_tokens("mine") == 32000
    assert table.price("claude-opus-4-8") is None and table.window_tokens("claude-opus-4-8") == 500
    assert table.price("claude-sonnet-5") == CARD
    assert PriceTable.default().price("mine") is None


def test_a_price_is_the_one_of_its_day() -> None:
    """Dated rows in any order; before the first one the price is unknown."""
    text = "[[models.m]]\nsince = 2026-10-07\ninput = 1\n[[models.m]]\nsince = 2026-01-01\ninput = 3\n"
    table = PriceTable({}).overridden(text)
    days = [date(2025, 12, 31), date(2026, 1, 1), date(2026, 10, 6), date(2026, 10, 7), None]
    found = [table.price("m", day) for day in days]
    assert [price and price.fresh for price in found] == [None, 3, 3, 1, 1]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[models", "not TOML"),
        ("[prices.m]\ninput = 1", "prices"),
        ("models = 3", "models"),
        ("[models]\nm = 3", "'m'"),
        ("[models]\nm = []", "'m'"),
        ("[models.m]\ninput = -1", "0 to 100000 USD per million tokens"),
        ("[models.m]\ninput = nan", "input is nan"),
        ("[models.m]\ninput = inf", "input is inf"),
        ("[models.m]\ninput = true", "input is True"),
        ("[models.m]\ninput = '3'", "input is '3'"),
        ("[models.m]\ninput = " + "9" * 5000, "not TOML"),
        ("[models.m]\noutput = 3", "no 'input'"),
        ("[models.m]\ninput = 3\nprice = 3", "unknown key 'price'"),
        ("[models.m]\ninput = 3\nwindow = 0", "1 to 1000000000 tokens"),
        ("[models.m]\ninput = 3\nsince = 'May'", "since is 'May'"),
        ("[models.m]\ninput = 3\nsince = 2026-01-01T00:00:00Z", "since is"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(text: str, part: str) -> None:
    """With the model, the key, the unit and the range."""
    with pytest.raises(PriceError, match=part):
        PriceTable.default().overridden(text)
