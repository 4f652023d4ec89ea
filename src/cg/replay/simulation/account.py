"""Every call that a policy makes, through one cache model and onto one row."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cg.replay.cache_model import Breakpoint, CacheModel, Prompt
from cg.replay.row import Row, less
from cg.sweep.economics import RELATIVE, units_of
from cg.sweep.prices import LIST_TERMS, LONG_TOKENS, Price, PriceTable, Terms, cost_usd
from cg.sweep.values import Usage


class Account:
    """Prices calls by what the provider's cache holds at their moment."""

    def __init__(self, cache: CacheModel, prices: PriceTable, row: Row) -> None:
        self._cache, self._table, self.row = cache, prices, row
        self.terms = LIST_TERMS  # of the conversation's last request: what is asked beside it repeats them
        self._prices: dict[tuple[str, Terms, bool], Price | None] = {}

    def price(self, model: str, at: float, prompt_tokens: int = 0) -> Price | None:
        """The model's price on these terms, on the day of its first call here."""
        key = model, self.terms, prompt_tokens > LONG_TOKENS
        if key not in self._prices:
            try:
                day = datetime.fromtimestamp(at, UTC).date()
            except (ValueError, OverflowError, OSError):
                day = None
            self._prices[key] = self._table.price(model, day, terms=self.terms, prompt_tokens=prompt_tokens)
        return self._prices[key]

    def call(
        self, kind: str, model: str, prompt: Prompt, breakpoints: Sequence[Breakpoint], at: float, output: int
    ) -> Usage:
        """Make a call: its usage, its entries written and renewed, its price on the row."""
        seen = self._cache.request(prompt, breakpoints, at)
        usage = Usage(seen.fresh, seen.read, seen.write_5m, seen.write_1h, output)
        self.row.bills[kind].add(usage, self.price(model, at, prompt.tokens))
        return usage

    def worth_of_reading(
        self, tokens: int, ttl_s: int, model: str, at: float, prompt_tokens: int = 0
    ) -> tuple[float, float | None]:
        """What it saves that these tokens are read and not written again: units, and dollars where the price is known."""
        price = self.price(model, at, prompt_tokens)
        usd = None if price is None else tokens * (price.write(ttl_s) - price.read) / 1e6
        return tokens * (RELATIVE.write(ttl_s) - RELATIVE.read), 0.0 if not tokens else usd

    def difference(self, asked: Usage, own: Usage, model: str, at: float) -> tuple[float, float | None]:
        """What one prompt costs more by one usage than by another, its output left out: units, and dollars."""
        sent = own.fresh + own.read + own.write_5m + own.write_1h
        price, own = self.price(model, at, sent), replace(own, output=0)
        return units_of(asked) - units_of(own), less(cost_usd(asked, price), cost_usd(own, price))

    def peek(self, prompt: Prompt, breakpoints: Sequence[Breakpoint], at: float) -> Usage:
        """What a request would read and write, without making it."""
        return self._cache.peek(prompt, breakpoints, at)
