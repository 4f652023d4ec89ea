"""Studies: one command on a folder of logs, pages whose figures say what makes them, and what a study varies."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from replaying import RECORDINGS, TRANSCRIPTS, recording
from studies import curves, pages, questions
from studies.__main__ import main
from studies.measure import About, Results, measure
from studies.moments import LIVE, SPENT, Moment, Seen, moments
from studies.variants import Variant, asked_in_request, cold, paid, pinged

from cg.errors import CgError
from cg.replay.recordings.hindsight import Label
from cg.replay.sessions import open_all

ROOT = Path(__file__).parents[2]
DOCS, TABLES = ROOT / "docs" / "studies", ROOT / "bench" / "results" / "studies"
SMALL = ("ctxeval-small-15", "entire-small-15")
MADE = re.compile(r"Made by `python bench/studies [^`]+`\.")


def folder_of(tmp_path: Path, *names: str) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in names:
        (logs / f"{name}.json").write_bytes((TRANSCRIPTS / f"{name}.json").read_bytes())
    return logs


def results_of(*variants: Variant, names: tuple[str, ...] = ("entire-mid-59", "entire-small-15")) -> Results:
    return measure(open_all([TRANSCRIPTS / f"{name}.json" for name in names]), variants)


# -- the command ---------------------------------------------------------------------------------------------------------


def test_one_command_writes_every_page_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any folder of logs gives a page and a plot for each study, and each page says how it was made."""
    logs, into = folder_of(tmp_path, *SMALL), tmp_path / "pages"
    assert main([str(logs), "--into", str(into)]) == 0
    names = {study.name for study in questions.every()}
    tables = into / "tables"
    assert {path.stem for path in into.glob("*.md")} == {path.stem for path in tables.glob("*.md")} == names
    assert {path.stem for path in into.glob("*.svg")} == names
    assert {path.stem for path in tables.glob("*.svg")} == {pages.CURVES}
    for path in into.rglob("*.svg"):
        assert ET.fromstring(path.read_text("utf-8")).tag.endswith("svg")
    for path in tables.glob("*.md"):
        text = path.read_text("utf-8")
        assert MADE.search(text), path.name
        assert "2 recordings, 28 requests" in text
        assert "nan" not in text
    for path in into.glob("*.md"):
        text = path.read_text("utf-8")
        assert f"({path.stem}.svg)" in text and f"(tables/{path.name})" in text
    assert len(capsys.readouterr().out.splitlines()) == 3 * len(names) + 1


def test_a_page_keeps_what_people_wrote_on_it(tmp_path: Path) -> None:
    """Only what stands between the marks is made anew; the conclusion is never touched again."""
    logs, into = folder_of(tmp_path, "entire-small-15"), tmp_path / "pages"
    arguments = [str(logs), "--into", str(into), "--tables", str(tmp_path / "more"), "--study", "spare-breakpoint"]
    assert main(arguments) == 0
    page, conclusion = tmp_path / "more" / "spare-breakpoint.md", into / "spare-breakpoint.md"
    first = page.read_text("utf-8")
    page.write_text(first.replace(pages.BEGIN, f"Our finding.\n\n{pages.BEGIN}\nold").replace("removed", "gone", 1))
    conclusion.write_text("It pays.")
    assert main(arguments) == 0
    again = page.read_text("utf-8")
    assert "Our finding." in again and "\nold" not in again
    assert first.partition(pages.BEGIN)[2] == again.partition(pages.BEGIN)[2]
    assert conclusion.read_text() == "It pays."


def test_a_page_without_its_marks_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page that lost its marks is named, and left as it is."""
    logs, tables = folder_of(tmp_path, "entire-small-15"), tmp_path / "pages" / "tables"
    tables.mkdir(parents=True)
    (tables / "spare-breakpoint.md").write_text("mine")
    assert main([str(logs), "--into", str(tables.parent), "--study", "spare-breakpoint"]) == 2
    assert "spare-breakpoint.md: has no lines" in capsys.readouterr().err
    assert (tables / "spare-breakpoint.md").read_text() == "mine"


def test_a_damaged_log_is_named_and_the_rest_is_studied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be read is skipped by name, and the exit code tells."""
    logs = folder_of(tmp_path, "entire-small-15")
    (logs / "broken.json").write_text('{"events": [')
    arguments = ["--into", str(tmp_path / "pages"), "--study", "spare-breakpoint"]
    assert main([str(logs), *arguments]) == 3
    assert "broken.json" in capsys.readouterr().err
    assert main([str(logs / "broken.json"), *arguments]) == 2


def test_the_number_of_workers_must_be_one_or_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A refused argument names its value and its range."""
    assert main([str(tmp_path), "--into", str(tmp_path), "--jobs", "0"]) == 2
    assert "jobs is 0; it must be 1 to" in capsys.readouterr().err


# -- the pages that stand in the repository --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [study.name for study in questions.every()])
def test_every_table_is_marked_with_the_command_that_makes_it(name: str) -> None:
    """Tables stand between the marks, under the command, and the plots that they show are there."""
    text = (TABLES / f"{name}.md").read_text("utf-8")
    before, begin, rest = text.partition(pages.BEGIN)
    block, end, after = rest.partition(pages.END)
    assert begin and end
    assert MADE.match(block.strip())
    assert not re.search(r"^\||!\[", before + after, re.M)
    for plot in re.findall(r"!\[[^]]*\]\(([^)]+)\)", block):
        assert (TABLES / plot).is_file()


@pytest.mark.parametrize("name", [study.name for study in questions.every()])
def test_every_conclusion_shows_its_plot_and_leads_to_its_tables(name: str) -> None:
    """And holds no table of its own, which the command would not renew."""
    text = (DOCS / f"{name}.md").read_text("utf-8")
    assert re.findall(r"!\[[^]]*\]\(([^)]+)\)", text) == [f"{name}.svg"]
    assert (DOCS / f"{name}.svg").is_file()
    assert f"](../../bench/results/studies/{name}.md)" in text
    assert not re.search(r"^\|", text, re.M)


def test_every_page_of_figures_names_the_command_that_makes_them() -> None:
    """Also the pages in the same folder that other commands make."""
    pages_with_tables = [path for path in TABLES.glob("*.md") if "\n| " in path.read_text("utf-8")]
    assert len(pages_with_tables) >= len(questions.every())
    for path in pages_with_tables:
        text = path.read_text("utf-8")
        if path.name == "waits.md":  # whose tables two commands print
            assert re.findall(r"`python (bench/replay/\w+\.py) [^`]+`", text) == [
                "bench/replay/resume.py",
                "bench/replay/pings.py",
            ]
            continue
        assert pages.BEGIN in text and pages.END in text, path.name
        assert re.search(r"`python [^`]+bench/results/studies[^`]*`", text), path.name


def test_the_tables_have_the_lines_of_the_studies() -> None:
    """A study that varies something else has to be run again: its page shows every variant, and no other."""
    for study in questions.every():
        block = (TABLES / f"{study.name}.md").read_text("utf-8").partition(pages.BEGIN)[2]
        table = block[block.index("\n| ") + 1 :].partition("\n\n")[0]
        rows = [[cell for cell in line.strip("| ").split(" | ") if cell.strip()] for line in table.splitlines()[2:]]
        found = [(panel.name, series, value) for panel in study.panels for series, value, _ in panel.variants()]
        wanted = [[word for word in words if word] for words in found]
        assert [row[: len(words)] for row, words in zip(rows, wanted, strict=True)] == wanted


# -- what is run ---------------------------------------------------------------------------------------------------------


def test_equal_variants_are_one() -> None:
    """The same settings under two studies are run once."""
    assert paid() == paid(window_s=60.0, min_tokens=500)
    assert len({paid(), paid(min_inventory=10), paid().at(300)}) == 2


def test_a_variant_is_compared_with_its_own_lifetime() -> None:
    """Doing nothing at an hour is no measure for a policy at five minutes."""
    found = results_of(cold(pings=0).at(300), cold(pings=0).at(3600))
    none = {ttl: sum(found.units(Variant(ttl_s=ttl))) for ttl in (300, 3600)}
    assert none[300] != none[3600]
    assert found.change(Variant(ttl_s=300)) == 0.0
    assert found.at_work(Variant(ttl_s=300)) == 0


def test_a_second_ask_is_made_where_the_wait_is_long_enough() -> None:
    """With two asks a gap there are more asks, and never more than twice as many."""
    one = paid(min_inventory=3, min_tokens=250).at(300)
    names = ("entire-mid-59", "cipherbox-long-175")
    twice = Variant(one.config, one.judge, ttl_s=300, way="ask 2")
    found = results_of(one, twice, names=names)
    asks = [found.total(v).bills["ask"].calls for v in (one, twice)]
    assert 0 < asks[0] < asks[1] <= 2 * asks[0]


def test_the_mixed_choice_takes_old_and_large_ones() -> None:
    """It asks as often as the others, about other outputs."""
    one = paid(min_tokens=250, ask_cap=4, min_inventory=4).at(300)
    mixed = Variant(one.config, one.judge, ttl_s=300, way="mixed")
    found = results_of(one, mixed, names=("cipherbox-long-175",))
    assert found.total(one).bills["ask"].calls == found.total(mixed).bills["ask"].calls > 0
    assert found.total(one).removed_tokens != found.total(mixed).removed_tokens


def test_pings_alone_remove_nothing_and_declare_nothing() -> None:
    """Keep-alive reads by themselves leave every body as the client sent it."""
    found = results_of(pinged(1).at(300), names=("entire-mid-59",))
    row, none = found.total(pinged(1).at(300)), found.total(Variant(ttl_s=300))
    assert row.bills["ping"].calls > 0 and not row.removals
    sizes = [sum(n for tier, n in r.bills["request"].tokens.items() if tier != "output") for r in (row, none)]
    assert sizes[0] == sizes[1]


def test_an_ask_in_a_request_waits_for_a_request_in_the_window() -> None:
    """Where no request comes in the window, nobody is asked."""
    variant = asked_in_request(min_inventory=1, min_tokens=250).at(3600)
    assert results_of(variant).total(variant).bills["ask"].calls == 0


def test_the_interval_of_one_session_is_unknown() -> None:
    """One recording gives no interval, and says so."""
    found = results_of(cold().at(300), names=("entire-small-15",))
    assert found.interval(cold().at(300)) is None


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    """A folder without a session is refused, not studied."""
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(CgError, match="no session could be read"):
        measure(open_all([tmp_path / "a.json"]), [cold()])


# -- the free rules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in RECORDINGS if "small" in name or "mid" in name])
def test_moments_label_outputs_as_hindsight_does(name: str) -> None:
    """At each moment an output's label is that of its own request; the newest message's outputs are not judged."""
    found = recording(name)
    labels = {SPENT: Label.SPENT, LIVE: Label.LIVE}
    for moment in moments(found):
        turns = [turn for turn in found.turns if turn.index <= moment.request]
        ids = [o.identity.tool_use_id for turn in turns for m in turn.messages for o in m.outputs]
        hindsight = [found.hindsight.label(i, moment.request) for i in ids]
        for value, label in labels.items():
            assert sum(seen.label == value for seen in moment.seen) <= hindsight.count(label)


def seen(newer: int, label: int, **keys: int) -> Seen:
    values = {"tokens": 1000.0, "later_turns": newer, "has_names": True, "references": 0, "since": newer}
    return Seen(**(values | keys), newer=newer, label=label)  # type: ignore[arg-type]


def rows(*found: Seen) -> np.ndarray:
    about = About("a", 1, len(found), True, 300, (Moment(0, True, found),))
    return curves.rows_of(Results([about]))


def test_what_a_rule_keeps_and_drops_is_counted_by_label() -> None:
    """Live outputs kept and spent ones dropped, as counts and as tokens."""
    table = rows(seen(3, SPENT, tokens=3000), seen(2, LIVE), seen(1, SPENT), seen(0, LIVE))
    found = curves.kept(table, curves.recency(table, 2))
    assert (found.live_kept, found.live, found.spent_dropped, found.spent) == (1, 2, 1, 2)
    assert found.spent_tokens == 0.75
    everything = curves.kept(table, curves.everything(table, 0))
    assert (everything.live_kept, everything.spent_tokens) == (0, 1.0)


def test_a_rescue_keeps_what_was_named_lately() -> None:
    """Recency with rescue drops a subset of what recency drops."""
    table = rows(seen(9, SPENT), seen(8, LIVE, references=2, since=4), seen(7, SPENT, references=1, since=40))
    assert curves.recency(table, 0).tolist() == [True, True, True]
    assert curves.rescued(table, 0).tolist() == [True, False, True]


def test_the_learnt_rule_never_sees_the_session_that_it_scores() -> None:
    """Turning the labels of one recording round does not change that recording's scores."""
    rng = np.random.default_rng(3)
    table = np.concatenate([rows(*(seen(int(n), int(rng.choice([SPENT, LIVE]))) for n in range(30))) for _ in range(3)])
    table["session"] = np.repeat([0, 1, 2], 30)
    before = curves.held_out(table)
    own = table["session"] == 1
    table["label"][own] = LIVE + SPENT - table["label"][own]
    after = curves.held_out(table)
    assert np.array_equal(before[own], after[own])
    assert not np.array_equal(before[~own], after[~own])


def test_the_fit_finds_what_separates() -> None:
    """Where age alone tells live from spent, the held-out score drops all spent ones before a live one."""
    table = np.concatenate([rows(*(seen(n, LIVE if n < 10 else SPENT) for n in range(20))) for _ in range(3)])
    table["session"] = np.repeat([0, 1, 2], 20)
    assert curves.spent_at(table, curves.held_out(table), 0.0) == 1.0


def test_the_figures_of_a_page_are_the_same_whoever_works(tmp_path: Path) -> None:
    """Two workers give the bytes of one."""
    logs = folder_of(tmp_path, *SMALL)
    made = []
    for jobs in ("1", "2"):
        into = tmp_path / "pages"
        assert main([str(logs), "--into", str(into), "--study", "which", "--jobs", jobs]) == 0
        made.append((into / "tables" / "which.md").read_bytes())
    assert made[0] == made[1]
