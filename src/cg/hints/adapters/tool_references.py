"""For the Messages API: a search tool of the client's own, whose result is `tool_reference` blocks.

The API expands the references to the definitions of tools that were sent with `defer_loading`, so found tools are called
by their own names and the head of the prompt stays as it is.
"""

from __future__ import annotations

import json
from typing import Any

from cg.hints.catalog import Catalog, Document
from cg.hints.limits import MAX_QUERY_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class ToolReferences:
    """The tools of a request with all but `loaded` deferred, and the results of the search over the deferred ones.

    `tools` are definitions with `name`, `description` and `input_schema`; what has a `type` of the provider's (its own
    tools) is sent as it is. `permit` says of a name whether the caller may use it: other tools are neither sent nor
    found. Immutable.
    """

    NAME = "search_tools"

    def __init__(
        self, tools: Iterable[Mapping[str, Any]], *, loaded: Iterable[str] = (), permit: Any = None, limit: int = 5
    ) -> None:
        from cg.hints.producer import TableHints

        self.limit = limit
        kept, sent, documents = frozenset(loaded), [dict(self._definition())], []
        for tool in tools:
            name = tool["name"]
            if name == self.NAME:
                raise ValueError(f"a tool is called {self.NAME}, as the search is")
            if permit is not None and not permit(name):
                continue
            if name in kept or tool.get("type", "custom") != "custom":
                sent.append(dict(tool))
                continue
            sent.append({**tool, "defer_loading": True})
            schema = json.dumps(tool["input_schema"], ensure_ascii=False)
            documents.append(Document(name, f"{tool.get('description') or ''} {schema}", name))
        self.tools: list[dict[str, Any]] = sent
        self._catalog = Catalog(documents, producer=TableHints) if documents else None

    def _definition(self) -> dict[str, Any]:
        return {
            "name": self.NAME,
            "description": "Find tools for a task, in the task's own words. What is found can be called afterwards.",
            "input_schema": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "what the tool should do"}},
                "required": ["query"],
            },
        }

    def result(self, tool_use_id: str, tool_input: Mapping[str, Any]) -> dict[str, Any]:
        """The `tool_result` for the model's call of the search; an input that is none is an error the model can read."""
        query = tool_input.get("query")
        if not isinstance(query, str) or len(query.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
            content: Any = f"query must be text of at most {MAX_QUERY_BYTES} bytes"
            return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": True}
        found = [] if self._catalog is None else self._catalog.order(query, limit=self.limit)
        content = [{"type": "tool_reference", "tool_name": candidate["id"]} for candidate in found]
        return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content or "there are no more tools"}
