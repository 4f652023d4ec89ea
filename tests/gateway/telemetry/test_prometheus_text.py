"""The text format: what a scraper reads, against a parser of its own and, where installed, the reference client's."""

import math
import re
from typing import Any

import pytest
from figures_sample import busy

from cg.gateway.telemetry import metric_families
from cg.gateway.telemetry.prometheus_text import number, render
from cg.gateway.telemetry.registry import MetricRegistry

SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')


def samples(text: bytes) -> dict[tuple[str, str], float]:
    """Every sample line by name and labels; fails on a line that is neither a sample nor a comment."""
    found: dict[tuple[str, str], float] = {}
    for line in text.decode("utf-8").splitlines():
        if line.startswith("#"):
            assert re.match(r"# (HELP [a-z0-9_]+ .+|TYPE [a-z0-9_]+ (counter|gauge|histogram))$", line), line
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        key = (match[1], match[2] or "")
        assert key not in found, f"twice: {key}"
        found[key] = float(match[3])
    return found


def test_every_figure_is_exposed_once() -> None:
    """What was counted is what is read."""
    found = samples(render(busy().figures.snapshot()))
    assert found["cg_turns_total", 'reason="removed"'] == 2
    assert found["cg_requests_total", 'route="messages",status="529"'] == 1
    assert found["cg_component_events_total", 'component="sweep",event="sweep_applied"'] == 4
    assert found["cg_removed_outputs_total", ""] == 4
    assert found["cg_cost_usd_total", 'for="ask",tier="read"'] == pytest.approx(0.0096)


def test_a_series_stands_at_zero_before_its_first_count() -> None:
    """A rate over the first count is right."""
    assert samples(render(MetricRegistry().snapshot()))["cg_faults_total", 'fault="store"'] == 0


def test_a_histograms_buckets_are_cumulative() -> None:
    """The last bucket is unbounded and equals the count."""
    found = samples(render(busy().figures.snapshot()))
    buckets = [(k[1], v) for k, v in found.items() if k[0] == "cg_stage_seconds_bucket" and 'stage="total"' in k[1]]
    assert [v for _, v in buckets] == sorted(v for _, v in buckets)
    assert found["cg_stage_seconds_bucket", 'stage="total",le="+Inf"'] == 3
    assert found["cg_stage_seconds_bucket", 'stage="total",le="2.5"'] == 3
    assert found["cg_stage_seconds_bucket", 'stage="total",le="1"'] == 0
    assert found["cg_stage_seconds_count", 'stage="total"'] == 3
    assert found["cg_stage_seconds_sum", 'stage="total"'] == 6


def test_values_read_at_the_scrape_are_added() -> None:
    """What a store holds is a gauge."""
    found = samples(render(MetricRegistry().snapshot(), {"cg_store_bytes": ("Held.", 12.5)}))
    assert found["cg_store_bytes", ""] == 12.5


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3.0, "3"), (-2.0, "-2"), (0.1, "0.1"), (1e16, "1e+16"), (math.inf, "+Inf"), (-math.inf, "-Inf")],
)
def test_numbers_are_spelled_as_the_format_asks(value: float, text: str) -> None:
    """Whole ones short, others exact."""
    assert number(value) == text
    assert float(number(value)) == value


def test_not_a_number_is_spelled_out() -> None:
    """The format has a word for it."""
    assert number(math.nan) == "NaN"


def test_hostile_help_and_labels_cannot_break_a_line() -> None:
    """Quotes, backslashes and line ends are escaped, whoever chose them."""
    family = metric_families.Family("cg_x_total", 'a\nb\\c "d"', labels=(("x", None),))
    figures = MetricRegistry()
    figures._values[family] = {('a"b\\c\nd',): 1.0}
    text = render(figures.snapshot())
    assert b'cg_x_total{x="a\\"b\\\\c\\nd"} 1' in text
    assert b'# HELP cg_x_total a\\nb\\\\c "d"\n' in text


def test_the_reference_parser_reads_the_same() -> None:
    """prometheus_client's own parser finds each sample with its value and type."""
    parser: Any = pytest.importorskip("prometheus_client.parser", reason="prometheus_client is not installed")
    text = render(busy().figures.snapshot()).decode()
    ours = samples(text.encode())
    families = list(parser.text_string_to_metric_families(text))
    theirs = {
        (s.name, ",".join(f'{k}="{v}"' for k, v in s.labels.items())): s.value for m in families for s in m.samples
    }
    assert theirs == ours
    assert {m.type for m in families} == {"counter", "gauge", "histogram"}
