"""What a session is called, and which are wanted."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from claude_log import NOON, Log, said
from replaying import TRANSCRIPTS

from cg.replay.about import MOST_WORDS, About, about, project
from cg.replay.batch import Result, replay
from cg.replay.policies import parse
from cg.replay.reading import record
from cg.replay.sessions import Session, open_all
from cg.replay.settings import Settings


def about_file(path: Path) -> About:
    [session] = open_all([path])
    assert isinstance(session, Session)
    return about(session, record(session))


def test_a_log_is_known_by_its_folder_its_time_its_first_words_and_its_model(tmp_path: Path) -> None:
    """What a client puts before the words is passed over; so is what a command printed."""
    log = Log()
    log.add("user", message={"role": "user", "content": "<command-name>/clear</command-name>"}, cwd="/home/me/shop")
    log.user("Mend  the\nbasket, please. " + "x" * 200)
    log.answer("m1", said("Yes."))
    log.write(tmp_path / "a.jsonl")
    known = about_file(tmp_path / "a.jsonl")
    assert known.project == "shop" and known.words.startswith("Mend the basket, please. xxx")
    assert len(known.words) == MOST_WORDS
    assert known.started is not None and NOON < known.started < NOON + 10
    assert known.model.startswith("claude-")


def test_a_session_of_offsets_has_no_day() -> None:
    """`agent-session/1` says how long after its beginning; a date would be made up."""
    known = about_file(TRANSCRIPTS / "ctxeval-small-15.json")
    assert known.started is known.ended is None
    assert known.project == "context-evaluator"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b'{"cwd": "C:\\\\work\\\\shop\\\\"}', "shop"),
        (b'{"cwd": "/"}', "logs"),
        (b'{"cwd": "/a/\\ud800"}', "\ud800"),
        (b'{"cwd": 7}', "logs"),
        (b"", "logs"),
        (b'{"cwd": "/a/b"', "b"),
    ],
)
def test_a_project_is_the_last_folder_of_the_path(line: bytes, name: str, tmp_path: Path) -> None:
    """Else the folder that the file lies in, whatever stands in the log; packed or not."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(line)
    (folder / "b.jsonl").write_bytes(gzip.compress(line))
    assert project(folder / "a.jsonl") == project(folder / "b.jsonl") == name
    (folder / "b.jsonl").write_bytes(gzip.compress(line)[:12])
    assert project(folder / "b.jsonl") == "logs"
    assert project(folder / "nowhere.jsonl") == "logs"


def test_only_sessions_that_began_in_the_time_asked_for_are_priced(tmp_path: Path) -> None:
    """From the first moment on, up to the other, which is no longer in it; one without a date is out."""
    log = Log()
    log.user("go")
    log.answer("m1", said("gone"))
    log.write(tmp_path / "a.jsonl")
    began = about_file(tmp_path / "a.jsonl").started
    assert began is not None

    def is_out(**window: float) -> bool:
        [result] = replay(open_all([tmp_path / "a.jsonl"]), parse(["none"]), Settings(**window))  # type: ignore[arg-type]
        assert result.error is None and result.is_outside == (not result.rows)
        return result.is_outside

    assert not is_out() and not is_out(since=began) and not is_out(until=began + 1)
    assert is_out(since=began + 1) and is_out(until=began)
    [undated] = replay(open_all([TRANSCRIPTS / "ctxeval-small-15.json"]), parse(["none"]), Settings(since=0.0))
    assert undated.is_outside


def rows(**named: object) -> Result:
    [result] = replay(
        open_all([TRANSCRIPTS / "cipherbox-long-175.json"]), parse(["quiet", "cold", "paid"]), Settings(**named)
    )  # type: ignore[arg-type]
    return result


def test_another_lifetime_costs_what_a_run_at_it_costs() -> None:
    """Only what could be switched on is priced there: no mask, no judge that nobody has."""
    result = rows(lifetimes=("5m", "1h"))
    for name, ttl_s in (("5m", 300), ("1h", 3600)):
        there = rows(ttl_s=ttl_s).rows
        assert result.lifetimes[name] == {policy: there[policy] for policy in ("none", "quiet", "cold")}


def test_a_plan_is_what_the_sweep_does_when_it_plans() -> None:
    """Under each policy, and with none at all: then nothing is removed, and what the lifetimes saved is all there is."""
    result = rows(lifetimes=("plan",), ttl_s=300)
    planned = rows(lifetime="plan", ttl_s=300)
    assert result.lifetimes["plan"]["quiet"] == planned.rows["quiet"] != result.rows["quiet"]
    alone = result.lifetimes["plan"]["none"]
    split = alone.split(result.rows["none"])
    assert alone.removals == 0 and split.lifetime.units != 0
    assert split.removal.units == pytest.approx(0.0, abs=1e-6)
    assert split.lifetime.units == pytest.approx(result.rows["none"].total.units - alone.total.units)


@pytest.mark.parametrize("ttl_s", [300, 3600])
def test_a_saving_is_removal_entries_kept_alive_and_lifetime_less_what_was_spent_on_it(ttl_s: int) -> None:
    """The parts make up the whole, in units and in dollars; doing nothing saves nothing and keeps nothing alive."""
    result = rows(lifetimes=("5m", "1h", "plan"), ttl_s=ttl_s)
    none = result.rows["none"]
    assert none.alive.units == none.alive.usd == 0
    cases = [(row, None) for row in result.rows.values()]
    constants = [there for name, there in result.lifetimes.items() if name != "plan"]
    cases += [(row, there["none"]) for there in constants for row in there.values()]
    cases += [(row, None) for row in result.lifetimes["plan"].values()]
    for row, untouched in cases:
        shown = row.to_dict(none, untouched)
        for unit in ("usd", "units"):
            parts = sum(shown[f"saved_{part}_{unit}"] for part in ("removal", "alive", "lifetime"))
            spent = shown[f"ask_{unit}"] + shown[f"ping_{unit}"] + shown[f"expansion_{unit}"]
            assert parts - spent == pytest.approx(shown[f"net_{unit}"], abs=1.0 if unit == "units" else 1e-6)
    pinged = result.rows["cold"] if ttl_s == 300 else result.lifetimes["5m"]["cold"]
    assert pinged.bills["ping"].calls and pinged.alive.units > 0
    assert (
        result.lifetimes["1h" if ttl_s == 300 else "5m"]["quiet"]
        .split(none, result.lifetimes["1h" if ttl_s == 300 else "5m"]["none"])
        .lifetime.units
    )


def test_the_day_of_a_session_is_that_of_its_first_request(tmp_path: Path) -> None:
    """Whatever the order of the lines' times."""
    log = Log()
    log.user("go")
    log.answer("m1", said("gone"))
    log.write(tmp_path / "a.jsonl")
    first = json.loads((tmp_path / "a.jsonl").read_text("utf-8").splitlines()[0])["timestamp"]
    began = about_file(tmp_path / "a.jsonl").started
    assert began is not None
    assert datetime.fromtimestamp(began, UTC).isoformat()[:10] == first[:10]
