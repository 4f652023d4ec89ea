"""asv benchmarks; each measures the installed package."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # made sessions stand in bench/studies
