"""`tests/harness/gateway_process.py`, at the place where scripts from outside look for it."""

import runpy
import sys
from pathlib import Path

HARNESS = Path(__file__).parents[1] / "harness"

if __name__ == "__main__":
    sys.path.insert(0, str(HARNESS))
    runpy.run_path(str(HARNESS / "gateway_process.py"), run_name="__main__")
