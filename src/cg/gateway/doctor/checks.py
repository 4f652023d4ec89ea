"""`cg-proxy doctor`: proves against the user's own upstream that the gateway routes, that the cache is read, how long
it lives, and that a removed output comes back; in plain words, and honest about what was not proven."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from cg.gateway.doctor.probe import (
    LONG_BYTES,
    ProbeClient,
    ProbeReply,
    RemovalCase,
    long,
    removal_case,
    session_name,
    small,
    wait,
)
from cg.sweep.config import Config, load
from cg.sweep.economics import START_BYTES_PER_TOKEN
from cg.sweep.prices import PriceTable
from cg.sweep.values import Usage

LIFETIMES = {"5m": 300, "1h": 3600}
MARGIN_S = 60  # a wait ends this long before the lifetime does


class Verdict(StrEnum):
    """How a check ended."""

    OK = "ok"
    FAILED = "failed"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's end: what it was, how it ended, what that means, and what to do about it."""

    check: str
    verdict: Verdict
    words: str
    advice: str = ""

    def to_dict(self) -> dict[str, str]:
        return {**asdict(self), "verdict": self.verdict.value}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to examine. `waits` lets the cache age for real, which takes nearly its whole lifetime."""

    model: str
    upstream: str
    ttl: str = "5m"
    waits: bool = False
    environment: Mapping[str, str] | None = None
    listen: str = ""  # where the user's own gateway listens, to compare ANTHROPIC_BASE_URL with


def credential_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The header that the provider's own clients would send, from the variables that they read; empty if none."""
    if key := environment.get("ANTHROPIC_API_KEY"):
        return {"x-api-key": key}
    if token := environment.get("ANTHROPIC_AUTH_TOKEN"):
        return {"authorization": f"Bearer {token}"}
    return {}


def price_line(plan: Plan, prices: PriceTable | None = None) -> str:
    """What the examination will cost, said before it is made."""
    price = (prices or PriceTable.default()).price(plan.model)
    if price is None:
        return f"This makes about seven small requests to {plan.model}, whose price is not known here."
    tokens = LONG_BYTES * 1.1 / START_BYTES_PER_TOKEN
    usd = 1e-6 * (
        tokens * price.write(LIFETIMES[plan.ttl]) + 2 * tokens * price.read + 9000 * price.fresh + 500 * price.output
    )
    return f"This makes about seven small requests to {plan.model} and costs about ${usd:.2f}."


def doctor_config() -> Config:
    """The configuration of the doctor's own gateway: every large output goes where the beginning changed anyway, so
    that a removal can be shown at once and without an ask."""
    return load(preset="cold", flags={"keep_newest": 0, "pings": 0})


def examine(
    client: ProbeClient, plan: Plan, *, removing: ProbeClient | None = None, pause: Callable[[float], None] = wait
) -> Iterator[Finding]:
    """The findings, as they are made. Without routing nothing else can be proven, so it ends there.

    `client` leads through the gateway that is examined, `removing` through one with `doctor_config`, if that is another.
    """
    yield from environment(plan)
    routed = routing(client, plan)
    yield routed
    if routed.verdict is Verdict.FAILED:
        return
    yield from cache(client, plan, pause)
    yield recovery(removing or client, plan)


# -- routing ---------------------------------------------------------------------------------------------------------


def environment(plan: Plan) -> Iterator[Finding]:
    """Whether a client started from this shell would reach the gateway; nothing if there is none to reach."""
    if plan.environment is None or not plan.listen:
        return
    base = plan.environment.get("ANTHROPIC_BASE_URL", "").rstrip("/")
    if base == plan.listen.rstrip("/"):
        yield Finding("environment", Verdict.OK, f"Clients started from this shell use the gateway at {plan.listen}.")
    elif not base:
        yield Finding(
            "environment",
            Verdict.NOT_PROVEN,
            "ANTHROPIC_BASE_URL is not set, so clients started from this shell go past the gateway.",
            f"export ANTHROPIC_BASE_URL={plan.listen}, or start the client with: cg-proxy run -- COMMAND",
        )
    else:
        yield Finding(
            "environment",
            Verdict.FAILED,
            f"ANTHROPIC_BASE_URL names another place than {plan.listen}, so clients go past the gateway.",
            f"export ANTHROPIC_BASE_URL={plan.listen}",
        )


def routing(client: ProbeClient, plan: Plan) -> Finding:
    """A request goes in here, is counted here, and is answered by the upstream."""
    health = client.get("/healthz")
    if health.status != 200 or health.body != {"status": "ok"}:
        words = f"No gateway answers at {client.gateway} ({_said(health)})."
        return Finding("routing", Verdict.FAILED, words, "start one with: cg-proxy serve")
    before = _figure(client, "requests", "messages")
    reply = client.post(small(plan.model), session_name())
    after = _figure(client, "requests", "messages")
    if reply.status != 200:
        return Finding("routing", Verdict.FAILED, f"{plan.upstream} answered {_said(reply)}.", _advice(reply, plan))
    if not isinstance(reply.body, dict) or reply.body.get("type") != "message":
        words = f"{plan.upstream} answered, but not with a message of the Messages API."
        return Finding("routing", Verdict.FAILED, words, "check --upstream")
    if before is None or after is None:
        return Finding(
            "routing", Verdict.NOT_PROVEN, "The upstream answered, but the gateway's figures cannot be read."
        )
    if after <= before:
        words = "The upstream answered, but the gateway did not count the request: something else stands in between."
        return Finding("routing", Verdict.FAILED, words, "check for another proxy in front of the gateway")
    return Finding("routing", Verdict.OK, f"A request to {client.gateway} reached {plan.upstream} through the gateway.")


def _advice(reply: ProbeReply, plan: Plan) -> str:
    if reply.status in (401, 403):
        return "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN to a credential of this upstream"
    if reply.status == 404:
        return f"name a model that this upstream has, with --model; {plan.model} may be none of them"
    if reply.status in (502, 503, 504):
        return "check --upstream, the network, and the proxy variables HTTPS_PROXY and NO_PROXY"
    if reply.status in (429, 529):
        return "the upstream is busy or the limit is used up: try again later"
    return "try the same request without the gateway; if it works there, this is a fault of the gateway"


def _said(reply: ProbeReply) -> str:
    if reply.status == 0:
        return reply.problem or "no answer"
    return f"{reply.status} {reply.error_type}".strip()


def _figure(client: ProbeClient, *path: str) -> float | None:
    """A figure of `/stats`, with everything below it added up; 0 where nothing was counted yet, None if unreadable."""
    value: Any = client.get("/stats").body
    if not isinstance(value, dict):
        return None
    for name in path:
        value = value.get(name, 0) if isinstance(value, dict) else 0
    if isinstance(value, dict):
        return float(sum(n for n in value.values() if isinstance(n, int | float)))
    return float(value) if isinstance(value, int | float) else None


# -- cache -----------------------------------------------------------------------------------------------------------


def cache(client: ProbeClient, plan: Plan, pause: Callable[[float], None]) -> Iterator[Finding]:
    """A long beginning is written once and read afterwards; then how long it lives."""
    body, session = long(plan.model, plan.ttl), session_name()
    first, second = client.post(body, session), client.post(body, session)
    if first.status != 200 or second.status != 200:
        bad = first if first.status != 200 else second
        yield Finding("cache reads", Verdict.FAILED, f"A long request was answered {_said(bad)}.", _advice(bad, plan))
        return
    wrote, read = first.usage, second.usage
    if wrote is None or read is None:
        words = "The upstream says nothing of tokens, so nothing can be said of its cache."
        yield Finding("cache reads", Verdict.NOT_PROVEN, words)
        return
    yield _reads(wrote, read)
    if read.read:
        yield _lifetime(client, plan, body, session, wrote, pause)


def _written(usage: Usage) -> int:
    return usage.write_5m + usage.write_1h


def _reads(wrote: Usage, read: Usage) -> Finding:
    if not read.read and not _written(wrote):
        words = "The upstream neither wrote nor read its cache: it caches nothing for this model or account."
        return Finding("cache reads", Verdict.FAILED, words, "sweeping at cold requests cannot pay here; see uncached")
    if not read.read:
        words = f"{_written(wrote):,} tokens were written to the cache, and the same request again read none of them."
        return Finding(
            "cache reads", Verdict.FAILED, words, "a part of the request changes on the way, or the cache is not shared"
        )
    if _written(read):
        words = f"The same request again read {read.read:,} tokens, but wrote {_written(read):,} anew."
        return Finding("cache reads", Verdict.FAILED, words, "a part of the request changes on the way")
    words = f"The same request again read {read.read:,} tokens from the cache and wrote none, through the gateway."
    return Finding("cache reads", Verdict.OK, words)


def _lifetime(
    client: ProbeClient, plan: Plan, body: dict[str, Any], session: str, wrote: Usage, pause: Callable[[float], None]
) -> Finding:
    asked = {"5m": "five minutes", "1h": "one hour"}[plan.ttl]
    booked = {"5m": wrote.write_5m, "1h": wrote.write_1h}[plan.ttl]
    if _written(wrote) and not booked:
        other = "one hour" if plan.ttl == "5m" else "five minutes"
        words = f"A lifetime of {asked} was asked for, but the upstream booked the write as {other}."
        return Finding("lifetime", Verdict.FAILED, words, "the gateway's timing follows the request; tell it with care")
    if not plan.waits:
        words = f"A lifetime of {asked} was asked for and booked. That it lasts so long was not tried."
        return Finding(
            "lifetime", Verdict.NOT_PROVEN, words, f"doctor --wait tries it; it takes {_minutes(plan.ttl)} minutes"
        )
    pause(LIFETIMES[plan.ttl] - MARGIN_S)
    later = client.post(body, session)
    if later.status != 200 or later.usage is None:
        words = f"After the wait the upstream answered {_said(later)}."
        return Finding("lifetime", Verdict.NOT_PROVEN, words, "try again")
    if not later.usage.read:
        words = (
            f"After {_minutes(plan.ttl)} minutes without a request the cache was gone, before its {asked} were over."
        )
        return Finding(
            "lifetime", Verdict.FAILED, words, "idle asks and pings would come too late here: use apply = 'free'"
        )
    words = f"After {_minutes(plan.ttl)} minutes without a request {later.usage.read:,} tokens were still read."
    return Finding("lifetime", Verdict.OK, words)


def _minutes(ttl: str) -> int:
    return (LIFETIMES[ttl] - MARGIN_S) // 60


# -- recovery --------------------------------------------------------------------------------------------------------


def recovery(client: ProbeClient, plan: Plan) -> Finding:
    """An output is removed, and the model gets it back when it asks for it."""
    case, session = removal_case(plan.model), session_name()
    removed, recovered = _figure(client, "removed", "outputs"), _figure(client, "recoveries", "hidden", "original")
    first, second = client.post(case.first, session), client.post(case.second, session)
    for reply in (first, second):
        if reply.status != 200:
            words = f"A conversation with a tool was answered {_said(reply)}."
            return Finding("recovery", Verdict.FAILED, words, _advice(reply, plan))
    removed_now = _figure(client, "removed", "outputs")
    if removed is None or removed_now is None or recovered is None:
        return Finding("recovery", Verdict.NOT_PROVEN, "The gateway's figures cannot be read.")
    if removed_now <= removed:
        return Finding(
            "recovery", Verdict.FAILED, "No output was removed where removing it was free.", "see /stats, reasons"
        )
    return _recovered(case, second, (_figure(client, "recoveries", "hidden", "original") or 0) > recovered)


def _recovered(case: RemovalCase, reply: ProbeReply, was_asked_for: bool) -> Finding:
    knows = case.word in reply.text
    if knows and was_asked_for:
        words = "An output was removed, the model asked for it, got it back whole, and answered from it."
        return Finding("recovery", Verdict.OK, words)
    if knows:
        return Finding(
            "recovery", Verdict.FAILED, "The model knew what was in an output that should have been removed."
        )
    if was_asked_for:
        words = "An output was removed and given back on request, but the model's answer does not show it."
        return Finding("recovery", Verdict.NOT_PROVEN, words, "models vary: try again, or another --model")
    words = "An output was removed, and the model did not ask for it, so it was not brought back."
    return Finding("recovery", Verdict.NOT_PROVEN, words, "models vary: try again, or another --model")


def exit_code(findings: list[Finding]) -> int:
    """0 when nothing failed, 1 otherwise; what was not proven did not fail."""
    return int(any(finding.verdict is Verdict.FAILED for finding in findings))


def shown(finding: Finding) -> str:
    """A finding as lines for people."""
    text = f"{finding.verdict.value:<11} {finding.check}: {finding.words}"
    return f"{text}\n{'':<11}   {finding.advice}" if finding.advice else text
