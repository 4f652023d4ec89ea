"""The form of a study: panels of series of variants, and the cells that a table shows of each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from cg.replay.reporting.words import count, dollars, part, share
from studies.measure import Results
from studies.variants import Variant

Series = Mapping[str, Mapping[str, Variant]]  # series -> value of what is varied -> variant


@dataclass(frozen=True)
class Panel:
    """What is compared under one assumption, most often a lifetime."""

    name: str
    series: Series
    base: Variant | None = None  # differences are also shown from this one, paired by session

    def variants(self) -> Iterator[tuple[str, str, Variant]]:
        """(series, value, variant) of all, in order."""
        return ((name, value, v) for name, values in self.series.items() for value, v in values.items())


@dataclass(frozen=True)
class Study:
    """One question: what is run for it, and how it is drawn."""

    name: str  # of its page and its plot
    title: str
    question: str
    how: str  # what is varied and what stays
    varied: str  # head of the column of values
    panels: tuple[Panel, ...]
    drawn: Literal["lines", "dots", "grid"] = "lines"
    base: str = ""  # what the paired difference is taken from, in words

    def variants(self) -> Iterator[Variant]:
        """All that has to be run."""
        for panel in self.panels:
            if panel.base is not None:
                yield panel.base
            yield from (v for _, _, v in panel.variants())


HEADS: tuple[str, ...] = ("bill against none", "90 %", "saved", "asks", "pings", "removed", "live lost", "spent gone")
HEADS += ("expanded", "cold cost saved", "at work on", "worst", "after the end")


def cells(results: Results, variant: Variant) -> tuple[str, ...]:
    """The cells under HEADS."""
    row, none = results.total(variant), results.total(variant.untouched).total.units
    return (
        share(results.change(variant), signed=True),
        bounds(results.interval(variant)),
        dollars(results.net_usd(variant)),
        count(row.bills["ask"].calls),
        count(row.bills["ping"].calls),
        count(row.removals),
        part(row.live - row.live_kept, row.live),
        part(row.spent_dropped, row.spent),
        count(row.expansions),
        share(results.recovered(variant)),
        f"{results.at_work(variant)} of {len(results.sessions)}",
        share(results.worst(variant), signed=True),
        share(row.after_end.units / none if none else 0.0, signed=True) if row.after_end.calls else "-",
    )


def bounds(interval: tuple[float, float] | None) -> str:
    """An interval of shares in percent."""
    return "n/a" if interval is None else f"{100 * interval[0]:+.2f} to {100 * interval[1]:+.2f}"


def table(study: Study, results: Results) -> str:
    """All of a study's variants as a Markdown table, a line each."""
    heads = ["", "", study.varied, *HEADS]
    has_base = any(panel.base is not None for panel in study.panels)
    if has_base:
        heads[5:5] = [f"against {study.base}", "90 %"]
    lines = []
    for panel in study.panels:
        for name, value, variant in panel.variants():
            line = [panel.name, name, value, *cells(results, variant)]
            if has_base and panel.base is not None:
                line[5:5] = _difference(results, variant, panel.base)
            lines.append(line)
    return markdown(heads, lines)


def _difference(results: Results, variant: Variant, base: Variant) -> list[str]:
    """What a variant costs against another one, and the bounds of that."""
    if variant == base:
        return ["-", "-"]
    return [share(results.change(variant, base), signed=True), bounds(results.interval(variant, base))]


def markdown(heads: list[str], lines: list[list[str]]) -> str:
    """A Markdown table without the columns that are empty or the same dash in every line."""
    used = [i for i in range(len(heads)) if any(line[i] not in ("", "-") for line in lines)]
    rows = [[line[i] for i in used] for line in [heads, ["---"] * len(heads), *lines]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
