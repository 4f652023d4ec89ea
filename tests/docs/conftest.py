"""What the site is made with stands in tools/, which is no package of ours."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tools"))
