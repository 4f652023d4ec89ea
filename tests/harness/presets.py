"""The sweep's presets by name, with some keys set."""

from dataclasses import replace
from typing import Any

from cg.sweep.config import Config, load


def paid(**keys: Any) -> Config:
    """The preset that asks the model between requests."""
    return replace(load(preset="paid"), **keys)
