"""The study of lifetimes: one command on a folder of logs, tables whose lines can be told by hand."""

import pytest
from replaying import TRANSCRIPTS, policy, recording
from studies import lifetimes
from studies.lifetimes import CHOICES, HINDSIGHT, USERS, Bills, in_order, main, measured, tables, with_users

from cg.replay.recordings.recording import Session
from cg.replay.run import run
from cg.replay.sessions import open_all
from cg.replay.settings import Settings

NAMES = ("entire-mid-59", "cipherbox-mid-50")


def sessions(*names: str) -> list[Session]:
    found = open_all([TRANSCRIPTS / f"{name}.json" for name in names or NAMES])
    return [session for session in found if isinstance(session, Session)]


def test_a_choice_costs_what_the_replay_says() -> None:
    """A session of five minutes at five, at an hour, and the better of both."""
    bills = measured(sessions()[0])
    found = recording(NAMES[0])
    for name, ttl_s in (("5 min", 300), ("1 h", 3600)):
        assert bills.units[name] == run(found, policy("none"), Settings(ttl_s=ttl_s)).total.units
    assert bills.units["as recorded"] == bills.units["5 min"]
    assert bills.units[HINDSIGHT] == min(bills.units["5 min"], bills.units["1 h"])


def test_choices_that_the_product_has_not_lie_between_its_constants_writes() -> None:
    """An hour's head alone costs more than five minutes where no wait is long, and less than an hour for all."""
    bills = measured(sessions("entire-small-15")[0]).units
    assert bills["5 min"] < bills["system and tools 1 h, messages 5 min"] < bills["1 h"]
    assert bills["5 min, after the first cold request 1 h"] == bills["5 min"]


def test_a_users_better_constant_is_one_for_all_of_their_sessions() -> None:
    """By the sum, though another would be better for one of them."""
    made = [
        Bills(name, "u", 300, {"as recorded": 4.0, "5 min": five, "1 h": hour, HINDSIGHT: min(five, hour)})
        for name, five, hour in (("a", 4.0, 1.0), ("b", 4.0, 5.0))
    ]
    assert [each.units[USERS] for each in with_users(made)] == [1.0, 5.0]
    filled = [Bills(b.name, b.user, b.ttl_s, dict.fromkeys(CHOICES, 4.0) | dict(b.units)) for b in with_users(made)]
    (line,) = [row for row in tables(filled).splitlines() if row.startswith(f"| {USERS}") and "25" in row][:1]
    assert line.split(" | ")[3:6] == ["-25.00%", "67%", "+25.0%"]


def test_sessions_stand_in_the_order_of_their_clients_versions() -> None:
    """Numbers by size and not by spelling; what names no version comes first."""
    named = [(session.client, session.name) for session in in_order(sessions("swe-agent-demo-21", *NAMES))]
    assert named[0][1] == "swe-agent-demo-21"
    assert in_order(in_order(sessions())) == in_order(sessions())


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_command_prints_a_table_for_each_lifetime(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And one of all."""
    assert main([str(TRANSCRIPTS / f"{name}.json") for name in NAMES] + ["--jobs", jobs]) == 0
    out = capsys.readouterr().out
    assert [line.split("**")[1] for line in out.splitlines() if line.startswith("**")] == list(lifetimes.GROUPS)
    assert out.count(f"| {lifetimes.PLAN} |") == 3
