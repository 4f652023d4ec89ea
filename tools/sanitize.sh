#!/usr/bin/env bash
# Build with AddressSanitizer and UndefinedBehaviorSanitizer in a folder of its own and run the tests of the compiled
# modules on that build.  Usage: tools/sanitize.sh [pytest arguments]   (Python with Cython, setuptools, pytest, hypothesis)
# CG_SANITIZE_FUZZ=60 also forges BM25 index files for that many seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(mktemp -d) && trap 'rm -rf "$build"' EXIT
cp -r pyproject.toml setup.py README.md LICENSE src tests bench docs examples "$build"
cd "$build" && rm -f src/cg/*.so
CG_SANITIZE=1 python setup.py -q build_ext --inplace --parallel 2
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(tests/test_{bm25,shape,verdict,transcript,references,reuse}*.py)
# The interpreter itself keeps memory to its end, so leaks are looked for by tests that count, not here.
sanitized() {
  LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so.6)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc PYTHONPATH=src \
    HYPOTHESIS_PROFILE=sanitize python "$@"
}
# Findings go to the real standard error, which pytest would otherwise keep to itself when a finding ends the process.
sanitized -m pytest -q -n 0 --capture=sys "${tests[@]}"
[ -z "${CG_SANITIZE_FUZZ:-}" ] || sanitized bench/fuzz/bm25_files.py --seconds "$CG_SANITIZE_FUZZ"
