"""The pages that are made from the code, the picture of the imports, and the check of the links."""

import xml.etree.ElementTree as ET
from pathlib import Path

import documented
import pytest
from docsite import accessible, api, codes, commands, configuration, docstrings, imports, links, picture, stage

from cg.gateway import settings
from cg.gateway.events import Fault
from cg.gateway.telemetry import metric_families
from cg.sweep import config
from cg.sweep.counters import Decline, Event

PACKAGE = Path(__file__).parents[2] / "src" / "cg"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return stage.made()


# -- made from the code ----------------------------------------------------------------------------------------------------


def test_what_is_made_from_the_code_stands_fresh_in_docs() -> None:
    """A reader of the repository sees what the site shows; `python tools/docs.py --write` makes it again."""
    assert list(stage.stale()) == []


def test_a_page_that_is_not_as_it_would_be_made_is_stale_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed or missing; what is fresh is left alone."""
    monkeypatch.setattr(stage, "ROOT", tmp_path)
    monkeypatch.setattr(stage, "made", lambda: {"reference/a.md": "new", "b.svg": "same"})
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.svg").write_text("same")
    assert stage.write() == ["reference/a.md"]
    assert stage.stale() == {}
    (tmp_path / "docs" / "b.svg").write_text("old")
    assert stage.stale() == {"b.svg": "same"}


def test_every_key_stands_in_the_reference_with_its_range_variable_and_flag(made: dict[str, str]) -> None:
    """No key of [sweep] or [proxy] can be read and not be found."""
    lines = made["reference/configuration.md"].splitlines()
    for prefix, key in [(config.ENVIRONMENT_PREFIX, k) for k in config.KEYS]:
        [line] = [line for line in lines if line.startswith(f"| `{key.name}` ")]
        assert f" {key.range} " in line and f"`{prefix}{key.name.upper()}`" in line
    for each in settings.KEYS:
        [line] = [line for line in lines if line.startswith(f"| `{each.name}` ")]
        assert f" {each.range} " in line and f"`{settings.ENVIRONMENT_PREFIX}{each.name.upper()}`" in line
    [token] = [line for line in lines if line.startswith("| `token_file` ")]
    assert token.endswith("| `--token-file` |")


def test_a_list_is_called_what_the_file_calls_it(made: dict[str, str]) -> None:
    """A key that takes names or globs is no switch."""
    rows = [row for row in made["reference/configuration.md"].splitlines() if "list of names or globs" in row]
    assert rows and all("| array of strings |" in row for row in rows)


def test_a_preset_s_own_values_stand_in_its_column(made: dict[str, str]) -> None:
    """In the order of the presets."""
    [line] = [x for x in made["reference/configuration.md"].splitlines() if x.startswith("| `min_tokens` ")]
    assert "| `100` | `250` | `500` | `1000` |" in line


def test_a_default_is_shown_in_the_unit_of_its_key() -> None:
    """Megabytes, not bytes."""
    shown = {key.name: configuration.default_of(key) for key in settings.KEYS}
    assert shown["max_body_mb"] == "100" and shown["listen"] == "127.0.0.1:8788" and shown["observe"] == "false"


def test_every_option_of_every_command_stands_in_the_reference(made: dict[str, str]) -> None:
    """Those of subcommands too."""
    page = made["reference/commands.md"]
    for parser in commands.parsers().values():
        for one in (parser, *commands.subcommands(parser).values()):
            assert f"# {one.prog}\n" in page
            for action in one._actions:
                for option in action.option_strings:
                    assert f"`{option}" in page or f", {option}" in page or option in ("-h", "--help")


def test_every_code_stands_in_the_reference_with_a_meaning(made: dict[str, str]) -> None:
    """A comment in the source is its meaning, where no other text has one."""
    page = made["reference/codes.md"]
    for _, _, members in codes.SETS:
        for member in members:
            assert f"| `{member.value}` | " in page
    assert codes.comments(Event)["PUT_BACK"].startswith("originals that the store had let go of")


def test_the_api_reference_names_only_modules_that_are_there_or_to_come() -> None:
    """A module that was renamed would otherwise vanish from the reference in silence."""
    to_come = {"cg.sweep.store_redis", "cg.gateway.transport"}
    named = {module for _, _, modules in api.PAGES.values() for module in modules}
    there = {"cg." + ".".join(p.relative_to(PACKAGE).with_suffix("").parts) for p in PACKAGE.rglob("*.py")}
    assert named <= there | to_come


def test_compiled_code_has_the_signatures_of_its_stub() -> None:
    """With types and defaults, without self."""
    assert docstrings.stub("cg._bm25")["BM25Index.search"] == ("(query: str, k: SupportsIndex)", "Hits")
    assert docstrings.stub("cg._bm25")["BM25Index"][0].startswith("(texts: Iterable[str], *, analyzer: ")


def test_a_docstring_s_stars_and_bars_are_no_markup_outside_of_code() -> None:
    """Inside of backticks all stays as it is."""
    lines = ["a * b, `c * d_`, e_ and `f", "g*` h|"]
    docstrings.plain(None, "function", "x", None, None, lines)
    assert lines == ["a \\* b, `c * d_`, e\\_ and `f", "g*` h\\|"]


# -- the picture -------------------------------------------------------------------------------------------------------


def test_no_import_in_the_picture_goes_up_or_sideways() -> None:
    """The picture is drawn from top to bottom, and so are its arrows."""
    found = imports.edges(PACKAGE)
    assert found[("gateway", "sweep")] > 10 and found[("doors", "compiled")] > 3
    for a, b in found:
        assert imports.row_of(a) < imports.row_of(b), f"{a} imports {b}"


def test_an_import_that_goes_up_is_seen(tmp_path: Path) -> None:
    """Wherever in the code it stands, and by whatever form."""
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "x.py").write_text("def f():\n    from cg import gateway\n", "utf-8")
    (tmp_path / "y.py").write_text("import cg.hints.cli\nfrom cg import _bm25\n", "utf-8")
    assert imports.edges(tmp_path) == {("sweep", "gateway"): 1, ("doors", "hints"): 1, ("doors", "compiled"): 1}


def package_of(folder: Path, **files: str) -> Path:
    """A package whose files import what is given, by module name behind `cg.`, with its dots as two underscores."""
    for name in (*imports.ROOMS[:4], "kernels/bm25"):
        (folder / name).mkdir(parents=True)
    for name, named in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"from cg.{module} import x\n" for module in named.split()), "utf-8")
    return folder


def test_the_folders_of_a_room_stand_above_what_they_import(tmp_path: Path) -> None:
    """Whatever the room's folders are called; files of the room itself stand among them by name."""
    package = package_of(
        tmp_path,
        gateway__cli="gateway.http.app",
        gateway__http__app="gateway.sweeping.turns gateway.settings sweep.core.policy",
        gateway__sweeping__turns="gateway.sweeping.locks gateway.settings",
        gateway__sweeping__locks="",
        gateway__settings="",
    )
    assert imports.layers(package, "gateway") == [["cli"], ["http/"], ["sweeping/"], ["settings"]]


def test_folders_that_import_each_other_stand_in_one_row(tmp_path: Path) -> None:
    """A circle is drawn as one, and what both import below it."""
    package = package_of(
        tmp_path,
        sweep__a__x="sweep.b.y",
        sweep__b__y="sweep.a.x sweep.values",
        sweep__values="",
        sweep__cli="sweep.a.x",
    )
    assert imports.layers(package, "sweep") == [["cli"], ["a/", "b/"], ["values"]]


def test_a_module_that_a_folder_hands_out_is_seen_in_any_form_of_import(tmp_path: Path) -> None:
    """`from cg.sweep.core import policy`, `from cg.sweep import values` and `import cg.sweep.store` name a part alike."""
    package = package_of(tmp_path, sweep__core__policy="", sweep__values="", sweep__store="", sweep__cli="")
    forms = "from cg.sweep.core import policy\nfrom cg.sweep import values\ndef f():\n    import cg.sweep.store\n"
    (package / "sweep" / "cli.py").write_text(forms, "utf-8")
    assert imports.layers(package, "sweep") == [["cli"], ["core/", "store", "values"]]


def test_more_files_than_can_be_read_are_shown_as_their_number(tmp_path: Path) -> None:
    """A room without folders is one row, in no order."""
    few, many = (package_of(tmp_path / str(n), **{f"hints__m{i}": "" for i in range(n)}) for n in (3, 16))
    assert imports.layers(few, "hints") == [["m0", "m1", "m2"]]
    assert imports.layers(many, "hints") == [["16 files"]]


def test_no_name_of_the_picture_stands_outside_of_its_panel() -> None:
    """It is read at the width of a page."""
    root = ET.fromstring(picture.picture(PACKAGE))
    boxes = [(float(r.get("x", 0)), float(r.get("width", "0").rstrip("%"))) for r in root.iter(f"{SVG}rect")]
    assert max(x + width for x, width in boxes) <= picture.MARGIN + picture.PANEL_WIDTH
    assert float(root.get("viewBox", "").split()[2]) <= 860


def test_the_picture_says_in_words_what_it_shows() -> None:
    """Every arrow has its sentence, and every folder of the package its box."""
    drawn = picture.picture(PACKAGE)
    title = drawn.partition("<title>")[2].partition("</title>")[0]
    for a, b in imports.edges(PACKAGE):
        assert f"{a} imports {b}" in title
    for room in ("gateway", "replay", "sweep", "hints"):
        for folder in {path.relative_to(PACKAGE / room).parts[0] for path in (PACKAGE / room).glob("*/*.py")}:
            assert f">{folder}/</text>" in drawn


# -- written by hand, held to the code ----------------------------------------------------------------------------------


def test_every_fault_has_its_row() -> None:
    """And no row counts under a name that nobody counts under."""
    page = (documented.ROOT / "docs" / "operations.md").read_text("utf-8").partition("## What can go wrong")[2]
    page = page.partition("\n## ")[0]
    for fault in Fault:
        assert f'"{fault.value}"' in page, fault
    known = {member.value for member in (*Event, *Decline)} | {
        each.name for each in vars(metric_families).values() if isinstance(each, metric_families.Family)
    }
    for word in page.replace("{", "`").split("`"):
        if word.startswith(("cg_", "sweep_", "expand_")) and word not in ("cg_expand",):
            assert word in known, word


def test_every_counter_of_the_verdict_policy_is_one() -> None:
    """The same for the page of the verdicts."""
    page = (documented.ROOT / "docs" / "verdicts.md").read_text("utf-8")
    known = {member.value for member in (*Event, *Decline)}
    assert {word for word in page.split("`") if word.startswith("sweep_")} <= known


def test_the_files_and_folders_that_a_how_to_names_are_there() -> None:
    """A page that says what to touch must not name what is gone."""
    for page in (documented.ROOT / "docs" / "extend").glob("*.md"):
        for word in page.read_text("utf-8").split("`")[1::2]:
            if word.startswith(("src/", "tests/", "bench/", "docs/")) and "NAME" not in word:
                assert (documented.ROOT / word).exists(), f"{page.name}: {word}"


def test_the_index_leads_to_every_page() -> None:
    """So that a new page cannot be lost. (Each study is named by the page of the studies.)"""
    docs = documented.ROOT / "docs"
    named = {match["to"] for match in stage.LINK.finditer((docs / "index.md").read_text("utf-8"))}
    named |= {f"studies/{m['to']}" for m in stage.LINK.finditer((docs / "studies" / "README.md").read_text("utf-8"))}
    assert {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} - named == {"index.md"}


def test_the_lists_of_the_index_are_the_contents_of_the_site() -> None:
    """A heading, its pages, and what only the site has."""
    index = "# T\n\n[a](no.md)\n\n## Measured\n\n- [A](a.md): x\n- [B](bench/b.md)\n\n## Use it\n\n- [C](c.md)\n"
    made = stage.with_contents(index)
    assert made.count("```{toctree}") == 2
    assert ":caption: Measured\n:glob:\n\na\nbench/b\nstudies/*\n```" in made
    assert ":caption: Use it\n\nc\n```" in made


# -- links -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "wrong"),
    [
        ('<a href="b.html#there">x</a>', None),
        ('<a href="b.html#gone">x</a>', "b.html#gone: no such place on the page"),
        ('<a href="gone.html">x</a>', "gone.html: no such page"),
        ('<a href="https://example.org/x">x</a>', None),
        ('<a href="https:///x">x</a>', "https:///x: no host"),
        ('<img src="https://example.org/x.png">', "loads https://example.org/x.png"),
        ('<link rel="stylesheet" href="//cdn.example.org/x.css">', "loads //cdn.example.org/x.css"),
        ('<link rel="search" href="https://example.org/">', None),
        ('<script src="gone.js"></script>', "loads gone.js"),
        ('<img src="data:image/png;base64,AA==">', None),
    ],
)
def test_a_link_that_leads_nowhere_and_an_asset_from_elsewhere_are_found(
    html: str, wrong: str | None, tmp_path: Path
) -> None:
    """External links are looked at as text only: a check without a network is one that always runs."""
    (tmp_path / "a.html").write_text(html, "utf-8")
    (tmp_path / "b.html").write_text('<p id="there">', "utf-8")
    assert links.problems(tmp_path) == ([] if wrong is None else [f"a.html: {wrong}"])


def test_a_style_that_loads_from_elsewhere_is_found(tmp_path: Path) -> None:
    """Fonts are mostly asked for there."""
    (tmp_path / "a.css").write_text('@import "https://fonts.example/x.css"; b { background: url(#id) }', "utf-8")
    assert links.problems(tmp_path) == ["a.css: loads https://fonts.example/x.css"]


# -- what the theme leaves out -------------------------------------------------------------------------------------------


def test_what_scrolls_or_heads_or_stands_apart_is_named() -> None:
    """For readers who use a keyboard or a screen reader; what has no fault is left as it is."""
    page = (
        '<p class="caption" role="heading"><aside class="sidebar-drawer"><aside class="toc-drawer no-toc">'
        '<div class="table-wrapper docutils container"><th class="head"><p></p></th><th class="head"><p>x</p></th>'
    )
    assert accessible.mended(page) == (
        '<p class="caption" role="heading" aria-level="2"><aside class="sidebar-drawer" aria-label="Pages">'
        '<aside class="toc-drawer no-toc" aria-label="On this page"><div class="table-wrapper docutils container" '
        'tabindex="0" role="group" aria-label="Table"><td></td><th class="head"><p>x</p></th>'
    )


def test_a_link_to_a_file_leads_to_where_it_stands_on_the_site_or_says_where_it_is() -> None:
    """Pages keep the links that work in the repository."""
    here = Path("docs/extend/kind.md")
    assert stage.relinked("[x](../shape.md#csv)", here) == "[x](../shape.md#csv)"
    assert stage.relinked("[x](../../bench/README.md)", here) == "[x](../bench/README.md)"
    assert stage.relinked("[x](../../examples/hints/README.md)", here) == "x (`examples/hints/README.md`)"
    assert stage.relinked("[x](gone.md)", here) == "[x](gone.md)"
