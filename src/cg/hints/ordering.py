"""A request in, a response out: the lexical order with the hints mixed in."""

from __future__ import annotations

from cg.hints.catalog import DEFAULT_ANALYZER, LAZY, Catalog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypedDict

    from cg.hints.catalog import Analyzer, Candidate, Document, Merge, Producer
    from cg.hints.combine import Bound
    from cg.hints.request import Request
else:
    TypedDict = dict  # what a typed dictionary is at run time, without importing `typing`


class Response(TypedDict):
    """The documents of the request in the order in which to inspect them, each once: all, or as many as `limit` says."""

    snapshot_id: str
    query: str
    candidates: list[Candidate]


def respond(request: Request, merge: Merge = LAZY, catalog: Catalog | None = None, explain: bool = False) -> Response:
    """The response to a request; `catalog`, if given, is the index over exactly the request's documents."""
    if catalog is None:
        catalog = Catalog(request.documents)
    hints = None if request.hints is None else [catalog.position[id] for id in request.hints.ids]
    candidates = catalog.candidates(request.query, hints, request.limit, merge, explain)
    return {"snapshot_id": request.snapshot_id, "query": request.query, "candidates": candidates}


def order(
    documents: Mapping[str, str] | Iterable[Mapping[str, str] | tuple[str, str] | Document],
    query: str,
    hints: Iterable[str] | None = None,
    limit: int | None = None,
    *,
    analyzer: Analyzer = DEFAULT_ANALYZER,
    bound: Bound = 2.0,
    producer: Producer | None = None,
) -> list[Candidate]:
    """The first `limit` documents (all by default) for one query, the best first; see `Catalog` and `Catalog.order`."""
    return Catalog(documents, analyzer=analyzer, producer=producer).order(query, hints, limit, bound=bound)
