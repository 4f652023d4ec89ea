"""One replay, however it is asked for: the same figures in every order, with any number of processes, in every output."""

import csv
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from claude_log import Log, call, said
from replaying import TRANSCRIPTS

import cg.replay
from cg.errors import CgError
from cg.replay.cli import main
from cg.replay.reporting.words import dollars

NAMES = ("entire-mid-70", "ctxeval-small-15", "entire-small-15", "cipherbox-mid-50")
PATHS = [str(TRANSCRIPTS / f"{name}.json") for name in NAMES]


def replayed(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(["replay", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def resumed(folder: Path) -> list[str]:
    """A log, and one that another process wrote from its lines on."""
    log = Log()
    for n in range(6):
        log.user(f"go {n}")
        log.answer(f"m{n}", call(f"c{n}"))
        log.result(f"c{n}", "line\n" * 400)
        if n == 3:
            log.write(folder / "a.jsonl")
    log.write(folder / "b.jsonl")
    return [str(folder / "a.jsonl"), str(folder / "b.jsonl")]


def test_order_and_processes_change_nothing(capsys, tmp_path: Path) -> None:
    """Table, JSON, CSV: every byte, with files in any order, a log before or behind the one that it goes on from."""
    paths = [*PATHS, *resumed(tmp_path)]
    found = set()
    for jobs, given in (("1", paths), ("4", paths), ("1", paths[::-1]), ("2", paths[2:] + paths[:2])):
        lines = tmp_path / "lines.csv"
        _, table, _ = replayed(capsys, *given, "--jobs", jobs, "--csv", str(lines))
        _, text, _ = replayed(capsys, *given, "--jobs", jobs, "--json")
        found.add((table, text, lines.read_text("utf-8")))
    assert len(found) == 1


def test_table_json_csv_page_and_library_agree(capsys, tmp_path: Path) -> None:
    """The bill and the saving of every policy at every lifetime."""
    lines, page = tmp_path / "lines.csv", tmp_path / "page.html"
    _, table, _ = replayed(capsys, *PATHS, "--csv", str(lines), "--html", str(page), "--limit", "0")
    report = json.loads(replayed(capsys, *PATHS, "--json")[1])
    library = cg.replay.report(PATHS)
    html = page.read_text("utf-8")
    sums: dict[tuple[str, str], float] = {}
    for line in csv.DictReader(io.StringIO(lines.read_text("utf-8"))):
        key = line["policy"], line["lifetime"]
        sums[key] = sums.get(key, 0.0) + float(line["usd"])
    assert {(row.figures.policy, row.figures.lifetime) for row in library.policies} == sums.keys()
    for row in library.policies:
        own, key = row.figures, (row.figures.policy, row.figures.lifetime)
        there = report["total"] if own.lifetime == "client" else report["lifetimes"][own.lifetime]
        assert there[own.policy]["usd"] == pytest.approx(own.usd) == pytest.approx(sums[key])
        assert there[own.policy]["net_usd"] == pytest.approx(own.saved_usd)
        assert dollars(own.usd) in table and f"<td>{dollars(own.usd)}</td>" in html
        for session in library.sessions:
            [figures] = [f for f in session.policies if (f.policy, f.lifetime) == key]
            [line] = [s for s in report["sessions"] if s["name"] == session.name]
            rows = line["policies"] if own.lifetime == "client" else line["lifetimes"][own.lifetime]
            assert rows[own.policy]["usd"] == pytest.approx(figures.usd)
    assert library.answer is not None and report["answer"] == json.loads(json.dumps(library.answer.to_dict()))
    assert library.advice is not None and library.advice.head in table
    for sentence in library.advice.sentences:
        assert " ".join(sentence.split()) in " ".join(table.split())


def test_an_interval_does_not_hang_on_the_order() -> None:
    """Resampled are the sessions, not their places."""
    one, other = cg.replay.report(PATHS, policies=["quiet"]), cg.replay.report(PATHS[::-1], policies=["quiet"])
    assert one.policy("quiet").interval == other.policy("quiet").interval is not None
    assert one.policy("none").interval is None
    with pytest.raises(KeyError):
        one.policy("cold")


def test_the_library_takes_any_executor_and_names_what_it_skipped(tmp_path: Path) -> None:
    """Nothing readable: no policies, no answer."""
    (tmp_path / "damaged.json").write_text('{"format": "agent-session/1", "events": [')
    (tmp_path / "other.json").write_text("{}")
    with ThreadPoolExecutor(2) as pool:
        found = cg.replay.report([tmp_path], executor=pool, jobs=2)
    assert found.sessions == found.policies == () and found.answer is found.advice is None
    assert [skipped.path.name for skipped in found.skipped] == ["damaged.json"]
    assert [empty.path.name for empty in found.empty] == ["other.json"]


def dated(folder: Path) -> None:
    """Three sessions of two projects on two days."""
    for n, (name, project) in enumerate((("a", "shop"), ("b", "shop"), ("c", "bank"))):
        log = Log()
        log.now += n // 2 * 86_400
        log.add("user", message={"role": "user", "content": f"mend {name}"}, cwd=f"/home/me/{project}")
        log.answer(f"m{n}", said("done"))
        log.write(folder / f"{name}.jsonl")


def test_without_a_path_the_logs_of_claude_code_are_read(
    capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLAUDE_CONFIG_DIR if it is set, else ~/.claude; without such a folder a sentence says what was looked for."""
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    code, out, err = replayed(capsys)
    assert code == 2 and out == "" and str(tmp_path / ".claude" / "projects") in err and err.count("\n") == 1
    (tmp_path / ".claude" / "projects" / "-home-me-shop").mkdir(parents=True)
    dated(tmp_path / ".claude" / "projects" / "-home-me-shop")
    assert "3 sessions" in replayed(capsys)[1]
    assert len(cg.replay.report().sessions) == 3
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    assert replayed(capsys)[0] == 2
    (tmp_path / "elsewhere" / "projects").mkdir(parents=True)
    dated(tmp_path / "elsewhere" / "projects")
    assert "3 sessions" in replayed(capsys)[1]


def test_sessions_are_grouped_listed_and_limited(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By project, day, model or session, which is named by project, date and first words."""
    monkeypatch.setenv("TZ", "UTC")
    dated(tmp_path)
    began = cg.replay.report([tmp_path]).sessions[0].started
    assert began is not None
    first, second = began.date(), date.fromordinal(began.date().toordinal() + 1)

    def lines(*arguments: str) -> list[str]:
        out = replayed(capsys, str(tmp_path), "--policy", "none", *arguments)[1]
        return re.split(r"\n(?=session|project|day|model)", out)[-1].split("\n\n")[0].splitlines()

    assert [line.split()[:3] for line in lines("--by", "project")[1:]] == [["shop", "2", "2"], ["bank", "1", "1"]]
    assert [line.split()[:2] for line in lines("--by", "day")[1:]] == [[str(first), "2"], [str(second), "1"]]
    assert [line.split()[:2] for line in lines("--by", "model")[1:]] == [["claude-opus-4-6", "3"]]
    assert {" ".join(line.split()[:4]) for line in lines()[1:]} == {
        f"shop {first} mend a",
        f"shop {first} mend b",
        f"bank {second} mend c",
    }
    assert lines("--limit", "1")[2:] == ["(and 2 sessions more: --limit 3)"]
    for window, n in (
        (["--since", str(second)], 1),
        (["--until", str(first)], 2),
        (["--since", str(second), "--until", str(first)], 0),
    ):
        code, out, _ = replayed(capsys, str(tmp_path), "--json", *window)
        assert len(json.loads(out)["sessions"]) == n and code == (0 if n else 2)
    assert len(cg.replay.report([tmp_path], since=second).sessions) == 1
    assert len(cg.replay.report([tmp_path], until=first).sessions) == 2
    assert "1 session began at another time" in replayed(capsys, str(tmp_path), "--until", str(first))[1]


def test_no_line_is_wider_than_100_letters_unless_it_may_be(capsys) -> None:
    """With many policies too: what has no room is named, and stands where lines may be wide."""
    policies = ["quiet", "cold", "paid/oracle", "paid/index", "paid/recency", "paid/oracle:80/10", "classic/oracle"]
    asked = [part for name in policies for part in ("--policy", name)]
    out = replayed(capsys, *PATHS, *asked)[1]
    assert max(map(len, out.splitlines())) <= 100 and "No room for" in out
    wide = replayed(capsys, *PATHS, *asked, "--wide")[1]
    assert max(map(len, wide.splitlines())) > 100 and "No room for" not in wide
    assert "live kept" in wide and "spent gone" in wide


def test_a_rule_that_loses_content_stands_beside_its_warning_and_is_no_advice(capsys) -> None:
    """It is priced when it is asked for, and not otherwise."""
    _, out, _ = replayed(capsys, *PATHS, "--policy", "drop-all", "--policy", "mask-all-but-k")
    for name in ("drop-all", "mask-all-but-k"):
        assert f"{name} loses content for good" in out
    assert "Nothing here is worth switching on." in out or "lifetime of" in out
    assert "drop-all" not in replayed(capsys, *PATHS)[1]


@pytest.mark.parametrize("arguments", [["--since", "yesterday"], ["--until", "2026-13-01"], ["--by", "week"]])
def test_a_day_or_a_group_that_is_none_is_refused(capsys, arguments: list[str]) -> None:
    """By the parser, with its own words."""
    with pytest.raises(SystemExit) as ended:
        main(["replay", *PATHS, *arguments])
    assert ended.value.code == 2 and arguments[1] in capsys.readouterr().err


def test_a_limit_or_a_day_out_of_range_is_refused(capsys) -> None:
    """In one line, before anything is read."""
    for arguments in (
        ["--limit", "-1"],
        ["--since", "0001-01-01"],
        ["--until", "9999-12-31"],
        ["--csv", "/nowhere/a.csv"],
    ):
        code, out, err = replayed(capsys, "nowhere.json", *arguments)
        assert code == 2 and out == "" and err.startswith("cg-sweep: ") and err.count("\n") == 1
    with pytest.raises(CgError):
        cg.replay.report(PATHS, since=date(1, 1, 1))


def test_a_spreadsheet_runs_nothing_of_a_log(tmp_path: Path, capsys) -> None:
    """A text that a spreadsheet would take for a formula is one no more."""
    log = Log()
    log.user("=HYPERLINK(1)")
    log.answer("m", said("no"))
    log.write(tmp_path / "a.jsonl")
    replayed(capsys, str(tmp_path / "a.jsonl"), "--csv", str(tmp_path / "lines.csv"))
    lines = list(csv.DictReader(io.StringIO((tmp_path / "lines.csv").read_text("utf-8"))))
    assert lines and all(line["words"] == "'=HYPERLINK(1)" for line in lines)
