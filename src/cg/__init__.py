"""Spend a language model's context window well: bounded-damage retrieval hints, and a sweep of spent tool outputs."""

from __future__ import annotations

TYPE_CHECKING = False  # a type checker takes it as true; importing `typing` would double what `import cg` costs
if TYPE_CHECKING:
    from typing import Any

    from cg.bm25 import BM25Index as BM25Index

__all__ = ["BM25Index", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`cg.BM25Index`, loaded when it is first asked for: `import cg` alone stays light."""
    if name == "BM25Index":
        from cg.bm25 import BM25Index

        return BM25Index
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
