"""Shared set-up: oracles, harnesses and the studies can be imported by name; how many examples hypothesis draws.

Each test names its full number, which CG_LONG=1 draws; HYPOTHESIS_PROFILE=sanitize (tools/sanitize.sh sets it) draws a
tenth, as a sanitized build is many times slower.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
sys.path[:0] = [str(folder) for folder in (TESTS / "reference", TESTS / "harness", TESTS.parent / "bench")]

# A shell starts background jobs with SIGINT ignored, and children inherit that: tests that interrupt one need it back.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Of the examples that each test asks for: all with CG_LONG=1, a tenth on a sanitized build, otherwise a half.
settings.register_profile("untimed", deadline=None)  # no test says how fast a machine is
settings.load_profile("untimed")

IS_LONG = os.environ.get("CG_LONG") == "1"
DIVISOR = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "sanitize" else 1 if IS_LONG else 2


def pytest_collection_modifyitems(items: "list[pytest.Item]") -> None:
    """Draw fewer examples than a test asks for; hypothesis has profiles, but a test's own number beats them."""
    for test in {getattr(item, "obj", None) for item in items}:  # once each, however many parameters it has
        asked = getattr(test, "_hypothesis_internal_use_settings", None)
        if DIVISOR > 1 and asked is not None:
            fewer = settings(asked, max_examples=max(1, asked.max_examples // DIVISOR))
            test._hypothesis_internal_use_settings = fewer


@pytest.fixture(autouse=True, scope="module")
def _leaks_stay_in_their_file() -> Iterator[None]:
    """What a file's tests left open is noticed there, not wherever the collector happens to run next."""
    yield
    gc.collect()
