"""A catalog is documents with their index: ask it any number of queries, each with hints of its own."""

from __future__ import annotations

from itertools import islice

from cg.bm25 import BM25Index
from cg.hints.combine import DEFAULT_BOUND, alternated, merged
from cg.hints.record import Record
from cg.hints.refusal import Code, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Literal, NotRequired, Protocol, TypedDict

    from cg.bm25 import Hits
    from cg.hints.combine import Bound, First, Source

    Analyzer = Literal["plain", "text", "code"]

    class Hinter(Protocol):
        """Makes hints for the texts that it was made for."""

        def order(self, query: str, ranked: Hits) -> list[int]:
            """Positions in the catalog, best first, from the lexical order of the query."""

    Producer = Callable[[Iterable[str]], Hinter]
else:
    TypedDict = dict  # what a typed dictionary is at run time, without importing `typing`

DEFAULT_ANALYZER: Analyzer = "text"
NAME_REPEATS = {"plain": 1, "text": 1, "code": 5}  # measured: of a file its path says the most, of a tool it does not
_FEW = 64  # candidates up to which looking each one's rank up is cheaper than a list of all ranks


class Document(Record):
    """One entry of the catalog: an opaque id, the text that is searched, and a name that is searched too."""

    id: str
    text: str
    name: str = ""


class Candidate(TypedDict):
    """One document in the combined order; `bm25_score` is lexical, never a confidence in this order."""

    id: str
    rank: int
    source: Source
    bm25_rank: int
    bm25_score: float
    status: Literal["unverified"]
    terms: NotRequired[dict[str, float]]


class Merge(Record):
    """How hints and baseline are mixed: lazily with a bound, or (`bound` None) in strict alternation."""

    bound: Bound | None
    first: First


LAZY = Merge(DEFAULT_BOUND, "hints")


def searched(document: Document, analyzer: str) -> str:
    """What is indexed of a document."""
    if not document.name:
        return document.text
    return (document.name + "\n") * NAME_REPEATS[analyzer] + document.text


def _documents(documents: Iterable[object]) -> Iterator[Document]:
    """Documents in any of the forms that programs have them in: records, mappings, pairs; a mapping of id to text."""
    pairs = documents.items() if isinstance(documents, dict) else documents
    for at, entry in enumerate(pairs):
        if isinstance(entry, Document):
            document = entry
        elif isinstance(entry, dict):
            document = Document(entry["id"], entry["text"], entry.get("name") or "")
        else:
            document = Document(*entry)  # type: ignore[misc]
        for field, value in zip(("id", "text", "name"), document, strict=True):
            if not isinstance(value, str):
                raise TypeError(f"documents[{at}].{field} must be a str, not {type(value).__name__}")
        yield document


class Catalog:
    """Documents in the caller's order and the index over them; immutable, so any number of threads may ask it.

    `documents` are mappings with `id`, `text` and perhaps `name`, pairs (id, text), or one dict of id to text.
    `producer` makes hints for queries that bring none: `cg.hints.producer.TableHints`. Raises Refusal(REPEATED_ID) where
    two documents have one id.
    """

    def __init__(
        self,
        documents: Mapping[str, str] | Iterable[Mapping[str, str] | tuple[str, str] | Document],
        *,
        analyzer: Analyzer = DEFAULT_ANALYZER,
        producer: Producer | None = None,
    ) -> None:
        self.documents = tuple(_documents(documents))
        self.position: dict[str, int] = {}
        for at, document in enumerate(self.documents):
            earlier = self.position.setdefault(document.id, at)
            if earlier != at:
                raise Refusal(Code.REPEATED_ID, f"documents[{earlier}] has the same id", f"documents[{at}].id")
        texts = [searched(document, analyzer) for document in self.documents]
        self.bm25 = BM25Index(texts, analyzer=analyzer)
        self._hinter = None if producer is None else producer(texts)

    def __len__(self) -> int:
        return len(self.documents)

    def order(
        self,
        query: str,
        hints: Iterable[str] | None = None,
        limit: int | None = None,
        *,
        bound: Bound = DEFAULT_BOUND,
    ) -> list[Candidate]:
        """The first `limit` candidates (all by default) for a query, the best first; `hints` are ids, best first.

        A document at BM25's rank r is among the first floor(bound * r), whatever the hints. Raises Refusal for a hint
        that names no document or is given twice, ValueError unless 1 <= bound <= 8.
        """
        positions = None if hints is None else self.positions(hints)
        return self.candidates(query, positions, limit, Merge(bound, "hints"))

    def positions(self, hints: Iterable[str]) -> list[int]:
        """Where the hinted documents stand; raises Refusal for one that is unknown or given twice."""
        found: dict[int, int] = {}
        for at, hint in enumerate(hints):
            position = self.position.get(hint)
            if position is None:
                raise Refusal(Code.UNKNOWN_HINT, "no document has this id", f"hints.ids[{at}]")
            earlier = found.setdefault(position, at)
            if earlier != at:
                raise Refusal(Code.REPEATED_HINT, f"hints.ids[{earlier}] is the same id", f"hints.ids[{at}]")
        return list(found)

    def candidates(
        self, query: str, hints: list[int] | None, limit: int | None = None, merge: Merge = LAZY, explain: bool = False
    ) -> list[Candidate]:
        """The candidates in combined order; `hints` are positions. What is past `limit` costs next to nothing."""
        hits = self.bm25.rank(query)
        if hints is None:
            hints = [] if self._hinter is None else self._hinter.order(query, hits)
        pairs = (
            alternated(hints, hits.docs, merge.first) if merge.bound is None else merged(hints, hits.docs, merge.bound)
        )
        page = list(pairs if limit is None else islice(pairs, min(limit, len(self.documents))))
        ranks, scores = _ranks(hits, [position for position, _ in page]), hits.scores
        out: list[Candidate] = [
            {
                "id": self.documents[position].id,
                "rank": rank,
                "source": source,
                "bm25_rank": bm25_rank,
                "bm25_score": scores[bm25_rank - 1],
                "status": "unverified",
            }
            for rank, ((position, source), bm25_rank) in enumerate(zip(page, ranks, strict=True), start=1)
        ]
        if explain:
            self._explain(query, [position for position, _ in page], out)
        return out

    def _explain(self, query: str, page: list[int], out: list[Candidate]) -> None:
        """Add to each candidate what the terms of the query gave it."""
        terms: dict[int, dict[str, float]] = {position: {} for position in page}
        for term, hits in self.bm25.explain(query):
            for position, share in hits:
                if position in terms:
                    terms[position][term] = share
        for position, candidate in zip(page, out, strict=True):
            candidate["terms"] = terms[position]


def _ranks(hits: Hits, positions: list[int]) -> list[int]:
    """The rank from 1 of each of these documents."""
    if len(positions) <= _FEW:
        return [hits.index(position) + 1 for position in positions]
    rank = [0] * len(hits)
    for at, position in enumerate(hits.docs, start=1):
        rank[position] = at
    return [rank[position] for position in positions]
