"""A catalog is the documents of one snapshot with their index; a bounded cache keeps the last few."""

from __future__ import annotations

from collections import OrderedDict
from sys import getsizeof

from cg.bm25 import BM25Index
from cg.hints.limits import MAX_CACHED_BYTES, MAX_CACHED_CATALOGS
from cg.hints.record import Record
from cg.hints.refusal import Code, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cg.hints.request import Document


class Catalog(Record):
    """The documents in the caller's order and the index over their texts."""

    documents: tuple[Document, ...]
    bm25: BM25Index


class Ranked(Record):
    """One document's place in the lexical order: position in the catalog, rank from 1, score."""

    position: int
    rank: int
    score: float


def build_catalog(documents: tuple[Document, ...]) -> Catalog:
    """The catalog of these documents, newly indexed."""
    return Catalog(documents, BM25Index([document.text for document in documents]))


def ranking(catalog: Catalog, query: str) -> list[Ranked]:
    """Every document, by BM25 score descending, then by position."""
    hits = catalog.bm25.rank(query)
    return [Ranked(int(doc), rank, float(score)) for rank, (doc, score) in enumerate(hits, start=1)]


class CatalogCache:
    """The catalogs of the last few snapshots, least recently used out first; not shared between threads.

    Bounded by number and by the bytes of ids and texts. The documents are kept and compared, not hashed: equality is
    then exact, and comparing is faster than a cryptographic digest.
    """

    def __init__(self, max_catalogs: int = MAX_CACHED_CATALOGS, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._max_catalogs = max_catalogs
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[Catalog, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, snapshot_id: str, documents: tuple[Document, ...]) -> Catalog:
        """The catalog of `documents`, indexed only if it is not remembered under `snapshot_id`.

        Raises Refusal(SNAPSHOT_CONFLICT) while the id is remembered with other documents.
        """
        entry = self._entries.get(snapshot_id)
        if entry is not None:
            catalog = entry[0]
            if catalog.documents != documents:
                message = "this snapshot id was seen with other documents; a changed catalog needs a new id"
                raise Refusal(Code.SNAPSHOT_CONFLICT, message, "snapshot_id")
            self._entries.move_to_end(snapshot_id)
            return catalog
        catalog = build_catalog(documents)
        self._remember(snapshot_id, catalog)
        return catalog

    def _remember(self, snapshot_id: str, catalog: Catalog) -> None:
        size_bytes = getsizeof(snapshot_id) + sum(getsizeof(d.id) + getsizeof(d.text) for d in catalog.documents)
        if size_bytes > self._max_bytes:
            return  # it would push everything else out and still not fit
        self._entries[snapshot_id] = (catalog, size_bytes)
        self._bytes += size_bytes
        while len(self._entries) > self._max_catalogs or self._bytes > self._max_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed
