"""For pydantic-ai: a search function for `ToolSearch(strategy=...)`, over tools marked `defer_loading=True`."""

from __future__ import annotations

import json
from typing import Any, Protocol

from cg.hints.catalog import Catalog, Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Definition(Protocol):
    """What is read of pydantic-ai's `ToolDefinition`."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def parameters_json_schema(self) -> dict[str, Any]: ...


def tool_search(limit: int = 10) -> Callable[[object, Sequence[str], Sequence[Definition]], list[str]]:
    """The function: the first `limit` names for the model's queries, which are taken as one.

    pydantic-ai hands over the deferred tools of the step, so tools that a toolset filtered out are not found. The index
    of the last list of tools is kept.
    """
    last: tuple[tuple[Document, ...], Catalog] | None = None

    def search(_context: object, queries: Sequence[str], tools: Sequence[Definition]) -> list[str]:
        nonlocal last
        documents = tuple(
            Document(
                tool.name,
                f"{tool.description or ''} {json.dumps(tool.parameters_json_schema, ensure_ascii=False)}",
                tool.name,
            )
            for tool in tools
        )
        if not documents:
            return []
        known = last  # one read: another thread may replace it
        if known is None or known[0] != documents:
            from cg.hints.producer import TableHints

            last = known = documents, Catalog(documents, producer=TableHints)
        return [candidate["id"] for candidate in known[1].order(" ".join(queries), limit=limit)]

    return search
