"""Order a small catalog for a query: BM25, with an outside ordering mixed in at a bounded price.

Doors: `order` (documents and a query in, candidates out), `Catalog` (many queries over one index), `cg.hints.combine`
(the merges alone), `cg.hints.verify` (checks in that order), and the command `cg-hints`. Nothing is imported before it
is asked for, so that each costs only what it needs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cg.hints.catalog import Catalog as Catalog
    from cg.hints.ordering import order as order

__all__ = ["Catalog", "order"]


def __getattr__(name: str) -> Any:
    """`Catalog` and `order`, loaded when first asked for."""
    if name == "Catalog":
        from cg.hints.catalog import Catalog

        return Catalog
    if name == "order":
        from cg.hints.ordering import order

        return order
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
