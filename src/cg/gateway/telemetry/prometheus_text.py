"""Figures in the Prometheus text format, version 0.0.4.

Written here since the format is a page, and the usual client library takes 10 MB of memory and 0.1 s of a start, an
eighth of what a gateway at rest may take, for a registry, a server and a push gateway that nobody asks for.
"""

import math
from collections.abc import Iterator, Mapping

from cg.gateway.telemetry.metric_families import Family
from cg.gateway.telemetry.registry import Histogram, LabelValues, MetricSnapshot

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


def render(snapshot: MetricSnapshot, gauges: Mapping[str, tuple[str, float]] | None = None) -> bytes:
    """All families as text; `gauges` adds values that are read at the scrape: name to (help, value)."""
    lines: list[str] = []
    for family, series in snapshot.values.items():
        lines += _heading(family.name, family.help, family.kind)
        lines += (_sample(family.name, family.label_names, labels, value) for labels, value in sorted(series.items()))
    for family, histograms in snapshot.histograms.items():
        lines += _heading(family.name, family.help, family.kind)
        for labels, histogram in sorted(histograms.items()):
            lines += _histogram(family, labels, histogram)
    for name, (meaning, value) in (gauges or {}).items():
        lines += _heading(name, meaning, "gauge")
        lines.append(_sample(name, (), (), value))
    return ("\n".join(lines) + "\n").encode()


def _heading(name: str, meaning: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {_escaped(meaning)}", f"# TYPE {name} {kind}"


def _histogram(family: Family, labels: LabelValues, histogram: Histogram) -> Iterator[str]:
    names = (*family.label_names, "le")
    reached = 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        reached += count
        yield _sample(f"{family.name}_bucket", names, (*labels, number(bound)), reached)
    yield _sample(f"{family.name}_sum", family.label_names, labels, histogram.total)
    yield _sample(f"{family.name}_count", family.label_names, labels, reached)


def _sample(name: str, names: tuple[str, ...], labels: LabelValues, value: float) -> str:
    pairs = ",".join(f'{key}="{_quoted(text)}"' for key, text in zip(names, labels, strict=True))
    return f"{name}{{{pairs}}} {number(value)}" if pairs else f"{name} {number(value)}"


def number(value: float) -> str:
    """A number as the format spells it: whole ones without a point, the unbounded one as +Inf."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
