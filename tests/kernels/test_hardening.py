"""The compiled modules, as they lie on the disk: what keeps a write past a buffer from becoming more than a crash."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cg

MODULES = sorted(Path(cg.__file__).parent.glob("_*.so"))

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF files only"),
    pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf"),
]


def readelf(option: str, module: Path) -> str:
    return subprocess.run(["readelf", "-W", option, module], capture_output=True, text=True, check=True).stdout


@pytest.fixture(params=MODULES, ids=lambda module: module.name.partition(".")[0])
def module(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    if ".debug_info" in readelf("-S", found):
        pytest.skip("a build for debugging or sanitizers")
    return found


def test_a_broken_stack_ends_the_process(module: Path) -> None:
    """Functions with buffers check a canary before they return."""
    assert "__stack_chk_fail" in readelf("--dyn-syms", module)


def test_addresses_of_functions_are_read_only_once_loaded(module: Path) -> None:
    """Full RELRO: all is bound at load, and the table of it is locked."""
    assert "GNU_RELRO" in readelf("-l", module)
    assert "BIND_NOW" in readelf("-d", module)


def test_no_memory_is_both_written_and_run(module: Path) -> None:
    """Neither the stack nor a segment of the file."""
    loaded = [
        line.split() for line in readelf("-l", module).splitlines() if line.split()[:1] in (["LOAD"], ["GNU_STACK"])
    ]
    flags = ["".join(columns[6:-1]) for columns in loaded]
    assert len(flags) >= 2 and not [f for f in flags if "W" in f and "E" in f]


def test_copies_into_buffers_of_a_known_size_are_checked() -> None:
    """glibc's checked twins are called, by one module at least; musl has none."""
    symbols = [readelf("--dyn-syms", module) for module in MODULES]
    if any("debug_info" in readelf("-S", module) for module in MODULES) or not any("GLIBC" in s for s in symbols):
        pytest.skip("a build for debugging, or another C library")
    assert any("_chk@GLIBC" in s.replace("__stack_chk_fail", "") for s in symbols)
