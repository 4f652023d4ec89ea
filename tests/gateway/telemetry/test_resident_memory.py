"""What the system says of the process."""

import os
from pathlib import Path

import pytest

from cg.gateway.telemetry import stats


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="/proc is not there")
def test_resident_memory_is_that_of_this_process() -> None:
    """A Python process takes between 5 MB and 5 GB."""
    resident = stats.resident_bytes()
    assert resident is not None
    assert 5e6 < resident < 5e9
    assert resident % os.sysconf("SC_PAGE_SIZE") == 0


def test_a_system_that_does_not_say_has_no_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unknown is not zero."""
    monkeypatch.setattr(stats, "_STATM", tmp_path / "none")
    assert stats.resident_bytes() is None
