"""Our own routes: what they answer, to whom, and under which headers."""

import asyncio
import json

import pytest
from figures_sample import START, busy

from cg.gateway.exchange import Inbound, Outbound, first
from cg.gateway.telemetry.routes import TelemetryRoutes
from cg.gateway.telemetry.stats import GatewayInfo, Stats

PATHS = [b"/healthz", b"/metrics", b"/stats", b"/dashboard"]


def routes(**more: object) -> TelemetryRoutes:
    return TelemetryRoutes(Stats(busy(), GatewayInfo(START), lambda: START + 60), **more)  # type: ignore[arg-type]


def ask(path: bytes, method: str = "GET", own: TelemetryRoutes | None = None) -> Outbound:
    handler = (own or routes()).handlers[path]
    return asyncio.run(handler(Inbound(method, path, [])))  # type: ignore[arg-type]


def test_the_paths_are_these() -> None:
    """No other path is taken from the provider."""
    assert sorted(routes().handlers) == sorted(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_nothing_of_ours_is_cached_or_read_by_other_origins(path: bytes) -> None:
    """And no header invites another origin in."""
    answer = ask(path)
    assert answer.status == 200
    assert first(answer.headers, b"cache-control") == b"no-store"
    assert first(answer.headers, b"x-content-type-options") == b"nosniff"
    assert first(answer.headers, b"cross-origin-resource-policy") == b"same-origin"
    assert not any(name.startswith(b"access-control-") for name, _ in answer.headers)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_reading_is_answered(path: bytes, method: str) -> None:
    """They change nothing, so there is nothing to post."""
    answer = ask(path, method)
    assert answer.status == 405
    assert first(answer.headers, b"allow") == b"GET, HEAD"


def test_health_turns_bad_while_stopping() -> None:
    """Whoever balances load sends no new client here."""
    assert json.loads(bytes(ask(b"/healthz").body)) == {"status": "ok"}  # type: ignore[arg-type]
    answer = ask(b"/healthz", own=routes(is_stopping=lambda: True))
    assert (answer.status, json.loads(bytes(answer.body))) == (503, {"status": "stopping"})  # type: ignore[arg-type]


def test_metrics_and_stats_tell_the_same() -> None:
    """One set of figures, two spellings."""
    own = routes()
    text = bytes(ask(b"/metrics", own=own).body).decode()  # type: ignore[arg-type]
    figures = json.loads(bytes(ask(b"/stats", own=own).body))  # type: ignore[arg-type]
    for reason, n in figures["reasons"].items():
        assert f'cg_turns_total{{reason="{reason}"}} {n}\n' in text
    assert "process_start_time_seconds 1800000000\n" in text


def test_the_page_may_do_nothing_but_read_our_figures() -> None:
    """Its policy names one style and one script by their hashes, and forbids everything else."""
    policy = first(ask(b"/dashboard").headers, b"content-security-policy")
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.decode().split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    for kind in ("style-src", "script-src"):
        (source,) = rules[kind].split(" ")
        assert source.startswith("'sha256-")
