"""The pages that are made from the code, the picture of the imports, and the check of the links."""

from pathlib import Path

import documented
import pytest
from docsite import accessible, api, codes, commands, configuration, docstrings, imports, links, stage

import cg
from cg.gateway import families, settings
from cg.gateway.events import Fault
from cg.sweep import config
from cg.sweep.counters import Decline, Event

PACKAGE = Path(cg.__file__).parent


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return stage.made()


# -- made from the code ----------------------------------------------------------------------------------------------------


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


def test_a_preset_s_own_values_stand_in_its_column(made: dict[str, str]) -> None:
    """In the order of the presets."""
    [line] = [x for x in made["reference/configuration.md"].splitlines() if x.startswith("| `min_tokens` ")]
    assert "| `500` | `250` | `1000` |" in line


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


def test_the_picture_says_in_words_what_it_shows(made: dict[str, str]) -> None:
    """Every arrow has its sentence."""
    title = made["imports.svg"].partition("<title>")[2].partition("</title>")[0]
    for (a, b), n in imports.edges(PACKAGE).items():
        assert f"{a} imports {b} in {n} files" in title


# -- written by hand, held to the code ----------------------------------------------------------------------------------


def test_every_fault_has_its_row() -> None:
    """And no row counts under a name that nobody counts under."""
    page = (documented.ROOT / "docs" / "faults.md").read_text("utf-8")
    for fault in Fault:
        assert f'"{fault.value}"' in page, fault
    known = {member.value for member in (*Event, *Decline)} | {
        each.name for each in vars(families).values() if isinstance(each, families.Family)
    }
    for word in page.replace("{", "`").split("`"):
        if word.startswith(("cg_", "sweep_", "expand_")) and word not in ("cg_expand",):
            assert word in known, word


def test_every_counter_of_the_verdict_policy_is_one() -> None:
    """The same for the page of the verdicts."""
    page = (documented.ROOT / "docs" / "verdict-policy.md").read_text("utf-8")
    known = {member.value for member in (*Event, *Decline)}
    assert {word for word in page.split("`") if word.startswith("sweep_")} <= known


def test_the_files_and_folders_that_a_how_to_names_are_there() -> None:
    """A page that says what to touch must not name what is gone."""
    for page in (documented.ROOT / "docs" / "extend").glob("*.md"):
        for word in page.read_text("utf-8").split("`")[1::2]:
            if word.startswith(("src/", "tests/", "bench/", "docs/")) and "NAME" not in word:
                assert (documented.ROOT / word).exists(), f"{page.name}: {word}"


def test_the_index_names_every_page() -> None:
    """So that a new page cannot be lost."""
    docs = documented.ROOT / "docs"
    named = {line for line in (docs / "index.md").read_text("utf-8").splitlines() if " " not in line}
    assert sorted({page.stem for page in docs.glob("*.md")} - named) == ["index"]


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
