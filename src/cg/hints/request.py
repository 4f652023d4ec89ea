"""A request, read from hostile bytes by a reader that knows what may stand where.

A general JSON parser would build the whole value first: 16 MiB of `[[],[],...` become half a gigabyte of lists, deep
nesting meets the recursion limit, long numbers the digit limit, and a repeated key is gone before it can be named.
No boolean or free nesting is valid anywhere in a request, and one number, so this reader descends only where the contract
allows it and refuses at the first character that cannot belong: memory stays near the size of the request and every
refusal knows its path. Strings are decoded by the standard library's own scanner.
"""

from __future__ import annotations

import re
from json.decoder import WHITESPACE, JSONDecodeError, scanstring  # type: ignore[attr-defined]

from cg.hints.catalog import Document
from cg.hints.limits import MAX_DOCUMENTS, MAX_QUERY_BYTES, MAX_REQUEST_BYTES, MAX_TEXT_BYTES
from cg.hints.record import Record
from cg.hints.refusal import Code, Refusal, field_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import Any, NoReturn

    from cg.hints.catalog import Catalog

    ReadBefore = Callable[[str, int], tuple[Catalog, str] | None]

_KINDS = {'"': "a string", "{": "an object", "[": "an array", "t": "true", "f": "false", "n": "null"}
_NUMBER_STARTS = frozenset("-0123456789")
_WHOLE = re.compile(r"[1-9][0-9]*(?![0-9.eE])")
_MOST_DIGITS = 9  # of a limit; no catalog has as many documents


class Hints(Record):
    """An outside ordering of some of the ids, bound to the snapshot and the query it was made for."""

    snapshot_id: str
    query: str
    ids: tuple[str, ...]


class Request(Record):
    """A request that has passed every check of the contract."""

    snapshot_id: str
    query: str
    documents: tuple[Document, ...]
    hints: Hints | None
    limit: int | None = None  # candidates in the answer; None: all
    written: str = ""  # the JSON of the documents, if it is asked for


def read_request(body: bytes, read_before: ReadBefore | None = None) -> Request:
    """The request that `body` (UTF-8 JSON) holds; documents that `read_before` knows by their JSON are not read again.

    Raises Refusal for the first fault in reading order; faults between fields come after all faults inside them.
    """
    if len(body) > MAX_REQUEST_BYTES:
        raise Refusal(Code.REQUEST_TOO_LARGE, f"the request is over {MAX_REQUEST_BYTES} bytes")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise Refusal(Code.INVALID_UTF8, f"byte {fault.start} is not valid UTF-8: {fault.reason}") from None
    if text.startswith("\ufeff"):
        raise Refusal(Code.INVALID_JSON, "the request starts with a byte order mark")
    reader = _Reader(text, read_before)
    request = reader.request()
    if request.hints is not None:
        _check_hints(request, request.hints, reader.ids)
    return request


def _check_hints(request: Request, hints: Hints, known: Container[str]) -> None:
    """Refuse hints that were made for something else or that name what is not in the catalog."""
    if hints.snapshot_id != request.snapshot_id:
        raise Refusal(Code.SNAPSHOT_MISMATCH, "the hints were made for another snapshot", "hints.snapshot_id")
    if hints.query != request.query:
        raise Refusal(Code.QUERY_MISMATCH, "the hints were made for another query", "hints.query")
    for position, hint in enumerate(hints.ids):
        if hint not in known:
            raise Refusal(Code.UNKNOWN_HINT, "no document has this id", f"hints.ids[{position}]")


class _Reader:
    """A position in the text; every method reads one value of the contract at `path` and leaves the position past it."""

    def __init__(self, text: str, read_before: ReadBefore | None) -> None:
        self._text = text
        self._at = 0
        self._read_before = read_before
        self._written = ""
        self.ids: dict[str, int] = {}  # of the documents, each with its position

    def request(self) -> Request:
        fields = self._object(
            "",
            {
                "snapshot_id": self._string,
                "query": self._query,
                "documents": self._documents,
                "hints": self._hints,
                "limit": self._limit,
            },
            optional=("hints", "limit"),
        )
        if self._peek():
            self._invalid("", "more text follows the request")
        return Request(
            fields["snapshot_id"],
            fields["query"],
            fields["documents"],
            fields.get("hints"),
            fields.get("limit"),
            self._written,
        )

    def _query(self, path: str) -> str:
        query = self._string(path)
        size_bytes = len(query.encode("utf-8"))
        if size_bytes > MAX_QUERY_BYTES:
            message = f"the query has {size_bytes} bytes of UTF-8, the limit is {MAX_QUERY_BYTES}"
            raise Refusal(Code.QUERY_TOO_LARGE, message, path)
        return query

    def _documents(self, path: str) -> tuple[Document, ...]:
        if self._read_before is None:
            return self._new_documents(path)
        self._peek()
        start, known = self._at, self._read_before(self._text, self._at)
        if known is None:
            documents = self._new_documents(path)
            self._written = self._text[start : self._at]
            return documents
        catalog, self._written = known
        self._at += len(self._written)  # an array ends where its bracket closes, whatever follows
        self.ids = catalog.position
        return catalog.documents

    def _new_documents(self, path: str) -> tuple[Document, ...]:
        documents: list[Document] = []
        text_bytes = 0

        def item(here: str) -> None:
            nonlocal text_bytes
            if len(documents) == MAX_DOCUMENTS:
                raise Refusal(Code.TOO_MANY_DOCUMENTS, f"there are more than {MAX_DOCUMENTS} documents", here)
            readers: dict[str, Callable[[str], Any]] = {"id": self._string, "text": self._string, "name": self._string}
            fields = self._object(here, readers, optional=("name",))
            document = Document(fields["id"], fields["text"], fields.get("name", ""))
            earlier = self.ids.setdefault(document.id, len(documents))
            if earlier != len(documents):
                raise Refusal(Code.REPEATED_ID, f"documents[{earlier}] has the same id", f"{here}.id")
            text_bytes += len(document.text.encode("utf-8")) + len(document.name.encode("utf-8"))
            if text_bytes > MAX_TEXT_BYTES:
                message = f"the texts so far have {text_bytes} bytes of UTF-8, the limit is {MAX_TEXT_BYTES}"
                raise Refusal(Code.TEXT_TOO_LARGE, message, f"{here}.text")
            documents.append(document)

        self._array(path, item)
        if not documents:
            raise Refusal(Code.NO_DOCUMENTS, "there is no document to order", path)
        return tuple(documents)

    def _null(self) -> bool:
        """Whether null stands here; it is passed over."""
        is_null = self._peek() == "n" and self._text.startswith("null", self._at)
        self._at += 4 * is_null
        return is_null

    def _limit(self, path: str) -> int | None:
        if self._null():
            return None
        self._peek()
        match = _WHOLE.match(self._text, self._at)
        if match is None:
            self._wrong_type("a whole number from 1 on", path)
        self._at = match.end()
        return int(match[0]) if len(match[0]) <= _MOST_DIGITS else None

    def _hints(self, path: str) -> Hints | None:
        if self._null():
            return None
        fields = self._object(path, {"snapshot_id": self._string, "query": self._query, "ids": self._hint_ids})
        return Hints(fields["snapshot_id"], fields["query"], fields["ids"])

    def _hint_ids(self, path: str) -> tuple[str, ...]:
        first_position: dict[str, int] = {}

        def item(here: str) -> None:
            if len(first_position) == MAX_DOCUMENTS:  # distinct so far, and no catalog has as many ids as that
                raise Refusal(Code.UNKNOWN_HINT, f"more than {MAX_DOCUMENTS} hints: one names no document", here)
            position = len(first_position)
            earlier = first_position.setdefault(self._string(here), position)
            if earlier != position:
                raise Refusal(Code.REPEATED_HINT, f"hints.ids[{earlier}] is the same id", here)

        self._array(path, item)
        return tuple(first_position)

    def _object(
        self, path: str, readers: dict[str, Callable[[str], Any]], optional: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The fields of one object, each read by its reader; every field but the optional ones has to be there."""
        self._expect("{", path)
        fields: dict[str, Any] = {}
        closed = self._skip("}")
        while not closed:
            name = self._name(path)
            here = field_path(path, name)
            if name not in readers:
                raise Refusal(Code.UNKNOWN_FIELD, "the contract has no such field", here)
            if name in fields:
                raise Refusal(Code.DUPLICATE_KEY, "the field is given twice", here)
            if not self._skip(":"):
                self._invalid(path, "':' is missing")
            fields[name] = readers[name](here)
            closed = self._closes("}", path)
        for name in readers:
            if name not in fields and name not in optional:
                raise Refusal(Code.MISSING_FIELD, "the field is required", field_path(path, name))
        return fields

    def _array(self, path: str, item: Callable[[str], None]) -> None:
        self._expect("[", path)
        closed, position = self._skip("]"), 0
        while not closed:
            item(f"{path}[{position}]")
            position += 1
            closed = self._closes("]", path)

    def _name(self, path: str) -> str:
        if self._peek() != '"':
            self._invalid(path, "a field name is missing")
        return self._decoded(path)

    def _string(self, path: str) -> str:
        if self._peek() != '"':
            self._wrong_type("a string", path)
        return self._decoded(path)

    def _decoded(self, path: str) -> str:
        try:
            value: str
            value, self._at = scanstring(self._text, self._at + 1, True)
        except JSONDecodeError as fault:
            self._at = fault.pos
            self._invalid(path, "the string is cut, or holds a control character or an unknown escape")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Refusal(Code.LONE_SURROGATE, "half a surrogate pair is not text", path) from None
        return value

    def _expect(self, opening: str, path: str) -> None:
        if not self._skip(opening):
            self._wrong_type(_KINDS[opening], path)

    def _closes(self, closing: str, path: str) -> bool:
        """Whether the container ends here; False after a comma."""
        if self._skip(closing):
            return True
        if not self._skip(","):
            self._invalid(path, f"',' or '{closing}' is missing")
        return False

    def _peek(self) -> str:
        """The next character that is no white space, or "" at the end."""
        self._at = WHITESPACE.match(self._text, self._at).end()
        return self._text[self._at : self._at + 1]

    def _skip(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def _wrong_type(self, wanted: str, path: str) -> NoReturn:
        found = self._peek()
        kind = "a number" if found in _NUMBER_STARTS else _KINDS.get(found)
        if found in "tfn" and not self._text.startswith(("true", "false", "null"), self._at):
            kind = None
        if not found or kind is None:
            self._invalid(path, f"{wanted} is missing")
        raise Refusal(Code.WRONG_TYPE, f"{wanted} is needed, {kind} was given", path)

    def _invalid(self, path: str, what: str) -> NoReturn:
        place = "the end" if self._at >= len(self._text) else f"character {self._at}"
        raise Refusal(Code.INVALID_JSON, f"{what} at {place}", path)
