#!/usr/bin/env bash
# Build with AddressSanitizer and UndefinedBehaviorSanitizer in a folder of its own and run the tests of the compiled
# modules on that build.  Usage: tools/sanitize.sh [pytest arguments]   (Python with Cython, setuptools, pytest, hypothesis)
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(mktemp -d) && trap 'rm -rf "$build"' EXIT
cp -r pyproject.toml setup.py README.md LICENSE src tests docs examples "$build"
cd "$build" && rm -f src/cg/*.so
CG_SANITIZE=1 python setup.py -q build_ext --inplace
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(tests/test_bm25*.py tests/test_shape*.py tests/test_verdict*.py tests/test_transcript*.py)
# The interpreter itself keeps memory to its end, so leaks are looked for by tests that count, not here.
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so.6)" \
  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYTHONPATH=src HYPOTHESIS_PROFILE=sanitize \
  python -m pytest -q "${tests[@]}"
