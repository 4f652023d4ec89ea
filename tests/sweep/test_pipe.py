"""`cg-sweep run | expand | status | forget | config` from the outside: exit codes, the report's JSON, what stands in a state."""

import json
import sqlite3
import stat
import subprocess
import sys
import types
from contextlib import closing
from pathlib import Path

import pytest
from markers import find_markers
from piped import START, Pipe, changed_texts, command
from presets import paid
from sweeping import encoded, history, output

from cg.sweep.body.transcript import read
from cg.sweep.cli import main, session_thread, settle_gap
from cg.sweep.drivers import Sweep
from cg.sweep.effects import Answer
from cg.sweep.ledger import Reason
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Usage

DROPS = json.dumps([{"i": i, "needed_by": "none", "verdict": "drop"} for i in range(11)])


def swept(pipe: Pipe, reply: str | None = DROPS) -> tuple[bytes, bytes, dict]:
    """(body, what left, report) of the cold request after an idle gap."""
    pipe.run(encoded(history(0)), START, reply)
    pipe.run(encoded(history(14)), START + 10, reply)
    body = encoded(history(14, last="And now?"))
    return body, *pipe.run(body, START + 1000, reply)


def test_a_run_reports_the_idle_ask_that_was_settled_before_it(tmp_path: Path) -> None:
    """The report's `ask` is the one the gap was used for, with its counts; the ledger has its row."""
    pipe = Pipe(tmp_path, preset="paid")
    _, _, report = swept(pipe)
    assert report["reason"] == "removed" and report["phase"] == "cold"
    assert report["ask"]["legs"] == ["prefix_ask"] and report["ask"]["offered"] == 12
    assert report["ask"]["judged_spent"] == 11 and report["ask"]["usage"]["read"] > 10_000
    assert report["events"]["sweep_adjudicated"] == 12 and report["events"]["sweep_applied"] == 11
    assert report["declines"]["sweep_verdict_missing"] == 1 and report["declines"]["sweep_over_ask_cap"] == 2
    _, status = command("status", "--state", str(pipe.state))
    assert json.loads(status)["asks"] == 1


def test_the_report_has_the_documented_keys(tmp_path: Path) -> None:
    """And what was removed by call, block, key and bytes; the net of its savings is a number for a known price."""
    pipe = Pipe(tmp_path, preset="paid")
    body, out, report = swept(pipe)
    assert {"reason", "phase", "removed", "replayed", "ask", "events", "declines"} <= report.keys()
    gone = changed_texts(body, out)
    assert [(r["tool_use_id"], r["block"]) for r in report["removed"]] == list(gone)
    assert [[r["key"]] for r in report["removed"]] == [find_markers(token.decode()) for token in gone.values()]
    assert sum(r["bytes"] for r in report["removed"]) == report["savings"]["unique_bytes"]
    assert report["savings"]["net_usd"] > 0
    _, _, after = body, *pipe.run(encoded(history(14, last="And now, then?")), START + 1010)
    assert after["savings"]["repeat_bytes"] == report["savings"]["unique_bytes"]


def test_without_a_reply_nobody_is_asked_and_the_turn_says_so(tmp_path: Path) -> None:
    """The pipe never calls out."""
    body, out, report = swept(Pipe(tmp_path, preset="paid"), None)
    assert not changed_texts(body, out) and report["ask"] is None
    assert report["reason"] == "no_asker" and report["declines"]["sweep_no_asker"] == 1


def test_a_classic_run_without_a_reply_says_that_nobody_was_asked(tmp_path: Path) -> None:
    """So does an ask in the request itself."""
    pipe = Pipe(tmp_path, preset="classic")
    pipe.run(encoded(history(0)), START)
    pipe.run(encoded(history(14)), START + 10)
    _, report = pipe.run(encoded(history(14, last="And now?")), START + 260)
    assert report["phase"] == "pre_expiry" and report["reason"] == "no_asker"


@pytest.mark.parametrize(("idle", "asks"), [(239.0, False), (240.0, False), (241.0, True), (400.0, True)])
def test_an_idle_ask_is_made_once_its_time_has_come(idle: float, asks: bool, tmp_path: Path) -> None:
    """It falls due at clock + ttl - window; a request that comes before finds no ask made."""
    pipe = Pipe(tmp_path, preset="paid")
    pipe.run(encoded(history(0)), START, DROPS)
    pipe.run(encoded(history(14)), START + 10, DROPS)
    _, report = pipe.run(encoded(history(14, last="And now?")), START + 10 + idle, DROPS)
    assert (report["ask"] is not None) is asks


def test_expand_prints_the_exact_original(tmp_path: Path) -> None:
    """Bytes on stdout, exit 0, by the bare key, the marker as it stands in the body, or what a model makes of them."""
    pipe = Pipe(tmp_path, preset="paid")
    _, _, report = swept(pipe)
    for n, removed in enumerate(report["removed"]):
        for form in ("{}", "<<cg:{}>>", "cg:{}", '"{}"'):
            key = form.format(removed["key"])
            assert command("expand", key, *pipe.where()) == (0, output(n).encode())


@pytest.mark.parametrize("key", ["0" * 16, "nonsense", "", "../../etc/passwd", "F" * 16, "1" * 17])
def test_expand_of_an_id_that_never_was_exits_with_3_and_an_empty_stdout(key: str, tmp_path: Path, capsys) -> None:
    """The reason stands on stderr."""
    pipe = Pipe(tmp_path, preset="paid")
    swept(pipe)
    assert command("expand", key, *pipe.where()) == (3, b"")
    assert "no output has this id" in capsys.readouterr().err


def test_expand_of_another_session_finds_nothing(tmp_path: Path) -> None:
    """A key is looked up in its own session alone."""
    pipe = Pipe(tmp_path, preset="paid")
    _, _, report = swept(pipe)
    other = ["--state", str(pipe.state), "--session", "other"]
    assert command("expand", report["removed"][0]["key"], *other) == (3, b"")


def test_an_expired_original_answers_with_the_call_that_made_it(tmp_path: Path, capsys) -> None:
    """Not with the bytes, and not as if it had never been."""
    pipe = Pipe(tmp_path, preset="paid")
    _, _, report = swept(pipe)
    from cg.sweep.store_sqlite import SqliteStore

    with SqliteStore(pipe.state) as store:
        store.sweep_ages(START + 1000 + 200 * 3600)
    assert command("expand", report["removed"][2]["key"], *pipe.where()) == (3, b"")
    said = capsys.readouterr().err
    assert "no longer kept" in said and "Read" in said and "/repo/f2.py" in said


def test_what_was_expanded_by_hand_is_not_judged_again(tmp_path: Path) -> None:
    """A later read of the same text is no candidate."""
    pipe = Pipe(tmp_path, preset="paid")
    _, _, report = swept(pipe)
    command("expand", report["removed"][0]["key"], *pipe.where())
    _, later = pipe.run(encoded(history(16, outputs={15: output(0)})), START + 1010, DROPS)
    assert later["declines"].get("kept_verbatim", 0) >= 0
    _, later = pipe.run(encoded(history(16, outputs={15: output(0)}, last="So?")), START + 5000, DROPS)
    assert "toolu_015" not in {r["tool_use_id"] for r in later["removed"]}


def test_forget_erases_a_session_and_leaves_the_others(tmp_path: Path) -> None:
    """Nothing of it answers afterwards."""
    one, two = Pipe(tmp_path, "one", preset="paid"), Pipe(tmp_path, "two", preset="paid")
    key = swept(one)[2]["removed"][0]["key"]
    assert swept(two)[2]["removed"][0]["key"] == key
    assert command("forget", "--state", str(one.state), "--session", "one") == (0, b"")
    assert command("expand", key, *one.where())[0] == 3
    assert command("expand", key, *two.where())[0] == 0
    assert command("forget", "--state", str(one.state), "--all")[0] == 0
    assert command("expand", key, *two.where())[0] == 3


def test_forget_exits_with_2_while_another_process_still_reads_the_state(tmp_path: Path, monkeypatch, capsys) -> None:
    """What is left in the log is said, and how to be rid of it."""
    monkeypatch.setattr("cg.sweep.storage.sqlite.connections.BUSY_TIMEOUT_S", 0.05)
    pipe = Pipe(tmp_path, "one", preset="paid")
    swept(pipe)
    with closing(sqlite3.connect(pipe.state, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM payload").fetchone()
        assert main(["forget", "--state", str(pipe.state), "--all"]) == 2
        assert "forget again" in capsys.readouterr().err
    assert main(["forget", "--state", str(pipe.state), "--all"]) == 0
    assert all(b"toolu_" not in file.read_bytes() for file in pipe.state.parent.iterdir())


def test_a_state_is_private(tmp_path: Path) -> None:
    """Folder 0700, files 0600."""
    pipe = Pipe(tmp_path, preset="paid")
    swept(pipe)
    assert stat.S_IMODE(pipe.state.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in pipe.state.parent.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "toml", ["min_tokns = 5", "min_tokens = 0", "strategy = 'llm'", "ask = 'never'", "min_tokens = ", "preset = 'x'"]
)
def test_a_wrong_configuration_is_refused_with_exit_2(toml: str, tmp_path: Path, capsys) -> None:
    """By `config --check`, and by a run before it reads or writes anything."""
    pipe = Pipe(tmp_path, toml=toml)
    assert command("config", "--check", *pipe.options) == (2, b"")
    assert command("run", *pipe.where(), *pipe.options, stdin=encoded(history(1))) == (2, b"")
    assert capsys.readouterr().err.count("cg-sweep: ") == 2 and not pipe.state.exists()


def test_config_prints_what_is_in_force(tmp_path: Path, monkeypatch) -> None:
    """Environment over file over preset."""
    monkeypatch.setenv("CG_SWEEP_ASK_CAP", "7")
    pipe = Pipe(tmp_path, preset="classic", toml="ask_cap = 9\nmin_tokens = 77\n")
    code, out = command("config", *pipe.options)
    shown = json.loads(out)
    assert code == 0 and (shown["ask_cap"], shown["min_tokens"], shown["apply"]) == (7, 77, "at-once")
    assert command("config", "--check", *pipe.options) == (0, b"")


@pytest.mark.parametrize("now", ["nan", "inf", "-inf", "-1", "1800000000000", "1e300"])
def test_a_time_that_is_no_time_is_refused(now: str, tmp_path: Path, capsys) -> None:
    """Not one compares with anything; milliseconds would put every other session past its time, and erase it."""
    pipe = Pipe(tmp_path, preset="paid")
    assert command("run", f"--now={now}", *pipe.where(), stdin=encoded(history(1))) == (2, b"")
    assert f"now is {float(now)!r}; it must be 0 to 253402300799" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["status"], ["expand", "0" * 16, "--session", "s"], ["forget", "--all"], ["forget", "--session", "s"]]
)
def test_only_a_run_makes_a_state(arguments: list[str], tmp_path: Path, capsys) -> None:
    """A state that is not there is named and stays away, its folder too: a mistyped path is not an empty session."""
    state = tmp_path / "state" / "sweep.db"
    assert command(*arguments, "--state", str(state)) == (2, b"")
    assert f"{state}: there is no state here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


class AskedMeanwhile:
    """An asker in whose time another run comes to the same gap."""

    def __init__(self, other) -> None:
        self.other, self.asked = other, 0

    def ask(self, body: bytes, timeout_s: float) -> Answer:
        self.asked += 1
        self.other()
        return Answer(DROPS, Usage(read=20_000, output=200))


def test_a_gap_that_one_run_asks_about_is_asked_by_no_other_at_that_time(tmp_path: Path) -> None:
    """The other finds the gap claimed: it goes on without, and what the first was told stands for both."""
    pipe = Pipe(tmp_path, preset="paid")
    pipe.run(encoded(history(0)), START)
    pipe.run(encoded(history(14)), START + 10)
    body, thread, now = encoded(history(14, last="And now?")), session_thread("s"), START + 1000
    with SqliteStore(pipe.state) as store, SqliteStore(pipe.state) as second:
        other = AskedMeanwhile(lambda: None)
        first = AskedMeanwhile(lambda: settle_gap(Sweep(paid(), second), body, thread, now, other))
        settled = settle_gap(Sweep(paid(), store), body, thread, now, first)
        assert settled is not None and settled.reason is Reason.JUDGED
        assert (first.asked, other.asked) == (1, 0)
        assert store.status()["asks"] == 1 and len(store.load(thread).pending) == 11


def test_a_request_that_came_during_an_ask_keeps_its_place(tmp_path: Path) -> None:
    """The ask's branch is the one before it: written over the newer one it would make the next request another line."""
    pipe = Pipe(tmp_path, preset="paid")
    pipe.run(encoded(history(0)), START)
    pipe.run(encoded(history(14)), START + 10)
    body, thread, now = encoded(history(14, last="And now?")), session_thread("s"), START + 1000
    with SqliteStore(pipe.state) as store, SqliteStore(pipe.state) as second:
        first = AskedMeanwhile(lambda: Sweep(paid(), second).process(body, thread, now))
        sweep = Sweep(paid(), store)
        assert settle_gap(sweep, body, thread, now, first) is not None
        (branch,) = store.load(thread).branches
        assert branch.clock == now and len(store.load(thread).pending) == 11
        assert sweep.process(body, thread, now).report.reason is Reason.RETRY


# A run that meets another: where it has found an ask to be due, and while it asks, unless the other has gone on without.
MEETING = """
import sys, time
from pathlib import Path
from cg.sweep import cli
from cg.sweep.judging.recorded_asker import RecordedAsker
folder, name, other = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
due_at, ask = cli.due_at, RecordedAsker.ask
def meet(*places):
    (folder / f"{name}-{places[0]}").touch()
    deadline = time.monotonic() + 60
    while not any((folder / f"{other}-{place}").exists() for place in places) and time.monotonic() < deadline:
        time.sleep(0.01)
cli.due_at = lambda *given: (due_at(*given), meet("due"))[0]
RecordedAsker.ask = lambda *given: (meet("asks", "done"), ask(*given))[1]
code = cli.main(sys.argv[4:])
(folder / f"{name}-done").touch()
sys.exit(code)
"""


def test_two_processes_on_one_state_ask_about_a_gap_once(tmp_path: Path) -> None:
    """Both see the ask due before either makes it: the ledger gets one row, and each body is answered."""
    pipe = Pipe(tmp_path, preset="paid")
    pipe.run(encoded(history(0)), START)
    pipe.run(encoded(history(14)), START + 10)
    reply = tmp_path / "reply"
    reply.write_text(DROPS)
    options = ["run", "--now", repr(START + 1000), "--reply", str(reply), *pipe.where(), *pipe.options]
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", MEETING, str(tmp_path), name, other, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name, other in (("one", "two"), ("two", "one"))
    ]
    for run in runs:
        assert run.stdin is not None
        run.stdin.write(encoded(history(14, last="And now?")))
        run.stdin.close()
        run.stdin = None
    outputs = [run.communicate(timeout=180)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0] and all(outputs)
    with SqliteStore(pipe.state) as store:
        assert store.status()["asks"] == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"messages": 3}', encoded(history(2))[:-9]])
def test_a_body_that_cannot_be_understood_leaves_as_it_came(body: bytes, tmp_path: Path) -> None:
    """Exit 0: what to do with it is the API's to say."""
    pipe = Pipe(tmp_path, preset="paid")
    out, report = pipe.run(body, START, DROPS)
    assert out == body and report["reason"] == "unreadable"


def test_a_damaged_state_is_refused_and_nothing_is_printed(tmp_path: Path, capsys) -> None:
    """Exit 2 says so; a script sends its own body then."""
    pipe = Pipe(tmp_path, preset="paid")
    pipe.state.parent.mkdir(mode=0o700)
    pipe.state.write_bytes(b"this is no database" * 100)
    pipe.state.chmod(0o600)
    assert command("run", *pipe.where(), stdin=encoded(history(1))) == (2, b"")
    assert "cg-sweep: " in capsys.readouterr().err


def test_a_retry_is_the_same_turn(tmp_path: Path) -> None:
    """The same body within ten minutes leaves as the same bytes, asks nobody and counts nothing twice."""
    pipe = Pipe(tmp_path, preset="paid")
    body, out, _ = swept(pipe)
    again, report = pipe.run(body, START + 1300, DROPS)
    assert again == out and report["reason"] == "retry" and report["ask"] is None and "savings" not in report
    assert len(read(again).tool_texts) == 14


@pytest.mark.parametrize("report", ["missing/report.json", "."])
def test_a_report_that_cannot_be_written_is_refused_in_words(report: str, tmp_path: Path, capsys) -> None:
    """Exit 2; the same body again leaves as if nothing had happened."""
    pipe = Pipe(tmp_path, preset="paid")
    pipe.run(encoded(history(0)), START)
    where = ["--now", repr(START + 10), *pipe.where()]
    body = encoded(history(2))
    assert command("run", *where, "--report", str(tmp_path / report), stdin=body) == (2, b"")
    assert "cg-sweep: " in capsys.readouterr().err
    assert pipe.run(body, START + 20)[1]["reason"] == "retry"


@pytest.mark.parametrize("preset", ["paid", "classic"])
def test_a_last_body_that_was_damaged_in_the_state_costs_an_ask_and_no_more(preset: str, tmp_path: Path) -> None:
    """It is only read to be asked about; a session must not stop at it."""
    pipe = Pipe(tmp_path, preset=preset)
    pipe.run(encoded(history(0)), START, DROPS)
    pipe.run(encoded(history(14)), START + 10, DROPS)
    db = sqlite3.connect(pipe.state)
    db.execute("UPDATE body SET body = x'7b'")
    db.commit()
    db.close()
    idle = 1000 if preset == "paid" else 260
    _, report = pipe.run(encoded(history(14, last="And now?")), START + idle, DROPS)
    assert report["reason"] not in ("fault", "unreadable")


@pytest.mark.parametrize("arguments", [["run", "--session", "s"], ["status"], ["expand", "0" * 16, "--session", "s"]])
def test_an_answer_that_nobody_can_read_is_not_made(arguments: list[str], tmp_path: Path, capsys, monkeypatch) -> None:
    """A closed standard output is exit code 2, as a closed pipe is, and the state stays as it was."""
    state = tmp_path / "state.db"
    monkeypatch.setattr(sys, "stdout", None)
    assert main([*arguments, "--state", str(state)]) == 2
    assert capsys.readouterr().err == "cg-sweep: nobody can read the answer: standard output is closed\n"
    assert not state.exists()


def test_a_command_that_answers_by_its_exit_code_needs_no_output(monkeypatch) -> None:
    """`config --check` says all that it has to say without a word."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["config", "--check"]) == 0


def test_an_interrupt_is_exit_code_130_without_a_traceback(tmp_path: Path, capsys, monkeypatch) -> None:
    """Whoever stops a pipe that waits for its request knows that it was stopped."""

    class Interrupted:
        def read(self, _: int) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=Interrupted()))
    assert main(["run", "--session", "s", "--state", str(tmp_path / "state.db")]) == 130
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device without room")
@pytest.mark.parametrize("command", [["config"], ["config", "--preset", "cold"]])
def test_an_answer_that_finds_no_room_is_an_exit_code_and_one_line(command: list[str]) -> None:
    """What print still holds is written before the command ends, where a failure can be told."""
    code = "import sys; from cg.sweep.cli import main; sys.exit(main(sys.argv[1:]))"
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-c", code, *command], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"cg-sweep: output: ") and done.stderr.count(b"\n") == 1
