"""The command: one JSON line out or one error line, exit codes as documented, flat memory whatever comes in."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cg
from cg.hints import cli
from cg.hints.refusal import Code

ROOT = Path(__file__).parents[2]
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and resource usage of POSIX")


def error_of(result: "subprocess.CompletedProcess[bytes]", exit_code: int = 2) -> dict[str, str]:
    """The error object of a refused run, after checking its form."""
    assert (result.returncode, result.stdout) == (exit_code, b"")
    assert result.stderr.count(b"\n") == 1 and result.stderr.endswith(b"\n")
    error = json.loads(result.stderr)
    assert list(error) == ["error"] and list(error["error"]) == ["code", "message", "path"]
    return dict(error["error"])


def test_the_example_puts_the_hint_first_and_the_lexical_best_second(cg_hints: Any) -> None:
    """An irrelevant hint `cache` first, BM25's `payments` second, nothing lost."""
    body = (ROOT / "examples/hints/request.json").read_bytes()
    result = cg_hints(stdin=body)
    assert (result.returncode, result.stderr) == (0, b"") and result.stdout.count(b"\n") == 1
    candidates = json.loads(result.stdout)["candidates"]
    assert [(c["id"], c["source"]) for c in candidates[:2]] == [("cache", "hint"), ("payments", "bm25")]
    assert candidates[0]["bm25_score"] == 0.0 and candidates[1]["bm25_rank"] == 1
    assert sorted(c["id"] for c in candidates) == sorted(d["id"] for d in json.loads(body)["documents"])


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ([], ["cache", "payments", "search"]),
        (["--bound", "1"], ["payments", "search", "cache"]),
        (["--bound", "3"], ["cache", "search", "payments"]),
        (["--merge", "strict"], ["cache", "payments", "search"]),
        (["--merge", "strict", "--first", "baseline"], ["payments", "cache", "search"]),
    ],
    ids=" ".join,
)
def test_the_command_line_says_how_hints_are_mixed_in(
    cg_hints: Any, valid: dict[str, Any], arguments: list[str], ids: list[str]
) -> None:
    valid["hints"]["ids"] = ["cache", "search"]
    candidates = json.loads(cg_hints(*arguments, stdin=valid).stdout)["candidates"]
    assert [c["id"] for c in candidates] == ids


def test_the_analyser_is_text_unless_another_is_asked_for(cg_hints: Any) -> None:
    documents = [{"id": "a", "text": "cards"}, {"id": "b", "text": "get_user_names"}]
    body = {"snapshot_id": "", "query": "the user name", "documents": documents}
    best = {}
    for flags in ([], ["--analyzer", "text"], ["--analyzer", "code"], ["--analyzer", "plain"]):
        best[" ".join(flags)] = json.loads(cg_hints(*flags, stdin=body).stdout)["candidates"][0]
    assert best[""] == best["--analyzer text"] and [c["id"] for c in best.values()] == ["b", "b", "b", "a"]
    assert best["--analyzer code"]["bm25_score"] < best[""]["bm25_score"] and not best["--analyzer plain"]["bm25_score"]


def test_a_limit_cuts_the_answer_and_not_the_order(cg_hints: Any, valid: dict[str, Any]) -> None:
    whole = json.loads(cg_hints(stdin=valid).stdout)["candidates"]
    for flags, body, count in [
        (["--limit", "2"], valid, 2),
        ([], valid | {"limit": 2}, 2),
        (["--limit", "1"], valid | {"limit": 2}, 2),
        (["--limit", "99999999999999999999"], valid, 3),
        ([], valid | {"limit": 10**40}, 3),
        ([], valid | {"limit": None}, 3),
    ]:
        assert json.loads(cg_hints(*flags, stdin=body).stdout)["candidates"] == whole[:count]


def test_a_name_is_searched_and_an_id_is_not(cg_hints: Any) -> None:
    documents = [{"id": "refund", "text": "x y"}, {"id": "b", "text": "x y", "name": "refundOrder"}]
    body = {"snapshot_id": "", "query": "refund", "documents": documents}
    best, other = json.loads(cg_hints(stdin=body).stdout)["candidates"]
    assert best["id"] == "b" and best["bm25_score"] > 0 == other["bm25_score"]
    assert json.loads(cg_hints("--analyzer", "code", stdin=body).stdout)["candidates"][0]["bm25_score"] > 0


def test_explain_says_what_each_term_gave(cg_hints: Any, valid: dict[str, Any]) -> None:
    candidates = json.loads(cg_hints("--explain", stdin=valid).stdout)["candidates"]
    payments = candidates[1]
    assert list(payments["terms"]) == ["card", "payment"] and sum(payments["terms"].values()) == payments["bm25_score"]
    assert [c["terms"] for c in candidates if c is not payments] == [{}, {}]
    assert b"  card 0." in cg_hints("--explain", "--table", stdin=valid).stdout


def test_the_version_is_printed(cg_hints: Any) -> None:
    result = cg_hints("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"cg-hints {cg.__version__}\n".encode(), b"")


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (["request.json"], b"", "cg-hints < request.json"),
        (["request.json"], b"", "cg-hints --query WORDS request.json"),
        ([], b"", "standard input is empty"),
        ([], b" \n", "standard input is empty"),
        (["--first", "baseline"], b"", "--first goes with --merge strict"),
        (["--query", "x", "no/such/file"], b"", "cannot be read: No such file"),
    ],
)
def test_a_mistake_is_told_with_what_to_do_instead(
    cg_hints: Any, arguments: list[str], stdin: bytes, words: str
) -> None:
    assert words in error_of(cg_hints(*arguments, stdin=stdin))["message"]


def test_text_comes_out_as_it_went_in(cg_hints: Any, valid: dict[str, Any]) -> None:
    valid["documents"][0]["id"] = odd = "결제\u2028\x00\n😀"
    candidates = json.loads(cg_hints(stdin=valid).stdout)["candidates"]
    assert odd in [c["id"] for c in candidates]


def test_a_table_is_printed_for_people(cg_hints: Any, valid: dict[str, Any]) -> None:
    lines = cg_hints("--table", stdin=valid).stdout.decode().splitlines()
    assert len(lines) == 4 and lines[1].split()[:3] == ["1", "cache", "hint"]


@pytest.mark.parametrize(
    ("body", "code"), [(b"", "invalid_json"), (b"\xff", "invalid_utf8"), (b'{"a":1}', "unknown_field")]
)
def test_a_refusal_is_one_line_on_stderr(cg_hints: Any, body: bytes, code: str) -> None:
    assert error_of(cg_hints(stdin=body))["code"] == code


@pytest.mark.parametrize(
    "arguments", [["--limit", "9" * 5000], ["--limit", "x"], ["--bound", "x"], ["--verify", "true", "--timeout", "y"]]
)
def test_a_number_that_cannot_be_read_is_refused_in_words(cg_hints: Any, arguments: list[str]) -> None:
    """No name of a function stands in the message, and no page of digits."""
    said = cg_hints(*arguments, stdin={}).stderr
    assert b"error" in said and b"_positive" not in said and b"_bound" not in said and b"seconds value" not in said
    assert len(said) < 400


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["request.json"],
        ["--first", "both"],
        ["--first", "baseline"],
        ["--merge", "strict", "--bound", "2"],
        ["--bound", "0.9"],
        ["--bound", "9"],
        ["--bound", "nan"],
        ["--merge", "loose"],
        ["--analyzer", "english"],
        ["--limit", "0"],
        ["--fields", "id=a"],
        ["--query", "x", "--lines"],
        ["--query", "x", "--fields", "id"],
        ["--query", "x", "--fields", "title=a"],
        ["--query", "x", "--fields", "text=a+"],
        ["--verify", "true", "--explain"],
        ["--line"],
        ["--lines", "--table"],
        ["--budget", "3"],
        ["--timeout", "3"],
        ["--verify", "true", "--table"],
        ["--verify", "true", "--budget", "0"],
        ["--verify", "true", "--budget", "x"],
        ["--verify", "true", "--timeout", "0"],
        ["--verify", "true", "--timeout", "nan"],
        ["--verify", "true", "--timeout", "1e9"],
        ["--verify", ""],
        ["--verify", "'unbalanced"],
        ["--verify", "no-such-program-anywhere"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_refused_like_a_wrong_request(cg_hints: Any, arguments: list[str]) -> None:
    assert error_of(cg_hints(*arguments))["code"] == "usage"


def test_help_documents_every_exit_code_and_error_code(cg_hints: Any) -> None:
    shown = cg_hints("--help").stdout.decode()
    assert all(f"\n  {code} " in shown for code in (0, 1, 2, 3, 4, 130)) and "{{" not in shown
    assert {code.value for code in Code} <= set(shown.replace("(", " ").replace(")", " ").split())


def test_the_documentation_lists_the_closed_set_of_codes() -> None:
    """Every code has its row in docs/hints.md, and no row names another."""
    rows = [
        line.split("`")[1] for line in (ROOT / "docs/hints.md").read_text("utf-8").splitlines() if line[:3] == "| `"
    ]
    assert rows == [code.value for code in Code]


def test_a_fault_of_ours_is_exit_1_without_content(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The kind and the place of the fault are shown; its message might quote the request."""

    def broken(*_: Any) -> Any:
        raise RuntimeError("secret-canary")

    monkeypatch.setattr(cli, "read_body", broken)
    assert cli.main([]) == 1
    out, err = capfdbinary.readouterr()
    assert out == b"" and b"canary" not in err
    assert json.loads(err)["error"]["code"] == "internal" and b"RuntimeError" in err


HEAVY = {
    "numpy", "asyncio", "subprocess", "hashlib", "dataclasses", "inspect", "ssl", "socket", "logging",
    "typing", "argparse", "gettext", "shutil", "locale", "cg.hints.verify",
}  # fmt: skip


def loaded_by(statement: str, stdin: bytes = b"") -> set[str]:
    """The modules that a new interpreter has after `statement` and had not before."""
    program = f"import sys\nbefore = set(sys.modules)\n{statement}\n"
    program += "sys.stderr.write(' '.join(set(sys.modules) - before))"
    result = subprocess.run([sys.executable, "-c", program], input=stdin, capture_output=True, check=True)
    return set(result.stderr.decode().split())


def test_what_is_not_needed_is_not_imported(valid: dict[str, Any]) -> None:
    """Start-up is most of the price of a small request, and `typing` or argparse alone would double our share of it."""
    loaded = loaded_by("from cg.hints.cli import main\nassert main([]) == 0", json.dumps(valid).encode())
    assert "cg.hints.request" in loaded and not HEAVY & loaded


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("import cg") <= {"cg", "__future__"}


# --lines


def answers(result: "subprocess.CompletedProcess[bytes]") -> list[Any]:
    assert (result.returncode, result.stderr) == (0, b"")
    return [json.loads(line) for line in result.stdout.split(b"\n")[:-1]]


def test_lines_are_answered_in_order_with_errors_in_their_place(cg_hints: Any, valid: dict[str, Any]) -> None:
    body = json.dumps(valid)
    other = json.dumps(valid | {"documents": valid["documents"][:1] + valid["documents"][2:]})
    got = answers(cg_hints("--lines", stdin="\n".join([body, "", "{", body, other, body]).encode()))
    codes = [answer["error"]["code"] if "error" in answer else "" for answer in got]
    assert codes == ["", "invalid_json", "invalid_json", "", "snapshot_conflict", ""]
    single = json.loads(cg_hints(stdin=valid).stdout)
    assert got[0] == got[3] == got[5] == single


def test_no_lines_no_answers(cg_hints: Any) -> None:
    assert answers(cg_hints("--lines")) == []


def test_a_line_is_answered_before_the_next_is_sent(valid: dict[str, Any]) -> None:
    """A caller may wait for each answer: nothing is held back in a buffer."""
    command = [sys.executable, "-m", "cg.hints.cli", "--lines"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for _ in range(3):
            process.stdin.write(json.dumps(valid).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["candidates"][0]["id"] == "cache"
        process.stdin.close()
        assert process.wait(30) == 0


# Hostile sizes and ends

FEED = """
import os, sys
chunk, left = (sys.argv[2] * 65536).encode(), int(sys.argv[1])
try:
    while left > 0:
        left -= os.write(1, chunk)
    os.write(1, sys.argv[3].encode())
except BrokenPipeError:
    pass
"""
MEASURE = """
import resource, sys
from cg.hints.cli import main
code = main(sys.argv[1:])
try:  # ru_maxrss of Linux starts at what the parent had when it started us, which would hide our own peak
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
except (OSError, IndexError):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
sys.stderr.write(f"{peak}\\n")
sys.exit(code)
"""


def fed(size_bytes: int, filler: str, tail: str, *arguments: str) -> tuple[int, bytes, bytes, int]:
    """(exit code, stdout, stderr, peak resident bytes) of the command under `size_bytes` of filler and a tail."""
    feeder = subprocess.Popen([sys.executable, "-c", FEED, str(size_bytes), filler, tail], stdout=subprocess.PIPE)
    try:
        command = [sys.executable, "-c", MEASURE, *arguments]
        result = subprocess.run(command, stdin=feeder.stdout, capture_output=True, timeout=300)
    finally:
        assert feeder.stdout
        feeder.stdout.close()
        feeder.wait(60)
    error, peak = result.stderr.rstrip(b"\n").rpartition(b"\n")[::2]
    return result.returncode, result.stdout, error, int(peak)


@POSIX
@pytest.mark.parametrize("filler", [" ", "["])
def test_ten_gigabytes_are_refused_after_16_mib_with_flat_memory(filler: str) -> None:
    """The refusal comes at the limit: the rest is never read, and memory holds one largest request."""
    _, _, _, bare = fed(1, " ", "")
    code, out, error, peak = fed(10 * 10**9, filler, "")
    assert (code, out, json.loads(error)["error"]["code"]) == (2, b"", "request_too_large")
    assert peak - bare < 40 * 2**20


@POSIX
def test_an_endless_line_costs_no_more_than_one_request(valid: dict[str, Any]) -> None:
    """With --lines an overlong line is passed over in constant memory and the next one is answered."""
    size_bytes = (10 * 10**9) if os.environ.get("CG_LONG") else 300_000_000
    _, _, _, bare = fed(1, " ", "")
    code, out, _, peak = fed(size_bytes, "x", "\n" + json.dumps(valid), "--lines")
    first, second = (json.loads(line) for line in out.splitlines())
    assert code == 0 and first["error"]["code"] == "request_too_large" and len(second["candidates"]) == 3
    assert peak - bare < 60 * 2**20


@POSIX
@pytest.mark.parametrize("piece", ["[],", "{},", '"",', "1,", '{"a":'])
def test_a_hostile_request_costs_about_its_own_size(piece: str) -> None:
    """16 MiB of the smallest JSON values are refused where they cannot belong, not built first."""
    _, _, _, bare = fed(1, " ", "")
    body = b'{"documents":[' + piece.encode() * ((16 * 2**20 - 100) // len(piece))
    result = subprocess.run([sys.executable, "-c", MEASURE], input=body, capture_output=True, timeout=60)
    assert result.returncode == 2
    assert int(result.stderr.split(b"\n")[1]) - bare < 60 * 2**20


@POSIX
def test_a_reader_that_goes_away_ends_the_command_quietly(valid: dict[str, Any]) -> None:
    command = [sys.executable, "-m", "cg.hints.cli", "--lines"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate((json.dumps(valid) + "\n").encode() * 5, timeout=60)
    assert (process.returncode, err) == (141, b"")


@POSIX
def test_an_interrupt_ends_the_command_quietly(valid: dict[str, Any]) -> None:
    command = [sys.executable, "-m", "cg.hints.cli", "--lines"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(valid).encode() + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")


@POSIX
def test_a_closed_standard_input_is_refused() -> None:
    result = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m cg.hints.cli <&-', sys.executable], capture_output=True, timeout=60
    )
    assert error_of(result)["code"] == "invalid_json"


@POSIX
@pytest.mark.parametrize("sink", ["2>/dev/full", "2>&-"])
def test_a_refusal_that_cannot_be_told_is_still_exit_2(sink: str) -> None:
    """A full disk or a closed descriptor behind stderr changes nothing of the answer."""
    if "full" in sink and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    script = f'exec "$0" -m cg.hints.cli {sink}'
    result = subprocess.run(["/bin/sh", "-c", script, sys.executable], input=b"x", capture_output=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (2, b"", b"")


@POSIX
def test_a_refusal_whose_reader_went_away_is_still_exit_2() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cg.hints.cli"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr
    process.stderr.close()
    process.stderr = None
    out, _ = process.communicate(b"x", timeout=60)
    assert (process.returncode, out) == (2, b"")


@POSIX
def test_an_argument_that_is_not_utf8_is_refused() -> None:
    command = [os.fsencode(sys.executable), b"-m", b"cg.hints.cli", b"--\xff"]
    error = error_of(subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60))
    assert error["code"] == "usage" and "\\udcff" in error["message"]


def test_a_long_argument_is_not_repeated_in_full(cg_hints: Any) -> None:
    error = error_of(cg_hints("--verify", "true", "--budget", "9" * 5000))
    assert error["code"] == "usage" and len(error["message"]) < 400
