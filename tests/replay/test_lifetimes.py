"""Lifetimes in a replay: what they cost is what the same session would have cost at them, and users teach themselves."""

import dataclasses
import json

import pytest
from replaying import RECORDINGS, TRANSCRIPTS, policy, recording, run_both_ways

from cg.replay import batch
from cg.replay.cli import main
from cg.replay.policies import parse
from cg.replay.recordings.recording import Before, Session
from cg.replay.run import run
from cg.replay.sessions import open_all
from cg.replay.settings import Settings
from cg.sweep.planning.gaps import Gaps

PAID = Before(billed=1e9)  # so much that every choice is covered
FIVE_MINUTES = b',"ttl":"5m"'  # spelled out where a client asked for an hour; the line's own marks leave it away
AWAY = Before(Gaps.of({"conversations": 40, "from_7200": 40}), 1e9)  # a user who is never back within the hour


@pytest.mark.parametrize("name", ["entire-long-155", "entire-mid-59", "cipherbox-mid-50"])
@pytest.mark.parametrize(("lifetime", "ttl_s"), [("5m", 300), ("1h", 3600)])
def test_a_constant_is_the_session_at_that_lifetime(name: str, lifetime: str, ttl_s: int) -> None:
    """To the token, and the difference to the client's own is what the row says."""
    found = recording(name)
    none, there = run(found, policy("none"), Settings()), run(found, policy("none"), Settings(ttl_s=ttl_s))
    row = run(found, policy(f"lifetime-{lifetime}"), Settings())
    assert row.total.tokens == there.total.tokens
    assert row.lifetime.units == pytest.approx(none.total.units - row.total.units)


@pytest.mark.parametrize("which", ["lifetime-plan", "quiet", "cold"])
@pytest.mark.parametrize("before", [PAID, AWAY], ids=["paid", "away"])
@pytest.mark.parametrize("name", ["entire-long-155", "entire-long-116"])
def test_quiet_requests_are_passed_over_under_a_plan_too(
    name: str, before: Before, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the core at every request or only where it could act, each body is the same, and is what is priced."""
    found = dataclasses.replace(recording(name), before=before)
    every, quiet = run_both_ways(found, policy(which), monkeypatch, lifetime="plan")
    assert quiet.bodies == every.bodies == [body.replace(FIVE_MINUTES, b"") for body in every.swept]
    assert quiet.usages == every.usages and not quiet.mismatched
    assert len(quiet.swept) < len(every.swept)


def test_the_plan_is_the_better_constant_for_who_has_taught_it() -> None:
    """Recorded habits give an hour to a session of five minutes, and a user's own take one of an hour back."""
    taught = dataclasses.replace(recording("entire-mid-59"), before=PAID)
    plan = run(taught, policy("lifetime-plan"), Settings())
    assert plan.total.tokens == run(taught, policy("lifetime-1h"), Settings()).total.tokens
    away = dataclasses.replace(recording("cipherbox-mid-50"), before=AWAY)
    first = run(away, policy("lifetime-plan"), Settings())
    assert first.total.tokens["write_5m"] > 0


def test_none_and_the_masks_are_the_clients_own_whatever_the_setting() -> None:
    """What everything is held against does not move."""
    found = recording("entire-mid-59")
    assert run(found, policy("none"), Settings(lifetime="1h")) == run(found, policy("none"), Settings())


def sessions(*names: str) -> list[Session]:
    found = list(open_all([TRANSCRIPTS / f"{name}.json" for name in names]))
    return [session for session in found if isinstance(session, Session)]


def test_a_session_has_its_own_waits() -> None:
    """As the recordings' table says: three of five minutes and more, one of an hour."""
    (session,) = sessions("cipherbox-mid-50")
    assert session.gaps.conversations == 1
    assert (session.gaps.between(300), session.gaps.between(3600)) == (3, 1)
    assert session.user == "FSM1/cipher-box" and session.billed > 0


def test_a_users_earlier_sessions_teach_the_later_ones() -> None:
    """And nobody else's do."""
    entire, other, again = sessions("entire-mid-59", "cipherbox-mid-50", "entire-mid-70")
    taught = list(batch.taught([entire, other, again]))
    assert [session.before.billed for session in taught[:2]] == [0, 0]  # type: ignore[union-attr]
    assert taught[2].before == Before(entire.gaps, entire.billed)  # type: ignore[union-attr]


def test_the_command_takes_a_lifetime(capsys: pytest.CaptureFixture[str]) -> None:
    """For every policy that has a configuration, and as policies of their own."""
    path = str(TRANSCRIPTS / "entire-mid-59.json")
    assert main(["replay", path, "--policy", "quiet", "--lifetime", "1h", "--json", "--no-progress"]) == 0
    swept = json.loads(capsys.readouterr().out)["total"]
    assert main(["replay", path, "--policy", "lifetime-1h", "--json", "--no-progress"]) == 0
    alone = json.loads(capsys.readouterr().out)["total"]
    rows = [rows.get("policies", rows)[name] for rows, name in ((swept, "quiet"), (alone, "lifetime-1h"))]
    assert all(row["tokens"]["write_5m"] == 0 < row["tokens"]["write_1h"] for row in rows)
    assert all(row["saved_lifetime_units"] != 0 for row in rows)


def test_policies_of_lifetimes_remove_nothing() -> None:
    """There is no judge: what they bring is the lifetime's alone."""
    for found in parse([f"lifetime-{value}" for value in ("5m", "1h", "plan")])[1:]:
        assert found.config is not None and not found.config.removes
    assert len(RECORDINGS) == 12
