#!/usr/bin/env bash
# Build and test on every other supported interpreter that this machine has; an absent one is named and skipped.
# CG_PYTHONS may list interpreters to use instead of looking for them.
set -euo pipefail
cd "$(dirname "$0")/.."
find_python() {     # a shim that leads to no interpreter exits non-zero, so each is asked for its own path
  local name=$1 candidate
  for candidate in "$name" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"${name#python}".*/bin/python; do
    "$candidate" -c 'import sys; print(sys.executable)' 2> /dev/null && return 0
  done
  return 1
}
for name in ${CG_PYTHONS:-python3.12 python3.13 python3.13t python3.14 python3.14t}; do
  if ! python=$(find_python "$name"); then echo "skipped: $name is not installed"; continue; fi
  venv=$(mktemp -d)
  "$python" -m venv "$venv"
  "$venv/bin/pip" install -q '.[dev]'

  if ! "$venv/bin/python" -m pytest -q > "$venv/log" 2>&1; then tail -n 60 "$venv/log"; rm -rf "$venv"; exit 1; fi
  echo "$name: $(tail -n 1 "$venv/log")"
  rm -rf "$venv"
done
