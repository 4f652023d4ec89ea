"""The doctor: each finding follows from what came back, in plain words, and nothing is claimed that was not seen."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cg.errors import CgError
from cg.gateway.doctor import checks as doctor
from cg.gateway.doctor.checks import Finding, Plan, Verdict, credential_of, examine, exit_code, price_line, shown
from cg.gateway.doctor.probe import ProbeClient, ProbeReply

PLAN = Plan("claude-sonnet-5", "https://upstream.example")
WORD = re.compile(r"the code word is ([a-z]+-[0-9]{4})")


def message(text: str = "ready", **usage: Any) -> ProbeReply:
    counted = {"input_tokens": 10, "output_tokens": 2, **usage}
    return ProbeReply(200, {}, {"type": "message", "content": [{"type": "text", "text": text}], "usage": counted})


def error(status: int, kind: str) -> ProbeReply:
    return ProbeReply(status, {}, {"type": "error", "error": {"type": kind, "message": "words of the provider"}})


class World(ProbeClient):
    """A gateway and an upstream that behave well, each part of which can be made to behave otherwise."""

    def __init__(self) -> None:
        self.gateway = "http://127.0.0.1:8788"
        self.stats: dict[str, Any] = {"requests": {"messages": {}}, "removed": {"outputs": 0}, "recoveries": {}}
        self.health = ProbeReply(200, {}, {"status": "ok"})
        self.counts = True
        self.first = message()
        self.write = {"cache_creation_input_tokens": 8000, "cache_creation": {"ephemeral_5m_input_tokens": 8000}}
        self.read: dict[str, Any] = {"cache_read_input_tokens": 8000}
        self.later: dict[str, Any] = {"cache_read_input_tokens": 8000}
        self.removes = self.asks_back = self.knows = True
        self.waited: list[float] = []
        self.sessions: set[str] = set()
        self._long = 0

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)

    def get(self, path: str) -> ProbeReply:
        return self.health if path == "/healthz" else ProbeReply(200, {}, self.stats)

    def post(self, body: Mapping[str, Any], session: str) -> ProbeReply:
        self.sessions.add(session)
        if self.counts:
            counted = self.stats["requests"]["messages"]
            counted["200"] = counted.get("200", 0) + 1
        if "tools" not in body:
            return self.first
        if len(body["messages"]) == 1:
            self._long += 1
            return message(**[self.write, self.read, self.later][self._long - 1])
        if len(body["messages"]) == 3:
            return message("I have read it.")
        if self.removes:
            self.stats["removed"]["outputs"] += 1
        if self.asks_back:
            self.stats["recoveries"] = {"hidden": {"original": 1}, "rounds": 1}
        word = WORD.search(str(body))
        assert word is not None
        return message(f"The code word is {word[1]}." if self.knows else "I do not know.")


def findings(world: World, **plan: Any) -> dict[str, Finding]:
    chosen = Plan(**{"model": PLAN.model, "upstream": PLAN.upstream, **plan})
    return {f.check: f for f in examine(world, chosen, pause=world.pause)}


def test_where_all_is_well_everything_but_the_wait_is_proven() -> None:
    """Without waiting it is not claimed that an entry lives for its whole time."""
    found = findings(World())
    assert {check: f.verdict for check, f in found.items()} == {
        "routing": Verdict.OK,
        "cache reads": Verdict.OK,
        "lifetime": Verdict.NOT_PROVEN,
        "recovery": Verdict.OK,
    }
    assert "8,000 tokens" in found["cache reads"].words
    assert exit_code(list(found.values())) == 0


@pytest.mark.parametrize(("ttl", "seconds", "key"), [("5m", 240, "5m"), ("1h", 3540, "1h")])
def test_with_a_wait_the_lifetime_is_proven(ttl: str, seconds: float, key: str) -> None:
    """It waits until a minute before the end, and reads."""
    world = World()
    world.write["cache_creation"] = {f"ephemeral_{key}_input_tokens": 8000}
    found = findings(world, waits=True, ttl=ttl)
    assert world.waited == [seconds]
    assert found["lifetime"].verdict is Verdict.OK


def test_each_check_has_a_conversation_of_its_own() -> None:
    """None finds the traces of another, or of anybody."""
    world = World()
    findings(world)
    assert len(world.sessions) == 3
    assert all(name.startswith("doctor-") for name in world.sessions)


def nobody_home(world: World) -> None:
    world.health = ProbeReply(0, problem="ConnectionRefusedError")


def another_server(world: World) -> None:
    world.health = ProbeReply(200, {}, {"hello": "world"})


def bad_credential(world: World) -> None:
    world.first = error(401, "authentication_error")


def no_model(world: World) -> None:
    world.first = error(404, "not_found_error")


def no_upstream(world: World) -> None:
    world.first = error(502, "api_error")


def busy_upstream(world: World) -> None:
    world.first = error(529, "overloaded_error")


def no_messages(world: World) -> None:
    world.first = ProbeReply(200, {}, None)


def past_the_gateway(world: World) -> None:
    world.counts = False


@pytest.mark.parametrize(
    ("harm", "words", "advice"),
    [
        (nobody_home, "No gateway answers at http://127.0.0.1:8788 (ConnectionRefusedError)", "cg-proxy serve"),
        (another_server, "No gateway answers", "cg-proxy serve"),
        (bad_credential, "answered 401 authentication_error", "ANTHROPIC_API_KEY"),
        (no_model, "answered 404", "--model"),
        (no_upstream, "answered 502", "HTTPS_PROXY"),
        (busy_upstream, "answered 529", "later"),
        (no_messages, "not with a message of the Messages API", "--upstream"),
        (past_the_gateway, "did not count the request", "another proxy"),
    ],
)
def test_without_routing_nothing_else_is_claimed(harm: Callable[[World], None], words: str, advice: str) -> None:
    """The one finding says what is wrong and what to do; the examination ends there."""
    world = World()
    harm(world)
    found = findings(world)
    assert list(found) == ["routing"]
    assert found["routing"].verdict is Verdict.FAILED
    assert words in found["routing"].words
    assert advice in found["routing"].advice
    assert "words of the provider" not in shown(found["routing"])
    assert exit_code(list(found.values())) == 1


@pytest.mark.parametrize(
    ("write", "read", "words"),
    [
        ({}, {}, "caches nothing"),
        ({"cache_creation_input_tokens": 8000}, {"cache_creation_input_tokens": 8000}, "read none of them"),
        (
            {"cache_creation_input_tokens": 8000},
            {"cache_read_input_tokens": 5000, "cache_creation_input_tokens": 3000},
            "read 5,000 tokens, but wrote 3,000 anew",
        ),
    ],
)
def test_a_cache_that_is_not_read_whole_is_a_failure(write: dict, read: dict, words: str) -> None:
    """A gateway that broke the prefix would show here."""
    world = World()
    world.write, world.read = write, read
    found = findings(world)
    assert found["cache reads"].verdict is Verdict.FAILED
    assert words in found["cache reads"].words


def test_an_upstream_that_books_another_lifetime_is_a_failure() -> None:
    """Timers that follow what was asked for would be wrong."""
    world = World()
    world.write["cache_creation"] = {"ephemeral_1h_input_tokens": 8000}
    finding = findings(world)["lifetime"]
    assert finding.verdict is Verdict.FAILED
    assert "booked the write as one hour" in finding.words


def test_an_entry_that_dies_early_is_a_failure() -> None:
    """Found by waiting."""
    world = World()
    world.later = {"cache_creation_input_tokens": 8000}
    finding = findings(world, waits=True)["lifetime"]
    assert finding.verdict is Verdict.FAILED
    assert "before its five minutes were over" in finding.words


@pytest.mark.parametrize(
    ("removes", "asks_back", "knows", "verdict", "words"),
    [
        (False, False, True, Verdict.FAILED, "No output was removed"),
        (True, False, True, Verdict.FAILED, "knew what was in an output that should have been removed"),
        (True, True, False, Verdict.NOT_PROVEN, "given back on request, but"),
        (True, False, False, Verdict.NOT_PROVEN, "did not ask for it"),
    ],
)
def test_recovery_is_proven_by_a_word_that_only_the_removed_output_holds(
    removes: bool, asks_back: bool, knows: bool, verdict: Verdict, words: str
) -> None:
    """A model that guesses, or that never lost the output, proves nothing."""
    world = World()
    world.removes, world.asks_back, world.knows = removes, asks_back, knows
    finding = findings(world)["recovery"]
    assert finding.verdict is verdict
    assert words in finding.words


@pytest.mark.parametrize(
    ("environment", "verdict", "words"),
    [
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:8788/"}, Verdict.OK, "use the gateway"),
        ({}, Verdict.NOT_PROVEN, "is not set"),
        ({"ANTHROPIC_BASE_URL": "https://elsewhere.example/?key=secret"}, Verdict.FAILED, "another place"),
    ],
)
def test_the_shell_is_examined_too(environment: dict[str, str], verdict: Verdict, words: str) -> None:
    """A gateway that no client is pointed at helps nobody; what is set there is not repeated."""
    finding = findings(World(), environment=environment, listen="http://127.0.0.1:8788")["environment"]
    assert finding.verdict is verdict
    assert words in finding.words
    assert "secret" not in shown(finding)


@pytest.mark.parametrize(
    ("environment", "headers"),
    [
        ({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t"}, {"x-api-key": "k"}),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, {"authorization": "Bearer t"}),
        ({}, {}),
    ],
)
def test_the_credential_is_that_of_the_providers_own_clients(environment: dict, headers: dict) -> None:
    """The key before the token, as they do."""
    assert credential_of(environment) == headers


def test_what_it_costs_is_said_before() -> None:
    """An unknown price is said to be unknown."""
    cost = re.search(r"about \$([0-9.]+)\.", price_line(PLAN))
    assert cost is not None
    assert 0.01 < float(cost[1]) < 0.20
    assert "not known" in price_line(Plan("another", "https://upstream.example"))


def test_a_gateway_that_is_no_http_address_is_refused() -> None:
    """The message shows what one looks like."""
    with pytest.raises(CgError, match=r"'ftp://x'; it must be an http URL such as http://127\.0\.0\.1:8788"):
        ProbeClient("ftp://x", {})


def test_a_finding_is_shown_with_its_advice_below() -> None:
    """One line says how it is, the next what to do."""
    assert (
        shown(Finding("routing", Verdict.FAILED, "No.", "do this")) == "failed      routing: No.\n              do this"
    )
    assert doctor.MARGIN_S == 60
