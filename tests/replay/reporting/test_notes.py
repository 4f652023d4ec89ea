"""What a replay says beside its figures: lines that it could not read, prices that hang on more than the model."""

import json
from datetime import date

from claude_log import Log, call, said, usage

from cg.replay.cli import main
from cg.sweep.prices import READ_ON


def damaged_log(path):
    log = Log()
    log.user("go")
    log.answer("m1", call("c1"))
    log.result("c1", "x")
    log.answer("m2", said("done"))
    log.lines[2] = log.lines[2][:60]
    return log.write(path)


def test_damaged_lines_are_counted_in_one_line(capsys, tmp_path):
    """In the table's notes, and by session in the JSON."""
    damaged_log(tmp_path / "a.jsonl")
    assert main(["replay", str(tmp_path), "--policy", "none"]) == 0
    out = capsys.readouterr().out
    assert "1 line in 1 log could not be read whole" in out
    assert main(["replay", str(tmp_path), "--policy", "none", "--json"]) == 0
    assert [s["damaged_lines"] for s in json.loads(capsys.readouterr().out)["sessions"]] == [1]


def test_the_bill_follows_speed_tier_and_geography(capsys, tmp_path):
    """Of each request; one whose price is not known leaves the session's dollars unknown."""
    dollars = {}
    for name, terms in {
        "list": {},
        "fast": {"speed": "fast"},
        "batch": {"service_tier": "batch"},
        "us": {"inference_geo": "us"},
        "priority": {"service_tier": "priority"},
    }.items():
        log = Log()
        log.user("go")
        log.answer("m1", said("done"), usage=usage(**terms))
        path = log.write(tmp_path / f"{name}.jsonl")
        assert main(["replay", str(path), "--policy", "none", "--json"]) == 0
        dollars[name] = json.loads(capsys.readouterr().out)["sessions"][0]["policies"]["none"]["usd"]
    assert dollars.pop("priority") is None
    assert {name: round(usd / dollars["list"], 6) for name, usd in dollars.items()} == {
        "list": 1,
        "fast": 6,
        "batch": 0.5,
        "us": 1.1,
    }


def test_the_table_says_how_old_its_prices_are(capsys, tmp_path):
    """By the day on which the list was read."""
    log = Log()
    log.user("go")
    log.answer("m1", said("done"))
    assert main(["replay", str(log.write(tmp_path / "a.jsonl")), "--policy", "none"]) == 0
    age = (date.today() - READ_ON).days
    assert f"List prices of {READ_ON}, {age} days old" in capsys.readouterr().out
