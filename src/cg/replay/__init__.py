"""Recorded sessions, priced under a policy: what the sweep would have saved on the work already done.

Doors: `report`, which is `cg-sweep replay` as values, and the modules under it, one step each. Nothing is imported before
it is asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cg.replay.reporting.report import Report as Report
    from cg.replay.reporting.report import report as report

__all__ = ["Report", "report"]


def __getattr__(name: str) -> Any:
    """`report` and `Report`, loaded when first asked for."""
    if name in __all__:
        from cg.replay.reporting import report as module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
