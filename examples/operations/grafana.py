#!/usr/bin/env python3
"""Write the Grafana dashboard of a gateway to standard output.

    python3 examples/operations/grafana.py > examples/operations/grafana-dashboard.json

Import the file in Grafana (Dashboards, New, Import) and choose a Prometheus data source. A test holds every expression to
the gateway's own metrics.
"""

import json
import sys
from typing import Any

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
JOB = 'job=~"$job"'
WIDTH = 24  # of a row, in Grafana's columns

OWN_COST = f'sum(increase(cg_cost_usd_total{{{JOB},for=~"ask|ping|recovery"}}[$__range]))'
SAVED = f"sum(increase(cg_saved_usd_total{{{JOB}}}[$__range]))"
CHARGED = f"sum(increase(cg_charged_usd_total{{{JOB}}}[$__range]))"


def by(label: str, metric: str, matchers: str = "") -> str:
    """A rate by one label, without the series that stand at zero."""
    return f"sum by ({label}) (rate({metric}{{{JOB}{matchers}}}[$__rate_interval])) > 0"


def quantile(q: float, stage: str) -> str:
    buckets = f'cg_stage_seconds_bucket{{{JOB},stage="{stage}"}}'
    return f"histogram_quantile({q}, sum by (le) (rate({buckets}[$__rate_interval])))"


# (title, what it tells, unit, kind, columns, [(expression, legend)])
Panel = tuple[str, str, str, str, int, list[tuple[str, str]]]
ROWS: list[tuple[str, list[Panel]]] = [
    (
        "Money",
        [
            (
                "Net, over the range",
                "Saved less all that the gateway added to the bill. It can be negative. Calls without a known price are in no sum.",
                "currencyUSD",
                "stat",
                6,
                [(f"{SAVED} - {CHARGED} - {OWN_COST}", "net")],
            ),
            ("Saved", "By removals, before charges.", "currencyUSD", "stat", 6, [(SAVED, "saved")]),
            (
                "Spent for that",
                "Markers and our tool in bodies, asks, pings, recoveries.",
                "currencyUSD",
                "stat",
                6,
                [(f"{CHARGED} + {OWN_COST}", "spent")],
            ),
            (
                "Without a known price",
                "Turns and calls that are in no sum of money.",
                "short",
                "stat",
                6,
                [
                    (f"sum(increase(cg_unpriced_turns_total{{{JOB}}}[$__range]))", "turns"),
                    (f"sum(increase(cg_unpriced_calls_total{{{JOB}}}[$__range]))", "calls"),
                ],
            ),
            (
                "Cost by what it was for",
                "Dollars a second of the client's requests, and of asks, pings and recoveries.",
                "currencyUSD",
                "timeseries",
                12,
                [(by("for", "cg_cost_usd_total"), "{{for}}")],
            ),
            (
                "Input tokens by tier",
                "Fresh, read from the cache, written into it, of the client's own requests.",
                "short",
                "timeseries",
                12,
                [(by("tier", "cg_tokens_total", ',for="request",tier!="output"'), "{{tier}}")],
            ),
        ],
    ),
    (
        "Turns",
        [
            (
                "Why each turn did what it did",
                "One reason a turn; they sum to the turns.",
                "reqps",
                "timeseries",
                12,
                [(by("reason", "cg_turns_total"), "{{reason}}")],
            ),
            (
                "State of the cached prefix",
                "Cold and broken ones are where removals are free.",
                "reqps",
                "timeseries",
                12,
                [(by("phase", "cg_turn_phases_total"), "{{phase}}")],
            ),
            (
                "Bytes taken out and put in",
                "Unique: first removals. Repeat: the same on later requests. Charged: markers and our tool.",
                "Bps",
                "timeseries",
                8,
                [(by("kind", "cg_body_bytes_total"), "{{kind}}")],
            ),
            (
                "Outputs removed",
                "For the first time.",
                "short",
                "timeseries",
                8,
                [(f"sum(increase(cg_removed_outputs_total{{{JOB}}}[$__rate_interval]))", "removed")],
            ),
            (
                "Originals that came back",
                "Hidden: inside one message. Shown: in a later copy.",
                "short",
                "timeseries",
                8,
                [(by("mode, outcome", "cg_recoveries_total"), "{{mode}} {{outcome}}")],
            ),
        ],
    ),
    (
        "Asks",
        [
            (
                "Outcomes",
                "Of adjudications.",
                "short",
                "timeseries",
                8,
                [(by("outcome", "cg_asks_total"), "{{outcome}}")],
            ),
            (
                "Outputs in them",
                "Offered, judged spent, dropped.",
                "short",
                "timeseries",
                8,
                [(by("step", "cg_ask_outputs_total"), "{{step}}")],
            ),
            (
                "Timers",
                "What became of the idle asks.",
                "short",
                "timeseries",
                8,
                [(by("what", "cg_timers_total"), "{{what}}")],
            ),
        ],
    ),
    (
        "Health",
        [
            (
                "Faults of ours",
                "Each should be zero; the requests went on all the same.",
                "short",
                "timeseries",
                8,
                [(f"sum by (fault) (increase(cg_faults_total{{{JOB}}}[$__rate_interval]))", "{{fault}}")],
            ),
            (
                "Faults of others",
                "Upstream, network, client.",
                "short",
                "timeseries",
                8,
                [(by("fault", "cg_outside_faults_total"), "{{fault}}")],
            ),
            (
                "Originals sent after a refusal",
                "The upstream did not take a changed body.",
                "short",
                "timeseries",
                8,
                [(f"sum by (status) (increase(cg_resent_originals_total{{{JOB}}}[$__rate_interval]))", "{{status}}")],
            ),
            (
                "Our own work",
                "Between a request's last byte and the first byte sent on.",
                "s",
                "timeseries",
                8,
                [(quantile(0.5, "sweep"), "median"), (quantile(0.99, "sweep"), "99 %")],
            ),
            (
                "First byte",
                "Of the reply, from the request's arrival.",
                "s",
                "timeseries",
                8,
                [(quantile(0.5, "first_byte"), "median"), (quantile(0.99, "first_byte"), "99 %")],
            ),
            (
                "Replies of the upstream",
                "By status.",
                "reqps",
                "timeseries",
                8,
                [(by("status", "cg_upstream_responses_total"), "{{status}}")],
            ),
            ("Turned away", "By us.", "short", "timeseries", 8, [(by("why", "cg_refused_total"), "{{why}}")]),
            (
                "Memory",
                "Resident.",
                "bytes",
                "timeseries",
                8,
                [(f"process_resident_memory_bytes{{{JOB}}}", "{{instance}}")],
            ),
            (
                "In flight",
                "Requests being served.",
                "short",
                "timeseries",
                8,
                [(f"cg_in_flight_requests{{{JOB}}}", "{{instance}}")],
            ),
        ],
    ),
    (
        "Judges",
        [
            (
                "Doubts and refusals",
                "Verdicts turned away; the marked ones have alerts.",
                "short",
                "timeseries",
                24,
                [(by("gate", "cg_component_gate_declines_total"), "{{gate}}")],
            ),
        ],
    ),
]


def panel(number: int, place: dict[str, int], given: Panel) -> dict[str, Any]:
    title, told, unit, kind, _, targets = given
    return {
        "id": number,
        "type": kind,
        "title": title,
        "description": told,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + n), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for n, (expression, legend) in enumerate(targets)
        ],
    }


def panels() -> list[dict[str, Any]]:
    """All rows, one under the other."""
    made: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        made.append(
            {
                "id": len(made) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
            }
        )
        x, y = 0, y + 1
        for given in row:
            height = 4 if given[3] == "stat" else 8
            if x + given[4] > WIDTH:
                x, y = 0, y + made[-1]["gridPos"]["h"]
            made.append(panel(len(made) + 1, {"x": x, "y": y, "w": given[4], "h": height}, given))
            x += given[4]
        y += made[-1]["gridPos"]["h"]
    return made


def dashboard() -> dict[str, Any]:
    """The whole file."""
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    job = {
        "name": "job",
        "type": "query",
        "label": "Job",
        "datasource": SOURCE,
        "query": "label_values(cg_turns_total, job)",
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "refresh": 1,
        "current": {"text": "All", "value": "$__all"},
    }
    return {
        "uid": "cg-proxy",
        "title": "cg-proxy",
        "tags": ["cg"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source, job]},
        "panels": panels(),
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=1)
    print()
