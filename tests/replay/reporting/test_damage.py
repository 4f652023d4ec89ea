"""What a replay says of lines that it could not read."""

import json

from claude_log import Log, call, said

from cg.replay.cli import main


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
