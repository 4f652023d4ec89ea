"""A request in, a response out: the lexical order with the hints mixed in."""

from __future__ import annotations

from cg.hints.catalog import build_catalog, ranking
from cg.hints.combine import alternated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypedDict

    from cg.hints.catalog import Catalog
    from cg.hints.combine import First, Source
    from cg.hints.request import Request
else:
    TypedDict = dict  # what a typed dictionary is at run time, without importing `typing`


class Candidate(TypedDict):
    """One document in the combined order; `bm25_score` is lexical, never a confidence in this order."""

    id: str
    rank: int
    source: Source
    bm25_rank: int
    bm25_score: float
    status: Literal["unverified"]


class Response(TypedDict):
    """Every document of the request exactly once, in the order in which to inspect them."""

    snapshot_id: str
    query: str
    candidates: list[Candidate]


def order(request: Request, first: First = "hints", catalog: Catalog | None = None) -> Response:
    """The response to a request; `catalog`, if given, is the index over exactly the request's documents."""
    if catalog is None:
        catalog = build_catalog(request.documents)
    ranked = ranking(catalog, request.query)
    by_id = {request.documents[entry.position].id: entry for entry in ranked}
    hint_ids = request.hints.ids if request.hints is not None else ()
    combined = alternated(hint_ids, list(by_id), first)
    candidates: list[Candidate] = [
        {
            "id": id,
            "rank": rank,
            "source": source,
            "bm25_rank": by_id[id].rank,
            "bm25_score": by_id[id].score,
            "status": "unverified",
        }
        for rank, (id, source) in enumerate(combined, start=1)
    ]
    return {"snapshot_id": request.snapshot_id, "query": request.query, "candidates": candidates}
