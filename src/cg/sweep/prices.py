"""What a model's tokens cost, by tier, from a dated table that can be overridden; an unknown price stays unknown."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from cg.errors import CgError
from cg.sweep.values import Usage

ONE_HOUR_S = 3600
MAX_USD_PER_MTOK = 100_000  # a price above this was meant per token or in another currency


class PriceError(CgError):
    """A price table that cannot be used; the message names the model, the key and the limit."""


@dataclass(frozen=True, slots=True)
class Price:
    """One model's rates in USD per million tokens."""

    fresh: float
    output: float
    read: float
    write_5m: float
    write_1h: float

    @classmethod
    def of(
        cls,
        fresh: float,
        output: float | None = None,
        *,
        read: float | None = None,
        write_5m: float | None = None,
        write_1h: float | None = None,
    ) -> "Price":
        """A price whose missing tiers stand at the usual ratios to fresh input: 5, 0.1, 1.25 and 2."""
        return cls(
            fresh=fresh,
            output=5 * fresh if output is None else output,
            read=0.1 * fresh if read is None else read,
            write_5m=1.25 * fresh if write_5m is None else write_5m,
            write_1h=2 * fresh if write_1h is None else write_1h,
        )

    def times(self, factor: float, output: float | None = None) -> "Price":
        """All rates by a factor, output by its own where one is given."""
        return Price(
            self.fresh * factor,
            self.output * (factor if output is None else output),
            self.read * factor,
            self.write_5m * factor,
            self.write_1h * factor,
        )

    def write(self, ttl_s: int | None) -> float:
        """The write rate of a lifetime: one hour has its own."""
        return self.write_1h if ttl_s is not None and ttl_s >= ONE_HOUR_S else self.write_5m


def cost_usd(usage: Usage, price: Price | None) -> float | None:
    """What a call cost, in USD, each tier at its own rate; None when the price is unknown, never zero."""
    if price is None:
        return None
    return 1e-6 * (
        usage.fresh * price.fresh
        + usage.read * price.read
        + usage.write_5m * price.write_5m
        + usage.write_1h * price.write_1h
        + usage.output * price.output
    )


@dataclass(frozen=True, slots=True)
class Terms:
    """What else a call's price hangs on, in the words of the provider's usage object; empty where it says nothing."""

    speed: str = ""
    tier: str = ""
    geo: str = ""

    @classmethod
    def of(cls, usage: object) -> "Terms":
        """The terms that a usage object names."""
        if not isinstance(usage, dict):
            return LIST_TERMS
        named = (usage.get(key) for key in ("speed", "service_tier", "inference_geo"))
        speed, tier, geo = (word if isinstance(word, str) else "" for word in named)
        return cls(
            speed if speed not in USUAL["speed"] else "",
            tier if tier not in USUAL["tier"] else "",
            geo if geo not in USUAL["geo"] else "",
        )


USUAL = {"speed": ("", "standard"), "tier": ("", "standard"), "geo": ("", "global", "not_available")}
LIST_TERMS = Terms()
LONG_TOKENS = (
    200_000  # a prompt of more is a long one, its cached part counted too; then all of the call has that price
)
BATCH = 0.5
US = 1.1  # inference within the United States alone, models from Opus 4.6 and Sonnet 4.6 on


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a model from a day on."""

    since: date
    price: Price | None
    window_tokens: int | None  # input window without any beta; None: unknown
    fast: float | None = None  # what fast mode costs, as a multiple; None: unknown
    long: tuple[float, float] = (1.0, 1.0)  # what long prompts cost, as multiples of input and output
    us: float | None = None  # what inference in one country costs, as a multiple; None: unknown

    def priced(self, terms: Terms, prompt_tokens: int) -> Price | None:
        """The rates of a call on these terms; None where one of them has no price that is known."""
        factors = (
            1.0 if not terms.speed else self.fast if terms.speed == "fast" else None,
            1.0 if not terms.tier else BATCH if terms.tier == "batch" else None,  # priority is sold by commitment
            1.0 if not terms.geo else self.us if terms.geo == "us" else None,
        )
        price = self.price
        for factor in factors:
            price = None if price is None or factor is None else price.times(factor)
        if price is not None and prompt_tokens > LONG_TOKENS:
            price = price.times(*self.long)
        return price


# List prices of the provider's own API as published on its pricing page, read on READ_ON; other sellers of the same
# models have other prices and other model names, which are therefore unknown here. A family that has a larger window
# only under a beta stands with the smaller one: a window taken for too small costs removals, for too large a session.
READ_ON = date(2026, 10, 31)
_LAUNCH = date.min
_SMALL, _LARGE = 200_000, 1_000_000
_LIST: Mapping[str, tuple[Price, int]] = {
    "claude-fable-5-1": (Price.of(10, 50, read=0.25), _LARGE),
    "claude-fable-5": (Price.of(10, 50), _LARGE),
    "claude-mythos-5-1": (Price.of(10, 50, read=0.25), _LARGE),
    "claude-mythos-5": (Price.of(10, 50), _LARGE),
    "claude-opus-5": (Price.of(5, 25), _LARGE),
    "claude-opus-4-8": (Price.of(5, 25), _LARGE),
    "claude-opus-4-7": (Price.of(5, 25), _LARGE),
    "claude-opus-4-6": (Price.of(5, 25), _LARGE),
    "claude-opus-4-5": (Price.of(5, 25), _SMALL),
    "claude-opus-4-1": (Price.of(15, 75), _SMALL),
    "claude-opus-4": (Price.of(15, 75), _SMALL),
    "claude-sonnet-5": (Price.of(2, 10), _LARGE),
    "claude-sonnet-4-6": (Price.of(3, 15), _LARGE),
    "claude-sonnet-4-5": (Price.of(3, 15), _SMALL),
    "claude-sonnet-4": (Price.of(3, 15), _SMALL),
    "claude-3-7-sonnet": (Price.of(3, 15), _SMALL),
    "claude-haiku-4-5": (Price.of(1, 5), _SMALL),
    "claude-3-5-haiku": (Price.of(0.8, 4), _SMALL),
}
# Fast mode's own page gives $30 and $150 for Opus 4.6, $10 and $50 for Opus 5; what it gave for others is not known here.
_FAST: Mapping[str, float] = {"claude-opus-4-6": 6.0, "claude-opus-5": 2.0}
# The million-token window cost twice the input and one and a half times the output past LONG_TOKENS: in Sonnet 4 and 4.5
# for as long as it was in beta there, in the two of 4.6 until it was general.
_LONG = (2.0, 1.5)
_LONG_UNTIL: Mapping[str, date] = {
    "claude-sonnet-4": date.max,
    "claude-sonnet-4-5": date.max,
    "claude-opus-4-6": date(2026, 3, 13),
    "claude-sonnet-4-6": date(2026, 3, 13),
}
_BEFORE_US = frozenset(
    [
        "claude-opus-4-5",
        "claude-opus-4-1",
        "claude-opus-4",
        "claude-sonnet-4-5",
        "claude-sonnet-4",
        "claude-3-7-sonnet",
        "claude-haiku-4-5",
        "claude-3-5-haiku",
    ]
)


def _listed(model: str, price: Price, window: int) -> tuple[Entry, ...]:
    """The rows of a model of the list."""
    us = None if model in _BEFORE_US else US
    plain = Entry(_LAUNCH, price, window, _FAST.get(model), us=us)
    until = _LONG_UNTIL.get(model)
    if until is None:
        return (plain,)
    dear = replace(plain, long=_LONG)
    return (dear,) if until == date.max else (dear, replace(plain, since=until))


_SNAPSHOT = re.compile(r"-(?:latest|20[0-9]{6})\Z")  # a dated snapshot is sold at its family's price


class PriceTable:
    """Prices and windows by model and day; immutable."""

    def __init__(self, entries: Mapping[str, Iterable[Entry]]) -> None:
        self._entries = {model: tuple(sorted(rows, key=lambda e: e.since)) for model, rows in entries.items()}

    @classmethod
    def default(cls) -> "PriceTable":
        """The published list prices."""
        return cls({model: _listed(model, price, window) for model, (price, window) in _LIST.items()})

    def price(
        self, model: str, on: date | None = None, *, terms: Terms = LIST_TERMS, prompt_tokens: int = 0
    ) -> Price | None:
        """The price in force on a day (default: the newest known), on these terms and for a prompt of this size.

        None for a model or a day that is not covered, and for terms whose price is not known.
        """
        entry = self._entry(model, on)
        return entry.priced(terms, prompt_tokens) if entry else None

    def window_tokens(self, model: str, on: date | None = None) -> int | None:
        """The model's input window in tokens; None when unknown."""
        entry = self._entry(model, on)
        return entry.window_tokens if entry else None

    def _entry(self, model: str, on: date | None) -> Entry | None:
        rows = self._entries.get(model)
        if rows is None:
            rows = self._entries.get(_SNAPSHOT.sub("", model), ())
        return next((e for e in reversed(rows) if on is None or e.since <= on), None)

    def overridden(self, text: str) -> "PriceTable":
        """This table with the models of a TOML text in the place of its own.

        Tables `[models."NAME"]`, or arrays of them for dated rows: `input` (USD per million tokens) and optionally
        `output`, `read`, `write_5m`, `write_1h`, `window` (tokens), `since` (a date), and as multiples `fast`, `us`,
        `long_input` and `long_output` (prompts past 200,000 tokens). A model without `input` has an unknown price, one
        without `fast` or `us` an unknown price on those terms. Raises PriceError for anything else.
        """
        try:
            parsed = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also a number of more digits than Python reads
            raise PriceError(f"price table: not TOML: {error}") from error
        models = parsed.pop("models", {})
        if parsed or not isinstance(models, dict):
            raise PriceError(f"price table: only [models.NAME] tables are known, not {sorted(parsed)}")
        entries = {model: _entries(model, rows) for model, rows in models.items()}
        return PriceTable({**self._entries, **entries})


_TIERS = ("output", "read", "write_5m", "write_1h")
_MULTIPLES = ("fast", "us", "long_input", "long_output")


def _entries(model: str, rows: object) -> tuple[Entry, ...]:
    listed: list[object] = rows if isinstance(rows, list) else [rows]
    tables = [row for row in listed if isinstance(row, dict)]
    if not tables or len(tables) < len(listed):
        raise PriceError(f"price table: {model!r} must be a table or an array of tables")
    return tuple(_row(model, row) for row in tables)


def _row(model: str, row: dict[str, Any]) -> Entry:
    unknown = row.keys() - {"input", "window", "since", *_TIERS, *_MULTIPLES}
    if unknown:
        raise PriceError(f"price table: {model!r} has unknown key {min(unknown)!r}")
    since = row.get("since", _LAUNCH)
    if not isinstance(since, date) or isinstance(since, datetime):
        raise PriceError(f"price table: {model!r}: since is {since!r}; it must be a date such as 2026-01-31")
    window = row.get("window")
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or not 1 <= window <= 10**9):
        raise PriceError(f"price table: {model!r}: window is {window!r}; it must be 1 to 1000000000 tokens")
    rates = {key: _rate(model, key, row[key]) for key in ("input", *_TIERS) if key in row}
    if "input" not in rates:
        if rates:
            raise PriceError(f"price table: {model!r} has {min(rates)!r} but no 'input'")
        return Entry(since, None, window)
    price = Price.of(rates.pop("input"), **rates)
    by = {key: _rate(model, key, row[key]) for key in _MULTIPLES if key in row}
    long = by.get("long_input", 1.0), by.get("long_output", by.get("long_input", 1.0))
    return Entry(since, price, window, by.get("fast"), long, by.get("us"))


def _rate(model: str, key: str, value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= MAX_USD_PER_MTOK:  # type: ignore[operator]
        raise PriceError(
            f"price table: {model!r}: {key} is {value!r}; it must be 0 to {MAX_USD_PER_MTOK} USD per million tokens"
        )
    return float(value)  # type: ignore[arg-type]
