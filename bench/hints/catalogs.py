"""Queries with the right documents in a catalog, read from any folder, or file, of this form.

`catalogs.jsonl`: {"catalog", "source", "kind", "licence", "documents": [{"id", "text"}, ...]} on each line.
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


class Case(NamedTuple):
    """A query and the ids of which each would answer it."""

    query: str
    gold: frozenset[str]


def _lines(path: Path) -> list[dict]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_requests(file: Path) -> list[tuple[Catalog, list[Case]]]:
    """The catalog of each request of a file with its one case, in order."""
    found = []
    for number, row in enumerate(_lines(file)):
        ids, texts = [d["id"] for d in row["documents"]], [d["text"] for d in row["documents"]]
        catalog = Catalog(str(number), row["source"], row["kind"], row["licence"], ids, texts)
        found.append((catalog, [Case(row["query"], frozenset(row["gold"]))]))
    return found


def read_folder(folder: Path) -> list[tuple[Catalog, list[Case]]]:
    """Each catalog of the folder with its cases, both in the order of the files."""
    cases: dict[str, list[Case]] = {}
    for row in _lines(folder / "cases.jsonl"):
        cases.setdefault(row["catalog"], []).append(Case(row["query"], frozenset(row["gold"])))
    catalogs = []
    for row in _lines(folder / "catalogs.jsonl"):
        documents = row["documents"]
        ids, texts = [d["id"] for d in documents], [d["text"] for d in documents]
        catalogs.append(Catalog(row["catalog"], row["source"], row["kind"], row["licence"], ids, texts))
    return [(catalog, cases.get(catalog.name, [])) for catalog in catalogs]
