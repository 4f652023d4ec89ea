"""`cg-sweep replay`: the table, the JSON, the page, the exit codes."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import numpy
import pytest
from claude_log import Log, said
from replaying import TRANSCRIPTS

from cg.replay.batch import replay
from cg.replay.cli import main
from cg.replay.policies import parse
from cg.replay.reporting.resampling import bounds, sums
from cg.replay.reporting.summary import Summary, session_dict
from cg.replay.sessions import open_all
from cg.replay.settings import Settings

SMALL = [str(TRANSCRIPTS / f"{name}.json") for name in ("ctxeval-small-15", "entire-small-15", "swe-agent-demo-21")]
MID = str(TRANSCRIPTS / "entire-mid-70.json")
ROW = ["usd", "net_usd", "tokens", "asks", "ask_usd", "removals", "removed_tokens", "live_kept", "spent_dropped"]
ROW += ["rescued", "expansions", "prefix_breaks"]


def replayed(capsys, *arguments):
    code = main(["replay", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_table_says_what_each_policy_would_have_cost(capsys):
    """One line a policy, one a session, and what the figures rest on."""
    code, out, err = replayed(capsys, *SMALL)
    assert code == 0 and err == ""
    for name in ("none", "quiet", "cold", "best case"):
        assert re.search(rf"^{name} +\$", out, re.M), name
    for name in ("ctxeval-small-15", "entire-small-15", "swe-agent-demo-21"):
        assert re.search(rf"^{name} ", out, re.M), name
    assert "2.9 bytes a token" in " ".join(out.split()) and "3 sessions, " in out


def test_json_has_the_contracts_keys(capsys):
    """sessions with name, error and a row for each policy; the totals beside them."""
    code, out, _ = replayed(capsys, "--json", "--policy", "paid", "--policy", "cold", "--judge", "index", *SMALL)
    report = json.loads(out)
    assert code == 0 and set(report) == {"sessions", "total", "lifetimes", "answer"}
    assert [session["name"] for session in report["sessions"]] == [
        "ctxeval-small-15",
        "entire-small-15",
        "swe-agent-demo-21",
    ]
    for session in report["sessions"]:
        assert session["error"] is None and list(session["policies"]) == ["none", "paid/index", "cold"]
        for row in session["policies"].values():
            assert set(ROW) <= set(row)
            assert set(row["tokens"]) == {"fresh", "read", "write_5m", "write_1h", "output"}
    sums = [sum(s["policies"]["cold"]["units"] for s in report["sessions"]), report["total"]["cold"]["units"]]
    assert sums[0] == pytest.approx(sums[1])
    assert report["total"]["none"]["net_units"] == 0


def test_net_is_nones_bill_less_its_own(capsys):
    """A positive net is money saved."""
    _, out, _ = replayed(capsys, "--json", "--policy", "cold", MID)
    rows = json.loads(out)["sessions"][0]["policies"]
    assert rows["cold"]["net_usd"] == pytest.approx(rows["none"]["usd"] - rows["cold"]["usd"])


def test_what_cannot_be_read_is_named_and_skipped(capsys, tmp_path):
    """The rest is priced; the exit code tells."""
    damaged = tmp_path / "damaged.json"
    damaged.write_text('{"format": "agent-session/1", "events": [')
    foreign = tmp_path / "notes.json"
    foreign.write_text('{"hello": "world"}')
    code, out, err = replayed(capsys, "--policy", "cold", SMALL[0], str(damaged), str(foreign))
    assert code == 3 and "ctxeval" not in err
    assert "damaged.json: " in err and "1 file without a session of its own: notes.json\n" in err
    code, out, err = replayed(capsys, "--policy", "cold", SMALL[0], str(foreign))
    assert code == 0 and err == "1 file without a session of its own: notes.json\n"
    code, out, _ = replayed(capsys, "--json", "--policy", "cold", SMALL[0], str(damaged))
    errors = {session["name"]: session["error"] for session in json.loads(out)["sessions"]}
    assert code == 3 and errors["ctxeval-small-15"] is None and errors["damaged"]


def test_a_session_says_what_of_it_is_counted_elsewhere_and_alone_has_no_star(capsys, tmp_path):
    """Else a log that another one continues would seem to have lost requests."""
    log = Log()
    for n in range(5):
        log.user(f"go {n}")
        log.answer(f"m{n}", said(f"a {n}"))
        if n == 2:
            log.write(tmp_path / "a.jsonl")
    log.write(tmp_path / "b.jsonl")
    _, out, _ = replayed(capsys, str(tmp_path), "--policy", "none", "--ttl", "1h")
    assert "Requests that an earlier log holds too are counted there: b 3." in out
    assert "\n* the lifetime" in out
    _, alone, _ = replayed(capsys, str(tmp_path / "b.jsonl"), "--policy", "none", "--ttl", "1h")
    assert "counted there" not in alone and "\nthe lifetime is not the one recorded" in alone


def test_nothing_usable_is_a_failure(capsys, tmp_path):
    """An empty folder, a path that is not there, only damaged files: exit 2."""
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "nowhere.json"):
        code, out, err = replayed(capsys, str(path))
        assert code == 2 and out == "" and path.name in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--policy", "all"],
        ["--judge", "oracle:1/2/3"],
        ["--keep", "-1"],
        ["--verdict-tokens", "0"],
        ["--jobs", "0"],
        ["--prices", "nowhere.toml"],
        ["--replies", "nowhere"],
        ["--policy", "paid/replies"],
        ["--fixed-tokens", "-5"],
    ],
)
def test_a_refused_argument_says_what_may_stand_there(arguments, capsys):
    """Exit 2, nothing on stdout, one line on stderr."""
    code, out, err = replayed(capsys, *arguments, SMALL[0])
    assert code == 2 and out == "" and err.startswith("cg-sweep: ") and err.count("\n") == 1


def test_prices_from_a_file_are_used(capsys, tmp_path):
    """Twice the price, twice the dollars; the units are the same."""
    rows = []
    for price in (4, 8):
        table = tmp_path / f"{price}.toml"
        table.write_text(f'[models."claude-opus-4-6"]\ninput = {price}\n')
        _, out, _ = replayed(capsys, "--json", "--policy", "none", "--prices", str(table), SMALL[0])
        rows.append(json.loads(out)["sessions"][0]["policies"]["none"])
    assert rows[1]["usd"] == pytest.approx(2 * rows[0]["usd"]) and rows[1]["units"] == rows[0]["units"]


def test_recorded_replies_judge(capsys, tmp_path):
    """DIR/SESSION/001.txt answers the first ask; without a file the ask has failed and nothing goes."""
    folder = tmp_path / "entire-mid-70"
    folder.mkdir()
    drops = [{"i": i, "needed_by": "none", "quote": "", "verdict": "drop"} for i in range(12)]
    for n in range(1, 9):
        (folder / f"{n:03}.txt").write_text(json.dumps(drops))
    arguments = ["--json", "--policy", "paid", "--judge", "replies", "--ttl", "5m"]
    counts = []
    for replies in (tmp_path, tmp_path / "entire-mid-70"):
        _, out, _ = replayed(capsys, *arguments, "--replies", str(replies), MID)
        row = json.loads(out)["sessions"][0]["policies"]["paid/replies"]
        counts.append(row["removals"] + row["rescued"])
    assert counts[0] > 0 == counts[1]


def test_a_page_that_needs_nothing_else(capsys, tmp_path):
    """One file: no script, nothing loaded, names escaped, each plot there."""
    log = json.loads((TRANSCRIPTS / "entire-mid-70.json").read_text("utf-8"))
    log["name"] = "<b>&mid"
    session = tmp_path / "session.json"
    session.write_text(json.dumps(log), "utf-8")
    page = tmp_path / "report.html"
    code, _, _ = replayed(capsys, "--html", str(page), "--policy", "cold", "--policy", "paid", str(session), SMALL[1])
    html = page.read_text("utf-8")
    assert code == 0 and "&lt;b&gt;&amp;mid" in html and "<b>" not in html
    assert "<script" not in html and "http" not in html and "url(" not in html and "src=" not in html
    for label in (
        "Cost per request by tier",
        "Whether the cached prefix was held",
        "Removed outputs and their later use",
    ):
        assert f'aria-label="{label}"' in html
    assert html.count("<svg") == html.count("</svg>") >= 8


def test_the_page_can_be_read_without_seeing_it(capsys, tmp_path):
    """Plots have a title and say what they show; tables have captions and heads; what scrolls can be reached by keyboard."""
    page = tmp_path / "report.html"
    replayed(capsys, "--html", str(page), *SMALL, MID)
    html = page.read_text("utf-8")
    for drawing in re.findall(r"<svg.*?</svg>", html, re.S):
        label = re.search(r'role="img" aria-label="([^"]+)"', drawing)
        assert label and f"<title>{label[1]}</title>" in drawing
    for label in (
        "The bill over time",
        "Cost per request by tier",
        "Tokens that each request carried",
        "Removed outputs by tool",
    ):
        assert re.search(rf"<title>{label}[^<]*</title><desc>[^<]+</desc>", html), label
    tables = re.findall(r"<table>.*?</table>", html, re.S)
    assert len(tables) >= 4 + len(SMALL)
    for each in tables:
        assert "<caption>" in each and 'scope="col"' in each and each.count('scope="row"') == each.count("<tr") - 1
    framed = re.findall(r'<div class="wide"([^>]*)>', html)
    assert framed and all('tabindex="0" role="group" aria-label=' in attributes for attributes in framed)
    heads = [int(n) for n in re.findall(r"<h([1-6])", html)]
    assert heads[0] == 1 and heads.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(heads, heads[1:], strict=False))
    assert "prefers-color-scheme:dark" in html and '<html lang="en">' in html


def test_a_session_on_the_page_opens_to_its_requests(capsys, tmp_path):
    """One line a request, cold ones marked, with what was removed there; the removed are told by tool and later use."""
    page = tmp_path / "report.html"
    _, out, _ = replayed(capsys, "--html", str(page), "--policy", "quiet", "--json", MID)
    html = page.read_text("utf-8")
    row = json.loads(out)["total"]
    [table] = [each for each in re.findall(r"<table>.*?</table>", html, re.S) if "Tokens by request" in each]
    assert table.count("<tr") - 1 == json.loads(out)["sessions"][0]["requests"]
    assert table.count('<tr class="late">') == row["none"]["cold_requests"] > 0
    removed = [line.split("<td>")[-1] for line in table.split("<tr")[2:]]
    assert sum(int(n) for n in re.findall(r"^(\d+)<", "\n".join(removed), re.M)) == row["quiet"]["removals"] > 0
    by_tool = re.search(r"<title>Removed outputs by tool[^<]*</title><desc>([^<]*)</desc>", html)
    assert by_tool and sum(map(int, re.findall(r"(\d+) removed", by_tool[1]))) == row["quiet"]["removals"]
    assert sum(map(int, re.findall(r"(\d+) used later", by_tool[1]))) == row["quiet"]["used_later"]


def test_the_answer_stands_first_on_the_page(capsys, tmp_path):
    """Every sentence of the table's answer, and its lines, before any plot."""
    page = tmp_path / "report.html"
    paths = [str(TRANSCRIPTS)]
    _, out, _ = replayed(capsys, "--html", str(page), *paths)
    html = unescape(page.read_text("utf-8"))
    answer = out.split("\n\n", 4)[-1].rpartition("Switch on")
    assert answer[1]
    words = " ".join((answer[1] + answer[2]).replace("\n\n", "\n").split())
    start, plot = html.index("Switch on", html.index("<main>")), html.index("<svg")
    assert start < plot
    top = html[html.index("<main>") : plot]
    for paragraph in re.findall(r"<p>(.*?)</p>", top, re.S):
        assert " ".join(paragraph.split()) in words
    assert top.count("<p>") >= 8 and 'preset = "quiet"' in top


def test_any_executor_gives_the_same_results():
    """Sessions are independent: threads, processes or a cluster change nothing."""
    policies, settings = parse(["cold", "paid"]), Settings()
    paths = [*SMALL, "nowhere.json"]
    alone = [session_dict(r) for r in replay(open_all(paths), policies, settings)]
    with ThreadPoolExecutor(2) as pool:
        threads = [session_dict(r) for r in replay(open_all(paths), policies, settings, executor=pool, jobs=2)]
    assert threads == alone and alone[-1]["error"]


def test_jobs_are_processes(capsys):
    """--jobs 2 prints what --jobs 1 prints."""
    reports = [replayed(capsys, "--json", "--policy", "cold", "--jobs", jobs, *SMALL) for jobs in ("1", "2")]
    assert reports[0] == reports[1]


def test_a_dask_cluster_is_an_executor_too():
    """Two workers of a local cluster give the same rows."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    policies, settings = parse(["cold"]), Settings()
    alone = [session_dict(r) for r in replay(open_all(SMALL), policies, settings)]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = replay(open_all(SMALL), policies, settings, executor=client.get_executor(), jobs=2)
        assert [session_dict(r) for r in found] == alone


def test_intervals_come_from_the_sessions_and_are_the_same_every_time():
    """A policy that is a tenth cheaper everywhere has no width; one session has no interval."""

    def change(own, none):
        drawn = sums(numpy.array([own, none]).T)
        return bounds(drawn[:, 0] / drawn[:, 1] - 1)

    assert change([90.0, 180.0], [100.0, 200.0]) == pytest.approx((-0.1, -0.1))
    own, none = [80.0, 210.0, 95.0], [100.0, 200.0, 100.0]
    low, high = change(own, none)
    assert low < sum(own) / sum(none) - 1 < high
    assert change(own, none) == (low, high)
    summary = Summary()
    for result in replay(open_all(SMALL[:1]), parse(["cold"]), Settings()):
        summary.take(result)
    assert summary.interval(("cold", "client")) is None


def test_totals_hold_no_session():
    """Of ten thousand sessions only their bills are kept."""
    summary = Summary()
    for result in replay(open_all(SMALL), parse(["cold"]), Settings()):
        summary.take(result)
    assert summary.sessions == 3 and summary.change("none") == 0
    assert not any(isinstance(value, list) for value in vars(summary).values())


def test_the_sweeps_own_commands_load_nothing_of_the_replay():
    """`cg-sweep run` stands on an agent's request path: it starts without the replay and without numpy."""
    check = (
        "import sys; from cg.replay.cli import main\n"
        "try: main(['config', '--check'])\n"
        "finally: print(sorted(m for m in sys.modules if m.startswith('cg.replay') or m == 'numpy'))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['cg.replay', 'cg.replay.cli']"
