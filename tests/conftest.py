"""Shared set-up: the slow oracles of tests/reference can be imported by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "reference"))
