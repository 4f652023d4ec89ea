"""`cg-proxy doctor` as a command: its arguments, the gateway that it starts for itself, how findings are printed."""

import argparse
import json
from collections.abc import Callable, Mapping

from cg.errors import CgError
from cg.gateway.doctor.checks import Finding, Plan, credential_of, doctor_config, examine, exit_code, price_line, shown
from cg.gateway.doctor.probe import ProbeClient
from cg.gateway.settings import DEFAULT_UPSTREAM, Settings
from cg.gateway.telemetry.counting import place_of

DEFAULT_MODEL = "claude-haiku-4-5"  # the cheapest of the current ones
BASE_URL = "ANTHROPIC_BASE_URL"
UPSTREAM_VARIABLE = "CG_PROXY_UPSTREAM"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--upstream",
        metavar="URL",
        help=f"default: what --gateway leads to, else {UPSTREAM_VARIABLE}, {BASE_URL}, {DEFAULT_UPSTREAM}",
    )
    parser.add_argument("--model", default=DEFAULT_MODEL, metavar="NAME", help=f"default: {DEFAULT_MODEL}")
    parser.add_argument("--ttl", choices=("5m", "1h"), default="5m", help="the cache lifetime to examine")
    parser.add_argument(
        "--wait", action="store_true", help="try the lifetime for real: takes 4 minutes (5m) or 59 (1h)"
    )
    parser.add_argument(
        "--gateway", metavar="URL", help="a gateway that runs already; without it one is started for the examination"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a finding")


def upstream_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> str:
    """Where the examination goes: the credential is for the place that the client's own requests go to, and no other.

    A gateway that runs says itself where it leads. Raises CgError if it does not.
    """
    if arguments.upstream:
        return str(arguments.upstream)
    if arguments.gateway:
        return _upstream_said_by(arguments.gateway)
    return environment.get(UPSTREAM_VARIABLE) or environment.get(BASE_URL) or DEFAULT_UPSTREAM


def _upstream_said_by(gateway: str) -> str:
    reply = ProbeClient(gateway, {}).get("/stats")
    if reply.status == 0:  # nobody is there: the routing check says so, and sends nothing
        return DEFAULT_UPSTREAM
    upstream = reply.body.get("upstream") if isinstance(reply.body, dict) else None
    if not isinstance(upstream, str) or not upstream:
        raise CgError(
            f"{gateway} does not say in /stats where it leads (status {reply.status}): name it with --upstream"
        )
    return upstream


def run(arguments: argparse.Namespace, environment: Mapping[str, str], say: Callable[[str], None] = print) -> int:
    """Examine and print each finding as it is made; returns 0 if nothing failed, else 1. Raises CgError."""
    credential = credential_of(environment)
    if not credential:
        raise CgError("no credential: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN")
    upstream = upstream_of(arguments, environment)
    plan = Plan(
        model=arguments.model,
        upstream=place_of(upstream),
        ttl=arguments.ttl,
        waits=arguments.wait,
        environment=environment if arguments.gateway else None,
        listen=arguments.gateway or "",
    )
    if not arguments.json:
        say(price_line(plan))
    from cg.gateway.serve.thread_server import (
        serve_in_thread,  # the server's stack, which the checks themselves do without
    )

    settings = Settings(listen=("127.0.0.1", 0), upstream=upstream, state=None, config=doctor_config())
    findings: list[Finding] = []
    with serve_in_thread(settings) as address:
        examined = ProbeClient(address, credential)
        client = ProbeClient(arguments.gateway, credential) if arguments.gateway else examined
        for finding in examine(client, plan, removing=examined):
            findings.append(finding)
            say(json.dumps(finding.to_dict()) if arguments.json else shown(finding))
    return exit_code(findings)
