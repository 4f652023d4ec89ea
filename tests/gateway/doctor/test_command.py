"""The doctor against an upstream, through a real gateway: what it says is so."""

import argparse
import json
import re
from typing import Any

import pytest
import scripts
from fake_upstream import FakeUpstream
from served import UpstreamClock

from cg.errors import CgError
from cg.gateway.doctor.checks import Plan, Verdict, doctor_config, examine
from cg.gateway.doctor.command import add_arguments, run, upstream_of
from cg.gateway.doctor.probe import ProbeClient
from cg.gateway.serve.thread_server import serve_in_thread
from cg.gateway.settings import Settings

MODEL = "claude-sonnet-5"
WORD = {"$find": "the code word is ([a-z]+-[0-9]{4})", "in": "last_user"}
READY: dict[str, Any] = {"name": "rest", "then": "repeat", "turns": [{"text": "ready"}]}


def model(asks_back: bool = True) -> dict[str, Any]:
    """An upstream whose model does as it is told, or never asks for what was removed."""
    inner = {"name": "inner", "match": {"min_messages": 6}, "then": "repeat", "turns": [{"text": WORD}]}
    call: dict[str, Any] = {"tool": "cg_expand", "input": {"id": scripts.MARKER}}
    if not asks_back:
        call = {"text": "I do not know."}
    ask = {"name": "ask", "match": {"last_user~": "What is the code word"}, "then": "repeat", "turns": [call]}
    return {"routes": [inner, ask, READY]}


def examined(up: FakeUpstream, **plan: Any) -> dict[str, Any]:
    """The findings, with a wait that moves the upstream's clock."""
    settings = Settings(listen=("127.0.0.1", 0), upstream=up.base_url, state=None, config=doctor_config())
    with serve_in_thread(settings, UpstreamClock(up)) as url:
        line = ProbeClient(url, {"x-api-key": "dummy"})
        chosen = Plan(MODEL, up.base_url, **plan)
        return {f.check: f for f in examine(line, chosen, pause=up.clock.advance)}


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_all_is_proven_where_all_is_well(ttl: str) -> None:
    """Routing, reads, lifetime and recovery, each by what the upstream itself booked."""
    with FakeUpstream(model(), clock="manual") as up:
        found = examined(up, ttl=ttl, waits=True)
    assert {check: f.verdict for check, f in found.items()} == {
        "routing": Verdict.OK,
        "cache reads": Verdict.OK,
        "lifetime": Verdict.OK,
        "recovery": Verdict.OK,
    }, [f.words for f in found.values()]


def test_a_model_that_does_not_ask_back_proves_nothing() -> None:
    """And nothing failed."""
    with FakeUpstream(model(asks_back=False), clock="manual") as up:
        found = examined(up)["recovery"]
    assert found.verdict is Verdict.NOT_PROVEN
    assert "did not ask for it" in found.words


def test_an_upstream_that_caches_nothing_is_found_out() -> None:
    """Its own usage says so."""
    with FakeUpstream(model(), clock="manual", min_cache_tokens=10**6) as up:
        found = examined(up)["cache reads"]
    assert found.verdict is Verdict.FAILED
    assert "caches nothing" in found.words


def command(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(arguments)


KEY = {"ANTHROPIC_API_KEY": "dummy"}


def test_the_command_prints_each_finding_and_what_it_costs() -> None:
    """Plain words, exit code 0."""
    said: list[str] = []
    with FakeUpstream(model(), clock="manual") as up:
        code = run(command("--upstream", up.base_url, "--model", MODEL), KEY, said.append)
    assert code == 0, said
    assert re.match(r"This makes about seven small requests to claude-sonnet-5 and costs about \$0\.", said[0])
    assert [line.split()[0] for line in said[1:]] == ["ok", "ok", "not", "ok"]


def test_for_programs_each_finding_is_an_object() -> None:
    """One a line, nothing else."""
    said: list[str] = []
    with FakeUpstream(model(), clock="manual") as up:
        run(command("--upstream", up.base_url, "--json"), KEY, said.append)
    rows = [json.loads(line) for line in said]
    assert [row["check"] for row in rows] == ["routing", "cache reads", "lifetime", "recovery"]
    assert set(rows[0]) == {"check", "verdict", "words", "advice"}


def test_a_failure_is_exit_code_1_and_says_what_to_do() -> None:
    """Here the upstream refuses the credential."""
    refused = {"kind": "http_error", "status": 401, "times": 99}
    said: list[str] = []
    with FakeUpstream([{"text": "ready", "fault": refused}], clock="manual") as up:
        code = run(command("--upstream", up.base_url), KEY, said.append)
    assert code == 1
    assert "401 authentication_error" in said[-1]
    assert "ANTHROPIC_API_KEY" in said[-1]


def test_a_gateway_that_runs_already_is_examined_with_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proven of it is proven of it; only the removal is shown in a gateway of the doctor's own."""
    said: list[str] = []
    with FakeUpstream(model(), clock="manual") as up:
        settings = Settings(listen=("127.0.0.1", 0), upstream=up.base_url, state=None)
        with serve_in_thread(settings, UpstreamClock(up)) as url:
            away = {"CG_PROXY_UPSTREAM": "http://127.0.0.1:1", "ANTHROPIC_BASE_URL": ""}
            code = run(command("--gateway", url), {**KEY, **away}, said.append)
    assert code == 0, said
    assert said[1].startswith("not proven  environment: ANTHROPIC_BASE_URL is not set")
    assert f"A request to {url} reached {up.base_url} through" in said[2]


def test_a_gateway_that_does_not_say_where_it_leads_gets_no_credential() -> None:
    """What answers there is another server; and where nobody answers, that is the finding."""
    with FakeUpstream(model(), clock="manual") as up, pytest.raises(CgError, match="name it with --upstream"):
        run(command("--gateway", up.base_url), KEY)
    assert [r["method"] for r in up.requests] == ["GET"] and KEY["ANTHROPIC_API_KEY"] not in json.dumps(up.requests)
    said: list[str] = []
    assert run(command("--gateway", "http://127.0.0.1:1"), KEY, said.append) == 1
    assert "No gateway answers at http://127.0.0.1:1" in said[-1]


def test_without_a_credential_nothing_is_sent() -> None:
    """The message names the variables."""
    with pytest.raises(CgError, match="ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"):
        run(command(), {})


@pytest.mark.parametrize(
    ("said", "environment", "place"),
    [
        ([], {}, "https://api.anthropic.com"),
        ([], {"ANTHROPIC_BASE_URL": "http://own.example"}, "http://own.example"),
        (
            [],
            {"ANTHROPIC_BASE_URL": "http://own.example", "CG_PROXY_UPSTREAM": "http://other.example"},
            "http://other.example",
        ),
        (["--upstream", "http://said.example"], {"CG_PROXY_UPSTREAM": "http://other.example"}, "http://said.example"),
        (["--gateway", "http://127.0.0.1:1", "--upstream", "http://said.example"], {}, "http://said.example"),
    ],
)
def test_the_credential_goes_where_the_client_sends_it(
    said: list[str], environment: dict[str, str], place: str
) -> None:
    """Not to the provider's own place when a variable names another."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert upstream_of(parser.parse_args(said), environment) == place
