"""The shape of the package: imports point one way."""

import ast
from pathlib import Path

import pytest

import cg

PACKAGE = Path(cg.__file__).parent

# A folder may import itself and what stands under it in this table; compiled modules import nothing of cg.
MAY_IMPORT = {
    "gateway": {"replay", "sweep", "hints", "doors"},
    "replay": {"sweep", "hints", "doors"},
    "sweep": {"doors"},
    "hints": {"doors"},
    "doors": {"compiled"},
}


def room_of(module: str) -> str:
    """The folder (or, at the top level, the kind of file) that a dotted module name belongs to."""
    name = module.split(".")[1] if "." in module else "doors"
    if name.startswith("_") and not name.startswith("__"):
        return "compiled"
    return name if name in MAY_IMPORT else "doors"


def imports_of(path: Path) -> set[str]:
    """Every `cg` module that a source file names in an import, at any depth of its code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            if node.module == "cg":
                found |= {f"cg.{alias.name}" for alias in node.names}
    return {name for name in found if name == "cg" or name.startswith("cg.")}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_one_way(path: Path) -> None:
    """gateway, replay -> sweep, hints -> doors -> compiled modules."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    here = room_of(".".join(("cg", *parts)))
    for name in imports_of(path):
        there = room_of(name)
        assert there == here or there in MAY_IMPORT[here], f"{path} imports {name}"


def test_compiled_modules_import_nothing_of_cg() -> None:
    """A compiled module can be read, built and fuzzed alone."""
    folder = Path(__file__).parents[1] / "src" / "cg"
    sources = [*folder.glob("_*.pyx"), *folder.glob("*.pxd")]
    for source in sources:
        for line in source.read_text("utf-8").splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"], ["cimport"]) and words[1].split(".")[0] == "cg":
                # Declarations and inline functions, which become part of the module that names them.
                included = source.parent / f"{words[1].removeprefix('cg.')}.pxd"
                assert words[2] == "cimport" and included.exists(), f"{source.name}: {line}"
                assert not included.with_suffix(".pyx").exists(), f"{source.name}: {line}"


def test_the_page_on_architecture_names_every_file_of_the_rooms() -> None:
    """A reader looks there for the place of a rule; a new file says there what it is for."""
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text("utf-8")
    rooms = ("sweep", "replay", "gateway")
    files = [path for room in rooms for path in (PACKAGE / room).glob("*.py") if path.stem != "__init__"]
    assert not [f"{path.parent.name}/{path.stem}" for path in files if f"`{path.stem}`" not in page]
