"""A gateway for each test: `gateway(upstream.url)` serves on a port of its own until the test ends."""

import pytest

for needed in ("uvicorn", "httptools", "httpcore2"):
    pytest.importorskip(needed, reason=f"{needed} is not installed: the gateway is an extra")

from gateway_fixture import gateway  # noqa: E402

__all__ = ["gateway"]
