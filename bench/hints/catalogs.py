"""Queries with the right documents in a catalog, read from any folder, or file, of this form.

`catalogs.jsonl`: {"catalog", "source", "kind", "licence", "documents": [{"id", "text"}, ...]} on each line. A
document may have a "name" (measure.py's `code, names too` reads it).
`cases.jsonl`: {"case", "catalog", "query", "gold": [ids]} on each line. Other fields are left alone.
A file instead holds requests with a catalog of their own: {"query", "gold", "source", "kind", "licence", "documents"}.
"""

import json
from pathlib import Path
from typing import NamedTuple


class Catalog(NamedTuple):
    """The documents of one source, in their order."""

    name: str
    source: str
    kind: str
    licence: str
    ids: list[str]
    texts: list[str]
    names: list[str]


class Case(NamedTuple):
    """A query and the ids of which each would answer it."""

    query: str
    gold: frozenset[str]


def _lines(path: Path) -> list[dict]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _catalog(row: dict, name: str) -> Catalog:
    ids, texts, names = zip(*((d["id"], d["text"], d.get("name", "")) for d in row["documents"]), strict=True)
    return Catalog(name, row["source"], row["kind"], row["licence"], list(ids), list(texts), list(names))


def read_requests(file: Path) -> list[tuple[Catalog, list[Case]]]:
    """The catalog of each request of a file with its one case, in order."""
    found = []
    for number, row in enumerate(_lines(file)):
        found.append((_catalog(row, str(number)), [Case(row["query"], frozenset(row["gold"]))]))
    return found


def read_folder(folder: Path) -> list[tuple[Catalog, list[Case]]]:
    """Each catalog of the folder with its cases, both in the order of the files."""
    cases: dict[str, list[Case]] = {}
    for row in _lines(folder / "cases.jsonl"):
        cases.setdefault(row["catalog"], []).append(Case(row["query"], frozenset(row["gold"])))
    catalogs = []
    for row in _lines(folder / "catalogs.jsonl"):
        catalogs.append(_catalog(row, row["catalog"]))
    return [(catalog, cases.get(catalog.name, [])) for catalog in catalogs]
