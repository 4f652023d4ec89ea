"""The sweep inside a replay: quiet requests cost nothing and change nothing."""

import dataclasses
import os

import pytest
from replaying import RECORDINGS, policy, recording, run_both_ways
from studies.synthetic import made_session

from cg.replay.reading import record

LONG = os.environ.get("CG_LONG") == "1"
POLICIES = ["paid/oracle", "cold", "classic/oracle", "paid/index"]


def check(runs):
    every, quiet = runs
    assert every.bodies == every.swept  # the line writes what the core wrote
    assert quiet.bodies == every.bodies
    assert quiet.usages == every.usages
    assert not every.mismatched and not quiet.mismatched  # and what is priced is what left
    assert dataclasses.asdict(quiet.row) == dataclasses.asdict(every.row)
    return every, quiet


@pytest.mark.parametrize("name", RECORDINGS if LONG else ["cipherbox-mid-50", "entire-mid-59"])
@pytest.mark.parametrize("which", POLICIES)
def test_a_quiet_request_leaves_as_the_core_would_have_written_it(name, which, monkeypatch):
    """Run through the core at every request or only where it could act, each body and each figure is the same."""
    check(run_both_ways(recording(name), policy(which), monkeypatch))


@pytest.mark.parametrize("seed", range(12 if LONG else 2))
@pytest.mark.parametrize("which", POLICIES)
def test_made_sessions_too(seed, which, monkeypatch):
    """So it is for made sessions, whose waits are longer and whose outputs are larger."""
    every, quiet = check(
        run_both_ways(record(made_session(seed, 120 if LONG else 60)), policy(which, min_inventory=3), monkeypatch)
    )
    assert len(quiet.swept) < len(every.swept)


def test_pings_and_fresh_verdicts_do_not_part_the_ways(monkeypatch):
    """An ask, two keep-alive reads and a rescue in the same wait come out alike."""
    for seed in range(6 if LONG else 1):
        found = record(made_session(seed, 100))
        for which in (policy("paid/oracle:50/50", pings=2, min_inventory=1), policy("cold", pings=2, keep_newest=2)):
            check(run_both_ways(found, which, monkeypatch))
