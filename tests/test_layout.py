"""The shape of the package: small folders, and imports that point one way, between packages and inside of each."""

import ast
from pathlib import Path

import pytest

import cg

PACKAGE = Path(cg.__file__).parent

MOST_FILES = 15  # of one folder; the root holds the doors, the compiled modules and their stubs

# A folder may import itself and what stands under it in this table; compiled modules import nothing of cg.
MAY_IMPORT = {
    "gateway": {"replay", "sweep", "hints", "doors"},
    "replay": {"sweep", "hints", "doors"},
    "sweep": {"doors"},
    "hints": {"doors"},
    "doors": {"compiled"},
}

# Inside a package each line may import the lines above it, and nothing on its own line but itself. What stands alone is
# a file at the package's root, or a folder of that name.
LAYERS = {
    "sweep": [
        "bounded_cache config counters values",
        "body effects prices",
        "economics history ledger",
        "accounting planning",
        "judging store",
        "core storage",
        "driver storage/redis storage/sqlite store_memory",
        "drivers store_redis store_sqlite",
        "open_store",
        "cli",
    ],
    "replay": [
        "media",
        "policies prompt recordings row settings",
        "cache_model sessions",
        "reading",
        "about simulation",
        "run",
        "trace",
        "batch",
        "reporting",
        "cli",
    ],
    "gateway": [
        "events exchange loop_turns",
        "upstream",
        "settings",
        "http state",
        "replies telemetry turns",
        "expansion",
        "messages",
        "build embedded",
        "serve transport",
        "doctor",
        "cli",
    ],
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
            elif node.module and (PACKAGE.parent / Path(*node.module.split("."))).is_dir():
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
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


def place_in(package: str, module: str) -> str | None:
    """The name in LAYERS that a module of a package belongs to; None for the package itself."""
    parts = module.split(".")[2:]
    if len(parts) > 1 and "/".join(parts[:2]) in " ".join(LAYERS[package]).split():
        return "/".join(parts[:2])
    return parts[0] if parts else None


@pytest.mark.parametrize("package", LAYERS)
def test_inside_a_package_imports_point_to_earlier_layers(package: str) -> None:
    """So no two folders, and no file and a folder, import each other."""
    level = {name: number for number, line in enumerate(LAYERS[package]) for name in line.split()}
    wrong, seen = [], set()
    for path in sorted((PACKAGE / package).rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        here = place_in(package, ".".join(("cg", *(part for part in parts if part != "__init__"))))
        if here is None:
            continue
        seen.add(here)
        for name in imports_of(path):
            there = place_in(package, name) if name.startswith(f"cg.{package}.") else None
            if there not in (None, here) and level[there] >= level[here]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong
    assert seen == set(level), "LAYERS names what is not there"


def test_no_two_files_import_each_other() -> None:
    """Nor in a longer circle, inside a folder either."""
    names = {".".join(("cg", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in modules()}
    edges = {name: (imports_of(path) & set(names)) - {name} for name, path in names.items()}
    left = dict(edges)
    while free := [name for name, wanted in left.items() if not wanted & set(left)]:
        for name in free:
            del left[name]
    assert not left, f"circles among {sorted(left)}"


def test_a_folder_holds_few_files() -> None:
    """A reader sees a folder at a glance; C headers never stand beside Python."""
    source = Path(__file__).parents[1] / "src" / "cg"
    folders = [folder for folder in source.rglob("*") if folder.is_dir() and folder.name != "__pycache__"]
    for folder in folders:
        files = [path for path in folder.iterdir() if path.is_file() and path.stem != "__init__"]
        assert len(files) <= MOST_FILES, f"{folder.relative_to(source)}: {len(files)} files"
        assert not {".h", ".py"} <= {path.suffix for path in files}, folder
    assert not list(source.glob("*.h"))


def test_compiled_modules_import_nothing_of_cg() -> None:
    """A compiled module can be read, built and fuzzed alone."""
    source = Path(__file__).parents[1] / "src" / "cg"
    for path in [*source.glob("_*.pyx"), *(source / "kernels").rglob("*.pxd")]:
        for line in path.read_text("utf-8").splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"], ["cimport"]) and words[1].split(".")[0] == "cg":
                # Declarations and inline functions, which become part of the module that names them.
                included = source.parent / Path(*words[1].split(".")).with_suffix(".pxd")
                assert words[2] == "cimport" and included.exists(), f"{path.name}: {line}"
