"""Only what pyproject.toml cannot say: how the compiled modules are translated and linked.

Switches, each an environment variable set to 1:

CG_ABI3          one wheel for every CPython from 3.11 on (slower calls; a fallback, see docs/architecture.md)
CG_DEBUG_CYTHON  bounds and initialisation checks in the generated code, assertions in the headers, no optimisation
CG_SANITIZE      AddressSanitizer and UndefinedBehaviorSanitizer (gcc or clang); with all that CG_DEBUG_CYTHON checks
CG_COVERAGE      line tracing for Cython.Coverage; the C files stand beside their sources
CG_ANNOTATE      an HTML page beside each generated C file that shows where Python objects are touched
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup


def is_on(switch: str) -> bool:
    return os.environ.get(switch, "0") == "1"


# Each beside a build with the other level, in turns, least of four runs on a busy machine (gcc 12, x86-64). With -O2 a query
# over 65,536 passages takes 1.6 times as long, reading a body 1.03 to 1.09 times, cutting a text for reuse 1.0 to 1.1 times.
# With -O3 the others would be 5 to 24 percent larger: vectors of a catalog take 0.84 of the time, which nobody waits for,
# and cosines, shapes, verdicts and references 0.95 to 1.04.
VECTORISED = {"_bm25", "_reuse", "_transcript"}

# For a write past a buffer that a hostile text would find: it ends the process instead of going on. Every gcc and clang
# has these; bench/README.md says what they cost. A distribution's own level of the second one would be a redefinition.
HARDENED = ["-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
HARDENED_ELF = ["-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]  # addresses of functions are read-only once loaded


def compiler_flags(module: str) -> tuple[list[str], list[str]]:
    """(compile, link) flags of this platform's usual compiler."""
    if sys.platform == "win32":
        return ["/O2", "/fp:precise"], []
    # Contraction would fuse a*b + c on some processors and not on others: scores must be the same number everywhere.
    flags = ["-ffp-contract=off", "-fno-math-errno"]
    # An undeclared function would return an int, and a pointer from it would be cut in half.
    flags.append("-Werror=implicit-function-declaration")
    if is_on("CG_SANITIZE"):
        sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
        return [*flags, "-O1", "-g", *sanitizers], sanitizers[:1]
    if is_on("CG_DEBUG_CYTHON") or is_on("CG_COVERAGE"):
        return [*flags, "-O1", "-g"], []
    # Debug information from the interpreter's own flags would make the modules six times as large.
    level = "-O3" if module in VECTORISED else "-O2"
    return [*flags, *HARDENED, level, "-g0"], [] if sys.platform == "darwin" else ["-s", *HARDENED_ELF]


checked = is_on("CG_DEBUG_CYTHON") or is_on("CG_SANITIZE")
directives = {
    "language_level": "3",
    "boundscheck": checked,
    "wraparound": False,
    "initializedcheck": checked,
    "cdivision": True,
    "embedsignature": True,
    "auto_pickle": False,
    "autotestdict": False,
    "freethreading_compatible": True,
}
macros: list[tuple[str, str | None]] = [("CG_DEBUG", "1")] if checked else []
if is_on("CG_COVERAGE"):
    directives["linetrace"] = True
    macros += [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")]
options: dict[str, dict[str, object]] = {"build_ext": {"parallel": os.cpu_count()}}  # `--parallel 1` has it one by one
if is_on("CG_ABI3"):
    macros += [("Py_LIMITED_API", "0x030B0000"), ("CYTHON_LIMITED_API", "1")]
    # The limited interface has the first two as functions only, and raw memory, which is the C library's, not at all.
    macros += [("PyBytes_AS_STRING", "PyBytes_AsString"), ("PyBytes_GET_SIZE", "PyBytes_Size")]
    macros += [(f"PyMem_Raw{name}", name.lower()) for name in ("Malloc", "Calloc", "Realloc", "Free")]
    options["bdist_wheel"] = {"py_limited_api": "cp311"}

sources = sorted(path.as_posix() for path in Path("src/cg").glob("_*.pyx"))
extensions = [
    Extension(
        f"cg.{Path(source).stem}",
        [source],
        include_dirs=["src/cg/kernels"],
        define_macros=macros,
        libraries=[] if sys.platform == "win32" else ["m"],
        extra_compile_args=compiler_flags(Path(source).stem)[0],
        extra_link_args=compiler_flags(Path(source).stem)[1],
        py_limited_api=is_on("CG_ABI3"),
        depends=sorted(path.as_posix() for path in Path("src/cg/kernels").rglob("*.h")),
    )
    for source in sources
]
TRANSLATED = Path("build/cython")


def translated() -> list[Extension]:
    """The modules as C. An installer brings a new copy of Cython each time, whose age makes Cython translate again; a
    file that came out the same keeps its age, so that a second installation from one folder compiles nothing."""
    before = {path: (path.read_bytes(), path.stat()) for path in TRANSLATED.rglob("*.c")}
    modules = cythonize(
        extensions,
        compiler_directives=directives,
        build_dir=None if is_on("CG_COVERAGE") else TRANSLATED.as_posix(),
        annotate=is_on("CG_ANNOTATE"),
    )
    for path, (content, stat) in before.items():
        if path.read_bytes() == content:
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return modules


setup(ext_modules=translated(), options=options)
