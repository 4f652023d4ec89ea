"""The comparisons measure on the same seeded collections as the asv benchmarks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
