"""Tools of other servers, as data: which are taken, what is searched of them, and how they are shown."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from cg.hints.catalog import Catalog, Document
from cg.hints.limits import MAX_DOCUMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MAX_TOOLS = 1000  # of one server; real ones list some tens, and a client that lists all refuses far fewer
MAX_SHOWN_CHARACTERS = 1000  # of a description in an answer: five results stay some thousand tokens
MAX_SEARCHED_CHARACTERS = 4000  # of one tool's texts together
MAX_SCHEMA_CHARACTERS = 16_000  # of a schema in an answer
_TOOL_NAME = re.compile(r"[!-~]{1,128}")  # the protocol's names and a little more; nothing that a reader cannot see
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # variation selectors: printable, unseen, carry data


class FoundTool(NamedTuple):
    """A tool that the caller may see; `id` is `server/tool`."""

    server: str
    name: str
    description: str
    parameters: str  # their names and descriptions, for the search
    schema: str  # JSON; empty where it is too long to be shown

    @property
    def id(self) -> str:
        return f"{self.server}/{self.name}"

    def shown(self) -> dict[str, Any]:
        """What an answer says of it."""
        text, schema = self.description, json.loads(self.schema) if self.schema else None
        if len(text) > MAX_SHOWN_CHARACTERS:
            text = text[:MAX_SHOWN_CHARACTERS] + "..."
        out = {"name": self.id, "description": text, "input_schema": schema}
        return out if self.schema else {**out, "note": "its schema is too long to be shown"}


def _parameters(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    words: list[str] = []
    for name, about in properties.items() if isinstance(properties, dict) else ():
        words.append(name)
        if isinstance(about, dict) and isinstance(about.get("description"), str):
            words.append(about["description"])
    return " ".join(words)[:MAX_SEARCHED_CHARACTERS]


def found_tool(server: str, name: str, title: str | None, description: str | None, schema: dict[str, Any]) -> FoundTool:
    text = " ".join(part for part in (title, description) if part)[:MAX_SEARCHED_CHARACTERS]
    try:
        written = json.dumps(schema, ensure_ascii=False)
    except (ValueError, RecursionError):
        written = ""
    return FoundTool(server, name, text, _parameters(schema), written if len(written) <= MAX_SCHEMA_CHARACTERS else "")


def admitted(tools: Iterable[FoundTool], permit: Callable[[str], bool]) -> tuple[tuple[FoundTool, ...], str]:
    """The tools of one server that are taken, and a sentence about those left out, empty where there are none.

    What the caller may not see leaves no trace in either.
    """
    taken: dict[str, FoundTool] = {}
    repeated = unfit = over = 0
    for tool in tools:
        if not permit(tool.id):
            continue
        if not _TOOL_NAME.fullmatch(tool.name):
            unfit += 1
        elif tool.name in taken:
            repeated += 1
        elif len(taken) == MAX_TOOLS:
            over += 1
        else:
            taken[tool.name] = tool
    notes = [
        f"{count} {why}"
        for count, why in (
            (repeated, "with a name that was listed before"),
            (unfit, "whose name is not of 1 to 128 visible ASCII characters"),
            (over, f"past the first {MAX_TOOLS}"),
        )
        if count
    ]
    return tuple(taken.values()), "tools left out: " + ", ".join(notes) if notes else ""


class ToolIndex:
    """The tools of all servers, searchable and found by name; immutable."""

    def __init__(self, tools: Iterable[FoundTool]) -> None:
        from cg.hints.producer import TableHints

        found = list(tools)
        self.left_out = max(0, len(found) - MAX_DOCUMENTS)
        self.of_id = {tool.id: tool for tool in found[:MAX_DOCUMENTS]}
        documents = [
            Document(tool.id, f"{tool.server} {tool.description} {tool.parameters}", tool.name)
            for tool in self.of_id.values()
        ]
        self._catalog = Catalog(documents, producer=TableHints) if documents else None

    def search(self, query: str, limit: int) -> list[FoundTool]:
        """The first `limit` tools for a query, the best first."""
        if self._catalog is None:
            return []
        return [self.of_id[candidate["id"]] for candidate in self._catalog.order(query, limit=limit)]


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]  # as ASCII: \\uXXXX, in two halves where one is not enough


def harmless_json(value: object) -> str:
    """JSON in which every character can be seen: controls, marks of direction and invisible ones are escapes."""
    text = json.dumps(value, ensure_ascii=False)
    if not text.isprintable():
        text = "".join(character if character.isprintable() else _escape(character) for character in text)
    return _SELECTORS.sub(lambda match: _escape(match[0]), text)
