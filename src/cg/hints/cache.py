"""The catalogs of the last few snapshots, so that --lines reads and indexes each of them once."""

from __future__ import annotations

from collections import OrderedDict
from sys import getsizeof

from cg.hints.catalog import DEFAULT_ANALYZER, Catalog
from cg.hints.limits import MAX_CACHED_BYTES, MAX_CACHED_CATALOGS
from cg.hints.record import Record
from cg.hints.refusal import Code, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cg.hints.catalog import Analyzer, Document, Producer


class _Entry(Record):
    catalog: Catalog
    written: str  # the JSON text that the documents were read from
    size_bytes: int


class CatalogCache:
    """Least recently used out first; not shared between threads.

    Bounded by number and by the bytes of ids, names and texts and of the JSON that they came in. All of it is kept and
    compared, not hashed: equality is then exact, and comparing is faster than a cryptographic digest.
    """

    def __init__(
        self,
        analyzer: Analyzer = DEFAULT_ANALYZER,
        max_catalogs: int = MAX_CACHED_CATALOGS,
        max_bytes: int = MAX_CACHED_BYTES,
        producer: Producer | None = None,
    ) -> None:
        self._producer = producer
        self._analyzer = analyzer
        self._max_catalogs = max_catalogs
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def read_before(self, text: str, at: int) -> tuple[Catalog, str] | None:
        """The catalog whose JSON, as it was read before, stands in `text` at `at`, and that JSON; None if it is new."""
        for entry in self._entries.values():
            if entry.written and text.startswith(entry.written, at):
                return entry.catalog, entry.written
        return None

    def get(self, snapshot_id: str, documents: tuple[Document, ...], written: str = "") -> Catalog:
        """The catalog of `documents`, indexed only if it is not remembered under `snapshot_id`.

        Raises Refusal(SNAPSHOT_CONFLICT) while the id is remembered with other documents.
        """
        entry = self._entries.get(snapshot_id)
        if entry is not None:
            known = entry.catalog.documents
            if known is not documents and known != documents:
                message = "this snapshot id was seen with other documents; a changed catalog needs a new id"
                raise Refusal(Code.SNAPSHOT_CONFLICT, message, "snapshot_id")
            self._entries.move_to_end(snapshot_id)
            return entry.catalog
        catalog = Catalog(documents, analyzer=self._analyzer, producer=self._producer)
        self._remember(snapshot_id, catalog, written)
        return catalog

    def _remember(self, snapshot_id: str, catalog: Catalog, written: str) -> None:
        size_bytes = getsizeof(snapshot_id) + getsizeof(written)
        size_bytes += sum(sum(map(getsizeof, document)) for document in catalog.documents)
        if size_bytes > self._max_bytes:
            return  # it would push everything else out and still not fit
        self._entries[snapshot_id] = _Entry(catalog, written, size_bytes)
        self._bytes += size_bytes
        while len(self._entries) > self._max_catalogs or self._bytes > self._max_bytes:
            self._bytes -= self._entries.popitem(last=False)[1].size_bytes
