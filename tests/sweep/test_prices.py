"""Prices: exact dollars from tokens by tier, dated rows, and unknown that stays unknown."""

from datetime import date

import pytest

from cg.sweep.prices import Price, PriceError, PriceTable, Terms, cost_usd
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


OPUS, SONNET = "claude-opus-4-6", "claude-sonnet-4-5-20250929"


@pytest.mark.parametrize(
    ("model", "usage", "fresh", "output"),
    [
        (OPUS, {}, 5, 25),
        (OPUS, {"speed": "standard", "service_tier": "standard", "inference_geo": "global"}, 5, 25),
        (OPUS, {"speed": None, "service_tier": "", "inference_geo": "not_available"}, 5, 25),
        (OPUS, {"speed": "fast"}, 30, 150),
        ("claude-opus-5", {"speed": "fast"}, 10, 50),
        (OPUS, {"service_tier": "batch"}, 2.5, 12.5),
        (OPUS, {"inference_geo": "us"}, 5.5, 27.5),
        (OPUS, {"speed": "fast", "inference_geo": "us"}, 33, 165),
        (SONNET, {"service_tier": "batch"}, 1.5, 7.5),
    ],
)
def test_speed_tier_and_geography_have_their_own_prices(model: str, usage: object, fresh: float, output: float) -> None:
    """As the provider's usage object names them; they multiply, and all tiers of the cache go with the input."""
    price = PriceTable.default().price(model, terms=Terms.of(usage))
    assert price is not None
    assert (price.fresh, price.output) == pytest.approx((fresh, output))
    assert (price.read, price.write_5m, price.write_1h) == pytest.approx((0.1 * fresh, 1.25 * fresh, 2 * fresh))


@pytest.mark.parametrize(
    ("model", "usage"),
    [
        (SONNET, {"speed": "fast"}),
        (OPUS, {"speed": "turbo"}),
        (OPUS, {"service_tier": "priority"}),
        (OPUS, {"inference_geo": "eu"}),
        (SONNET, {"inference_geo": "us"}),
        ("somebody/else-7b", {"service_tier": "batch"}),
    ],
)
def test_terms_whose_price_is_not_known_have_none(model: str, usage: object) -> None:
    """Rather than the list price, which is wrong."""
    assert PriceTable.default().price(model, terms=Terms.of(usage)) is None


@pytest.mark.parametrize(
    ("model", "day", "rates"),
    [
        (SONNET, date(2026, 8, 1), (6, 22.5)),
        ("claude-sonnet-4-20250514", date(2025, 9, 1), (6, 22.5)),
        (OPUS, date(2026, 3, 1), (10, 37.5)),
        (OPUS, date(2026, 3, 13), (5, 25)),
        ("claude-sonnet-4-6", date(2026, 3, 1), (6, 22.5)),
        ("claude-opus-4-8", date(2026, 8, 1), (5, 25)),
        ("claude-haiku-4-5", date(2026, 8, 1), (1, 5)),
    ],
)
def test_long_prompts_cost_more_where_they_did(model: str, day: date, rates: tuple[float, float]) -> None:
    """All of the call, from the first token past 200,000 on; not before."""
    table = PriceTable.default()
    long, short = table.price(model, day, prompt_tokens=200_001), table.price(model, day, prompt_tokens=200_000)
    assert long is not None and (long.fresh, long.output) == rates
    assert short == table.price(model, day)


def test_a_table_of_ones_own_may_say_what_the_terms_cost() -> None:
    """As multiples; what it leaves out is not known."""
    rows = '[models."mine"]\ninput = 1\nfast = 3\nus = 1.2\nlong_input = 2\nlong_output = 1.5\n[models."bare"]\ninput = 1\n'
    table = PriceTable.default().overridden(rows)
    assert table.price("mine", terms=Terms(speed="fast")) == Price.of(3)
    assert table.price("mine", terms=Terms(geo="us")) == Price.of(1.2)
    assert table.price("mine", prompt_tokens=300_000) == Price.of(2, 7.5)
    assert table.price("bare", terms=Terms(speed="fast")) is None and table.price(
        "bare", prompt_tokens=300_000
    ) == Price.of(1)
    with pytest.raises(PriceError, match="fast"):
        PriceTable.default().overridden('[models."x"]\ninput = 1\nfast = "six"\n')
